"""A user's LangGraph graph as a player: it gets the conversation and, where tools are offered, these as LangChain's.

A graph has a loop of its own: it calls tools until it is done, and what it has called comes back with its last words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialoom.prompts import FunctionCall
from dialoom.roles.own_players import CompiledGraph, GraphMaker, PlayerError, made_graph

from .calls import Request, RunTool
from .player_reply import ai_message, text_of

if TYPE_CHECKING:  # slow to import, and not every run has a graph
    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

Called = list[tuple[FunctionCall, str]]
"""What was called, and what the tool said."""


async def graph_reply(
    player: CompiledGraph | GraphMaker, messages: Sequence[Mapping[str, Any]], request: Request
) -> Mapping[str, Any]:
    """Return a graph's reply to a conversation as a chat message, with the calls that it made and what came of them.

    Args:
        player: The graph, whose state has `messages`; it finds the tools in its configuration, under `tools`. Or what
            makes it for the tools.
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
    if len(called) < len(run):  # a graph need not show them
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
        return asyncio.run(answer(**given))  # LangGraph runs nodes that are not async in threads of their own

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
    """Raise `PlayerError` if the last message is the one that the graph was given last.

    Neither the length nor ids decide it alone: a graph may shorten the conversation, or hold what it was given twice.
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
    """Return the calls in the messages that a graph has added, also those that no tool took."""
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
