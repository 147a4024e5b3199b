"""What the sessions of one scenario share: the run's file, the graph, the way to the models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, StateSnapshot, StateUpdate

from dialoom.graphs import Episode, Line, Outcome, Outline, Recipe, Stage
from dialoom.graphs.capabilities import WithOutline, WithProgress, WithPrompts
from dialoom.graphs.finishing import finished
from dialoom.graphs.gate import Gate
from dialoom.roles import Gateway, ModelBinding
from dialoom.roles.gateway import Caller
from dialoom.roles.replies import parse_reply, reply_type
from dialoom.runs.gateway_setup import CallPolicy, cast_of, open_gateway
from dialoom.runs.limits import RunLimits
from dialoom.runs.recipe_check import graph_of
from dialoom.runs.store import PlayWork, RunFile, RunStore
from dialoom.runs.store.branches import MAIN, Branch, Point, StepCall
from dialoom.runs.store.episodes import BranchTaken
from dialoom.runs.store.ledger import SAID
from dialoom.runs.trust import loads_named, players_named

from .gateway import SteppingError
from .scratch import ScratchSaver

Compiled = CompiledStateGraph[Any, Any, Any, Any]
START = "__start__"


@dataclass
class ScenarioContext:
    """A scenario with everything that is needed to look at it.

    Attributes:
        scratch: The same graph on a saver that keeps nothing.
        gate: Finds the faults of the conversation.
        tell: Takes what nodes have to say.
        states: The values of the channels at checkpoints that were looked at, by their ids.
    """

    store: RunFile
    recipe: Recipe
    graph: Compiled
    scratch: Compiled
    gate: Gate
    work: PlayWork
    models: Mapping[str, ModelBinding]
    seed: int
    tell: Callable[[str], None]
    states: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _snapshots: dict[str, StateSnapshot] = field(default_factory=dict)

    @property
    def is_pending(self) -> bool:
        """Whether the scenario is still to be played."""
        return self.store.state_of(self.work.position) == "pending"

    def main(self) -> Branch:
        """The scenario's own line."""
        return Branch(MAIN, self.work.thread, None, self.work.sample)

    def branches(self) -> list[Branch]:
        """All of them, `main` first."""
        return [self.main(), *self.store.branches.of(self.work.position)]

    def branch(self, name: str) -> Branch:
        """The branch of that name.

        Raises:
            SteppingError: If there is none.
        """
        for branch in self.branches():
            if branch.name == name:
                return branch
        names = ", ".join(branch.name for branch in self.branches())
        raise SteppingError(f"there is no branch {name!r}; there are {names}")

    def points(self) -> dict[str, Point]:
        """All checkpoints of the scenario by their ids, oldest first."""
        return self.store.branches.points(branch.thread for branch in self.branches())

    def latest(self, thread: str) -> str | None:
        """The id of the checkpoint that was made last in a thread."""
        return next(reversed(self.store.branches.points([thread])), None)

    def found(self, branch: Branch, checkpoint: str | int) -> tuple[Branch, Point]:
        """A checkpoint by its number or id, and the branch to stand on there: this one, if it is among its own.

        Raises:
            SteppingError: If there is none.
        """
        points = self.points()
        for point in points.values():
            if point.id == checkpoint or str(point.number) == str(checkpoint).removeprefix("#"):
                if branch.thread not in point.threads:
                    branch = next(each for each in self.branches() if each.thread in point.threads)
                return branch, point
        raise SteppingError(f"there is no checkpoint {checkpoint!r}; the history has 0 to {len(points) - 1}")

    def line(self, head: str) -> list[Point]:
        """The checkpoints that led to one, oldest first, and itself."""
        points, line = self.points(), list[Point]()
        at: str | None = head
        while at is not None and (point := points.get(at)) is not None:
            line.append(point)
            at = point.parent
        return line[::-1]

    async def snapshot(self, point: Point) -> StateSnapshot:
        """A checkpoint as LangGraph shows it. It never changes, but for the writes of a step that was broken off."""
        if point.id not in self._snapshots:
            place = {"thread_id": min(point.threads), "checkpoint_id": point.id}
            self._snapshots[point.id] = await self.graph.aget_state({"configurable": place})
            self.states[point.id] = self._snapshots[point.id].values
        return self._snapshots[point.id]

    def forget(self, checkpoint: str) -> None:
        """Read a checkpoint anew the next time."""
        self._snapshots.pop(checkpoint, None)

    async def nodes_after(self, point: Point) -> tuple[str, ...]:
        """The nodes that come after a checkpoint."""
        return tuple(dict.fromkeys(task.name for task in (await self.snapshot(point)).tasks))

    async def nodes_before(self, line: Sequence[Point]) -> tuple[str, ...]:
        """The nodes that ran last on a line: those whose edges decided what comes next."""
        for before, point in zip(line[-2::-1], line[:0:-1], strict=True):
            if point.source == "loop":
                return await self.nodes_after(before)
        return (START,)

    async def calls(self, line: Sequence[Point]) -> list[StepCall]:
        """The calls that led from the checkpoint before to the last one of a line."""
        if len(line) < 2 or line[-1].source != "loop":
            return []
        calls = self.store.branches.calls_of(self.work.position, line[-1].id)
        if calls is None and self.work.thread not in line[-1].threads:
            return []  # a step that was killed before it was told; the next session plays it again
        if calls is None:
            nodes = await self.nodes_after(line[-2])
            calls = self.store.branches.calls_at(self.work.position, steps(line) - 1, nodes)
        return calls

    async def calls_on(self, line: Sequence[Point]) -> list[StepCall]:
        """All calls on a line."""
        return [call for end in range(2, len(line) + 1) for call in await self.calls(line[:end])]

    def parsed_reply(self, call: StepCall) -> Any:
        """What was understood of a reply that had to be of a form, as plain values; `None` of any other."""
        prompt = self.store.prompts.get(call.prompt)
        if prompt is None or call.reply is None:
            return None
        form = reply_type(prompt.front.reply, WithPrompts.of(self.recipe).reply_types)
        if form is None:
            return None
        try:
            return parse_reply(call.reply, form).model_dump(mode="json")
        except ValueError as error:
            return f"nothing: {error}"

    def stage(self, gateway: Caller, branch: Branch, step: int) -> Stage:
        """The context of one step."""
        cast = cast_of(self.store, self.recipe, self.models, gateway)
        retries = self.store.config.user_retries
        return Stage(
            self.work.scenario, cast, self.work.thread, self.seed, branch.sample, step, self.tell, self.gate, retries
        )

    def outcome(self, state: Mapping[str, Any], is_end: bool) -> Outcome:
        """What a state means, and what is wrong with it."""
        outcome = finished(self.recipe, self.work.scenario, self._begun(state), failed=not is_end)
        return self.gate.passed(self.work.scenario, outcome)

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """How far a state is, in the recipe's units."""
        return WithProgress.of(self.recipe).counted(self._begun(state))

    def _begun(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """A state as recipes know it: before the first step, LangGraph has not put the initial one in all channels."""
        return {**self.recipe.initial(self.work.scenario), **state}

    def transcript(self, outcome: Outcome) -> Sequence[Line] | Outline:
        """A conversation as the recipe shows it."""
        scenario = self.work.scenario
        episode = Episode(scenario.id, scenario.facets(), "done", outcome)
        return WithOutline.of(self.recipe).outline(episode) or outcome.messages

    async def branch_taken(self, branch: Branch, line: Sequence[Point]) -> BranchTaken | None:
        """What an outcome of a branch says of its origin."""
        if branch.name == MAIN:
            return None
        calls = await self.calls_on(line)
        own = {role: binding.model for role, binding in self.models.items()}
        return BranchTaken(
            name=branch.name,
            models={call.role: call.model for call in calls if call.model not in (SAID, own.get(call.role))},
            edits=sum(point.source == "update" for point in line),
            said=sum(call.model == SAID for call in calls),
            prompts=sum(call.is_edited for call in calls),
        )

    def why(self, ran: Sequence[str], coming: Sequence[str]) -> dict[str, str]:
        """How the graph came to each of the nodes that come next."""
        return {node: "; ".join(self._reasons(ran, node)) or "it was sent there" for node in coming}

    def _reasons(self, ran: Sequence[str], node: str) -> Iterator[str]:
        builder = self.graph.builder
        for before in ran:
            if (before, node) in builder.edges:
                yield "the conversation begins with it" if before == START else f"it follows {before}"
            for name, branch in builder.branches.get(before, {}).items():
                if branch.ends is None or node in branch.ends.values():
                    yield f"{name} chose it after {before}"
        for befores, after in builder.waiting_edges:
            if after == node and set(befores) & set(ran):
                yield f"it follows {' and '.join(befores)}"


@dataclass(kw_only=True)
class PlayableContext(ScenarioContext):
    """A scenario with everything that is needed to play it, over a run that is open for writing."""

    store: RunStore
    gateway: Gateway

    async def begin(self) -> str:
        """Put the scenario's initial state into its thread, and stop before the first node; returns the checkpoint."""
        stage = self.stage(self.gateway, self.main(), 0)
        initial = self.recipe.initial(self.work.scenario)
        config = at(self.work.thread)
        await self.graph.ainvoke(initial, config, context=stage, interrupt_before="*", durability="sync")
        head = self.latest(self.work.thread)
        assert head is not None
        return head


@asynccontextmanager
async def open_context(
    store: RunStore, position: int, policy: CallPolicy | None, tell: Callable[[str], None]
) -> AsyncIterator[PlayableContext]:
    """A scenario of a run that is open for writing, with the graph and the way to the models.

    Args:
        store: The run.
        position: The scenario's.
        policy: How calls are made; by default as the run's file says.
        tell: Takes what nodes have to say.
    """
    async with store.checkpointer() as saver:
        with open_gateway(store, policy or CallPolicy(RunLimits.of(store))) as gateway:
            yield PlayableContext(**_parts(store, position, saver, tell), store=store, gateway=gateway)


@asynccontextmanager
async def open_to_look(store: RunFile, position: int) -> AsyncIterator[ScenarioContext]:
    """A scenario of a run that is open for reading, whoever writes it meanwhile.

    Args:
        store: The run.
        position: The scenario's.
    """
    async with store.checkpointer() as saver:
        yield ScenarioContext(**_parts(store, position, saver, lambda _text: None), store=store)


def _parts(
    store: RunFile, position: int, saver: BaseCheckpointSaver[int], tell: Callable[[str], None]
) -> dict[str, Any]:
    """What both kinds of contexts have."""
    config = store.config
    recipe = store.recipe
    work = store.queue.work_of(recipe, position)
    store.permit([*players_named(config.models), *loads_named(work.scenario.loads)])
    builder = graph_of(recipe, config.options)
    return {
        "recipe": recipe,
        "graph": builder.compile(checkpointer=saver),
        "scratch": builder.compile(checkpointer=ScratchSaver(saver)),
        "gate": store.gate,
        "work": work,
        "models": config.models,
        "seed": config.seed,
        "tell": tell,
    }


def steps(line: Sequence[Point]) -> int:
    """How many supersteps a line has, which is the number of the next one: edits and rewinds do not count."""
    return sum(point.source == "loop" for point in line)


def one_step(coming: Sequence[str]) -> dict[str, Any]:
    """How LangGraph is told to stop after the nodes that come; after the one that takes the input in it cannot."""
    return {"interrupt_before": "*"} if START in coming else {"interrupt_after": "*"}


def updates(graph: Compiled, values: Mapping[str, Any], nodes: Sequence[str]) -> list[StateUpdate]:
    """An edit of channels for LangGraph, made as the nodes that ran last, whose edges then choose again."""
    whole = {
        name: Overwrite(value) if isinstance(graph.channels.get(name), BinaryOperatorAggregate) else value
        for name, value in values.items()
    }
    first, *others = nodes
    return [StateUpdate(whole, as_node=first), *(StateUpdate(None, as_node=each) for each in others)]


def at(thread: str, checkpoint: str | None = None) -> RunnableConfig:
    """A thread, or a checkpoint of it, for LangGraph."""
    place = {"thread_id": thread}
    if checkpoint is not None:
        place["checkpoint_id"] = checkpoint
    return {"configurable": place, "recursion_limit": 1_000_000}
