"""The context that the steppers of one scenario share: the run file, the graph and the gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.channels.binop import BinaryOperatorAggregate
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite, StateSnapshot, StateUpdate

from dialoom.graphs import Episode, Line, Outcome, Outline, Recipe, Stage, WithOutline, WithProgress, WithPrompts
from dialoom.graphs.gate import Gate
from dialoom.graphs.recipe import complete_outcome
from dialoom.graphs.tool_use import list_mcp_servers
from dialoom.grouping import nest_triples
from dialoom.roles import Gateway, ModelBinding
from dialoom.roles.gateway import Caller
from dialoom.roles.gateway.calls import WRITTEN_BY_PERSON
from dialoom.roles.gateway.players import create_player_backend
from dialoom.roles.gateway.retries import Backend
from dialoom.roles.gateway.secrets import redact
from dialoom.roles.players import keeps_state, load_player
from dialoom.roles.replies import parse_reply, reply_type
from dialoom.runs.configuration.recipe_checks import build_graph
from dialoom.runs.configuration.trust import (
    cast_references,
    find_study_problem,
    load_references,
    player_references,
    server_references,
)
from dialoom.runs.engine import build_session
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import CallPolicy, RunLimits, build_cast, open_gateway
from dialoom.runs.store import MAIN, Branch, PlayWork, Point, PromotedBranch, RunFile, RunStore, StepCall
from dialoom.runs.store.branches import MadeCall
from dialoom.runs.store.checkpoints.reading import DECODE_CACHE, DecodeCache
from dialoom.runs.store.corruption import reporting_corruption
from dialoom.settings import PlayerObject

from .gateway import ScratchSaver, SteppingError

CompiledGraph = CompiledStateGraph[Any, Any, Any, Any]
START = "__start__"

_MAX_CACHED_OUTCOMES = 16
"""The maximum number of cached outcomes; those of a long conversation are large."""
_PLAYER_TIMEOUT_SECONDS = 10.0
"""The seconds within which a player's own database must answer."""


@dataclass
class ScenarioContext:
    """A scenario with everything needed to inspect it.

    Attributes:
        scratch: The graph with a checkpointer that stores nothing.
        gate: The gate, which finds the faults of the conversation.
        tell: Called with the messages of nodes.
        problem: The reason why the functions of the run's study cannot be called, if there is one.
        players: The stateful players whose own databases are read, by model.
        states: The channel values at inspected checkpoints, by checkpoint id.
    """

    store: RunFile
    recipe: Recipe
    graph: CompiledGraph
    scratch: CompiledGraph
    gate: Gate
    work: PlayWork
    models: Mapping[str, ModelBinding]
    seed: int
    tell: Callable[[str], None]
    problem: RunError | None
    players: dict[str, PlayerObject] = field(default_factory=dict)
    states: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    _replaced_bindings: dict[tuple[str, str], ModelBinding] = field(default_factory=dict)
    _player_values: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)
    _snapshots: dict[str, StateSnapshot] = field(default_factory=dict)
    _decoded: DecodeCache = field(default_factory=DecodeCache)
    _outcomes: dict[tuple[str, bool], Outcome] = field(default_factory=dict)

    @property
    def has_stateful_players(self) -> bool:
        """Return whether a player has a state that is displayed with the conversation."""
        is_declared = any(binding.stateful for binding in self.models.values())
        return is_declared or self.store.branches.has_player_states(self.work.position)

    def binding(self, role: str, model: str) -> ModelBinding:
        """Return the binding of a role that a model plays on a branch.

        Raises:
            BindingError: If the model is a player that cannot be loaded.
            TrustError: If it is code that is specified only by the author of the run's file.
        """
        own = self.models[role]
        if model == own.model:
            return own
        if (role, model) not in self._replaced_bindings:
            self.store.ensure_trusted(player_references(model))
            is_stateful = keeps_state(model, own.stateful)
            changed = {"model": model, "api_base": None, "stateful": is_stateful, "code": None}
            self._replaced_bindings[role, model] = own.model_copy(update=changed)
        return self._replaced_bindings[role, model]

    def bindings(self, branch: Branch) -> dict[str, ModelBinding]:
        """Return the bindings of the roles whose models are replaced on a branch."""
        return {role: self.binding(role, model) for role, model in branch.models.items()}

    @property
    def is_pending(self) -> bool:
        """Return whether the scenario has not been played to its end yet."""
        return self.store.state_of(self.work.position) == "pending"

    async def player_states(self, calls: Sequence[MadeCall]) -> dict[str, Any]:
        """Return the state of each stateful player after its last call among the given calls, by role."""
        with reporting_corruption(self.store.path):
            found = self.store.branches.player_states(calls)
        return {role: await self._load_player_state(model, state) for role, (model, state) in found.items()}

    async def _load_player_state(self, model: str, state: Any) -> Any:
        """Return a state; values that are only in the player's database are added, or the reason why this failed."""
        if not (isinstance(state, dict) and state.keys() >= {"thread", "checkpoint"} and "values" not in state):
            return state
        place = model, str(state["thread"]), str(state["checkpoint"])
        if place not in self._player_values:
            try:
                async with asyncio.timeout(_PLAYER_TIMEOUT_SECONDS):
                    player = await asyncio.to_thread(self._player, model)
                    shown = getattr(player, "shown", None)
                    self._player_values[place] = {} if shown is None else await shown(state)
            except Exception as error:  # of any kind: the player, its database and its driver are the user's own
                why = (
                    f"no answer within {_PLAYER_TIMEOUT_SECONDS:g} s" if isinstance(error, TimeoutError) else str(error)
                )
                self._player_values[place] = {"no_values": redact(f"{type(error).__name__}: {why}")}
        return state | self._player_values[place]

    def _player(self, model: str) -> Backend:
        if model not in self.players:
            self.store.ensure_trusted(player_references(model))
            if (player := load_player(model, is_stateful=True)) is None:
                raise SteppingError("it was given as an object, and has to be given again")
            self.players[model] = player
        return create_player_backend(model, self.players[model], is_stateful=True)

    def main(self) -> Branch:
        """Return the scenario's main branch."""
        return Branch(MAIN, self.work.thread, None, self.work.sample)

    def branches(self) -> list[Branch]:
        """Return all branches, `main` first."""
        return [self.main(), *self.store.branches.of(self.work.position)]

    def branch(self, name: str) -> Branch:
        """Return the branch with this name.

        Raises:
            SteppingError: If there is none.
        """
        for branch in self.branches():
            if branch.name == name:
                return branch
        names = ", ".join(branch.name for branch in self.branches())
        raise SteppingError(f"there is no branch {name!r}; the branches are {names}")

    def points(self) -> dict[str, Point]:
        """Return all checkpoints of the scenario by their ids, oldest first."""
        return self.store.branches.points(branch.thread for branch in self.branches())

    def latest_checkpoint(self, thread: str) -> str | None:
        """Return the id of a thread's newest checkpoint; `None` if it has none."""
        return next(reversed(self.store.branches.points([thread])), None)

    def find_checkpoint(self, branch: Branch, checkpoint: str | int) -> tuple[Branch, Point]:
        """Return a checkpoint by its number or id, and a branch that contains it: the given branch if possible.

        Raises:
            SteppingError: If there is no such checkpoint.
        """
        points = self.points()
        for point in points.values():
            if point.id == checkpoint or str(point.number) == str(checkpoint).removeprefix("#"):
                if branch.thread not in point.threads:
                    branch = next(each for each in self.branches() if each.thread in point.threads)
                return branch, point
        raise SteppingError(f"there is no checkpoint {checkpoint!r}; the history has 0 to {len(points) - 1}")

    def lineage(self, head: str) -> list[Point]:
        """Return the ancestors of a checkpoint, oldest first, followed by the checkpoint itself."""
        points, line = self.points(), list[Point]()
        at: str | None = head
        while at is not None and (point := points.get(at)) is not None:
            line.append(point)
            at = point.parent
        return line[::-1]

    async def snapshot(self, point: Point) -> StateSnapshot:
        """Return LangGraph's snapshot of a checkpoint.

        A checkpoint's snapshot changes only if an interrupted step has stored writes.
        """
        if point.id not in self._snapshots:
            place = {"thread_id": min(point.threads), "checkpoint_id": point.id, DECODE_CACHE: self._decoded}
            with reporting_corruption(self.store.path):
                self._snapshots[point.id] = await self.graph.aget_state({"configurable": place})
            self.states[point.id] = self._snapshots[point.id].values
        return self._snapshots[point.id]

    def forget(self, checkpoint: str) -> None:
        """Discard a checkpoint's cached snapshot."""
        self._snapshots.pop(checkpoint, None)

    async def nodes_after(self, point: Point) -> tuple[str, ...]:
        """Return the nodes that run after a checkpoint."""
        return tuple(dict.fromkeys(task.name for task in (await self.snapshot(point)).tasks))

    async def nodes_before(self, line: Sequence[Point]) -> tuple[str, ...]:
        """Return the nodes that ran last before a checkpoint; their edges chose the next nodes."""
        for before, point in zip(line[-2::-1], line[:0:-1], strict=True):
            if point.source == "loop":
                return await self.nodes_after(before)
        return (START,)

    async def step_calls(self, line: Sequence[Point]) -> list[MadeCall]:
        """Return the calls of the last step before a checkpoint, without their texts."""
        if len(line) < 2 or line[-1].source != "loop":
            return []
        calls = self.store.branches.calls_of(self.work.position, line[-1].id)
        if calls is None and self.work.thread not in line[-1].threads:
            return []  # the process was killed before the step's calls were recorded; the next stepper plays it again
        if calls is None:
            nodes = await self.nodes_after(line[-2])
            calls = self.store.branches.calls_at(self.work.position, count_steps(line) - 1, nodes)
        return calls

    async def lineage_calls(self, line: Sequence[Point]) -> list[MadeCall]:
        """Return all calls on the path to a checkpoint, without their texts."""
        return [call for end in range(2, len(line) + 1) for call in await self.step_calls(line[:end])]

    def parsed_reply(self, call: StepCall) -> Any:
        """Return a typed reply, parsed into plain values; `None` for any other reply."""
        prompt = self.store.prompts.get(call.prompt)
        if prompt is None or call.reply is None:
            return None
        form = reply_type(prompt.front.reply, WithPrompts.of(self.recipe).reply_types)
        if form is None:
            return None
        try:
            return parse_reply(call.reply, form).model_dump(mode="json")
        except ValueError as error:
            return f"not parsed: {error}"

    def stage(self, gateway: Caller, branch: Branch, step: int) -> Stage:
        """Return the context of one step."""
        cast = build_cast(self.store, self.recipe, self.models, gateway)
        retries = self.store.config.user_retries
        return Stage(
            self.work.scenario,
            cast,
            self.work.thread,
            self.seed,
            branch.sample,
            step,
            self.tell,
            self.gate,
            retries,
            session=build_session(self.store, self.recipe, self.work, branch.name, branch.sample),
            is_fork=branch.name != MAIN or not self.is_pending,
            is_resampled=branch.sample > self.work.sample,
        )

    def outcome(self, state: Mapping[str, Any], is_end: bool) -> Outcome:
        """Return the outcome of a state, with the faults that the gate finds; without checks that have changed."""
        bare = self.recipe.outcome(self.work.scenario, self._with_initial_values(state), not is_end)
        outcome = complete_outcome(self.recipe, self.work.scenario, bare, is_checked=is_end and self.problem is None)
        return self.gate.add_faults(self.work.scenario, outcome)

    def outcome_at(self, checkpoint: str, state: Mapping[str, Any], is_end: bool) -> Outcome:
        """Return the outcome of a checkpoint's state; the last ones are kept, because finding faults takes time."""
        if (checkpoint, is_end) not in self._outcomes:
            if len(self._outcomes) >= _MAX_CACHED_OUTCOMES:
                self._outcomes.clear()
            self._outcomes[checkpoint, is_end] = self.outcome(state, is_end)
        return self._outcomes[checkpoint, is_end]

    def ensure_unchanged(self) -> None:
        """Check that the functions of the run's study can be called.

        Raises:
            RunError: If one has changed or is missing.
        """
        if self.problem is not None:
            raise self.problem

    def count_progress(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the progress of a conversation in the recipe's units, such as turns."""
        return WithProgress.of(self.recipe).counted(self._with_initial_values(state))

    def _with_initial_values(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a state with initial values added, because LangGraph fills some channels only in the first step."""
        return {**self.recipe.initial(self.work.scenario), **state}

    def transcript(self, outcome: Outcome) -> Sequence[Line] | Outline:
        """Return a conversation in the form in which the recipe displays it."""
        scenario = self.work.scenario
        episode = Episode(scenario.id, scenario.facets(), "done", outcome)
        return WithOutline.of(self.recipe).outline(episode) or outcome.messages

    async def promoted_branch(self, branch: Branch, line: Sequence[Point]) -> PromotedBranch | None:
        """Return the record of a branch's promotion for its outcome; `None` for `main`."""
        if branch.name == MAIN:
            return None
        calls = await self.lineage_calls(line)
        own = {role: binding.model for role, binding in self.models.items()}
        # The calls of tools belong to no role.
        changed = (call for call in calls if call.role in own and call.model not in (WRITTEN_BY_PERSON, own[call.role]))
        others = nest_triples((call.role, call.model, None) for call in changed)
        return PromotedBranch(
            name=branch.name,
            models={role: ", ".join(models) for role, models in others.items()},
            replaced={role: own[role] for role in others},
            edits=sum(point.source == "update" for point in line),
            said=sum(call.model == WRITTEN_BY_PERSON for call in calls),
            prompts=sum(call.is_edited for call in calls),
        )

    def explain(self, ran: Sequence[str], coming: Sequence[str]) -> dict[str, str]:
        """Return the reason why each of the next nodes runs."""
        return {node: "; ".join(self._iter_reasons(ran, node)) or "a node sent a task to it" for node in coming}

    def _iter_reasons(self, ran: Sequence[str], node: str) -> Iterator[str]:
        builder = self.graph.builder
        for before in ran:
            if (before, node) in builder.edges:
                yield "the conversation begins with this node" if before == START else f"it follows {before}"
            for name, branch in builder.branches.get(before, {}).items():
                if branch.ends is None or node in branch.ends.values():
                    yield f"{name} chose it after {before}"
        for befores, after in builder.waiting_edges:
            if after == node and set(befores) & set(ran):
                yield f"it follows {' and '.join(befores)}"


@dataclass(kw_only=True)
class PlayableContext(ScenarioContext):
    """A scenario with everything needed to play it, from a run that is open for writing."""

    store: RunStore
    gateway: Gateway

    def _player(self, model: str) -> Backend:
        self.store.ensure_trusted(player_references(model))
        return self.gateway.player(model)

    async def begin(self) -> str:
        """Write the scenario's initial state to its thread, stop before the first node; return the checkpoint's id."""
        self.ensure_unchanged()
        stage = replace(self.stage(self.gateway, self.main(), 0), is_fork=False)
        initial = self.recipe.initial(self.work.scenario)
        config = thread_config(self.work.thread)
        await self.graph.ainvoke(initial, config, context=stage, interrupt_before="*", durability="sync")
        if self.store.state_of(self.work.position) == "done":  # an imported conversation, which has no checkpoints yet
            await self.graph.ainvoke(None, config, context=stage, durability="sync")
        head = self.latest_checkpoint(self.work.thread)
        assert head is not None
        return head


@asynccontextmanager
async def open_context(
    store: RunStore, position: int, policy: CallPolicy | None, tell: Callable[[str], None]
) -> AsyncIterator[PlayableContext]:
    """Open a scenario of a run that is open for writing, with its graph and gateway.

    Args:
        store: The run.
        position: The scenario's position.
        policy: The policy for calls; by default the one stored in the run file.
        tell: Called with the messages of nodes.
    """
    async with store.checkpointer() as saver:
        with open_gateway(store, policy or CallPolicy(RunLimits.of(store))) as gateway:
            yield PlayableContext(**_common_parts(store, position, saver, tell), store=store, gateway=gateway)


@asynccontextmanager
async def open_read_only(
    store: RunFile, position: int, players: dict[str, PlayerObject] | None = None
) -> AsyncIterator[ScenarioContext]:
    """Open a scenario of a run that is open for reading, even while another process writes it.

    Args:
        store: The run.
        position: The scenario's position.
        players: The stateful players whose own databases can be read, by model; those that are loaded are added.
    """
    async with store.checkpointer() as saver:
        parts = _common_parts(store, position, saver, lambda _text: None)
        yield ScenarioContext(**parts, store=store, players={} if players is None else players)


def _common_parts(
    store: RunFile, position: int, saver: BaseCheckpointSaver[int], tell: Callable[[str], None]
) -> dict[str, Any]:
    """Return the attributes that both kinds of contexts have."""
    config = store.config
    recipe = store.recipe
    work = store.queue.work_of(recipe, position)
    servers = server_references(list_mcp_servers(recipe, recipe.options_type.model_validate(config.options)))
    models = config.models_for(work.id)
    store.ensure_trusted([*cast_references(models), *load_references(work.scenario.loads), *servers])
    builder = build_graph(recipe, config.options)
    return {
        "recipe": recipe,
        "graph": builder.compile(checkpointer=saver),
        "scratch": builder.compile(checkpointer=ScratchSaver(saver)),
        "gate": store.gate,
        "work": work,
        "models": models,
        "seed": config.seed,
        "tell": tell,
        "problem": find_study_problem(store.path, recipe, config.recipe, config.code),
    }


def count_steps(line: Sequence[Point]) -> int:
    """Return the number of steps up to a checkpoint (without edits and rewinds), which numbers the next step."""
    return sum(point.source == "loop" for point in line)


def interrupt_options(next_nodes: Sequence[str]) -> dict[str, Any]:
    """Return LangGraph's option to stop after the next nodes or, at the input, to stop before the first node."""
    return {"interrupt_before": "*"} if START in next_nodes else {"interrupt_after": "*"}


def build_updates(graph: CompiledGraph, values: Mapping[str, Any], nodes: Sequence[str]) -> list[StateUpdate]:
    """Return an edit of channels as LangGraph's updates by the last nodes, whose edges choose the next nodes again."""
    overwrites = {
        name: Overwrite(value) if isinstance(graph.channels.get(name), BinaryOperatorAggregate) else value
        for name, value in values.items()
    }
    first, *others = nodes
    return [StateUpdate(overwrites, as_node=first), *(StateUpdate(None, as_node=each) for each in others)]


def thread_config(thread: str, checkpoint: str | None = None) -> RunnableConfig:
    """Return LangGraph's configuration for a thread, or for a checkpoint of it."""
    place = {"thread_id": thread}
    if checkpoint is not None:
        place["checkpoint_id"] = checkpoint
    return {"configurable": place, "recursion_limit": 1_000_000}
