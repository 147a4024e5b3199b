"""How long a request may be: what cannot fit into its model's context window is refused before it is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from dialoom.prompts.messages import beyond_words
from dialoom.roles.binding import OBJECT, OFFLINE
from dialoom.roles.errors import ContextError
from dialoom.roles.tokens import COUNTER, tokens

from .calls import Request
from .context import too_long

PER_MESSAGE = 4
"""Tokens that a message takes besides its text, about."""

_TOLERANCE = 1.1
"""For windows out of LiteLLM's table: its models count otherwise than we do, and what is near is left to them."""

_UNLISTED = (OFFLINE, OBJECT, "python:", "graph:", "embed:")
_REPEATED = 10_000
"""Letters; so short a message is counted once, as conversations repeat theirs in every request."""


class Windows:
    """The context windows of models.

    Args:
        stated: Tokens of request and reply together, by model, as the user says.
    """

    def __init__(self, stated: Mapping[str, int]) -> None:
        self._stated = stated
        self._listed = lru_cache(maxsize=None)(_listed)

    def check(self, request: Request) -> None:
        """Refuse a request that cannot fit.

        Raises:
            ContextError: With its length, how that was counted, and what the model reads.
        """
        if (stated := self._stated.get(request.model)) is not None:
            self._check(request, stated, stated - (request.max_reply or 0), request.max_reply)
        elif request.api_base is None and (listed := self._listed(request.model)) is not None:
            self._check(request, listed, int(listed * _TOLERANCE), None)

    def _check(self, request: Request, window: int, room: int, reply: int | None) -> None:
        if _most(request) > room and (length := counted(request)) > room:
            asked = f"{length:,} tokens by {COUNTER}" + (f", and {reply:,} for the reply" if reply else "")
            raise ContextError(f"{request.model}: not sent, as {too_long(asked, f'{window:,}', request)}")


def counted(request: Request) -> int:
    """The tokens of a request, about."""
    return PER_MESSAGE * len(request.messages) + sum(map(_tokens, _texts(request)))


def _most(request: Request) -> int:
    """More tokens than it can have: each is a byte at least, and a letter has four at most."""
    most = sum(len(text) * (1 if text.isascii() else 4) for text in _texts(request))
    return PER_MESSAGE * len(request.messages) + most


def _texts(request: Request) -> list[str]:
    """All that it holds, tools and calls included."""
    rest = [*request.tools, *filter(None, map(beyond_words, request.messages))]
    return [*(message["content"] for message in request.messages), *map(json.dumps, rest)]


def _tokens(text: str) -> int:
    return _repeated(text) if len(text) <= _REPEATED else tokens(text)


_repeated = lru_cache(maxsize=8192)(tokens)


def _listed(model: str) -> int | None:
    """What LiteLLM's table says; `None` of a model that it does not know."""
    if model.startswith(_UNLISTED):
        return None
    from .litellm_backend import load_litellm

    try:
        found = load_litellm().get_model_info(model).get("max_input_tokens")
    except Exception:
        return None
    return found if isinstance(found, int) and found > 0 else None
