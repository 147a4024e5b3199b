"""Preparing a request where one is, instead of in another thread.

LiteLLM builds each request in a thread of the event loop's executor. For providers that then send it by a coroutine
that is a fraction of a millisecond of Python, under the interpreter lock: the thread gains nothing, and the two changes
of thread take longer than the work. Providers that send it within that thread still get one.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, ParamSpec, TypeVar

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
