"""What LiteLLM hands to a thread is done in the current thread where that is wanted; what others hand to one is not."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from dialoom.roles.gateway.litellm_tuning import prepared_inline


def of_litellm(function: Callable[..., int]) -> Callable[..., int]:
    """A function as LiteLLM's own: it hands `context.run(partial(function))` to the loop's executor."""
    function.__module__ = "litellm.main"
    return functools.partial(contextvars.copy_context().run, functools.partial(function))


async def test_litellms_functions_run_here_and_others_in_a_thread() -> None:
    """Whichever context they come from."""
    here, loop = threading.get_ident(), asyncio.get_running_loop()

    def ident() -> int:
        return threading.get_ident()

    with prepared_inline(True):
        assert await loop.run_in_executor(None, of_litellm(ident)) == here
        assert await asyncio.to_thread(threading.get_ident) != here
        assert await loop.run_in_executor(None, threading.get_ident) != here
    # What the same task does afterwards is its own affair: it may call a provider that sends in that thread.
    assert await loop.run_in_executor(None, of_litellm(ident)) != here


async def test_a_loop_that_used_a_thread_before_prepares_here_too() -> None:
    """By then asyncio had given it an executor, which nobody chose."""
    here, loop = threading.get_ident(), asyncio.get_running_loop()
    await asyncio.to_thread(threading.get_ident)

    def ident() -> int:
        return threading.get_ident()

    with prepared_inline(True):
        assert await loop.run_in_executor(None, of_litellm(ident)) == here
        assert await asyncio.to_thread(threading.get_ident) != here


async def test_a_provider_that_needs_a_thread_gets_one() -> None:
    """Also on a loop on which others do without."""
    here, loop = threading.get_ident(), asyncio.get_running_loop()

    def ident() -> int:
        return threading.get_ident()

    with prepared_inline(True), prepared_inline(False):
        assert await loop.run_in_executor(None, of_litellm(ident)) != here


async def test_an_executor_of_the_users_own_stays() -> None:
    """Its threads do the work, as they would without dialoom."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1, thread_name_prefix="of-the-user"))

    def name() -> int:
        return int(threading.current_thread().name.startswith("of-the-user"))

    with prepared_inline(True):
        assert await loop.run_in_executor(None, of_litellm(name)) == 1


async def test_an_error_comes_as_from_a_thread() -> None:
    """It is raised where the result is awaited."""

    def broken() -> int:
        raise ZeroDivisionError

    with prepared_inline(True):
        future = asyncio.get_running_loop().run_in_executor(None, of_litellm(broken))
        with pytest.raises(ZeroDivisionError):
            await future
