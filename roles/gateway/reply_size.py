"""How large a reply may be: an endless one must not take the memory of the process, nor fill a run's file."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import httpx

from dialoom.roles.errors import PermanentProviderError

MOST_BYTES = 64 * 2**20
"""Of an answer's body: room for a batch of embeddings, the largest there are."""

MOST_LETTERS = 1_000_000
"""Of a text: several times what any model writes at once."""


@dataclass(slots=True)
class Bound:
    """A bound on one answer's body.

    Attributes:
        most: Bytes.
        is_exceeded: Whether the answer had more, and was given up.
    """

    most: int = field(default_factory=lambda: MOST_BYTES)
    is_exceeded: bool = False

    def ensure_kept(self, model: str) -> None:
        """Say it, if the answer was given up; LiteLLM takes it for a lost connection.

        Raises:
            PermanentProviderError: Naming the model.
        """
        if self.is_exceeded:
            raise PermanentProviderError(f"{model}: the answer is larger than {self.most:,} bytes, and was given up")


_bound: ContextVar[Bound | None] = ContextVar("dialoom_most_bytes", default=None)


def ensure_short(model: str, *texts: str | None) -> None:
    """Refuse a reply that is too long.

    Raises:
        PermanentProviderError: Naming the model.
    """
    if (letters := sum(len(text) for text in texts if text)) > MOST_LETTERS:
        raise PermanentProviderError(f"{model}: the reply has {letters:,} letters; {MOST_LETTERS:,} are the most")


@contextlib.contextmanager
def bounded_body(bound: Bound) -> Iterator[None]:
    """Within it, LiteLLM reads no more of an answer than that. Whoever else uses LiteLLM is left alone."""
    token = _bound.set(bound)
    try:
        yield
    finally:
        _bound.reset(token)


def install() -> None:
    """Have LiteLLM's way of reading bodies look at the bound. Called once, when LiteLLM is imported."""
    transport: Any = importlib.import_module("litellm.llms.custom_httpx.aiohttp_transport")
    stream = transport.AiohttpResponseStream
    read = stream.__aiter__

    async def read_up_to_the_bound(self: Any) -> AsyncIterator[bytes]:
        bound, taken = _bound.get(), 0
        async with contextlib.aclosing(read(self)) as chunks:
            async for chunk in chunks:
                taken += len(chunk)
                if bound is not None and taken > bound.most:
                    bound.is_exceeded = True
                    raise httpx.ReadError("the answer is too large")
                yield chunk

    stream.__aiter__ = read_up_to_the_bound
