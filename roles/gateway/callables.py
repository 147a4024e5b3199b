"""The user's own players: an async Python callable, or a compiled LangGraph graph; by their names or as they are."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from dialoom.prompts import ChatMessage
from dialoom.roles.binding import OBJECT, CompiledGraph, Reply, is_async
from dialoom.roles.errors import BindingError, PermanentProviderError, TransientProviderError

from .calls import Completion, Request
from .frames import users_frames
from .reply_size import ensure_short
from .secrets import redacted
from .thinking import without_thinking


@dataclass(frozen=True, slots=True)
class CallableBackend:
    """Calls `reply(messages) -> text`. Its price is unknown, and so are its tokens."""

    name: str
    reply: Callable[[list[ChatMessage], str], Coroutine[Any, Any, str]]

    async def complete(self, request: Request, key: str) -> Completion:
        """One call, in a context of its own: a graph called inside a graph must not take it for its parent.

        Raises:
            TransientProviderError: If it takes longer than it may.
            PermanentProviderError: If it raises something, or returns no text.
        """
        messages: list[ChatMessage] = [{**message} for message in request.messages]
        task = asyncio.create_task(self.reply(messages, key), context=contextvars.Context())
        try:
            async with asyncio.timeout(request.timeout) as bound:
                text = await task
        except asyncio.CancelledError:
            task.cancel()
            raise
        except Exception as error:
            if bound.expired():
                raise TransientProviderError(f"{self.name} did not answer within {request.timeout:g} s") from None
            place = f" [{frames}]" if (frames := users_frames(error)) else ""
            told = redacted(f"{self.name} raised {type(error).__name__}: {error}{place}")
            raise PermanentProviderError(told) from error
        if not isinstance(text, str):
            raise PermanentProviderError(f"{self.name} returned {type(text).__name__} {text!r:.60}; text is needed")
        ensure_short(self.name, text)
        said, reasoning = without_thinking(text)
        return Completion(text=said, reasoning=reasoning)


def python_backend(spec: str) -> CallableBackend:
    """The backend of `python:package.module:function`, an async callable: messages -> text.

    Raises:
        BindingError: If there is no such module or function, or it is not async.
    """
    module_name, _, name = spec.rpartition(":")
    if not module_name or not name:
        raise BindingError(f"'python:{spec}' is not of the form python:package.module:function")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109
        sys.path.append(here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise BindingError(f"'python:{spec}': module {module_name!r} cannot be imported: {error}") from error
    function = _attribute(module, name, f"python:{spec}")
    if not is_async(function):
        raise BindingError(f"'python:{spec}': {name!r} is not an async function that takes messages and gives text")
    return _function_backend(f"python:{spec}", function)


def graph_backend(spec: str) -> CallableBackend:
    """The backend of `graph:path/to/file.py:name`, a compiled LangGraph graph with a `messages` key.

    Raises:
        BindingError: If there is no such file or name, or it is not a compiled graph.
    """
    path, _, name = spec.rpartition(":")
    if not path or not name:
        raise BindingError(f"'graph:{spec}' is not of the form graph:path/to/file.py:name")
    graph = _attribute(load_file(Path(path), f"graph:{spec}"), name, f"graph:{spec}")
    if not isinstance(graph, CompiledGraph):
        raise BindingError(f"'graph:{spec}': {name!r} is {type(graph).__name__}; a compiled graph is needed")
    return _compiled_graph_backend(f"graph:{spec}", graph)


def object_backend(name: str, player: Reply | CompiledGraph) -> CallableBackend:
    """The backend of a function or graph that was given as it is.

    Args:
        name: The model's name, `object:NAME`.
        player: The function or graph.
    """
    if isinstance(player, CompiledGraph):
        return _compiled_graph_backend(name.removeprefix(OBJECT), player)
    return _function_backend(name.removeprefix(OBJECT), player)


def _function_backend(name: str, function: Reply) -> CallableBackend:
    async def reply(messages: list[ChatMessage], _key: str) -> str:
        return await function(messages)

    return CallableBackend(name, reply)


def _compiled_graph_backend(name: str, graph: CompiledGraph) -> CallableBackend:
    async def reply(messages: list[ChatMessage], key: str) -> str:
        # A thread of its own: the whole conversation is given each time, so a checkpointer must not add to it.
        state = await graph.ainvoke({"messages": messages}, {"configurable": {"thread_id": key}})
        return _last_text(state)

    return CallableBackend(name, reply)


def load_file(path: Path, wanted_by: str) -> ModuleType:
    """Import a Python file that is in no package.

    Raises:
        BindingError: If there is none or it fails.
    """
    if not path.is_file():
        raise BindingError(f"'{wanted_by}': there is no file {str(path)!r}")
    spec = importlib.util.spec_from_file_location(f"dialoom_user_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    if (folder := str(path.parent.resolve())) not in sys.path:
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BindingError(f"'{wanted_by}': {path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def _attribute(module: ModuleType, name: str, wanted_by: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError as error:
        raise BindingError(f"'{wanted_by}': {module.__name__} has no {name!r}") from error


def _last_text(state: Any) -> str:
    try:
        content = state["messages"][-1].content
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError("its final state has no message under 'messages'") from error
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
