"""Generation loops: drafts are written and checked, then rewritten up to n times or dropped. Notes record each result.

A recipe that generates data has two nodes for each kind of draft: one writes drafts, and the other reviews them::

    async def write(state, scene):
        inputs = {id_: {"topic": id_, **earlier(state, id_)} for id_ in due(state, scene.scenario.topics)}
        drafts, problems = await written(scene, "slogans/write", inputs)
        return {"drafts": {**state["drafts"], **drafts}, "problems": problems}

    async def review(state, scene):
        new = {id_: state["drafts"][id_] for id_ in due(state, state["drafts"])}
        problems = await reviewed(new, rule(length), problems=state["problems"])
        return settled(state, "slogans", new, problems, rewrites=2)

    def graph(self, options):
        return generation_graph(State, Loop(write, review))
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar

from .capabilities import WithExports, WithGate, WithOutline, WithProgress, WithPrompts, WithReport, WithRoles
from .conversation import joined
from .recipe import Recipe
from .stage import NodeFunction, Scene, Stage, Update, ask_each, node
from .tables.statistics import share_of
from .tables.table import Table

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

Result = Literal["passed", "rejected", "dropped", "unparsed"]
"""The result of a draft in an attempt. `rejected`: it is to be rewritten. `dropped`: it is discarded. `unparsed`: it is
kept, although a check could not run.
"""

UNPARSED = "unparsed: the writer's reply could not be parsed"


class Problem(TypedDict):
    """A problem that a check found in a draft.

    Attributes:
        check: The name of the check.
        reason: The problem, as text for the writer.
        written: The draft in the form in which the writer sees it again.
        result: `rejected`; `dropped` if a rewrite would not help; `unparsed` if the check could not run.
    """

    check: str
    reason: str
    written: str
    result: Result


class Note(TypedDict):
    """A record of a draft's result in one attempt.

    Attributes:
        kind: The kind of draft, in the plural, e.g. `summaries`.
        id: The draft's id.
        check: The check that did not pass; empty if all passed.
        round: The attempt, from 1.
        result: The draft's result.
        reason: The problem; empty if there is none.
    """

    kind: str
    id: str
    check: str
    round: int
    result: Result
    reason: str


Draft = TypeVar("Draft")
Problems: TypeAlias = dict[str, Problem]
DraftCheck: TypeAlias = Callable[[Mapping[str, Draft]], Awaitable[Mapping[str, Problem | None]]]
"""A function that returns the problems of some drafts by id. A draft without an entry, or with `None`, passes."""


class GenerationState(TypedDict, total=False):
    """The channels of a graph's state that a generation loop writes.

    Attributes:
        round: The number of reviewed attempts of the current loop.
        problems: Problems that are known before the drafts are reviewed.
        rejected: The problems of the drafts to be rewritten.
        notes: The results of each draft in each attempt.
    """

    round: int
    problems: Problems
    rejected: Problems
    notes: Annotated[list[Note], joined]


def unwritten() -> dict[str, Any]:
    """Return the initial values of `GenerationState`."""
    return {"round": 0, "problems": {}, "rejected": {}, "notes": []}


def problem(check: str, reason: str, written: str = "", result: Result = "rejected") -> Problem:
    """Return a `Problem` with these attributes."""
    return Problem(check=check, reason=reason, written=written, result=result)


def normalize_text(text: str) -> str:
    """Return a text in the form in which written texts are compared: without case, and with single spaces."""
    return " ".join(text.casefold().split())


def due(state: Mapping[str, Any], planned: Iterable[str]) -> list[str]:
    """Return the ids of the drafts to write in this attempt: all planned ones in the first, later the rejected ones."""
    return list(state["rejected"] or planned)


def earlier(state: Mapping[str, Any], id_: str) -> dict[str, str]:
    """Return the prompt inputs `written` and `wrong`, which describe the previous attempt; empty in the first one."""
    rejected = state["rejected"].get(id_)
    return {"written": rejected["written"] if rejected else "", "wrong": rejected["reason"] if rejected else ""}


async def written(
    scene: Scene,
    prompt: str | Callable[[str], str],
    inputs: Mapping[str, Mapping[str, Any]],
    *,
    common: bool = False,
) -> tuple[dict[str, Any], Problems]:
    """Request several drafts concurrently, and return them by id.

    Args:
        scene: The node's scene.
        prompt: The prompt of all drafts, or a function that returns the prompt for a draft's id.
        inputs: The inputs of the prompt, by the id of the draft.
        common: Whether the calls are shared between scenarios (see `ask_each`).

    Returns:
        The replies by id, and the problems of replies that could not be parsed, by id.
    """
    replies = await ask_each(scene, prompt, inputs, common=common)
    parsed = {id_: reply for id_, reply in replies.items() if reply is not None}
    return parsed, {id_: problem("unparsed", UNPARSED) for id_ in replies if id_ not in parsed}


def rule(function: Callable[[Draft], Problem | None]) -> DraftCheck[Draft]:
    """Return a check that calls a function for each draft, in a thread, so that the run can be stopped meanwhile."""

    async def check(drafts: Mapping[str, Draft]) -> Mapping[str, Problem | None]:
        return await asyncio.to_thread(lambda: {id_: function(draft) for id_, draft in drafts.items()})

    return check


async def reviewed(
    drafts: Mapping[str, Draft], *checks: DraftCheck[Draft], problems: Mapping[str, Problem]
) -> Problems:
    """Run checks in order, each on the drafts that passed all earlier checks. Put rules before models.

    Args:
        drafts: The drafts by id.
        *checks: The checks.
        problems: Known problems; these drafts are not checked.

    Returns:
        The problems by id, including the known ones.
    """
    found = dict(problems)
    for check in checks:
        failed = {id_ for id_, each in found.items() if each["result"] != "unparsed"}
        left = {id_: draft for id_, draft in drafts.items() if id_ not in failed}
        found |= {id_: each for id_, each in (await check(left)).items() if each} if left else {}
    return found


def settled(
    state: Mapping[str, Any],
    kind: str,
    drafts: Iterable[str],
    problems: Mapping[str, Problem],
    rewrites: int,
    by_hand: Collection[str] = (),
) -> Update:
    """Return the state update at the end of an attempt, with the drafts to be rewritten and the notes.

    A rejected draft is dropped if no rewrite is left, or if a person has written it.

    Args:
        state: The state, a `GenerationState`.
        kind: The kind of draft, in the plural.
        drafts: The ids of the drafts that were reviewed.
        problems: Their problems by id.
        rewrites: Maximum number of rewrites of a draft.
        by_hand: The ids of drafts that people have written or edited; these are never overwritten.
    """
    attempt, rejected, notes = state["round"] + 1, Problems(), list[Note]()
    for id_ in dict.fromkeys([*drafts, *problems]):
        found = problems.get(id_) or problem("", "", result="passed")
        result = found["result"]
        if result == "rejected" and (attempt > rewrites or id_ in by_hand):
            result = "dropped"
        elif result == "rejected":
            rejected[id_] = found
        check, reason = found["check"], found["reason"]
        notes.append(Note(kind=kind, id=id_, check=check, round=attempt, result=result, reason=reason))
    return {"round": attempt if rejected else 0, "rejected": rejected, "problems": {}, "notes": notes}


class Loop:
    """A loop of nodes, which run in order and repeat while drafts are rejected.

    Args:
        *nodes: The nodes, named after their functions; the last one reviews.
        again: A function that returns whether the loop repeats; by default it repeats while there are rejected drafts.
        needed: A function that returns whether the graph continues after the loop. If not, the graph ends.
        inner: Exceptions to the order of the nodes: for the name of a node, a function that returns the name of the
            next node.
    """

    def __init__(
        self,
        *nodes: NodeFunction,
        again: Callable[[Any], bool] = lambda state: bool(state.get("rejected")),
        needed: Callable[[Any], Any] = lambda _state: True,
        inner: Mapping[str, Callable[[Any], str]] | None = None,
    ) -> None:
        self.nodes = {function.__name__: function for function in nodes}
        self.again = again
        self.needed = needed
        self.inner = inner or {}


def generation_graph(state: type, *loops: Loop, last: Sequence[NodeFunction] = ()) -> StateGraph[Any, Any, Any, Any]:
    """Return the uncompiled graph of loops that run one after another.

    Args:
        state: The type of the state: a `GenerationState` with the recipe's own channels.
        *loops: The loops.
        last: Nodes that run in parallel after the last loop.
    """
    from langgraph.graph import END, START, StateGraph  # slow to import, and not needed to read a run

    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state, context_schema=Stage)
    firsts = [[next(iter(loop.nodes))] for loop in loops]
    endings = [function.__name__ for function in last] or [END]
    for loop, (first,), following in zip(loops, firsts, [*firsts[1:], endings], strict=True):
        names = list(loop.nodes)
        for name, function in loop.nodes.items():
            builder.add_node(name, node(function))
        for name, next_name in pairwise(names):
            if name in loop.inner:
                builder.add_conditional_edges(name, _make_router(loop.inner[name]), names)
            else:
                builder.add_edge(name, next_name)
        builder.add_conditional_edges(
            names[-1], _make_loop_router(loop, first, following, END), [first, *following, END]
        )
    for function in last:
        builder.add_node(function.__name__, node(function))
        builder.add_edge(function.__name__, END)
    builder.add_edge(START, firsts[0][0])
    return builder


def _make_router(following: Callable[[Any], str]) -> Callable[[Any], Awaitable[str]]:
    async def route(state: Any) -> str:
        return following(state)

    return route


def _make_loop_router(loop: Loop, first: str, following: list[str], end: str) -> Callable[[Any], Awaitable[list[str]]]:
    async def route(state: Any) -> list[str]:
        return [first] if loop.again(state) else following if loop.needed(state) else [end]

    return route


class GenerationRecipe(Recipe, WithRoles, WithPrompts, WithReport, WithGate, WithOutline, WithProgress, WithExports):
    """A recipe that generates data. Its outcomes hold drafts instead of messages, and another recipe reads its exports.

    Attributes:
        folder: The export format that the other recipe reads, if it is a folder. A run that stops after an earlier
            stage exports the format `drafts`.
    """

    folder: ClassVar[str] = ""
    languages = ("en",)

    def folder_format(self, options: Any) -> str | None:
        """Return the format of the generated data, or `drafts` if the run ends at an earlier stage."""
        return "drafts" if getattr(options, "until", "complete") != "complete" else self.folder or None


class NoteTally:
    """Counts of notes, and two tables of these counts.

    Args:
        meanings: The meanings of the checks, in the order of the rows. If they are given, the table `rejected` shows
            them.
    """

    def __init__(self, meanings: Mapping[str, str] | None = None) -> None:
        self._meanings = meanings or {}
        self._results: Counter[tuple[str, str, int]] = Counter()
        self._checks: dict[str, dict[str, Counter[str]]] = {}

    def add(self, notes: Iterable[Note]) -> None:
        """Add a scenario's notes to the counts."""
        for note in notes:
            kind, result, attempt = note["kind"], note["result"], note["round"]
            self._results[kind, "passed" if result == "unparsed" else result, attempt] += 1
            checks = self._checks.setdefault(kind, {})
            if result != "passed":
                is_first = attempt == 1 and result != "unparsed"
                checks.setdefault(note["check"], Counter()).update([result, *(["first"] if is_first else [])])

    def tables(self) -> list[Table]:
        """Return the tables `drafts` (in which attempt drafts passed) and `rejected` (which checks they failed)."""
        attempts = range(1, max((attempt for *_, attempt in self._results), default=0) + 1)
        rewrite_columns = [f"after {number} rewrite{'s' * (number > 1)}" for number in attempts[:-1]]
        drafts = Table(
            "drafts",
            "Drafts by the attempt in which they passed all checks",
            ["drafts", "number", "passed at once", *rewrite_columns, "dropped"],
        )
        results = {name for checks in self._checks.values() for counts in checks.values() for name in counts}
        shown = [name for name in ("rejected", "dropped", "unparsed") if name in results]
        meaning = ["meaning"] if self._meanings else []
        rejected = Table(
            "rejected",
            "Rejected drafts by check",
            ["drafts", "check", "at first %", *shown, *meaning],
            notes=[
                "At first: the share of drafts that did not pass the check in the first attempt. Rejected: drafts that "
                "were returned to the writer with the reason, to be rewritten. Unparsed: drafts that were kept because "
                "the check's reply could not be parsed."
            ],
        )
        order = {check: place for place, check in enumerate(self._meanings)}
        for kind, checks in self._checks.items():
            passed_counts, dropped_counts = (
                [self._results[kind, each, attempt] for attempt in attempts] for each in ("passed", "dropped")
            )
            drafts.rows.append([kind, sum(passed_counts) + sum(dropped_counts), *passed_counts, sum(dropped_counts)])
            n = sum(self._results[kind, result, 1] for result in ("passed", "rejected", "dropped"))
            for check in sorted(checks, key=lambda check: (order.get(check, len(order)), check)):
                counts = checks[check]
                first = share_of(counts["first"], n) if n else None
                meaning_cells = [self._meanings.get(check, "")] if meaning else []
                rejected.rows.append([kind, check, first, *(counts[name] for name in shown), *meaning_cells])
        return [table for table in (drafts, rejected) if table.rows]
