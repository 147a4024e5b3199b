"""LangGraph graphs as players: their replies, and the state of those with a checkpointer or a store."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from dialoom.prompts import FunctionCall
from dialoom.roles.players import PlayerError, made_graph
from dialoom.roles.session import Session
from dialoom.settings import CompiledGraph, GraphMaker

from .calls import Request, RunTool
from .stateful import Kept, Locks, pack, session_of, split, unpack
from .tool_wire import as_sent

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool
    from langgraph.checkpoint.serde.base import SerializerProtocol


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


Called = list[tuple[FunctionCall, str]]
"""Tool calls with the tools' outputs."""


async def graph_reply(player: CompiledGraph | GraphMaker, request: Request) -> Mapping[str, Any]:
    """Return a graph's reply to a conversation as a chat message, with its tool calls and their outputs.

    Args:
        player: The graph, whose state has `messages`; it finds the tools in its configuration, under `tools`. Or a
            function that makes the graph for the tools.
        request: The request.

    Raises:
        PlayerError: If the graph cannot be used, cannot run the tools, or adds no message.
    """
    run: Called = []
    tools = offered_tools(request, run)
    graph = player if isinstance(player, CompiledGraph) else made_graph(player, tools)
    messages = list(map(as_sent, request.messages))
    state = await graph.ainvoke({"messages": messages}, configuration(request, tools))
    return reply_of_graph(state, messages, tools, run)


def offered_tools(request: Request, run: Called) -> list[BaseTool]:
    """Return the tools of a request as LangChain's; each call of one is added to `run`.

    Raises:
        PlayerError: If the recipe does not let players run tools.
    """
    if request.tools and request.run_tool is None:
        raise PlayerError("runs tools by itself, and this recipe gives it no way to (see `run_tool` of `Scene.act`)")
    return [_as_tool(each, request.run_tool, run) for each in request.tools] if request.run_tool else []


def configuration(
    request: Request, tools: Sequence[BaseTool] = (), place: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return LangGraph's configuration of a call: its thread, the person as `user_id`, the session, and the tools."""
    found: dict[str, Any] = {}
    if request.session is not None:
        session = request.session
        found = {"thread_id": session.conversation, "user_id": session.person, "session": session}
    found |= place or {}
    return {"configurable": found | ({"tools": list(tools)} if tools else {})}


def reply_of_graph(
    state: object, given: Sequence[Mapping[str, Any]], tools: Sequence[BaseTool], run: Called
) -> Mapping[str, Any]:
    """Return a graph's reply as a chat message, with its tool calls and their outputs.

    Args:
        state: Its final state.
        given: The messages of its state before it replied.
        tools: The tools offered.
        run: The calls of them.

    Raises:
        PlayerError: If it has added no message.
    """
    final = _messages(state)
    _ensure_new(final, given)
    reply = _as_reply(final[-1])
    if not tools:
        return reply
    called = _shown_calls(final[len(given) :])
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


_PERSON = re.compile(r"person-[0-9a-f]{20}")


class GraphPlayer:
    """A LangGraph graph with a checkpointer, a store, or both.

    Each conversation has a thread. With a persistent checkpointer, the state is the id of the checkpoint after the
    reply, from which the graph goes on; an in-memory one's checkpoint itself is kept. Of the store, the items in the
    person's namespaces are kept: those that contain the person's id, `user_id` in the graph's configuration.

    Args:
        player: The graph, or a function that makes it for the tools of a request.
    """

    def __init__(self, player: CompiledGraph | GraphMaker) -> None:
        self._player = player
        self._locks = Locks()
        self._threads: set[str] = set()

    async def reply(self, request: Request) -> Kept:
        """Restore the thread and the person's items, and return the graph's reply and its state after it."""
        session, earlier, run = session_of(request), request.earlier, Called()
        tools = offered_tools(request, run)
        is_graph = isinstance(self._player, CompiledGraph)
        graph: Any = self._player if is_graph else made_graph(cast(GraphMaker, self._player), tools, is_stateful=True)
        memory = None if graph.store is None else Memory(graph.store, session.person)
        lead, state = ("", {}) if earlier is None else unpack(earlier.content)
        async with nullcontext() if memory is None else self._locks.of(session.person):
            if memory is not None:
                await memory.restore(state.get("items", []))
            threads = Threads(graph.checkpointer) if graph.checkpointer else None
            given, before, place = list(request.messages), [], {"thread_id": session.conversation}
            if threads is not None and earlier is not None and earlier.mark is not None:
                given, place = split(request, lead)[1], await threads.restored(state)
                before = (await threads.tuple(place)).checkpoint["channel_values"].get("messages", [])
            elif threads is not None:
                place = await self._new_thread(threads, session)
            sent = list(map(as_sent, given))
            is_async = threads is None or threads.is_async
            settings = configuration(request, tools, place)
            final, checkpoint = await _run(graph, {"messages": sent}, settings, is_async=is_async)
            said = reply_of_graph(final, [*before, *sent], tools, run)
            kept = {} if threads is None else await threads.kept(place["thread_id"], checkpoint)
            if memory is not None:
                kept["items"] = await memory.items()
            return Kept(said, pack(request, kept))

    async def _new_thread(self, threads: Threads, session: Session) -> dict[str, str]:
        """Return the place of a new thread: the conversation's id, or with a number if an attempt has used that."""
        number, thread = 1, session.conversation
        while thread in self._threads or await threads.has(thread):
            number += 1
            thread = f"{session.conversation}-{number}"
        self._threads.add(thread)
        return {"thread_id": thread}


async def _run(graph: Any, given: dict[str, Any], configuration: Any, *, is_async: bool) -> tuple[Any, str]:
    """Run a graph to its end, in a thread if it must be; return its final state and the id of its last checkpoint.

    The id is empty if the graph has no checkpointer.
    """
    modes = ["values", "checkpoints"] if graph.checkpointer else ["values"]
    final: Any = None
    checkpoint = ""

    def take(mode: str, value: Any) -> None:
        nonlocal final, checkpoint
        if mode == "values":
            final = value
        else:
            checkpoint = value["config"]["configurable"]["checkpoint_id"]

    def run_in_thread() -> None:
        for mode, value in graph.stream(given, configuration, stream_mode=modes):
            take(mode, value)

    if is_async:
        async for mode, value in graph.astream(given, configuration, stream_mode=modes):
            take(mode, value)
    else:
        await asyncio.to_thread(run_in_thread)
    return final, checkpoint


class Threads:
    """The threads of a checkpointer.

    Args:
        saver: The checkpointer: any LangGraph saver.

    Attributes:
        is_async: Whether the saver can be used asynchronously, known after the first use of it.
    """

    def __init__(self, saver: Any) -> None:
        from langgraph.checkpoint.memory import InMemorySaver

        self.is_async = True
        self._saver = saver
        self._is_in_memory = isinstance(saver, InMemorySaver)

    async def has(self, thread: str) -> bool:
        """Return whether a thread has checkpoints."""
        return await self.tuple({"thread_id": thread, "checkpoint_ns": ""}) is not None

    async def restored(self, state: Mapping[str, Any]) -> dict[str, str]:
        """Return the place of a kept checkpoint, which is put back if it is gone.

        Raises:
            PlayerError: If it is gone and was not kept.
        """
        place = {"thread_id": state["thread"], "checkpoint_ns": "", "checkpoint_id": state["checkpoint"]}
        if await self.tuple(place) is None:
            if "content" not in state:
                raise PlayerError(
                    f"cannot go on: its checkpointer no longer has checkpoint {state['checkpoint']} of thread "
                    f"{state['thread']}"
                )
            kind, content = state["content"]
            checkpoint, metadata = _serializer().loads_typed((kind, base64.b64decode(content)))
            del place["checkpoint_id"]
            await self._do("put", {"configurable": place}, checkpoint, metadata, checkpoint["channel_versions"])
            place["checkpoint_id"] = state["checkpoint"]
        return place

    async def kept(self, thread: str, checkpoint: str) -> dict[str, Any]:
        """Return the state after a reply: the thread and the checkpoint, and its content if it is held in memory.

        Raises:
            PlayerError: If the content holds values that cannot be restored.
        """
        state: dict[str, Any] = {"thread": thread, "checkpoint": checkpoint}
        if self._is_in_memory:
            found = await self.tuple({"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint})
            whole = [found.checkpoint, found.metadata]
            kind, content = _serializer().dumps_typed(whole)
            if _serializer().loads_typed((kind, content)) != whole:
                raise PlayerError(
                    "has values in its state that cannot be restored: with InMemorySaver, only LangChain messages and "
                    "plain values can; compile it with a persistent checkpointer"
                )
            state["content"] = [kind, base64.b64encode(content).decode()]
        return state

    async def tuple(self, place: Mapping[str, str]) -> Any:
        """Return the checkpoint at a place with its metadata; `None` if there is none."""
        return await self._do("get_tuple", {"configurable": dict(place)})

    async def _do(self, method: str, *given: Any) -> Any:
        """Call a method of the saver: the asynchronous one if the saver has it, else the other one in a thread."""
        if self.is_async:
            try:
                return await getattr(self._saver, f"a{method}")(*given)
            except NotImplementedError:
                self.is_async = False
        return await asyncio.to_thread(getattr(self._saver, method), *given)


@cache
def _serializer() -> SerializerProtocol:
    """Return LangGraph's serializer, which restores safe types only: a run's file may be a stranger's."""
    from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

    return JsonPlusSerializer(allowed_msgpack_modules=None)


class Memory:
    """A person's items in a store: those in namespaces that contain the person's id.

    Args:
        store: The store.
        person: The person's id.
    """

    def __init__(self, store: Any, person: str) -> None:
        self._store = store
        self._person = person

    async def items(self) -> list[list[Any]]:
        """Return the items, each as its namespace, key and value, in order.

        Raises:
            PlayerError: If the store has items that belong to no person, which could not be restored.
        """
        found: list[list[Any]] = []
        for namespace in await self._namespaces():
            found += [[list(namespace), item.key, item.value] for item in await self._items(namespace)]
        return sorted(found, key=lambda item: (item[0], item[1]))

    async def restore(self, items: Sequence[Sequence[Any]]) -> None:
        """Make the items those that are given; what is equal already is left alone."""
        wanted = {(tuple(namespace), key): value for namespace, key, value in items}
        there = {(tuple(namespace), key): value for namespace, key, value in await self.items()}
        for namespace, key in there.keys() - wanted.keys():
            await self._do("delete", namespace, key)
        for (namespace, key), value in wanted.items():
            if there.get((namespace, key)) != value:
                await self._do("put", namespace, key, value)

    async def _namespaces(self) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        async for namespace in self._pages("list_namespaces"):
            if self._person in namespace:
                found.append(namespace)
            elif not any(_PERSON.fullmatch(part) for part in namespace):
                raise PlayerError(
                    f"has items in the namespace {namespace!r} of its store, which belongs to no person and so cannot "
                    "be restored; put the person's id into it: config['configurable']['user_id']"
                )
        return found

    async def _items(self, namespace: tuple[str, ...]) -> list[Any]:
        return [item async for item in self._pages("search", namespace) if item.namespace == namespace]

    async def _pages(self, method: str, *given: Any) -> AsyncIterator[Any]:
        start, size = 0, 500
        while page := await self._do(method, *given, limit=size, offset=start):
            for each in page:
                yield each
            if len(page) < size:
                return
            start += size

    async def _do(self, method: str, *given: Any, **named: Any) -> Any:
        try:
            return await getattr(self._store, f"a{method}")(*given, **named)
        except NotImplementedError:
            return await asyncio.to_thread(lambda: getattr(self._store, method)(*given, **named))
