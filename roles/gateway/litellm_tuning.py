"""Changes to how LiteLLM prepares requests and looks up prices, each for speed."""

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
"""Seconds after which the next may pass, whatever has become of the one before: a provider of which LiteLLM does not
say when its request is sent must not have its calls made one by one."""


class AdmissionGate:
    """Lets so many through at once, in the order in which they came.

    LiteLLM takes a millisecond or two of a processor to make a request ready. When a hundred replies arrive together,
    their hundred next requests would share the processor in small turns, and all be late by as much as the last; the
    provider would then stand idle for that long, and answer all of them together again.

    Args:
        width: How many may be inside; a few, so that one goes on while another changes threads.
    """

    def __init__(self, width: int = 4) -> None:
        self._places = asyncio.Semaphore(width)

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[Callable[[], None]]:
        """Inside until the yielded function is called, from any thread; the block goes on after that."""
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
    """Have LiteLLM's calls within this block prepared in the current thread, or not.

    An event loop whose default executor somebody has chosen keeps that one, and its threads.
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
    """Whether somebody gave it to the event loop; asyncio makes itself one at the first `asyncio.to_thread`."""
    return executor is not None and getattr(executor, "_thread_name_prefix", None) != "asyncio"


class _Executor(ThreadPoolExecutor):
    """The default executor, but for what LiteLLM hands to it in a context that wants that inline."""

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
    """Whether this is `context.run(function of LiteLLM's)`; `asyncio.to_thread` hands over other people's so, too."""
    if not isinstance(fn, functools.partial) or not isinstance(getattr(fn.func, "__self__", None), Context):
        return False
    inner = fn.args[0] if fn.args else None
    while isinstance(inner, functools.partial):
        inner = inner.func
    return str(getattr(inner, "__module__", "")).partition(".")[0] == "litellm"


Models = tuple[str | None, str | None]
"""A model as it was asked, and as its answer calls it; LiteLLM goes by either."""


class Unpriced:
    """What is known of models that have no price."""

    def __init__(self) -> None:
        self._costs: dict[Models, float | None] = {}
        self._priced: set[Models] = set()

    def holds(self, models: Models) -> bool:
        """Whether they are known to have none."""
        return models in self._costs

    def cost(self, models: Models) -> float | None:
        """What LiteLLM says that their calls cost: nothing, or that it does not know."""
        return self._costs[models]

    def learn(self, litellm: Any, models: Models, cost: float | None) -> None:
        """Look the models up, if that was not done yet.

        Args:
            litellm: The module.
            models: Asked and answering.
            cost: What LiteLLM has said of a call.
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
    except Exception:  # of several kinds: it is not in the table
        return False


_known: ContextVar[Unpriced | None] = ContextVar("dialoom_unpriced", default=None)


@contextlib.contextmanager
def pricing_only(unpriced: Unpriced | None) -> Iterator[None]:
    """Within it, LiteLLM prices no answer of those models. Whoever else uses LiteLLM is left alone."""
    token = _known.set(unpriced)
    try:
        yield
    finally:
        _known.reset(token)


def install_price_lookup(litellm: Any) -> None:
    """Have LiteLLM's way of pricing answers look there first. Called once, when LiteLLM is imported."""
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
