"""The state and the nodes of a preference tree. Each node processes all open paths; see docs/design/aloe.md.

Section 2.1 of the paper. Data of the current round is kept in separate channels (`said`, `induced`, ...) until
`follow` makes a finished round of it, so a failure never leaves half a round in a conversation.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, ConfigDict, field_validator

from dialoom.graphs.conversation import joined
from dialoom.graphs.outcome import Judgement
from dialoom.graphs.stage import Scene, Update
from dialoom.prompts import Utterance
from dialoom.roles import UnparsedReplyError

from .tree import PREFERRED, REJECTED, Round, conversation, lines_along, with_verdicts

_STAGE_DIRECTION = re.compile(r"\*[^*]*\*")
_NOTHING = re.compile(r"\W*(?:none|null|nothing(?: yet)?|n/?a|unknown)?\W*", re.IGNORECASE)


class TreeState(TypedDict, total=False):
    """The state that is checkpointed.

    Attributes:
        rounds: The finished rounds, as `Outcome.details` holds them.
        open: The open paths, in the order in which they were opened.
        said: The user's message of the current round, by path; the next three channels likewise.
        judgements: The judgements of pairs of replies.
        unread: Paths whose induction could not be parsed.
        broken_off: Lines that were cut off: path, role, and the provider's finish reason.
    """

    rounds: Annotated[list[Round], joined]
    open: list[str]
    said: dict[str, str]
    induced: dict[str, dict[str, str | None]]
    preferred: dict[str, str]
    rejected: dict[str, str]
    judgements: Annotated[list[dict[str, Any]], joined]
    unread: Annotated[list[str], joined]
    broken_off: Annotated[list[tuple[str, str, str]], joined]


class InducedPersona(BaseModel):
    """The reply of the induction: what the user has revealed so far, or nothing."""

    model_config = ConfigDict(frozen=True)
    profile: str | None
    personality: str | None

    @field_validator("profile", "personality", mode="before")
    @classmethod
    def _one_text(cls, value: Any) -> Any:
        """Return the sentences of a list as one text, and `None` for a word for nothing."""
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = " ".join(value)
        if isinstance(value, str):
            return None if _NOTHING.fullmatch(value) else value.strip()
        return value


class BetterAnswer(BaseModel):
    """The reply of the judge of a pair."""

    model_config = ConfigDict(frozen=True)
    better: str
    explanation: str = ""

    @field_validator("better")
    @classmethod
    def _one_of_two(cls, value: str) -> str:
        if value.strip().lower() not in ("first", "second"):
            raise ValueError("must be 'first' or 'second'")
        return value.strip().lower()


REPLY_TYPES: Mapping[str, type[BaseModel]] = {"induced-persona": InducedPersona, "better-answer": BetterAnswer}


async def user(state: TreeState, scene: Scene) -> Update:
    """Ask for the next message of each open path."""
    persona, rounds = scene.scenario.persona(), state["rounds"]

    async def write(path: str) -> str:
        history, said = conversation(rounds, path), lines_along(rounds, path)
        reply = await scene.ask_user("aloe/user", said, str, history=history, **persona)
        if not (line := without_directions(reply)):
            raise UnparsedReplyError("aloe/user", reply, "the line is nothing but stage directions")
        return line

    return await _written("said", "user", state["open"], write, scene)


async def induction(state: TreeState, scene: Scene) -> Update:
    """Ask what the user of each path has revealed of the persona, with the user's lines as evidence.

    If the reply cannot be parsed, the round continues with the previous round's result, and is counted.
    """
    persona = scene.scenario.persona()
    unread: list[str] = []

    async def induce(path: str) -> dict[str, str | None]:
        try:
            reply: InducedPersona = await scene.ask("aloe/induction", history=_history(state, path), **persona)
        except UnparsedReplyError:
            unread.append(path)
            before: Round = next((done for done in state["rounds"] if path and done["path"] == path[:-1]), {})
            return {key: before.get(f"inferred_{key}") for key in ("profile", "personality")}
        return reply.model_dump()

    induced = await _by_path(state["open"], induce)
    return {"induced": induced, "unread": sorted(unread)}


async def preferred(state: TreeState, scene: Scene) -> Update:
    """Ask a responder that sees the induced persona for its reply."""

    async def reply(path: str) -> str:
        history = _history(state, path, "preferred")
        return str(await scene.ask("aloe/preferred", history=history, **state["induced"][path]))

    return await _written("preferred", "preferred", state["open"], reply, scene)


async def rejected(state: TreeState, scene: Scene) -> Update:
    """Ask a responder that sees nothing of the persona for its reply."""

    async def reply(path: str) -> str:
        return str(await scene.ask("aloe/rejected", history=_history(state, path, "rejected")))

    return await _written("rejected", "rejected", state["open"], reply, scene)


async def follow(state: TreeState, scene: Scene) -> Update:
    """Finish the round of each path, and continue from one of its replies, or from both where the tree branches."""
    rounds = under_way(state)
    for done in rounds:
        path = done["path"]
        if len(path) < scene.scenario.branching:
            done["followed"] = [PREFERRED, REJECTED]
        else:
            done["followed"] = [scene.draw(f"follow {path}").choice((PREFERRED, REJECTED))]
    return {"rounds": rounds, "open": [done["path"] + reply for done in rounds for reply in done["followed"]]}


def under_way(state: TreeState) -> list[Round]:
    """Return the current rounds of open paths that have both replies; their `followed` is still empty."""
    rounds: list[Round] = []
    replies = state.get("preferred", {}).keys() & state.get("rejected", {}).keys()
    written = [path for path in state.get("open", []) if path in replies]
    for path in written:
        broken_off = {role: why for of, role, why in state.get("broken_off", []) if of == path}
        induced = state["induced"][path]
        rounds.append(
            {
                "path": path,
                "user": state["said"][path],
                "preferred": state["preferred"][path],
                "rejected": state["rejected"][path],
                "followed": [],
                "inferred_profile": induced["profile"],
                "inferred_personality": induced["personality"],
                "verified": None,
                "named": None,
                **({"broken_off": broken_off} if broken_off else {}),
            }
        )
    turn = len(written[0]) + 1 if written else None
    found = [Judgement.model_validate(each) for each in state.get("judgements", []) if each["turn"] == turn]
    return with_verdicts(rounds, found)


def without_directions(text: str) -> str:
    """Return a reply without stage directions (text between asterisks); it may be empty."""
    return " ".join(_STAGE_DIRECTION.sub(" ", text).split())


def _history(state: TreeState, path: str, speaker: str = "assistant") -> list[Utterance]:
    """Return the conversation at a path, ending with the message of the current round."""
    return [*conversation(state["rounds"], path, speaker), {"speaker": "user", "content": state["said"][path]}]


async def _by_path(paths: Sequence[str], work: Callable[[str], Awaitable[Any]]) -> dict[str, Any]:
    """Run the work on all paths concurrently, and return the results by path."""
    return dict(zip(paths, await asyncio.gather(*map(work, paths)), strict=True))


async def _written(
    channel: str, role: str, paths: Sequence[str], work: Callable[[str], Awaitable[str]], scene: Scene
) -> Update:
    """Return a role's line on each path, and the lines that were cut off."""
    broken_off: list[tuple[str, str, str]] = []

    async def write(path: str) -> str:
        line = await work(path)
        if scene.finish_reason is not None:  # that of this line: the task was not interrupted since the reply
            broken_off.append((path, role, scene.finish_reason))
        return line

    written = await _by_path(paths, write)
    return {channel: written, **({"broken_off": sorted(broken_off)} if broken_off else {})}
