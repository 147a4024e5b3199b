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
    """Replays what the ledger holds; else waits for a free place, calls with retries, and books the call.

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
        if (known := await self._ledger.find(key)) is not None:
            return known
        async with self._places:
            return await self._call(request, place, key)

    async def _call(self, request: Request, place: CallPlace, key: str) -> Completion:
        backend = self._backend(request.model)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TransientProviderError),
            stop=stop_after_attempt(MAX_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.5, max=self._wait),
            reraise=True,
        )
        id_ = await self._ledger.begin(key, place, request)
        started = time.monotonic()
        completion: Completion | None = None
        error: ProviderError | None = None
        try:
            completion = await retrying(backend.complete, request, key)
        except ProviderError as failure:
            error = failure
        attempts = int(retrying.statistics.get("attempt_number", 1))
        latency = time.monotonic() - started
        outcome = CallRecord(completion, None if error is None else str(error), attempts, latency)
        await self._ledger.record(id_, outcome)
        if completion is None:
            assert error is not None
            raise error
        return completion

    def _backend(self, model: str) -> Backend:
        if model not in self._backends:
            self._backends[model] = _backend_for(model)
        return self._backends[model]


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
