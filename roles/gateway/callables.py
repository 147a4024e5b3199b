"""The user's own players: an async Python callable, or a compiled LangGraph graph; by their names or as they are."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, cast

from dialoom.inputs import check_regular
from dialoom.roles.binding import (
    OBJECT,
    CompiledGraph,
    GraphMaker,
    OwnPlayer,
    Reply,
    is_async,
    makes_graph,
    parameters_of,
)
from dialoom.roles.errors import BindingError, PermanentProviderError, TransientProviderError

from .calls import Completion, Request
from .frames import users_frames
from .graph_player import graph_reply
from .reply_size import ensure_short
from .secrets import redacted
from .thinking import without_thinking
from .tool_wire import as_sent, read_calls

Said: TypeAlias = str | Mapping[str, Any]
"""What a player replies: a text, or a chat message, which may call tools."""


@dataclass(frozen=True, slots=True)
class CallableBackend:
    """Calls `reply(messages, request, key)`. Its price is unknown, and so are its tokens."""

    name: str
    reply: Callable[[list[dict[str, Any]], Request, str], Coroutine[Any, Any, Said]]

    async def complete(self, request: Request, key: str) -> Completion:
        """One call, in a context of its own: a graph called inside a graph must not take it for its parent.

        Raises:
            TransientProviderError: If it takes longer than it may.
            PermanentProviderError: If it raises something, or returns neither a text nor a message that calls tools.
        """
        messages = [as_sent(message) for message in request.messages]
        task = asyncio.create_task(self.reply(messages, request, key), context=contextvars.Context())
        try:
            async with asyncio.timeout(request.timeout) as bound:
                said = await task
        except asyncio.CancelledError:
            task.cancel()
            raise
        except Exception as error:
            if bound.expired():
                raise TransientProviderError(f"{self.name} did not answer within {request.timeout:g} s") from None
            place = f" [{frames}]" if (frames := users_frames(error)) else ""
            told = redacted(f"{self.name} raised {type(error).__name__}: {error}{place}")
            raise PermanentProviderError(told) from error
        return self._completion(said, is_offered=bool(request.tools))

    def _completion(self, said: Said, is_offered: bool) -> Completion:
        """What was said as a completion.

        Args:
            said: A text, or a chat message.
            is_offered: Whether tools were: nobody can call what nobody offered.
        """
        message = {"content": said} if isinstance(said, str) else said
        text = (message.get("content") or "") if isinstance(message, Mapping) else None
        if not isinstance(message, Mapping) or not isinstance(text, str):
            wanted = "text, or a message with 'content' and 'tool_calls', is needed" if is_offered else "text is needed"
            raise PermanentProviderError(f"{self.name} returned {type(said).__name__} {said!r:.60}; {wanted}")
        calls = read_calls(message.get("tool_calls")) if is_offered else ()
        ensure_short(self.name, text, *(call["name"] + call["arguments"] for call in calls))
        words, reasoning = without_thinking(text)
        return Completion(text=words, reasoning=reasoning, tool_calls=calls, outputs=_outputs(message, len(calls)))


def _outputs(message: Mapping[str, Any], calls: int) -> tuple[str, ...]:
    """What the tools have said already, call by call, if a player's own loop has run all of them."""
    given = message.get("outputs")
    is_whole = isinstance(given, list) and len(given) == calls and all(isinstance(each, str) for each in given)
    return tuple(given) if is_whole and given else ()


def python_backend(spec: str) -> CallableBackend:
    """The backend of `python:package.module:function`, an async callable: messages -> text; or what makes a graph.

    Raises:
        BindingError: If there is no such module or function, or it is neither.
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
    if makes_graph(function):
        return _graph_backend(f"python:{spec}", function)
    if not is_async(function):
        raise BindingError(f"'python:{spec}': {name!r} is not an async function that takes messages and gives text")
    return _function_backend(f"python:{spec}", function)


def graph_backend(spec: str) -> CallableBackend:
    """The backend of `graph:path/to/file.py:name`, a compiled LangGraph graph with a `messages` key, or its maker.

    Raises:
        BindingError: If there is no such file or name, or it is not a compiled graph, nor makes one.
    """
    path, _, name = spec.rpartition(":")
    if not path or not name:
        raise BindingError(f"'graph:{spec}' is not of the form graph:path/to/file.py:name")
    graph = _attribute(load_file(Path(path), f"graph:{spec}"), name, f"graph:{spec}")
    if not isinstance(graph, CompiledGraph) and not makes_graph(graph):
        raise BindingError(
            f"'graph:{spec}': {name!r} is {type(graph).__name__}; a compiled graph is needed, or a function of `tools` "
            "that gives one"
        )
    return _graph_backend(f"graph:{spec}", graph)


def object_backend(name: str, player: OwnPlayer) -> CallableBackend:
    """The backend of a function or graph that was given as it is.

    Args:
        name: The model's name, `object:NAME`.
        player: The function, the graph, or what makes a graph.
    """
    if isinstance(player, CompiledGraph) or makes_graph(player):
        return _graph_backend(name.removeprefix(OBJECT), cast("CompiledGraph | GraphMaker", player))
    return _function_backend(name.removeprefix(OBJECT), cast(Reply, player))


def _function_backend(name: str, function: Reply) -> CallableBackend:
    takes_tools = "tools" in parameters_of(function)

    async def reply(messages: list[dict[str, Any]], request: Request, _key: str) -> Said:
        return await (function(messages, tools=list(request.tools)) if takes_tools else function(messages))

    return CallableBackend(name, reply)


def _graph_backend(name: str, player: CompiledGraph | GraphMaker) -> CallableBackend:
    async def reply(messages: list[dict[str, Any]], request: Request, key: str) -> Said:
        return await graph_reply(player, messages, request, key)

    return CallableBackend(name, reply)


def load_file(path: Path, wanted_by: str) -> ModuleType:
    """Import a Python file that is in no package.

    Raises:
        BindingError: If there is none or it fails.
    """
    check_regular(path)
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
