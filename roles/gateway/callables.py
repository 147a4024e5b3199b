"""The user's own players as backends: async functions, LangChain models and LangGraph graphs."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, cast

from dialoom.roles.errors import PermanentProviderError, TransientProviderError
from dialoom.roles.own_players import (
    CompiledGraph,
    GraphMaker,
    LangChainModel,
    OwnPlayer,
    PlayerError,
    Reply,
    makes_graph,
    takes_tools,
)

from .calls import Completion, Request
from .frames import users_frames
from .graph_player import graph_reply
from .player_reply import completion_of
from .secrets import redacted
from .tool_wire import as_sent


@dataclass(frozen=True, slots=True)
class CallableBackend:
    """A backend that calls one of the user's own players. Prices and tokens are unknown.

    Attributes:
        name: What messages call the player.
        takes_tools: Whether it takes the tools that a request offers.
        reply: The call, with the messages and the request.
    """

    name: str
    takes_tools: bool
    reply: Callable[[list[dict[str, Any]], Request], Coroutine[Any, Any, object]]

    async def complete(self, request: Request, key: str) -> Completion:  # noqa: ARG002
        """Make one call, in a context of its own: a graph called inside a graph must not take it for its parent.

        Raises:
            TransientProviderError: If it takes longer than it may.
            PermanentProviderError: If it raises something, returns no reply, or is offered tools and takes none.
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
            told = redacted(f"{self.name} raised {type(error).__name__}: {error}{place}")
            raise PermanentProviderError(told) from error
        try:
            return completion_of(said, self.name, is_offered=bool(request.tools))
        except PlayerError as error:
            raise self._failure(error) from error

    def _failure(self, error: PlayerError) -> PermanentProviderError:
        return PermanentProviderError(redacted(f"{self.name} {error}"))


def player_backend(name: str, player: OwnPlayer) -> CallableBackend:
    """Return the backend of a player.

    Args:
        name: What messages call it.
        player: The player, which has been checked.
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
