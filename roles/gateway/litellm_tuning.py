"""Changes to how LiteLLM prepares requests and looks up prices, for speed."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from contextvars import Context, ContextVar
from typing import Any, ParamSpec, TypeVar

PATIENCE = 0.05
"""Seconds after which the next request is admitted in any case: LiteLLM does not report for every provider when a
request is sent, and such requests must not be serialized.
"""


class AdmissionGate:
    """A gate that admits a limited number of requests at once, in their order of arrival.

    LiteLLM takes one or two milliseconds of processor time to prepare a request. When a hundred replies arrive
    together,
    the next hundred requests would share the processor in small slices, and all be as late as the last one; the
    provider
    would stand idle for that long, and then answer all of them together again.

    Args:
        width: Number of requests that may be prepared at once; a few, so that one proceeds while another changes
            threads.
    """

    def __init__(self, width: int = 4) -> None:
        self._places = asyncio.Semaphore(width)

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Callable[[], None]]:
        """Hold a place until the yielded function is called, from any thread; the block goes on after that."""
        await self._places.acquire()
        loop = asyncio.get_running_loop()
        is_inside = True

        def leave() -> None:
            nonlocal is_inside
            if is_inside:
                is_inside = False
                impatience.cancel()
                self._places.release()

        impatience = loop.call_later(PATIENCE, leave)
        try:
            yield lambda: _soon(loop, leave)
        finally:
            leave()


def _soon(loop: asyncio.AbstractEventLoop, leave: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(leave)


P = ParamSpec("P")
T = TypeVar("T")

_wanted: ContextVar[bool] = ContextVar("dialoom_prepared_inline", default=False)


@contextmanager
def prepared_inline(wanted: bool) -> Iterator[None]:
    """Choose whether LiteLLM's calls within this block are prepared in the current thread.

    An event loop whose default executor was set explicitly keeps it, and its threads.
    """
    loop = asyncio.get_running_loop()
    if wanted and not _is_chosen(getattr(loop, "_default_executor", None)):
        loop.set_default_executor(_Executor())
    token = _wanted.set(wanted)
    try:
        yield
    finally:
        _wanted.reset(token)


def _is_chosen(executor: object) -> bool:
    """Return whether the executor was set explicitly; asyncio creates one at the first `asyncio.to_thread`."""
    return executor is not None and getattr(executor, "_thread_name_prefix", None) != "asyncio"


class _Executor(ThreadPoolExecutor):
    """A default executor that runs LiteLLM's functions inline in contexts that ask for it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        if not _wanted.get() or not _is_litellms(fn):
            return super().submit(fn, *args, **kwargs)
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


def _is_litellms(fn: Any) -> bool:
    """Return whether this is `context.run(function of LiteLLM)`; `asyncio.to_thread` submits all functions so."""
    if not isinstance(fn, functools.partial) or not isinstance(getattr(fn.func, "__self__", None), Context):
        return False
    inner = fn.args[0] if fn.args else None
    while isinstance(inner, functools.partial):
        inner = inner.func
    return str(getattr(inner, "__module__", "")).partition(".")[0] == "litellm"


Models = tuple[str | None, str | None]
"""A model's name as requested, and as its answer states it; LiteLLM uses either."""


class Unpriced:
    """The models that are known to have no price."""

    def __init__(self) -> None:
        self._costs: dict[Models, float | None] = {}
        self._priced: set[Models] = set()

    def holds(self, models: Models) -> bool:
        """Return whether they are known to have no price."""
        return models in self._costs

    def cost(self, models: Models) -> float | None:
        """Return the cost that LiteLLM reports for their calls: 0, or `None` for an unknown one."""
        return self._costs[models]

    def learn(self, litellm: Any, models: Models, cost: float | None) -> None:
        """Look up the models' prices, if that was not done yet.

        Args:
            litellm: The module.
            models: Requested and answering model.
            cost: The cost that LiteLLM has reported for a call.
        """
        if models in self._costs or models in self._priced:
            return
        if cost or any(_has_price(litellm, model) for model in models if model):
            self._priced.add(models)
        else:
            self._costs[models] = cost


def _has_price(litellm: Any, model: str) -> bool:
    try:
        return any(litellm.cost_per_token(model=model, prompt_tokens=1_000_000, completion_tokens=1_000_000))
    except Exception:  # of several kinds: the model is not in the table
        return False


_known: ContextVar[Unpriced | None] = ContextVar("dialoom_unpriced", default=None)


@contextlib.contextmanager
def pricing_only(unpriced: Unpriced | None) -> Iterator[None]:
    """Skip LiteLLM's pricing for these models within the block. Other users of LiteLLM are unaffected."""
    token = _known.set(unpriced)
    try:
        yield
    finally:
        _known.reset(token)


def install_price_lookup(litellm: Any) -> None:
    """Wrap LiteLLM's pricing so that it skips models known to have no price. Called once, when LiteLLM is imported."""
    utils: Any = importlib.import_module("litellm.utils")
    priced = utils.update_response_metadata

    def priced_unless_known(result: Any, logging_obj: Any, model: str | None, *args: Any, **kwargs: Any) -> None:
        unpriced, hidden = _known.get(), getattr(result, "_hidden_params", None)
        if unpriced is None or not isinstance(hidden, dict):
            priced(result, logging_obj, model, *args, **kwargs)
            return
        models = (model, getattr(result, "model", None))
        if unpriced.holds(models):
            hidden["response_cost"] = unpriced.cost(models)
            return
        priced(result, logging_obj, model, *args, **kwargs)
        unpriced.learn(litellm, models, result._hidden_params.get("response_cost"))

    utils.update_response_metadata = priced_unless_known
