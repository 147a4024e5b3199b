"""Preparing a request where one is, instead of in another thread.

LiteLLM builds each request in a thread of the event loop's executor. For providers that then send it by a coroutine
that is a fraction of a millisecond of Python, under the interpreter lock: the thread gains nothing, and the two changes
of thread take longer than the work. Providers that send it within that thread still get one.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, ContextVar
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
T = TypeVar("T")

_wanted: ContextVar[bool] = ContextVar("dialoom_in_place", default=False)
_loops: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


def prepare_in_place(wanted: bool) -> None:
    """Have LiteLLM's calls in this context prepared in place, or not; on this event loop, and for good."""
    loop = asyncio.get_running_loop()
    if wanted and loop not in _loops:
        loop.set_default_executor(_Executor())
        _loops.add(loop)
    _wanted.set(wanted)


class _Executor(ThreadPoolExecutor):
    """The default executor, but for what LiteLLM hands to it in a context that wants that in place."""

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
