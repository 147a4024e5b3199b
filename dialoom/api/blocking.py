"""The blocking form of the API's operations: each runs in a thread of its own, so that it works in any context."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from dialoom.errors import DialoomError
from dialoom.runs.progress import Control

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def blocking(name: str, operation: Callable[Arguments, Coroutine[Any, Any, Result]]) -> Callable[Arguments, Result]:
    """Return the blocking form of an operation, which returns when the work is over.

    It works in a running event loop (a notebook) and in any thread, as an event loop of its own carries it out in a
    thread of its own. Ctrl-C stops the work at the next checkpoint of each conversation and is then raised; a second
    one stops it at once. Nothing that was committed is lost.

    Args:
        name: The returned function's name.
        operation: The awaitable form; it takes the keyword `control`.
    """

    @functools.wraps(operation)
    def carried_out(*arguments: Arguments.args, **keywords: Arguments.kwargs) -> Result:
        given = keywords.get("control")
        control = given if isinstance(given, Control) else Control()
        keywords["control"] = control
        try:
            work_to_do = operation(*arguments, **keywords)  # begins only when it is awaited
        except TypeError as error:  # about the arguments, of the awaitable form's name
            raise TypeError(str(error).replace(f"{operation.__name__}()", f"{name}()")) from None
        with ThreadPoolExecutor(1, thread_name_prefix="dialoom") as thread:
            context = contextvars.copy_context()
            work = thread.submit(context.run, asyncio.run, work_to_do)
            try:
                return _awaited(work, control)
            except KeyboardInterrupt:
                if not work.done():  # a second one, while the first was being handled
                    control.interrupt()
                raise

    carried_out.__name__ = carried_out.__qualname__ = name
    return carried_out


def _awaited(work: Future[Result], control: Control) -> Result:
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            result = work.result()
        except KeyboardInterrupt as pressed:
            if work.done():
                raise
            interrupt = pressed
            control.interrupt()
            continue
        except DialoomError as error:  # such as that it was stopped before there was anything to keep
            if interrupt is not None:
                raise interrupt from error
            # Its message says all; the frames of thread and event loop, and what it came from, only hide it.
            raise error.with_traceback(None) from None
        if interrupt is not None:
            raise interrupt
        return result
