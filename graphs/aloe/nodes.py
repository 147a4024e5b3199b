"""The state and the nodes of a preference tree. Each node works on all open paths; docs/design/aloe.md explains paths.

Section 2.1 of the paper. What a round has come to so far is in channels of its own (`said`, `induced`, ...) until
`follow` makes a finished round of it, so a failure never leaves half a round in a conversation.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, ConfigDict, field_validator

from dialoom.graphs.conversation import joined
from dialoom.graphs.outcome import Judgement, Line
from dialoom.graphs.stage import Scene, Update
from dialoom.prompts import Utterance
from dialoom.roles import UnparsedReplyError

from .scenario import AloeScenario

PREFERRED, REJECTED = "p", "r"
_NAMED = {(True, True): "preferred", (False, False): "rejected", (True, False): "first", (False, True): "second"}
"""What a judge of a pair named, by whether that was the preferred reply when it came first, and when it came second."""
_STAGE_DIRECTION = re.compile(r"\*[^*]*\*")
_NOTHING = re.compile(r"\W*(?:none|null|nothing(?: yet)?|n/?a|unknown)?\W*", re.IGNORECASE)

Round = dict[str, Any]


class TreeState(TypedDict, total=False):
    """What is checkpointed.

    Attributes:
        rounds: The finished rounds, as `Outcome.details` holds them.
        open: The paths that go on, in the order in which they were opened.
        said: The message of the round under way, by path; so also the others, as far as the round has come.
        verdicts: Whether the judge named the preferred reply both times; `None` if it could not be understood.
        named: What the judge named in both orders: `preferred` or `rejected`, or a place: `first` or `second`.
        unread: Paths at which the induction could not be understood.
        broken_off: Lines that are not all that was to be said: path, role, and why, in the provider's word.
    """

    rounds: Annotated[list[Round], joined]
    open: list[str]
    said: dict[str, str]
    induced: dict[str, dict[str, str | None]]
    preferred: dict[str, str]
    rejected: dict[str, str]
    verdicts: dict[str, bool | None]
    named: dict[str, str]
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
        """Sentences in a list are one text; a word for nothing is `None`."""
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
    """The next message of each open path."""
    persona = _scenario(scene).persona()

    async def write(path: str) -> str:
        history, said = conversation(state["rounds"], path, "assistant"), lines_along(state["rounds"], path)
        return spoken(await scene.ask_user("aloe/user", said, str, history=history, **persona), "aloe/user")

    return await _written("said", "user", state["open"], write, scene)


async def induction(state: TreeState, scene: Scene) -> Update:
    """What the user of each path has revealed by now: sees the whole persona, and the user's lines as evidence.

    Where the reply cannot be understood, the round goes on with what was known before it, and is counted.
    """
    persona = _scenario(scene).persona()
    unread: list[str] = []

    async def induce(path: str) -> dict[str, str | None]:
        history = _history(state, path, "assistant")
        try:
            reply: InducedPersona = await scene.ask("aloe/induction", history=history, **persona)
        except UnparsedReplyError:
            unread.append(path)
            return _known_before(state["rounds"], path)
        return reply.model_dump()

    induced = await _by_path(state["open"], induce)
    return {"induced": induced, "unread": sorted(unread)}


async def preferred(state: TreeState, scene: Scene) -> Update:
    """The reply of a responder that sees what was induced."""

    async def reply(path: str) -> str:
        history = _history(state, path, "preferred")
        return str(await scene.ask("aloe/preferred", history=history, **state["induced"][path]))

    return await _written("preferred", "preferred", state["open"], reply, scene)


async def rejected(state: TreeState, scene: Scene) -> Update:
    """The reply of a responder that sees nothing of the persona."""

    async def reply(path: str) -> str:
        return str(await scene.ask("aloe/rejected", history=_history(state, path, "rejected")))

    return await _written("rejected", "rejected", state["open"], reply, scene)


async def verify(state: TreeState, scene: Scene) -> Update:
    """Whether a judge finds the preferred reply better, whichever of the two it reads first."""
    persona = _scenario(scene).persona()
    named: dict[str, str] = {}

    async def compare(path: str) -> Judgement:
        pair = (state["preferred"][path], state["rejected"][path])
        about = {**persona, "history": conversation(state["rounds"], path, "assistant"), "message": state["said"][path]}
        place = {"metric": "pair", "target": "preferred", "turn": len(path) + 1}
        try:
            there, back = await asyncio.gather(
                scene.ask("aloe/judge-pair", first=pair[0], second=pair[1], **about),
                scene.ask("aloe/judge-pair", first=pair[1], second=pair[0], **about),
            )
        except UnparsedReplyError as error:
            return Judgement(**place, status="unparsed", explanation=f"{_where(path)}{error}")
        both = (there.better == "first", back.better == "second")
        named[path] = _NAMED[both]
        word = "agree" if both[0] == both[1] else "disagree"
        told = f"{_where(path)}the two orders {word}: {there.explanation} / {back.explanation}"
        return Judgement(**place, score=all(both), explanation=told)

    judged = await _by_path(state["open"], compare)
    return {
        "verdicts": {path: judgement.score for path, judgement in judged.items()},
        "named": dict(sorted(named.items())),
        "judgements": [judgement.model_dump(mode="json") for judgement in judged.values()],
    }


async def follow(state: TreeState, scene: Scene) -> Update:
    """Finish the round of each path, and go on from one of its replies, or from both where the tree branches."""
    scenario = _scenario(scene)
    rounds: list[Round] = []
    named = state.get("named", {})
    for path in state["open"]:
        if len(path) < scenario.branching:
            followed = [PREFERRED, REJECTED]
        else:
            followed = [scene.draw(f"follow {path}").choice((PREFERRED, REJECTED))]
        induced = state["induced"][path]
        broken_off = {role: why for of, role, why in state.get("broken_off", []) if of == path}
        rounds.append(
            {
                "path": path,
                "user": state["said"][path],
                "preferred": state["preferred"][path],
                "rejected": state["rejected"][path],
                "followed": followed,
                "inferred_profile": induced["profile"],
                "inferred_personality": induced["personality"],
                "verified": state.get("verdicts", {}).get(path),
                "named": named.get(path),
                **({"broken_off": broken_off} if broken_off else {}),
            }
        )
    going_on = [done["path"] + reply for done in rounds for reply in done["followed"]]
    return {"rounds": rounds, "open": going_on}


def is_complete(state: TreeState, rounds: int) -> bool:
    """Whether all paths have all their rounds."""
    return len(state["open"][0]) >= rounds


def spoken(text: str, prompt: str) -> str:
    """A user's line without stage directions (what stands between asterisks).

    Raises:
        UnparsedReplyError: If nothing is left.
    """
    line = without_directions(text)
    if not line:
        raise UnparsedReplyError(prompt, text, "the line is nothing but stage directions")
    return line


def without_directions(text: str) -> str:
    """What is left of a reply without stage directions; perhaps nothing."""
    return " ".join(_STAGE_DIRECTION.sub(" ", text).split())


def conversation(rounds: Sequence[Round], path: str, speaker: str) -> list[Utterance]:
    """What was said before the round at a path: along the path, with the other side called `speaker`."""
    roles = {"user": "user", "assistant": speaker}
    return [{"speaker": roles[line.role], "content": line.content} for line in lines_along(rounds, path)]


def first_path(rounds: Iterable[Round]) -> str:
    """The path that takes the preferred reply at each fork, as far as rounds were finished."""
    by_path = {done["path"]: done for done in rounds}
    path = ""
    while path in by_path:
        path += PREFERRED if PREFERRED in by_path[path]["followed"] else by_path[path]["followed"][0]
    return path


def lines_along(rounds: Sequence[Round], path: str) -> list[Line]:
    """The same as lines of a user and an assistant, with why they broke off."""
    by_path = {done["path"]: done for done in rounds}
    lines: list[Line] = []
    for depth, reply in enumerate(path):
        done = by_path[path[:depth]]
        followed = "preferred" if reply == PREFERRED else "rejected"
        for role, of in (("user", "user"), ("assistant", followed)):
            lines.append(Line(role=role, content=done[of], finish_reason=done.get("broken_off", {}).get(of)))
    return lines


def _history(state: TreeState, path: str, speaker: str) -> list[Utterance]:
    """The conversation at a path, with the message of the round under way at its end."""
    return [*conversation(state["rounds"], path, speaker), {"speaker": "user", "content": state["said"][path]}]


def _known_before(rounds: Sequence[Round], path: str) -> dict[str, str | None]:
    """What was induced in the round before the one at a path."""
    done = next((done for done in rounds if path and done["path"] == path[:-1]), {})
    return {"profile": done.get("inferred_profile"), "personality": done.get("inferred_personality")}


async def _by_path(paths: Sequence[str], work: Callable[[str], Awaitable[Any]]) -> dict[str, Any]:
    """The work on each path, all at once."""
    return dict(zip(paths, await asyncio.gather(*map(work, paths)), strict=True))


async def _written(
    channel: str, role: str, paths: Sequence[str], work: Callable[[str], Awaitable[str]], scene: Scene
) -> Update:
    """A role's line on each path, and which of them broke off."""
    broken_off: list[tuple[str, str, str]] = []

    async def write(path: str) -> str:
        line = await work(path)
        if scene.finish_reason is not None:  # of this line: nobody else was heard since it came
            broken_off.append((path, role, scene.finish_reason))
        return line

    written = await _by_path(paths, write)
    return {channel: written, **({"broken_off": sorted(broken_off)} if broken_off else {})}


def _scenario(scene: Scene) -> AloeScenario:
    scenario: AloeScenario = scene.scenario
    return scenario


def _where(path: str) -> str:
    return f"after {path}: " if path else ""
