"""ALOE: preference trees of users who reveal themselves gradually. See docs/design/aloe.md.

The system of section 2.1 of "Aligning LLMs with Individual Preferences via Interaction" (COLING 2025), in our own words
and code. This module defines the recipe: the state, the nodes, the graph and the outcome of a tree. Data of the current
round is kept in separate channels (`said`, `induced`, ...) until `follow` turns it into a finished round, so a failure
never leaves half a round in a conversation.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel, field_validator

from dialoom.graphs.capabilities import (
    WithExports,
    WithFacets,
    WithGate,
    WithLabels,
    WithOutline,
    WithProgress,
    WithPrompts,
    WithReport,
    WithRoles,
)
from dialoom.graphs.conversation import joined
from dialoom.graphs.gate.talk import GateLine, Talk
from dialoom.graphs.judge import Graph, Judge, add_judges
from dialoom.graphs.outcome import Judgement, Line, Outcome
from dialoom.graphs.recipe import Recipe
from dialoom.graphs.stage import Scene, Stage, Update, node
from dialoom.graphs.tables import Facet
from dialoom.inputs import Frozen
from dialoom.prompts import Utterance
from dialoom.roles import UnparsedReplyError

from . import report, tree
from .report import EXPORTERS
from .tree import (
    MAX_MESSAGE_TOKENS,
    PREFERRED,
    REJECTED,
    AloeOptions,
    AloeScenario,
    Round,
    add_verdicts,
    build_history,
    build_lines,
)

_STAGE_DIRECTION = re.compile(r"\*[^*]*\*")
_NO_RESULT = re.compile(r"\W*(?:none|null|nothing(?: yet)?|n/?a|unknown)?\W*", re.IGNORECASE)


class TreeState(TypedDict, total=False):
    """The state that is checkpointed.

    Attributes:
        rounds: The finished rounds, as `Outcome.details` holds them.
        open: The paths that the next round continues, in the order in which they were opened.
        said: The user's message of the current round, by path. `induced`, `preferred` and `rejected` have the other
            results of the round, also by path.
        judgements: The judgements of pairs of replies.
        unread: Paths whose reply to the induction prompt could not be parsed.
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


class InducedPersona(Frozen):
    """The reply of the induction: what the user has revealed so far, or nothing."""

    profile: str | None
    personality: str | None

    @field_validator("profile", "personality", mode="before")
    @classmethod
    def _one_text(cls, value: Any) -> Any:
        """Return a list of sentences as one text, and `None` for a text that only says that there is nothing."""
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            value = " ".join(value)
        text = value.strip() if isinstance(value, str) else value
        return None if isinstance(value, str) and _NO_RESULT.fullmatch(value) else text


class BetterAnswer(Frozen):
    """The reply of the judge of a pair."""

    better: str
    explanation: str = ""

    @field_validator("better")
    @classmethod
    def _one_of_two(cls, value: str) -> str:
        if (named := value.strip().lower()) not in ("first", "second"):
            raise ValueError("must be 'first' or 'second'")
        return named


REPLY_TYPES: Mapping[str, type[BaseModel]] = {"induced-persona": InducedPersona, "better-answer": BetterAnswer}


async def user(state: TreeState, scene: Scene) -> Update:
    """Ask for the next message of each open path."""
    persona, rounds = scene.scenario.persona(), state["rounds"]

    async def write(path: str) -> str:
        history, lines = build_history(rounds, path), build_lines(rounds, path)
        reply = await scene.ask_user("aloe/user", lines, str, history=history, **persona)
        if not (line := strip_stage_directions(reply)):
            raise UnparsedReplyError("aloe/user", reply, "the line is nothing but stage directions")
        return line

    return await _request_lines("said", "user", state["open"], write, scene)


async def induction(state: TreeState, scene: Scene) -> Update:
    """Request a summary of what the user has revealed of the persona on each path.

    If a reply cannot be parsed, the round continues with the previous round's summary, and the path is recorded in
    `unread`.
    """
    persona = scene.scenario.persona()
    unread: list[str] = []

    async def induce(path: str) -> dict[str, str | None]:
        try:
            reply: InducedPersona = await scene.ask(
                "aloe/induction", history=_build_current_history(state, path), **persona
            )
        except UnparsedReplyError:
            unread.append(path)
            before: Round = next((done for done in state["rounds"] if path and done["path"] == path[:-1]), {})
            return {key: before.get(f"inferred_{key}") for key in ("profile", "personality")}
        return reply.model_dump()

    return {"induced": await _run_by_path(state["open"], induce), "unread": sorted(unread)}


async def preferred(state: TreeState, scene: Scene) -> Update:
    """Request a reply from a responder that sees the induced persona."""

    async def reply(path: str) -> str:
        history = _build_current_history(state, path, "preferred")
        return str(await scene.ask("aloe/preferred", history=history, **state["induced"][path]))

    return await _request_lines("preferred", "preferred", state["open"], reply, scene)


async def rejected(state: TreeState, scene: Scene) -> Update:
    """Request a reply from a responder that sees nothing of the persona."""

    async def reply(path: str) -> str:
        return str(await scene.ask("aloe/rejected", history=_build_current_history(state, path, "rejected")))

    return await _request_lines("rejected", "rejected", state["open"], reply, scene)


async def follow(state: TreeState, scene: Scene) -> Update:
    """Finish the current round of each path.

    In the next round, the conversation continues from one of the two replies, or from both where the tree branches.
    """
    rounds, both = build_current_rounds(state), (PREFERRED, REJECTED)
    for done in rounds:
        is_fork = len(done["path"]) < scene.scenario.branching
        done["followed"] = [*both] if is_fork else [scene.draw(f"follow {done['path']}").choice(both)]
    return {"rounds": rounds, "open": [done["path"] + reply for done in rounds for reply in done["followed"]]}


def build_current_rounds(state: TreeState) -> list[Round]:
    """Return the current round of each open path that has both replies. `followed` is still empty in these rounds."""
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
    return add_verdicts(rounds, found)


def strip_stage_directions(text: str) -> str:
    """Return a reply without stage directions (text between asterisks); the result may be empty."""
    return " ".join(_STAGE_DIRECTION.sub(" ", text).split())


def _build_current_history(state: TreeState, path: str, speaker: str = "assistant") -> list[Utterance]:
    """Return the conversation at a path, ending with the message of the current round."""
    return [*build_history(state["rounds"], path, speaker), {"speaker": "user", "content": state["said"][path]}]


async def _run_by_path(paths: Sequence[str], work: Callable[[str], Awaitable[Any]]) -> dict[str, Any]:
    """Run the same work for all paths concurrently, and return the results by path."""
    return dict(zip(paths, await asyncio.gather(*map(work, paths)), strict=True))


async def _request_lines(
    channel: str, role: str, paths: Sequence[str], work: Callable[[str], Awaitable[str]], scene: Scene
) -> Update:
    """Return a role's line on each path, and the lines that were cut off by the token limit."""
    broken_off: list[tuple[str, str, str]] = []

    async def write(path: str) -> str:
        line = await work(path)
        if scene.finish_reason is not None:  # it belongs to this line, because nothing was awaited since the reply
            broken_off.append((path, role, scene.finish_reason))
        return line

    return {channel: await _run_by_path(paths, write), **({"broken_off": sorted(broken_off)} if broken_off else {})}


class Aloe(
    Recipe, WithRoles, WithPrompts, WithFacets, WithReport, WithGate, WithLabels, WithOutline, WithProgress, WithExports
):
    """Trees of preferred and rejected replies to users who reveal themselves gradually (ALOE)."""

    name = "aloe"
    languages = ("en",)
    roles = {
        "user": 0.8,
        "induction": 0.0,
        "preferred": 0.7,
        "rejected": 0.7,
        "judge": 0.0,
    }
    reply_limits = dict.fromkeys(("user", "preferred", "rejected"), MAX_MESSAGE_TOKENS)
    prompts = ("aloe/user", "aloe/induction", "aloe/preferred", "aloe/rejected")
    reply_types = REPLY_TYPES
    options_type = AloeOptions
    formats = EXPORTERS
    scenario_type = AloeScenario
    judges = (tree.PAIR_JUDGE,)
    facets = (Facet("persona", splits=True),)
    outline = staticmethod(report.build_outline)
    tables = staticmethod(report.build_tables)

    def judges_used(self, options: AloeOptions) -> Sequence[Judge]:
        """Return the judge of pairs, if pairs are verified."""
        return self.judges if options.verify_pairs else ()

    def scenarios(
        self, options: AloeOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[AloeScenario]:
        """Yield a tree for each persona, in the file's order."""
        size = {"rounds": options.rounds, "branching": options.branching}
        for persona in options.people()[: options.limit]:
            texts = {"profile": persona.profile, "personality": persona.personality}
            yield AloeScenario(person=persona.id, **texts, **size)

    def graph(self, options: AloeOptions) -> Graph:
        """Return the graph: user; induction and rejected reply in parallel; preferred reply; judge; follow."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and not needed to read a run

        builder = StateGraph(TreeState, context_schema=Stage)
        for work in (user, induction, preferred, rejected, follow):
            builder.add_node(work.__name__, node(work))
        builder.add_edge(START, "user")
        builder.add_edge("user", "induction")
        builder.add_edge("user", "rejected")
        builder.add_edge("induction", "preferred")
        for following in add_judges(builder, self, self.judges_used(options), then="follow") or ["follow"]:
            builder.add_edge(["preferred", "rejected"], following)

        async def after_follow(state: TreeState) -> str:
            return END if len(state["open"][0]) >= options.rounds else "user"

        builder.add_conditional_edges("follow", after_follow, ["user", END])
        return builder

    def initial(self, scenario: AloeScenario) -> dict[str, Any]:
        """Return the state with one open path without messages."""
        return {"rounds": [], "open": [""], "judgements": [], "unread": []}

    def outcome(self, scenario: AloeScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return an outcome with the tree as its details, and the conversation along the first path as its messages."""
        given: Any = state
        rounds = sorted(state.get("rounds", []), key=lambda done: (len(done["path"]), done["path"]))
        path, going_on = tree.find_first_path(rounds), [] if failed else build_current_rounds(given)
        unread = state.get("unread")
        return Outcome(
            messages=tuple(tree.build_lines(rounds, path)),
            ended_by="error" if failed else "all_rounds",
            counts={
                "rounds": len(path),
                "pairs": len(rounds),
                "paths": len(state.get("open", [])),
                **({"unread_inductions": len(unread)} if unread else {}),
            },
            details={"persona": {"id": scenario.person, **scenario.persona()}, "rounds": [*rounds, *going_on]},
            judgements=tuple(Judgement.model_validate(value) for value in state.get("judgements", [])),
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the number of finished rounds on the longest path."""
        return {"round": max(map(len, state.get("open", [])), default=0)}

    def user_instructions(self, scenario: AloeScenario) -> Mapping[str, str]:
        """Return the persona that the simulated user plays."""
        return scenario.persona()

    def spoken(self, reply: str) -> str:
        """Return a reply without stage directions, as the other side receives it."""
        return strip_stage_directions(reply)

    def talks(self, scenario: AloeScenario, outcome: Outcome) -> Iterator[Talk]:
        """Yield each reply of the tree with the lines before it, in such a way that the gate checks each line once."""
        facts, rounds = self.facts(scenario), outcome.details["rounds"]
        along = tree.find_first_path(rounds)
        for done in rounds:
            path = done["path"]
            before = [GateLine(line["speaker"], line["content"]) for line in tree.build_history(rounds, path)]
            on_first = 2 * len(path) if along.startswith(path) else None
            is_cut = {role: why == "length" for role, why in done.get("broken_off", {}).items()}
            user = GateLine("user", done["user"], on_first, path, is_cut.get("user", False))
            for number, (reply, role) in enumerate(tree.REPLIES.items()):
                message = None if on_first is None or not along.startswith(path + reply) else on_first + 1
                last = GateLine(role, done[role], message, path, is_cut.get(role, False))
                yield Talk([*before, user, last], facts, since=len(before) + bool(number))

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:
        """Return a pair of replies and the lines before it, without revealing which reply used the persona."""
        depth, rounds = (judgement.turn or 1) - 1, outcome.details["rounds"]
        # There is one verdict for each round with this number; the verdicts are in the same order as the rounds.
        verdicts = [each for each in outcome.judgements if each.turn == judgement.turn]
        pairs = [done for done in rounds if len(done["path"]) == depth]
        # Several verdicts may be equal, so the judgement is found by identity.
        place = next((place for place, each in enumerate(verdicts) if each is judgement), None)
        done = pairs[verdicts.index(judgement) if place is None else place]
        before = tree.build_history(rounds, done["path"])
        return [
            *(Line(role=line["speaker"], content=line["content"]) for line in before),
            Line(role="user", content=done["user"]),
            Line(role="the reply in question", content=done["preferred"]),
            Line(role="another reply", content=done["rejected"]),
        ]


RECIPE = Aloe()
