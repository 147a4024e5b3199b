"""The user's own players as backends: async functions, LangChain models and LangGraph graphs."""

from __future__ import annotations

import asyncio
import contextvars
import json
import linecache
import sysconfig
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any, cast

from dialoom.prompts import FunctionCall
from dialoom.roles.errors import PermanentProviderError, TransientProviderError
from dialoom.roles.players import PlayerError, made_graph, makes_graph, takes_tools
from dialoom.settings import CompiledGraph, GraphMaker, LangChainModel, OwnPlayer, Reply

from .calls import Completion, Request, RunTool, StatefulTools
from .completions import ensure_short, without_thinking
from .secrets import redacted
from .tool_wire import as_sent, read_calls

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool


def completion_of(said: object, player: str, is_offered: bool) -> Completion:
    """Convert a player's reply to a completion.

    Args:
        said: The returned value.
        player: The player's name.
        is_offered: Whether tools were offered. Otherwise tool calls are dropped.

    Raises:
        PlayerError: If it is not a reply; the message describes it.
        PermanentProviderError: If it is too long.
    """
    message = _as_message(said)
    text = (message.get("content") or "") if message.keys() & {"content", "tool_calls"} else None
    if not isinstance(text, str):
        raise _no_reply(said)
    calls = read_calls(message.get("tool_calls"))
    if calls and not is_offered:
        if not text.strip():
            named = ", ".join(call["name"] for call in calls)
            raise PlayerError(f"returned only tool calls ({named}), and no tools were offered; text is needed")
        calls = ()
    ensure_short(player, text, *(call["name"] + call["arguments"] for call in calls))
    words, reasoning = without_thinking(text)
    return Completion(text=words, reasoning=reasoning, tool_calls=calls, outputs=_outputs(message, len(calls)))


def ai_message(message: AIMessage) -> dict[str, Any]:
    """Convert LangChain's assistant message to a chat message."""
    made = [*message.tool_calls, *message.invalid_tool_calls]
    calls = [{"name": call["name"], "arguments": call["args"]} for call in made]
    return {"content": text_of(message.content), "tool_calls": calls}


def text_of(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    """Return the text of a message's content, which may be given in parts."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


def _as_message(said: object) -> Mapping[str, Any]:
    if isinstance(said, str):
        return {"content": said}
    if isinstance(said, Mapping):
        return said
    from langchain_core.messages import AIMessage

    if isinstance(said, AIMessage):
        return ai_message(said)
    raise _no_reply(said)


def _no_reply(said: object) -> PlayerError:
    what = "None" if said is None else f"{type(said).__name__} {said!r:.60}"
    return PlayerError(
        f"returned {what}; a text, a dictionary with 'content' and perhaps 'tool_calls', or an AIMessage is needed"
    )


def _outputs(message: Mapping[str, Any], calls: int) -> tuple[str, ...]:
    """Return the tools' outputs, one per call, if the player's own loop has run all of them."""
    given = message.get("outputs")
    is_whole = isinstance(given, list) and len(given) == calls and all(isinstance(each, str) for each in given)
    return tuple(given) if is_whole and given else ()


Called = list[tuple[FunctionCall, str]]
"""Tool calls with the tools' outputs."""


async def graph_reply(
    player: CompiledGraph | GraphMaker, messages: Sequence[Mapping[str, Any]], request: Request
) -> Mapping[str, Any]:
    """Return a graph's reply to a conversation as a chat message, with its tool calls and their outputs.

    Args:
        player: The graph, whose state has `messages`; it finds the tools in its configuration, under `tools`. Or a
            function that makes the graph for the tools.
        messages: The whole conversation, in the chat-completions form.
        request: The request.

    Raises:
        PlayerError: If the graph cannot be used, cannot run the tools, or adds no message.
    """
    run: Called = []
    if request.tools and request.run_tool is None:
        raise PlayerError("runs tools by itself, and this recipe gives it no way to (see `run_tool` of `Scene.act`)")
    tools = [_as_tool(each, request.run_tool, run) for each in request.tools] if request.run_tool else []
    graph = player if isinstance(player, CompiledGraph) else made_graph(player, tools)
    state = await graph.ainvoke({"messages": list(messages)}, {"configurable": {"tools": tools} if tools else {}})
    final = _messages(state)
    _ensure_new(final, messages)
    reply = _as_reply(final[-1])
    if not tools:
        return reply
    called = _shown_calls(final[len(messages) :])
    if len(called) < len(run):  # a graph need not add them to its messages
        called = run
    return {
        "content": reply["content"],
        "tool_calls": [call for call, _ in called],
        "outputs": [output for _, output in called],
    }


def _as_tool(definition: Mapping[str, Any], run_tool: RunTool, run: Called) -> BaseTool:
    from langchain_core.tools import StructuredTool

    function = definition["function"]
    name = function["name"]

    async def answer(**given: Any) -> str:
        call = FunctionCall(id="", name=name, arguments=json.dumps(given, ensure_ascii=False, default=str))
        output = await run_tool(call)
        run.append((call, output))
        return output

    def answer_at_once(**given: Any) -> str:
        return asyncio.run(answer(**given))  # LangGraph runs synchronous nodes in threads of their own

    made: Callable[..., BaseTool] = StructuredTool.from_function
    schema = function.get("parameters", {"type": "object", "properties": {}})
    says = function.get("description", name)
    return made(answer_at_once, coroutine=answer, name=name, description=says, args_schema=schema, infer_schema=False)


def _messages(state: object) -> list[BaseMessage]:
    from langchain_core.messages import convert_to_messages

    held = state.get("messages") if isinstance(state, Mapping) else None
    if not isinstance(held, list | tuple) or not held:
        raise PlayerError("returned no new message: its final state has none under 'messages'")
    return convert_to_messages(held)


def _ensure_new(final: Sequence[BaseMessage], given: Sequence[Mapping[str, Any]]) -> None:
    """Raise `PlayerError` if the last message is the last one that the graph was given.

    Neither the length nor ids are sufficient: a graph may shorten the conversation, or contain its input twice.
    """
    from langchain_core.messages import convert_to_messages

    (before,), last = convert_to_messages([dict(given[-1])]), final[-1]
    is_same = (last.type, text_of(last.content)) == (before.type, text_of(before.content))
    if is_same and not (last.type == "ai" and len(final) > len(given)):
        raise PlayerError("returned no new message: its final state ends with the message that it was given last")


def _as_reply(message: BaseMessage) -> dict[str, Any]:
    from langchain_core.messages import AIMessage

    return ai_message(message) if isinstance(message, AIMessage) else {"content": text_of(message.content)}


def _shown_calls(added: Sequence[BaseMessage]) -> Called:
    """Return the tool calls in the messages that a graph has added, including those without an output."""
    called: Called = []
    outputs: dict[str, str] = {}
    for message in added:
        if (answered := getattr(message, "tool_call_id", None)) is not None:
            outputs[answered] = text_of(message.content)
    for message in added:
        for call in getattr(message, "tool_calls", ()):
            arguments = json.dumps(call["args"], ensure_ascii=False, default=str)
            made = FunctionCall(id="", name=call["name"], arguments=arguments)
            called.append((made, outputs.get(call["id"], "")))
    return called


_MOST_FRAMES = 3
_MOST_LETTERS = 120
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def users_frames(error: BaseException) -> str:
    """Return the user's stack frames, innermost last, such as `moody.py:4 in reply: raise RuntimeError("no")`, or "".

    Args:
        error: The exception. Frames of dialoom are omitted, and those of libraries if there are frames of the user's
            code.
    """
    frames = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__")).startswith("dialoom.")
    ]
    own = [each for each in frames if not each[0].co_filename.startswith((*_LIBRARIES, "<"))]
    return "; ".join(_shown(*each) for each in (own or frames)[-_MOST_FRAMES:])


def _shown(code: CodeType, line: int) -> str:
    path, here = Path(code.co_filename), Path.cwd()
    place = path.relative_to(here) if path.is_relative_to(here) else path
    text = linecache.getline(code.co_filename, line).strip()
    return f"{place}:{line} in {code.co_name}" + (f": {text:.{_MOST_LETTERS}}" if text else "")


@dataclass(frozen=True, slots=True)
class CallableBackend:
    """A backend that calls one of the user's own players. Prices and tokens are unknown.

    Attributes:
        name: The player's name in messages.
        takes_tools: Whether it accepts the tools offered by a request.
        reply: The call, with the messages and the request.
    """

    name: str
    takes_tools: bool
    reply: Callable[[list[dict[str, Any]], Request], Coroutine[Any, Any, object]]

    async def complete(self, request: Request, key: str) -> Completion:  # noqa: ARG002
        """Make one call in a context of its own, so that a graph called inside a graph does not take it for its parent.

        Raises:
            TransientProviderError: If it exceeds the request's timeout.
            PermanentProviderError: If it raises an exception, returns no reply, or is offered tools and accepts none.
        """
        if request.tools and not self.takes_tools:
            raise PermanentProviderError(
                f"{self.name} takes no tools, and it is offered {len(request.tools)}: an async function takes them as "
                "a parameter `tools`, a LangChain chat model by its method `bind_tools`"
            )
        messages = [as_sent(message) for message in request.messages]
        task = asyncio.create_task(self.reply(messages, request), context=contextvars.Context())
        try:
            async with asyncio.timeout(request.timeout) as bound:
                said = await task
        except asyncio.CancelledError:
            task.cancel()
            raise
        except PlayerError as error:
            raise self._failure(error) from error
        except Exception as error:
            if bound.expired():
                raise TransientProviderError(f"{self.name} did not answer within {request.timeout:g} s") from None
            place = f" [{frames}]" if (frames := users_frames(error)) else ""
            message = redacted(f"{self.name} raised {type(error).__name__}: {error}{place}")
            raise PermanentProviderError(message) from error
        try:
            completion = completion_of(said, self.name, is_offered=bool(request.tools))
        except PlayerError as error:
            raise self._failure(error) from error
        if completion.outputs and isinstance(request.run_tool, StatefulTools):
            return replace(completion, carried={"environment": request.run_tool.state()})
        return completion

    def _failure(self, error: PlayerError) -> PermanentProviderError:
        return PermanentProviderError(redacted(f"{self.name} {error}"))


def player_backend(name: str, player: OwnPlayer) -> CallableBackend:
    """Return the backend of a player.

    Args:
        name: The name used in messages.
        player: The player, already checked.
    """
    takes = takes_tools(player)

    async def of_graph(messages: list[dict[str, Any]], request: Request) -> object:
        return await graph_reply(cast("CompiledGraph | GraphMaker", player), messages, request)

    async def of_model(messages: list[dict[str, Any]], request: Request) -> object:
        model: Any = player
        asked = model.bind_tools([dict(tool) for tool in request.tools]) if request.tools else model
        return await asked.ainvoke(messages)

    async def of_function(messages: list[dict[str, Any]], request: Request) -> object:
        function = cast(Reply, player)
        return await (function(messages, tools=list(request.tools)) if takes else function(messages))

    if isinstance(player, CompiledGraph) or makes_graph(player):
        return CallableBackend(name, takes, of_graph)
    return CallableBackend(name, takes, of_model if isinstance(player, LangChainModel) else of_function)
