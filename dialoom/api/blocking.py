"""The blocking form of the API's operations: each runs in its own thread, so it can be called in any context."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from dialoom.errors import DialoomError
from dialoom.runs.control import Control

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def blocking(name: str, operation: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Result]:
    """Return the blocking form of an awaitable operation: a function that returns when the work is over.

    The function runs the operation in a new thread with its own event loop. It can therefore be called from any thread,
    even if an event loop is already running there, as in a notebook. Ctrl-C is handled as described at `Control`.

    Args:
        name: The returned function's name.
        operation: The awaitable form; it accepts the keyword `control`.
    """

    @functools.wraps(operation)
    def wrapper(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        argument = keywords.get("control")
        control = argument if isinstance(argument, Control) else Control()
        keywords["control"] = control
        try:
            coroutine = operation(*arguments, **keywords)  # begins only when the result is awaited
        except TypeError as error:  # TypeErrors about the arguments should name the public function
            raise TypeError(str(error).replace(f"{operation.__name__}()", f"{name}()")) from None
        with ThreadPoolExecutor(1, thread_name_prefix="dialoom") as thread:
            work = thread.submit(contextvars.copy_context().run, asyncio.run, run_in_daemon_threads(coroutine))
            try:
                return _wait_for(work, control)
            except KeyboardInterrupt:
                if not work.done():  # a second Ctrl-C, while the first was being handled
                    control.interrupt()
                raise

    wrapper.__name__ = wrapper.__qualname__ = name
    return wrapper


class DaemonThreads(ThreadPoolExecutor):
    """An executor with a daemon thread per concurrent call: a call that hangs blocks neither other calls nor the exit.

    A thread is reused after its call, and ends only when the executor is shut down, because Linux ends the processes
    that Ray starts as soon as the thread that started them ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls = SimpleQueue[Callable[[], None] | None]()
        self._lock = threading.Lock()
        self._idle, self._is_closed = 0, False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Start a call in an idle or a new thread."""
        future = Future[Any]()
        future.set_running_or_notify_cancel()

        def call() -> None:
            try:
                value = fn(*args, **kwargs)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(value)

        with self._lock:
            self._calls.put(call)
            if self._idle:
                self._idle -= 1
            else:
                threading.Thread(target=self._work, daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: ARG002
        """End idle threads now and busy threads after their calls; return without waiting for them."""
        with self._lock:
            self._is_closed = True
            for _ in range(self._idle):
                self._calls.put(None)
            self._idle = 0

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # the call holds the result, which should not be kept alive
            with self._lock:
                if self._is_closed:
                    return
                self._idle += 1


async def run_in_daemon_threads(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine; the event loop runs synchronous functions, such as nodes of a graph, in daemon threads."""
    asyncio.get_running_loop().set_default_executor(DaemonThreads())
    return await work


def _wait_for(work: Future[Result], control: Control) -> Result:
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            result = work.result()
        except KeyboardInterrupt as interruption:
            if work.done():
                raise
            interrupt = interruption
            control.interrupt()
            continue
        except DialoomError as error:  # for example, stopped before anything was saved
            if interrupt is not None:
                raise interrupt from error
            # The message suffices, so a traceback through threads and the event loop, and the cause, are left out.
            raise error.with_traceback(None) from None
        if interrupt is not None:
            raise interrupt
        return result
