"""The user's own players as backends: functions, objects, LangChain models and LangGraph graphs."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import linecache
import sysconfig
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import CodeType
from typing import Any, cast

from dialoom.prompts import ChatMessage
from dialoom.roles.errors import PermanentProviderError, StateLostError, TransientProviderError
from dialoom.roles.players import (
    PlayerError,
    RefusedPlayerError,
    get_first_runnable,
    get_parameter_names,
    has_snapshots,
    is_async,
    is_graph_maker,
    safe_text,
    takes_tools,
)
from dialoom.settings import CompiledGraph, GraphFactory, LangChainModel, PlayerObject

from .calls import Completion, Request, StatefulTools
from .completions import check_length, split_reasoning
from .graphs import GraphPlayer, ask_graph, build_config, convert_ai_message, extract_reply
from .secrets import redact
from .stateful import LivePlayer, ReplyWithState, SnapshotPlayer, build_refusal_error
from .wire import convert_message, parse_calls


def build_completion(reply: object, player: str, is_offered: bool) -> Completion:
    """Convert a player's reply to a completion.

    Args:
        reply: The returned value.
        player: The player's name.
        is_offered: Whether tools were offered. Otherwise tool calls are dropped.

    Raises:
        PlayerError: If the value is not a reply; the message describes the value.
        PermanentProviderError: If the reply is too long.
    """
    message = _convert_reply(reply)
    text = (message.get("content") or "") if message.keys() & {"content", "tool_calls"} else None
    if not isinstance(text, str):
        raise _invalid_reply_error(reply)
    try:
        calls = parse_calls(message.get("tool_calls"))
    except Exception as error:  # such as an argument that is no JSON
        problem = f"{type(error).__name__}: {safe_text(error, str)}"
        raise PlayerError(f"returned tool calls that cannot be read: {problem}") from error
    if calls and not is_offered:
        if not text.strip():
            names = ", ".join(call["name"] for call in calls)
            raise PlayerError(f"returned only tool calls ({names}), but no tools were offered; it must return text")
        calls = ()
    check_length(player, text, *(call["name"] + call["arguments"] for call in calls))
    words, reasoning = split_reasoning(text)
    return Completion(text=words, reasoning=reasoning, tool_calls=calls, outputs=_get_outputs(message, len(calls)))


def _convert_reply(reply: object) -> Mapping[str, Any]:
    if isinstance(reply, str):
        return {"content": reply}
    if isinstance(reply, Mapping):
        return reply
    from langchain_core.messages import AIMessage

    if isinstance(reply, AIMessage):
        return convert_ai_message(reply)
    raise _invalid_reply_error(reply)


def _invalid_reply_error(reply: object) -> PlayerError:
    what = "None" if reply is None else f"{type(reply).__name__} {safe_text(reply):.60}"
    return PlayerError(
        f"returned {what}; it must return a string, a dictionary with 'content' and optionally 'tool_calls', or an "
        "AIMessage"
    )


def _get_outputs(message: Mapping[str, Any], calls: int) -> tuple[str, ...]:
    """Return the tools' outputs, one per call, if the player's own loop has run its calls; otherwise an empty tuple."""
    outputs = message.get("outputs")
    if not isinstance(outputs, list) or len(outputs) != calls or not all(isinstance(each, str) for each in outputs):
        return ()
    return tuple(outputs) if any(outputs) else ()


_MAX_FRAMES = 3
_MAX_LINE_CHARACTERS = 120
_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_in_library(file: str | None) -> bool:
    """Return whether a Python file belongs to the standard library or to an installed package."""
    return file is not None and file.startswith(_LIBRARIES)


def format_user_frames(error: BaseException) -> str:
    """Return the stack frames in the user's code, innermost last: `moody.py:4 in reply: raise RuntimeError("no")`.

    Args:
        error: The exception. Frames in dialoom are omitted. Frames in libraries are omitted if there are frames in the
            user's code.
    """
    frames = [
        (frame.f_code, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not str(frame.f_globals.get("__name__")).startswith("dialoom.")
    ]
    own = [each for each in frames if not each[0].co_filename.startswith((*_LIBRARIES, "<"))]
    return "; ".join(_format_frame(*each) for each in (own or frames)[-_MAX_FRAMES:])


def _format_frame(code: CodeType, line: int) -> str:
    path, here = Path(code.co_filename), Path.cwd()
    place = path.relative_to(here) if path.is_relative_to(here) else path
    text = linecache.getline(code.co_filename, line).strip()
    return f"{place}:{line} in {code.co_name}" + (f": {text:.{_MAX_LINE_CHARACTERS}}" if text else "")


@dataclass(frozen=True, slots=True)
class CallableBackend:
    """A backend that calls one of the user's own players. Its replies have no token counts and no cost.

    Attributes:
        name: The player's name in messages.
        takes_tools: Whether it accepts the tools offered by a request.
        reply: Calls the player and returns its reply; for a stateful player, together with its state.
        shown: Adds to a stateful graph's stored state the values of its checkpoint, which only the graph can read;
            `None` for other players.
    """

    name: str
    takes_tools: bool
    reply: Callable[[Request], Coroutine[Any, Any, object]]
    shown: Callable[[Any], Coroutine[Any, Any, Any]] | None = None

    async def complete(self, request: Request, key: str) -> Completion:  # noqa: ARG002
        """Make one call in a new context, so that a graph called inside a graph is not treated as its subgraph.

        Raises:
            TransientProviderError: If the player exceeds the request's timeout, or raises `TimeoutError` or
                `ConnectionError`.
            PermanentProviderError: If the player raises another exception, returns no reply, or is offered tools and
                does not accept them.
            BindingError: If the player is refused.
        """
        if request.tools and not self.takes_tools:
            raise PermanentProviderError(
                f"{self.name} accepts no tools, but is offered {len(request.tools)}: a function needs a parameter "
                "`tools`, a LangChain chat model the method `bind_tools`"
            )
        if isinstance(request.run_tool, StatefulTools):
            request.run_tool.restart()
        task = asyncio.create_task(_catch_exit(self.reply, request), context=contextvars.Context())
        try:
            async with asyncio.timeout(request.timeout) as bound:
                reply = await task
        except asyncio.CancelledError as error:
            if (caller := asyncio.current_task()) is not None and not caller.cancelling():
                # the player's own error, not a cancellation by dialoom
                raise self._failure(PlayerError("raised CancelledError")) from error
            task.cancel()
            raise
        except RefusedPlayerError as error:
            raise build_refusal_error(self.name, error) from error
        except PlayerError as error:
            raise self._failure(error) from error
        except StateLostError as error:
            raise StateLostError(f"{self.name} {error}") from error
        except Exception as error:
            if bound.expired():
                raise TransientProviderError(f"{self.name} did not answer within {request.timeout:g} s") from None
            place = f" [{frames}]" if (frames := format_user_frames(error)) else ""
            what = ": ".join(filter(None, (type(error).__name__, safe_text(error, str))))
            message = redact(f"{self.name} raised {what}{place}")
            is_transient = isinstance(error, TimeoutError | ConnectionError)
            raise (TransientProviderError if is_transient else PermanentProviderError)(message) from error
        try:
            completion = build_completion(
                reply.reply if isinstance(reply, ReplyWithState) else reply, self.name, is_offered=bool(request.tools)
            )
        except PlayerError as error:
            raise self._failure(error) from error
        if isinstance(request.run_tool, StatefulTools):
            after = request.run_tool.state()  # raises the error of a failed call, also if a graph has handled it
            completion = replace(completion, carried={"environment": after}) if completion.outputs else completion
        return reply.attach_state(request, completion) if isinstance(reply, ReplyWithState) else completion

    def _failure(self, error: PlayerError) -> PermanentProviderError:
        return PermanentProviderError(redact(f"{self.name} {error}"))


async def _catch_exit(reply: Callable[[Request], Coroutine[Any, Any, object]], request: Request) -> object:
    """Return a player's reply; a player that calls `sys.exit` fails instead of ending the process."""
    try:
        return await reply(request)
    except SystemExit as error:
        raise PlayerError(f"raised SystemExit: {error}") from error


def create_player_backend(name: str, player: PlayerObject, is_stateful: bool = False) -> CallableBackend:
    """Return the backend of a player.

    Args:
        name: The name used in messages.
        player: The player, already checked.
        is_stateful: Whether it keeps state between calls.
    """
    accepts_tools = takes_tools(player)
    if isinstance(player, CompiledGraph) or is_graph_maker(player):
        graph = cast("CompiledGraph | GraphFactory", player)
        if not is_stateful:
            return CallableBackend(name, accepts_tools, partial(ask_graph, graph))
        graph_player = GraphPlayer(graph)
        return CallableBackend(name, accepts_tools, graph_player.reply, graph_player.read_state)
    ask = _ask_model if isinstance(player, LangChainModel) else _ask_function
    if not is_stateful:
        return CallableBackend(name, accepts_tools, lambda request: ask(player, request.messages, request))
    player_class = SnapshotPlayer if has_snapshots(player) else LivePlayer
    return CallableBackend(name, accepts_tools, partial(player_class(player).reply, call=ask))


async def _ask_model(model: Any, messages: Sequence[ChatMessage], request: Request) -> object:
    """Return the reply of a chat model or another runnable.

    A runnable that begins with a graph gets a state as input.
    """
    runnable = model.bind_tools([dict(tool) for tool in request.tools]) if request.tools else model
    sent = list(map(convert_message, messages))
    is_graph = isinstance(get_first_runnable(model), CompiledGraph)
    reply = await runnable.ainvoke({"messages": sent} if is_graph else sent, build_config(request))
    return extract_reply(reply, sent, (), []) if isinstance(reply, Mapping) and "messages" in reply else reply


async def _ask_function(function: Any, messages: Sequence[ChatMessage], request: Request) -> object:
    """Return the reply of a function or of a callable object.

    A function that is not async runs in a thread. The pieces that a generator yields are joined.
    """
    parameters = get_parameter_names(function)
    keywords: dict[str, Any] = {"tools": list(request.tools)} if "tools" in parameters else {}
    if "session" in parameters:
        keywords["session"] = request.session
    call = partial(function, list(map(convert_message, messages)), **keywords)
    reply = await call() if is_async(function) else await _run_in_thread(lambda: _exhaust(call()))
    if inspect.isawaitable(reply):  # for example, from a lambda that calls an async function
        reply = await reply
    return _join_pieces([piece async for piece in reply]) if isinstance(reply, AsyncIterator) else _exhaust(reply)


def _exhaust(reply: object) -> object:
    return _join_pieces(list(reply)) if isinstance(reply, Iterator) else reply


def _join_pieces(pieces: Sequence[Any]) -> object:
    """Return the reply that a generator has yielded in pieces: texts, LangChain's chunks, or one whole message.

    Raises:
        PlayerError: If it has yielded something else.
    """
    from langchain_core.messages import AIMessageChunk

    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    if len(pieces) == 1:
        return pieces[0]
    if all(isinstance(piece, AIMessageChunk) for piece in pieces):
        return pieces[0] + list(pieces[1:])
    kinds = ", ".join(sorted({type(piece).__name__ for piece in pieces}))
    raise PlayerError(f"yielded {len(pieces)} pieces ({kinds}); it must yield only strings or only AIMessageChunks")


async def _run_in_thread(function: Callable[[], object]) -> object:
    """Call a function in a daemon thread of its own, so that a hanging function blocks neither other calls nor exit."""
    done: Future[tuple[object, BaseException | None]] = Future()
    context = contextvars.copy_context()

    def call() -> None:
        done.set_running_or_notify_cancel()
        try:
            result: tuple[object, BaseException | None] = (context.run(function), None)
        except BaseException as error:
            result = (None, error)
        done.set_result(result)  # not `set_exception`, which takes no `StopIteration`

    threading.Thread(target=call, daemon=True).start()
    value, error = await asyncio.wrap_future(done)
    if error is not None:
        raise error
    return value
