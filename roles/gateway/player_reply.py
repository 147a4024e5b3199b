"""Reading what a player of the user's own returns: a text, a chat message as a dictionary, or an `AIMessage`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialoom.roles.own_players import PlayerError

from .calls import Completion
from .reply_size import ensure_short
from .thinking import without_thinking
from .tool_wire import read_calls

if TYPE_CHECKING:  # slow to import, and few players are LangChain's
    from langchain_core.messages import AIMessage


def completion_of(said: object, player: str, is_offered: bool) -> Completion:
    """Return a player's reply as a completion.

    Args:
        said: What it returned.
        player: Its name.
        is_offered: Whether tools were offered. Without, calls are left out.

    Raises:
        PlayerError: If it is no reply; the message says what it is.
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
    """Return LangChain's message of an assistant as a chat message."""
    made = [*message.tool_calls, *message.invalid_tool_calls]
    calls = [{"name": call["name"], "arguments": call["args"]} for call in made]
    return {"content": text_of(message.content), "tool_calls": calls}


def text_of(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    """Return the text of a message's content, which may come in parts."""
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
    """Return what tools have said, call by call, if the player's own loop has run all of them."""
    given = message.get("outputs")
    is_whole = isinstance(given, list) and len(given) == calls and all(isinstance(each, str) for each in given)
    return tuple(given) if is_whole and given else ()
