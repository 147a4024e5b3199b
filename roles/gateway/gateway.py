"""The gateway: one door for every call of every role."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from dialoom.roles.errors import ProviderError, TransientProviderError

from .callables import graph_backend, python_backend
from .calls import CallPlace, CallRecord, Completion, Ledger, Request
from .litellm_backend import LiteLLMBackend, check_offline, ensure_known

MAX_ATTEMPTS = 6


class Backend(Protocol):
    """A way to one kind of model."""

    async def complete(self, request: Request, key: str) -> Completion:
        """One attempt. Raises a `ProviderError` if it fails."""
        ...


class Gateway:
    """Waits for a free place; then replays what the ledger holds, or calls with retries and books the call.

    Args:
        ledger: Where calls are kept.
        concurrency: How many calls may be under way at once.
        wait: Longest pause between attempts, in seconds (exponential with jitter up to it).
    """

    def __init__(self, ledger: Ledger, concurrency: int, wait: float = 30.0) -> None:
        self._ledger = ledger
        self._places = asyncio.Semaphore(concurrency)
        self._wait = wait
        self._backends: dict[str, Backend] = {}

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """The reply to a request made at a place.

        Raises:
            ProviderError: If the model failed for good, or transiently in each of `MAX_ATTEMPTS` attempts.
        """
        key = request.key(place)
        async with self._places:
            begun = await self._ledger.begin(key, place, request)
            return begun if isinstance(begun, Completion) else await self._call(request, key, begun)

    async def _call(self, request: Request, key: str, id_: int) -> Completion:
        backend = self._backend(request.model)
        attempts = _Attempts(backend, request, key)
        started = time.monotonic()
        completion: Completion | None = None
        error: ProviderError | None = None
        try:
            completion = await attempts.until_answered(self._wait)
        except ProviderError as failure:
            error = failure
        latency = time.monotonic() - started
        await self._ledger.record(
            id_, CallRecord(completion, None if error is None else str(error), attempts.made, latency)
        )
        if completion is None:
            assert error is not None
            raise error
        return completion

    def _backend(self, model: str) -> Backend:
        if model not in self._backends:
            self._backends[model] = _backend_for(model)
        return self._backends[model]


class _Attempts:
    """The attempts at one call."""

    def __init__(self, backend: Backend, request: Request, key: str) -> None:
        self._backend = backend
        self._request = request
        self._key = key
        self._failed: TransientProviderError | None = None
        self.made = 0

    async def until_answered(self, longest_wait: float) -> Completion:
        """One attempt; if that failed transiently, further ones with pauses between them."""
        try:
            return await self._once()
        except TransientProviderError as error:
            self._failed = error
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TransientProviderError),
            stop=stop_after_attempt(MAX_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.5, max=longest_wait),
            reraise=True,
        )
        return await retrying(self._again)

    async def _again(self) -> Completion:
        """For tenacity, whose first attempt is the one that has failed already."""
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        return await self._once()

    async def _once(self) -> Completion:
        self.made += 1
        return await self._backend.complete(self._request, self._key)


def check_model(model: str) -> None:
    """Make sure that a model can be called at all, before anything is written.

    Raises:
        BindingError: If its provider, module, file or name is unknown. (A key may still be missing.)
    """
    kind, _, rest = model.partition(":")
    if kind in _CALLABLES and rest:
        _CALLABLES[kind](rest)
    elif model.startswith("offline/"):
        check_offline(model)
    else:
        ensure_known(model)


def _backend_for(model: str) -> Backend:
    kind, _, rest = model.partition(":")
    if kind in _CALLABLES and rest:
        return _CALLABLES[kind](rest)
    return LiteLLMBackend()


_CALLABLES: dict[str, Callable[[str], Backend]] = {"python": python_backend, "graph": graph_backend}
