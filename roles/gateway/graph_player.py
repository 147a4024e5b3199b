"""A user's LangGraph graph as a player: it gets the conversation and, where tools are offered, these as LangChain's.

A graph has a loop of its own: it calls tools until it is done, and what it has called comes back with its last words.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialoom.prompts import FunctionCall
from dialoom.roles.binding import CompiledGraph, GraphMaker

from .calls import Request, RunTool

if TYPE_CHECKING:  # slow to import, and few graphs have tools
    from langchain_core.tools import BaseTool

Called = list[tuple[FunctionCall, str]]
"""What was called, and what the tool said."""


async def graph_reply(
    player: CompiledGraph | GraphMaker, messages: Sequence[Mapping[str, Any]], request: Request, key: str
) -> Mapping[str, Any]:
    """What a graph says to a conversation, as a chat message, with the calls that it made and what came of them.

    Args:
        player: The graph, whose state has `messages`; it finds the tools in its configuration, under `tools`. Or what
            makes one of them.
        messages: The conversation, in the chat-completions form.
        request: The request.
        key: Its identity: the graph's thread, as the whole conversation is given each time.

    Raises:
        ValueError: If the final state has no message.
    """
    run: Called = []
    tools = [_as_tool(each, request.run_tool, run) for each in request.tools] if request.run_tool else []
    graph = player if isinstance(player, CompiledGraph) else player(tools)
    given = {"thread_id": key, **({"tools": tools} if tools else {})}
    state = await graph.ainvoke({"messages": list(messages)}, {"configurable": given})
    called = _shown_calls(state, len(messages)) if tools else []
    if len(called) < len(run):  # a graph need not show them
        called = run
    return {
        "content": _last_text(state),
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


def _shown_calls(state: Any, given: int) -> Called:
    """The calls in the messages that a graph has added, those among them that no tool took."""
    called: Called = []
    outputs: dict[str, str] = {}
    added = state["messages"][given:] if isinstance(state, Mapping) and "messages" in state else ()
    for message in added:
        if (answered := getattr(message, "tool_call_id", None)) is not None:
            outputs[answered] = _text(message.content)
    for message in added:
        for call in getattr(message, "tool_calls", ()):
            arguments = json.dumps(call["args"], ensure_ascii=False, default=str)
            made = FunctionCall(id="", name=call["name"], arguments=arguments)
            called.append((made, outputs.get(call["id"], "")))
    return called


def _last_text(state: Any) -> str:
    try:
        return _text(state["messages"][-1].content)
    except (TypeError, KeyError, IndexError, AttributeError) as error:
        raise ValueError("its final state has no message under 'messages'") from error


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)
