"""Environments on which an assistant's tools act. Each conversation has one, which the state stores as a snapshot."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel

from dialoom.errors import DialoomError
from dialoom.prompts import FunctionCall, ToolDefinition
from dialoom.prompts.messages import format_call
from dialoom.roles import PermanentProviderError, ProviderError
from dialoom.roles.gateway.players import format_user_frames
from dialoom.roles.gateway.secrets import redact
from dialoom.roles.players import get_player_name
from dialoom.roles.restoring import dump_state
from dialoom.text import to_well_formed, to_well_formed_value

from .study import FileFunction

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

Tool: TypeAlias = "Callable[..., Any] | BaseTool"
"""A function with a docstring and annotated parameters, or a LangChain tool."""

Result = TypeVar("Result")


class Environment(Protocol):
    """The environment on which an assistant's tools act.

    Each conversation has its own environment. An object exists for one step only: it is created without arguments,
    `restore` sets the conversation's state, and `snapshot` returns the new state. Therefore `snapshot` must return
    everything that a later step needs.
    """

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that the assistant is offered, usually bound methods."""

    def reset(self, scenario: Any) -> None:
        """Set the state in which a scenario begins."""

    def snapshot(self) -> Any:
        """Return the complete state as a JSON value."""

    def restore(self, snapshot: Any) -> None:
        """Set the state to one that `snapshot` returned."""


EnvironmentFactory: TypeAlias = "Callable[[], Environment]"


class ToolError(DialoomError):
    """A tool that cannot be offered. The message names the tool and states what is needed."""


@dataclass(frozen=True)
class RemoteTool:
    """A tool that acts outside the process, such as a tool of an MCP server. Each of its calls is recorded.

    Attributes:
        name: The tool's name.
        definition: The tool's definition, in the form that chat models accept.
        is_repeatable: Whether repeating a call has no further effect.
        run: A function that takes a call's arguments, executes the call and returns the result as text. It raises a
            `ProviderError` if the result is unknown.
    """

    name: str
    definition: ToolDefinition
    is_repeatable: bool
    run: Callable[[dict[str, Any]], Awaitable[str]]


RunRemote: TypeAlias = "Callable[[RemoteTool, FunctionCall, int], Awaitable[str]]"
"""A function that returns the recorded result of a call or, if there is none, executes the call and records its result.
"""


class Toolset:
    """A set of tools with unique names. It gives their definitions and executes calls.

    Args:
        tools: Functions and LangChain tools. LangChain derives a function's JSON schema from its signature and
            docstring.
        remote: Tools that act outside the process, such as tools of MCP servers.

    Raises:
        ToolError: If an object is not a tool, or two tools have the same name.
    """

    def __init__(self, tools: Iterable[Tool], remote: Iterable[RemoteTool] = ()) -> None:
        self.remote: dict[str, RemoteTool] = {}
        self._tools: dict[str, BaseTool] = {}
        for candidate in tools:
            tool = as_tool(candidate)
            if tool.name in self._tools:
                raise ToolError(f"tools: two tools have the name {tool.name!r}; rename one", setting="tools")
            self._tools[tool.name] = tool
        for remote_tool in remote:
            if remote_tool.name in self.names:
                raise ToolError(f"tools: two tools have the name {remote_tool.name!r}; rename one", setting="tools")
            self.remote[remote_tool.name] = remote_tool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return (*self._tools, *self.remote)

    @property
    def definitions(self) -> list[ToolDefinition]:
        """The tools' definitions, in the form that chat models accept."""
        from langchain_core.utils.function_calling import convert_to_openai_tool

        own = [convert_to_openai_tool(tool) for tool in self._tools.values()]
        return [*own, *(tool.definition for tool in self.remote.values())]

    async def run(self, call: FunctionCall) -> str:
        """Return the result of a call as text. A string is unchanged; any other value becomes JSON.

        If a call cannot be executed or its tool raises an exception, the text begins with `error:`.

        Raises:
            PermanentProviderError: If the tool returns an object that has no text; see `format_result`.
        """
        if (tool := self._tools.get(call["name"])) is None:
            return f"error: there is no tool {call['name']!r}; there are {', '.join(self.names) or 'none'}"
        arguments = parse_arguments(call)
        if isinstance(arguments, str):
            return arguments
        try:
            # A synchronous tool runs in this thread, because an environment's connections may be bound to it.
            result = await tool.ainvoke(arguments) if getattr(tool, "coroutine", None) else tool.invoke(arguments)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            text = f"error: {type(error).__name__}: {error}"
        else:
            try:
                text = format_result(result)
            except Exception as error:
                raise PermanentProviderError(
                    redact(f"tool {tool.name} returned a {type(result).__name__} that cannot be sent: {error}")
                ) from error
        return to_well_formed(redact(text or '""'))


def parse_arguments(call: FunctionCall) -> dict[str, Any] | str:
    """Return the arguments of a call, or a text that begins with `error:` if they are not a JSON object."""
    try:
        arguments = json.loads(call["arguments"] or "{}")
    except (ValueError, RecursionError) as error:
        return f"error: the arguments are not JSON: {error}"
    return (
        arguments
        if isinstance(arguments, dict)
        else f"error: the arguments must be an object, got {type(arguments).__name__}"
    )


def format_result(result: Any) -> str:
    """Return a tool's result as text. A string is unchanged; any other value becomes JSON.

    Rows of a database, dataclasses and pydantic models become objects with their fields, and sets become sorted lists.
    Objects whose class defines `__str__`, such as dates, decimal numbers and paths, become their text.

    Raises:
        TypeError, ValueError: If the value contains another object, whose text would differ between processes. The
            message names its type and states what to return.
    """
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=_to_json_value)


def _to_json_value(value: Any) -> Any:
    """Return an object, of which a tool's result consists, in a form that JSON knows."""
    kind: Any = type(value)
    match value:
        case sqlite3.Row() | Mapping():
            return dict(value)
        case BaseModel():
            return value.model_dump()
        case AbstractSet():
            return sorted(value, key=partial(json.dumps, default=_to_json_value))
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {each.name: getattr(value, each.name) for each in fields(value)}
        case _ if kind.__str__ is object.__str__:
            raise TypeError(
                f"{kind.__name__} is not a JSON value; return a string, a number, a list, a mapping, a "
                "dataclass or a pydantic model"
            )
    return str(value)


def as_tool(candidate: Tool) -> BaseTool:
    """Return a function as a LangChain tool, or the tool itself if it is one already.

    Raises:
        ToolError: If the object is neither a function nor a tool, or LangChain cannot derive a schema from it.
    """
    from langchain_core.tools import BaseTool, StructuredTool

    if isinstance(candidate, FileFunction):
        return as_tool(candidate.load())
    if isinstance(candidate, BaseTool):
        return candidate
    if not callable(candidate):
        raise ToolError(f"tools: {candidate!r:.60} is neither a function nor a LangChain tool", setting="tools")
    name = getattr(candidate, "__name__", "")
    if not name.isidentifier():
        raise ToolError(f"tools: {candidate!r:.60} has no name; give a named function", setting="tools")
    if not inspect.getdoc(candidate):
        raise ToolError(f"tools: {name} needs a docstring, which describes the tool to the assistant", setting="tools")
    functions: dict[str, Any] = {"coroutine" if inspect.iscoroutinefunction(candidate) else "func": candidate}
    for parameter in inspect.signature(candidate).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise ToolError(
                f"tools: {name} has the {parameter.kind.description} parameter {parameter.name!r}, but tools get "
                "their arguments "
                "by name; declare each argument, as in def look_up(number: int)",
                setting="tools",
            )
    try:
        tool: BaseTool = StructuredTool.from_function(
            **functions, parse_docstring=True, error_on_invalid_docstring=False
        )
    except Exception as error:
        raise ToolError(f"tools: {name} cannot be offered: {type(error).__name__}: {error}", setting="tools") from error
    return tool


class Workbench:
    """The tools of one step of a conversation, with its environment.

    A graph with its own loop may call tools from several tasks or threads. The calls run one after another, in the
    event loop in which the workbench was created.

    Args:
        tools: Tools that do not act on the environment.
        factory: A function that creates the environment; `None` for no environment.
        remote: Tools that act outside the process.
        run_remote: The function that runs calls of the tools in `remote`.

    Raises:
        ToolError: If a tool cannot be offered.
        PermanentProviderError: If the environment raises an exception.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        factory: EnvironmentFactory | None,
        remote: Sequence[RemoteTool] = (),
        run_remote: RunRemote | None = None,
    ) -> None:
        self._name = "" if factory is None else get_player_name(factory)
        self._environment = environment = None if factory is None else self._call_environment("", factory)
        if factory is not None:
            _check_environment(self._name, environment)
        own = () if environment is None else self._call_environment("tools", lambda: _check_tools(environment.tools))
        self.tools = Toolset((*own, *tools), remote)
        self._run_remote = run_remote
        self._initial_snapshot: Any = None
        self._call_counts = Counter[str]()
        self._failure: ProviderError | None = None
        self._lock = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def reset(self, scenario: Any) -> Any:
        """Reset the environment for a scenario, and return its first snapshot; `None` without an environment."""
        if self._environment is not None:
            self._call_environment("reset", partial(self._environment.reset, scenario))
        return self.state()

    def restore(self, snapshot: Any) -> None:
        """Set the environment to a copy of its conversation's state. The environment may change the copy."""
        self._initial_snapshot = snapshot
        if self._environment is not None:
            self._call_environment("restore", partial(self._environment.restore, copy.deepcopy(snapshot)))

    def restart(self) -> None:
        """Undo all calls, because the attempt that made them is repeated. Remote calls are numbered from 1 again."""
        if self._call_counts:
            self._call_counts.clear()
            self.restore(self._initial_snapshot)

    def state(self) -> Any:
        """Return the environment's snapshot as JSON values; `None` without an environment.

        Raises:
            ProviderError: If the result of a call is unknown. It is raised even if a graph has handled the call's
                error.
        """
        if self._failure is not None:
            raise self._failure
        if self._environment is None:
            return None
        try:
            return to_well_formed_value(
                json.loads(dump_state(self._call_environment("snapshot", self._environment.snapshot)))
            )
        except (TypeError, ValueError, RecursionError) as error:
            raise PermanentProviderError(
                f"environment {self._name}: snapshot must return a JSON value (mappings with strings as keys, lists, "
                f"strings, numbers, true, false, null): {error}"
            ) from error

    async def __call__(self, call: FunctionCall) -> str:
        """Run a call and return its result; see `Toolset.run`."""
        if self._loop is None or asyncio.get_running_loop() is self._loop:
            return await self._run(call)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._run(call), self._loop))

    def bind(self) -> Workbench:
        """Run all later calls in the current event loop, even if they come from another task or thread."""
        self._loop = asyncio.get_running_loop()
        return self

    async def _run(self, call: FunctionCall) -> str:
        async with self._lock:
            text = format_call(call)
            self._call_counts[text] += 1
            try:
                if (tool := self.tools.remote.get(call["name"])) is None or self._run_remote is None:
                    return await self.tools.run(call)
                return await self._run_remote(tool, call, self._call_counts[text])
            except ProviderError as error:
                self._failure = error
                raise

    def _call_environment(self, method: str, function: Callable[[], Result]) -> Result:
        """Call a method of the environment, and return its result.

        Raises:
            PermanentProviderError: If the method raises an exception. The message states the lines of the user's code.
        """
        try:
            return function()
        except Exception as error:
            location = f" [{frames}]" if (frames := format_user_frames(error)) else ""
            prefix = f"{method} of " if method else ""
            raise PermanentProviderError(
                redact(f"{prefix}environment {self._name} raised {type(error).__name__}: {error}{location}")
            ) from error


def _check_environment(name: str, environment: object) -> None:
    """Check that an environment has its methods, before any conversation begins.

    Raises:
        ToolError: If a method is missing, is asynchronous, or takes other arguments.
    """
    for signature, arguments in (("reset(scenario)", [None]), ("snapshot()", []), ("restore(snapshot)", [None])):
        method, problem = getattr(environment, signature.partition("(")[0], None), "none"
        if callable(method):
            try:
                inspect.signature(method).bind(*arguments)
                problem = "an async one" if inspect.iscoroutinefunction(method) else ""
            except TypeError:
                problem = f"one that takes {inspect.signature(method)}"
        if problem:
            kind = type(environment).__name__
            raise ToolError(
                f"environment {name} must have a method {signature} that is not async, but {kind} has {problem}",
                setting="environment",
            )


def _check_tools(tools: Any) -> tuple[Tool, ...]:
    """Return the tools of an environment.

    Raises:
        TypeError: If they are not in a list.
    """
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise TypeError(f"tools must be a list, as a @property or an attribute, got {type(tools).__name__}")
    return tuple(tools)


def find_differences(expected: Any, actual: Any) -> list[str]:
    """Return descriptions of the differences between a final state and the expected state; none if the states match.

    A mapping is compared by the keys of the expected mapping. A list of mappings (rows) is compared in any order, by
    the keys of the expected rows. Anything else is compared as a whole.

    Args:
        expected: The expected state, or a part of it.
        actual: The final state, for example as `decode_snapshot` returns it.
    """
    return list(_iter_differences(expected, actual, ""))


def _iter_differences(expected: Any, actual: Any, path: str) -> Iterable[str]:
    prefix = f"{path}: " if path else ""
    if isinstance(expected, Mapping):
        if not isinstance(actual, Mapping):
            yield f"{prefix}expected {format_value(expected)}, got {format_value(actual)}"
            return
        for key, value in expected.items():
            name = f"{path}.{key}" if path else str(key)
            if key not in actual:
                yield f"{name} is missing"
            else:
                yield from _iter_differences(value, actual[key], name)
    elif _is_rows(expected) and _is_rows(actual):
        columns = list(dict.fromkeys(column for row in expected for column in row))
        unmatched = [{name: row[name] for name in columns if name in row} if columns else row for row in actual]
        for row in expected:
            if row in unmatched:
                unmatched.remove(row)
            else:
                yield f"{prefix}missing {format_value(row)}"
        yield from (f"{prefix}unexpected {format_value(row)}" for row in unmatched)
    elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        yield f"{prefix}expected {format_value(expected)}, got {format_value(actual)}"


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(row, Mapping) for row in value)


MAX_SHOWN_CHARACTERS = 200
"""Maximum number of characters of a value that an explanation shows."""


def format_value(value: Any) -> str:
    """Return a value as JSON; of a long text, the beginning and the number of characters."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}... ({len(text):,} characters)"
