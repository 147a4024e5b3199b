"""LangGraph graphs as players: their replies, and the state of graphs with a checkpointer or a store."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from dialoom.prompts import FunctionCall, pair_results
from dialoom.roles.players import PlayerError, RefusedPlayerError, Session, has_person_id, is_in_memory, make_graph
from dialoom.roles.restoring import NAMESPACE_WITHOUT_PERSON, NON_JSON_STORE_ITEMS, UNSUPPORTED_STATE_VALUES
from dialoom.settings import CompiledGraph, GraphFactory

from .calls import Request, RunTool
from .stateful import (
    MAX_ENTRIES,
    BoundedDict,
    Locks,
    ReplyWithState,
    pack_state,
    require_session,
    split_messages,
    unpack_state,
)
from .wire import convert_message

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool
    from langgraph.checkpoint.serde.base import SerializerProtocol
    from langgraph.store.base import BaseStore


def convert_ai_message(message: AIMessage) -> dict[str, Any]:
    """Convert LangChain's assistant message to a chat message."""
    all_calls = [*message.tool_calls, *message.invalid_tool_calls]
    calls = [{"name": call["name"], "arguments": call["args"]} for call in all_calls]
    return {"content": join_text(message.content), "tool_calls": calls}


def join_text(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    """Return the text of a message's content, which may be given in parts."""
    if isinstance(content, str):
        return content
    return "".join(part if isinstance(part, str) else str(part.get("text", "")) for part in content)


ToolResults = list[tuple[FunctionCall, str]]
"""Tool calls with the tools' outputs."""


async def ask_graph(player: CompiledGraph | GraphFactory, request: Request) -> Mapping[str, Any]:
    """Return a graph's reply to a conversation as a chat message, with its tool calls and their outputs.

    Args:
        player: A graph whose state has `messages`, and which gets the tools in its configuration, under `tools`; or a
            function that makes the graph for the tools.
        request: The request.

    Raises:
        PlayerError: If the graph is unsuitable, cannot run the tools, or adds no message.
    """
    results: ToolResults = []
    tools = build_tools(request, results)
    graph = player if isinstance(player, CompiledGraph) else make_graph(player, tools)
    messages = list(map(convert_message, request.messages))
    state = await graph.ainvoke({"messages": messages}, build_config(request, tools))
    return extract_reply(state, messages, tools, results)


def build_tools(request: Request, results: ToolResults) -> list[BaseTool]:
    """Return a request's tools as LangChain tools, which add each call and its output to `results`.

    Raises:
        PlayerError: If the recipe does not allow players to run tools.
    """
    if request.tools and request.run_tool is None:
        raise PlayerError(
            "runs its own tool calls, but this recipe does not support that (see `run_tool` of `Scene.act`)"
        )
    return [_build_tool(each, request.run_tool, results) for each in request.tools] if request.run_tool else []


def build_config(
    request: Request, tools: Sequence[BaseTool] = (), place: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return a graph's configuration for a call: thread, person's id as `user_id`, session and tools."""
    values: dict[str, Any] = {}
    if request.session is not None:
        session = request.session
        values = {"thread_id": session.conversation, "user_id": session.person, "session": session}
    values |= place or {}
    return {"configurable": values | ({"tools": list(tools)} if tools else {})}


def extract_reply(
    state: object, earlier_messages: Sequence[Mapping[str, Any]], tools: Sequence[BaseTool], results: ToolResults
) -> Mapping[str, Any]:
    """Return a graph's reply as a chat message, with its tool calls and their outputs.

    Args:
        state: The graph's final state.
        earlier_messages: The messages in the graph's state before it replied.
        tools: The tools that were offered.
        results: The tool calls that were run, with their outputs.

    Raises:
        PlayerError: If the graph has added no message.
    """
    from langchain_core.messages import AIMessage, convert_to_messages

    values = state if isinstance(state, Mapping) else {}
    messages = values.get("messages")
    if not isinstance(messages, list | tuple) or not messages:
        raise PlayerError("returned no new message: its final state has none under 'messages'")
    final = convert_to_messages(messages)
    (before,), last = convert_to_messages([dict(earlier_messages[-1])]), final[-1]
    # A comparison of lengths or ids is not sufficient: a graph may shorten the conversation, or add its input twice.
    is_same = (last.type, join_text(last.content)) == (before.type, join_text(before.content))
    if is_same and not (last.type == "ai" and len(final) > len(earlier_messages)):
        why = "its final state ends with the last message that it was given"
        raise PlayerError(f"returned no new message: {'it was interrupted' if '__interrupt__' in values else why}")
    reply = convert_ai_message(last) if isinstance(last, AIMessage) else {"content": join_text(last.content)}
    if not tools:
        return reply
    called = _extract_calls(final[len(earlier_messages) :])
    if len(called) < len(results):  # a graph does not have to add its tool calls to its messages
        called = results
    return {
        "content": reply["content"],
        "tool_calls": [call for call, _ in called],
        "outputs": [output for _, output in called],
    }


def _build_tool(definition: Mapping[str, Any], run_tool: RunTool, results: ToolResults) -> BaseTool:
    from langchain_core.tools import StructuredTool

    function = definition["function"]
    name = function["name"]

    async def answer(**arguments: Any) -> str:
        call = _build_call(name, arguments)
        output = await run_tool(call)
        results.append((call, output))
        return output

    create: Callable[..., BaseTool] = StructuredTool.from_function
    schema = function.get("parameters", {"type": "object", "properties": {}})
    description = function.get("description", name)
    # LangGraph runs synchronous nodes in separate threads.
    return create(
        lambda **arguments: asyncio.run(answer(**arguments)),
        coroutine=answer,
        name=name,
        description=description,
        args_schema=schema,
        infer_schema=False,
    )


def _extract_calls(added: Sequence[BaseMessage]) -> ToolResults:
    """Return the tool calls in the messages that a graph has added, with their outputs, which are empty if missing."""
    calls = [(getattr(message, "tool_calls", ()), message) for message in added]
    results = pair_results(
        ([call["id"] or "" for call in made], getattr(message, "tool_call_id", None), join_text(message.content))
        for made, message in calls
    )
    built = [_build_call(call["name"], call["args"]) for made, _ in calls for call in made]
    return [(call, result or "") for call, result in zip(built, results, strict=True)]


def _build_call(name: str, arguments: Any) -> FunctionCall:
    return FunctionCall(id="", name=name, arguments=json.dumps(arguments, ensure_ascii=False, default=str))


_STORE_LOCKS: WeakKeyDictionary[BaseStore, Locks] = WeakKeyDictionary()
"""Locks by person for stores, which several graphs may share. Ids of people are unique across runs."""


class GraphPlayer:
    """A LangGraph graph with a checkpointer, a store, or both.

    Each conversation has a thread. With a persistent checkpointer, the stored state is the id of the checkpoint after
    the reply, from which the graph continues. With a checkpointer in memory, the checkpoint itself is stored. If the
    graph has a store, the items in the person's namespaces are stored too: the namespaces that contain the person's id,
    which is `user_id` in the graph's configuration.

    Args:
        player: The graph, or a function that makes it for the tools of a request.
    """

    def __init__(self, player: CompiledGraph | GraphFactory) -> None:
        self._player = player
        self._threads = BoundedDict[None](MAX_ENTRIES)

    async def reply(self, request: Request) -> ReplyWithState:
        """Restore the thread and the person's items; return the graph's reply, with its state after the reply."""
        session, earlier, run = require_session(request), request.player_state, ToolResults()
        tools = build_tools(request, run)
        is_graph = isinstance(self._player, CompiledGraph)
        graph: Any = self._player if is_graph else make_graph(cast(GraphFactory, self._player), tools, is_stateful=True)
        memory = None if graph.store is None else PersonItems(graph.store, session.person)
        lead, state = ("", {}) if earlier is None else unpack_state(earlier.content)
        locks = Locks() if memory is None else _STORE_LOCKS.setdefault(graph.store, Locks())
        async with locks.setdefault(session.person, asyncio.Lock()):
            if memory is not None:
                await memory.restore(state.get("items", []))
            threads = Threads(graph.checkpointer) if graph.checkpointer else None
            given, before, place = list(request.messages), [], {"thread_id": session.conversation}
            if threads is not None and earlier is not None and earlier.mark is not None:
                given, place = split_messages(request, lead)[1], await threads.restore(state)
                before = (await threads.get_tuple(place)).checkpoint["channel_values"].get("messages", [])
            elif threads is not None:
                place = await self._new_thread(threads, session)
            sent = list(map(convert_message, given))
            is_async = threads is None or threads.is_async
            settings = build_config(request, tools, place)
            final, checkpoint = await _run(graph, {"messages": sent}, settings, is_async=is_async)
            reply = extract_reply(final, [*before, *sent], tools, run)
            saved = {} if threads is None else await threads.save_state(place["thread_id"], checkpoint)
            if memory is not None:
                saved["items"] = await memory.items()
            return ReplyWithState(reply, pack_state(request, saved, NON_JSON_STORE_ITEMS))

    async def read_state(self, state: Any) -> Any:
        """Return a readable state with the values of its checkpoint, which only the graph's own database has.

        Raises:
            PlayerError: If the database does not have the checkpoint.
        """
        graph: Any = self._player
        if not isinstance(graph, CompiledGraph):
            graph = make_graph(cast(GraphFactory, graph), [], is_stateful=True)
        place = {"thread_id": state["thread"], "checkpoint_ns": "", "checkpoint_id": state["checkpoint"]}
        threads = Threads(graph.checkpointer)
        if await threads.get_tuple(place) is None:
            raise PlayerError("its checkpointer does not have this checkpoint")
        at: Any = {"configurable": place}
        snapshot = await (graph.aget_state(at) if threads.is_async else asyncio.to_thread(graph.get_state, at))
        return state | {"values": _plain_values(snapshot.values)}

    async def _new_thread(self, threads: Threads, session: Session) -> dict[str, str]:
        """Return the id of a new thread: the conversation's id, with a number if an earlier attempt used that id."""
        number, thread = 1, session.conversation
        while (
            thread in self._threads or await threads.get_tuple({"thread_id": thread, "checkpoint_ns": ""}) is not None
        ):
            number += 1
            thread = f"{session.conversation}-{number}"
        self._threads[thread] = None
        return {"thread_id": thread}


async def _run(graph: Any, state: dict[str, Any], config: Any, *, is_async: bool) -> tuple[Any, str]:
    """Run a graph to its end, in a thread if it is not async; return its final state and the id of its last checkpoint.

    The id is empty if the graph has no checkpointer.
    """
    modes = ["values", "checkpoints"] if graph.checkpointer else ["values"]
    if is_async:
        latest = {mode: value async for mode, value in graph.astream(state, config, stream_mode=modes)}
    else:
        latest = await asyncio.to_thread(lambda: dict(graph.stream(state, config, stream_mode=modes)))
    checkpoint = latest.get("checkpoints")
    return latest.get("values"), checkpoint["config"]["configurable"]["checkpoint_id"] if checkpoint else ""


class Threads:
    """The threads of a checkpointer.

    Args:
        saver: The checkpointer: any LangGraph saver.

    Attributes:
        is_async: Whether the saver has asynchronous methods; determined by its first use.
    """

    def __init__(self, saver: Any) -> None:
        self.is_async = True
        self._saver = saver
        self._is_in_memory = is_in_memory(saver)

    async def restore(self, state: Mapping[str, Any]) -> dict[str, str]:
        """Return the ids of a stored state's thread and checkpoint. A missing checkpoint is restored first.

        Raises:
            PlayerError: If the checkpoint is missing and its content was not stored.
        """
        place = {"thread_id": state["thread"], "checkpoint_ns": "", "checkpoint_id": state["checkpoint"]}
        if await self.get_tuple(place) is None:
            if "content" not in state:
                raise PlayerError(
                    f"cannot continue: its checkpointer no longer has checkpoint {state['checkpoint']} of thread "
                    f"{state['thread']}"
                )
            kind, content = state["content"]
            checkpoint, metadata = _serializer().loads_typed((kind, base64.b64decode(content)))
            del place["checkpoint_id"]
            await self._call("put", {"configurable": place}, checkpoint, metadata, checkpoint["channel_versions"])
            place["checkpoint_id"] = state["checkpoint"]
        return place

    async def save_state(self, thread: str, checkpoint: str) -> dict[str, Any]:
        """Return the state after a reply: the thread and the checkpoint, with its content if the saver is in memory.

        Raises:
            RefusedPlayerError: If the content holds values that cannot be restored.
        """
        state: dict[str, Any] = {"thread": thread, "checkpoint": checkpoint}
        if self._is_in_memory:
            found = await self.get_tuple({"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint})
            whole = [found.checkpoint, found.metadata]
            kind, content = _serializer().dumps_typed(whole)
            if _serializer().loads_typed((kind, content)) != whole:
                raise RefusedPlayerError(UNSUPPORTED_STATE_VALUES.format(declared=""))
            state["content"] = [kind, base64.b64encode(content).decode()]
        return state

    async def get_tuple(self, place: Mapping[str, str]) -> Any:
        """Return the checkpoint that has these ids, with its metadata; `None` if there is none."""
        return await self._call("get_tuple", {"configurable": dict(place)})

    async def _call(self, method: str, *given: Any) -> Any:
        """Call a method of the saver: its asynchronous form if there is one, else the synchronous form in a thread."""
        if self.is_async:
            try:
                return await getattr(self._saver, f"a{method}")(*given)
            except NotImplementedError:
                self.is_async = False
        return await asyncio.to_thread(getattr(self._saver, method), *given)


@cache
def _serializer() -> SerializerProtocol:
    """Return LangGraph's serializer, restricted to safe types, because a run file may come from a stranger."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(allowed_msgpack_modules=None)


def format_state(content: bytes) -> Any:
    """Return a serialized state in readable form; for a graph whose checkpoint is stored, the checkpoint's values.

    Raises:
        ValueError: If the content is damaged.
    """
    _, state = unpack_state(content)
    if isinstance(state, bytes):
        return f"{len(state):,} bytes"
    if not (isinstance(state, dict) and {"thread", "checkpoint", "content"} <= state.keys()):
        return state
    kind, packed = state["content"]
    checkpoint, _ = _serializer().loads_typed((kind, base64.b64decode(packed)))
    place = {name: value for name, value in state.items() if name != "content"}
    return place | {"values": _plain_values(checkpoint["channel_values"])}


def _plain_values(channels: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of channels as JSON values, without the channels that LangGraph adds."""
    return {name: _to_plain(value) for name, value in channels.items() if not name.startswith(("__", "branch:"))}


def _to_plain(value: Any) -> Any:
    """Return a value as JSON values, with each LangChain message in it as a chat message."""
    from langchain_core.messages import BaseMessage, convert_to_openai_messages

    if isinstance(value, BaseMessage):
        return convert_to_openai_messages(value)
    if isinstance(value, dict):
        return {str(name): _to_plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return list(map(_to_plain, value))
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _to_json(value: Any) -> str:
    """Return a store's value as JSON, so that a tuple equals the list that replaces it when it is restored."""
    return json.dumps(value, ensure_ascii=False, default=str)


class PersonItems:
    """A person's items in a LangGraph store: those in namespaces that contain the person's id.

    Args:
        store: The store.
        person: The person's id.
    """

    def __init__(self, store: Any, person: str) -> None:
        self._store = store
        self._person = person

    async def items(self) -> list[list[Any]]:
        """Return the items, each as its namespace, key and value, in the order in which the store returns them.

        Raises:
            RefusedPlayerError: If the store has items that belong to no person, because these could not be restored.
        """
        namespaces = [each async for each in self._iter_pages("list_namespaces")]
        if (foreign := next((each for each in namespaces if not has_person_id(each)), None)) is not None:
            raise RefusedPlayerError(NAMESPACE_WITHOUT_PERSON.format(namespace=foreign))
        prefixes = {each[: each.index(self._person) + 1] for each in namespaces if self._person in each}
        found = [item for prefix in sorted(prefixes) async for item in self._iter_pages("search", prefix)]
        return [[list(item.namespace), item.key, item.value] for item in found]

    async def restore(self, items: Sequence[Sequence[Any]]) -> None:
        """Replace the items by the given ones, in the same order.

        If this results in the same order, only the items that differ are written. Otherwise all items are written, from
        first to last; or, because some stores return the latest item first, from last to first.
        """
        target = {(tuple(namespace), key): value for namespace, key, value in items}
        for order in (None, [*target], [*reversed(target)]):
            there = {(tuple(namespace), key): value for namespace, key, value in await self.items()}
            if _to_json([*there.items()]) == _to_json([*target.items()]):
                return
            for name in there:
                if order is not None or name not in target:
                    await self._call("delete", *name)
            for name in target if order is None else order:
                if order is not None or name not in there or _to_json(there[name]) != _to_json(target[name]):
                    await self._call("put", *name, target[name])

    async def _iter_pages(self, method: str, *given: Any) -> AsyncIterator[Any]:
        start, size = 0, 10_000
        while page := await self._call(method, *given, limit=size, offset=start):
            for each in page:
                yield each
            if len(page) < size:
                return
            start += size

    async def _call(self, method: str, *given: Any, **named: Any) -> Any:
        try:
            return await getattr(self._store, f"a{method}")(*given, **named)
        except NotImplementedError:
            return await asyncio.to_thread(lambda: getattr(self._store, method)(*given, **named))
