"""Context windows: requests that cannot fit are rejected, and servers are asked for their window."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import quote, urlsplit

from dialoom.prompts.messages import beyond_words
from dialoom.roles.binding import OBJECT, OFFLINE, ModelBinding
from dialoom.roles.errors import ContextError
from dialoom.roles.parameters import COUNTER, tokens

from .calls import Request
from .failures import too_long
from .provider_keys import provider_of

PER_MESSAGE = 4
"""Approximate number of tokens that a message takes besides its text."""

_TOLERANCE = 1.1
"""Tolerance for windows from LiteLLM's table: token counts differ between models, and close cases are sent."""

_UNLISTED = (OFFLINE, OBJECT, "python:", "graph:", "embed:")
_REPEATED = 10_000
"""Length, in characters, up to which token counts are cached: conversations repeat messages in every request."""


class Windows:
    """The context windows of models.

    Args:
        stated: Tokens of request and reply together, by model, as stated by the user.
    """

    def __init__(self, stated: Mapping[str, int]) -> None:
        self._stated = stated
        self._listed = lru_cache(maxsize=None)(_listed)

    def check(self, request: Request) -> None:
        """Reject a request that cannot fit.

        Raises:
            ContextError: With its length, the tokenizer used, and the model's window.
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
    """Return the approximate number of a request's tokens."""
    return PER_MESSAGE * len(request.messages) + sum(map(_tokens, _texts(request)))


def _most(request: Request) -> int:
    """Return an upper bound of a request's tokens: each has at least one byte, and a character at most four."""
    most = sum(len(text) * (1 if text.isascii() else 4) for text in _texts(request))
    return PER_MESSAGE * len(request.messages) + most


def _texts(request: Request) -> list[str]:
    """Return all texts of a request, including tools and tool calls."""
    rest = [*request.tools, *filter(None, map(beyond_words, request.messages))]
    return [*(message["content"] for message in request.messages), *map(json.dumps, rest)]


def _tokens(text: str) -> int:
    return _repeated(text) if len(text) <= _REPEATED else tokens(text)


_repeated = lru_cache(maxsize=8192)(tokens)


def _listed(model: str) -> int | None:
    """Return the window in LiteLLM's table; `None` for a model that is not listed."""
    if model.startswith(_UNLISTED):
        return None
    from .litellm_backend import load_litellm

    try:
        found = load_litellm().get_model_info(model).get("max_input_tokens")
    except Exception:
        return None
    return found if isinstance(found, int) and found > 0 else None


_SECONDS = 2.0
_MOST_BYTES = 4 * 2**20
_OLLAMA = ("ollama", "ollama_chat")
_OLLAMA_ADDRESS = "http://localhost:11434"
_SET = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


class ServedWindow(NamedTuple):
    """A model's window as reported by its server.

    Attributes:
        tokens: The window in tokens.
        holds_reply: Whether the window must hold the request and the maximum tokens of its reply together.
    """

    tokens: int
    holds_reply: bool = False


def served_window(binding: ModelBinding) -> ServedWindow | None:
    """Ask a model's server for its context window. No text of a run is sent.

    Args:
        binding: The model. One at its provider's own address is not asked.

    Returns:
        The window; `None` if there is no such server, or it does not report one.
    """
    provider, _, model = binding.model.partition("/")
    if not model or ":" in provider:
        return None
    provider = provider_of(binding.model)
    address = binding.api_base or os.environ.get(f"{provider.removesuffix('_chat').upper()}_API_BASE")
    if provider in _OLLAMA:
        return next(_of_ollama(address or _OLLAMA_ADDRESS, model, binding.params.get("num_ctx")), None)
    if address is None:
        return None
    return next(_of_openai(address, model, os.environ.get(f"{provider.upper()}_API_KEY")), None)


def _of_openai(address: str, model: str, key: str | None) -> Iterator[ServedWindow]:
    listed = _got(f"{address.rstrip('/')}/models", key=key).get("data")
    models = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    for each in models:  # vLLM
        if each.get("id") == model and _is_size(size := each.get("max_model_len")):
            yield ServedWindow(size, holds_reply=True)
    root = "{0.scheme}://{0.netloc}".format(urlsplit(address))
    properties = _got(f"{root}/props?model={quote(model, safe='')}&autoload=false", key=key)
    settings = properties.get("default_generation_settings")
    if isinstance(settings, dict) and _is_size(size := settings.get("n_ctx")):  # llama.cpp: the window of one slot
        yield ServedWindow(size)


def _of_ollama(address: str, model: str, given: Any) -> Iterator[ServedWindow]:
    """Yield the most reliable first: the requested one, the loaded model's, that in the model's file, the maximum."""
    if _is_size(given):
        yield ServedWindow(given)
    loaded = _got(f"{address}/api/ps").get("models")
    for each in loaded if isinstance(loaded, list) else ():
        names = {each.get("name"), each.get("model")} if isinstance(each, dict) else set()
        if names & {model, f"{model}:latest"} and _is_size(size := each.get("context_length")):
            yield ServedWindow(size)
    shown = _got(f"{address}/api/show", body={"model": model})
    if found := _SET.search(str(shown.get("parameters") or "")):
        yield ServedWindow(int(found[1]))
    facts = shown.get("model_info")
    for name, size in facts.items() if isinstance(facts, dict) else ():
        if str(name).endswith(".context_length") and _is_size(size):
            yield ServedWindow(size)


def _got(url: str, body: dict[str, str] | None = None, key: str | None = None) -> dict[str, Any]:
    """Return the JSON object at an address; an empty one on failure."""
    import httpx

    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
    method = "GET" if body is None else "POST"
    said = bytearray()
    try:
        with httpx.stream(method, url, json=body, headers=headers, timeout=_SECONDS) as response:
            if response.status_code != 200:
                return {}
            for chunk in response.iter_raw():
                said += chunk
                if len(said) > _MOST_BYTES:
                    return {}
        found = json.loads(said)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
