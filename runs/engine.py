"""The engine: plays several scenarios at a time through a compiled graph, each from its last checkpoint."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl

from dialoom.graphs import Judgement, Outcome, Recipe, Stage, WithFacets
from dialoom.graphs.built_in_environments import load_remote_tools, mcp_connections
from dialoom.graphs.judge import Graph
from dialoom.graphs.outcome import EARLIER_ATTEMPTS, USER, parse_episode_numbers
from dialoom.graphs.recipe import build_outcome, complete_outcome
from dialoom.roles import BudgetError, Cast, DrainedError
from dialoom.roles.errors import StateLostError
from dialoom.roles.gateway.availability import ProviderEvent, ProviderLost
from dialoom.roles.gateway.secrets import redact
from dialoom.roles.players import Session, make_session_id
from dialoom.text import format_duration, to_well_formed

from .configuration.trust import load_references
from .control import Event, NodeMessage, ScenarioDone, ScenarioFailed, Stopping, StopRule
from .errors import FATAL, Fault, fault_of, identify_permanent_error, is_file_error, store_error
from .store import MAIN, JudgeWork, PlayWork, RunFile, RunStore, Work


class WorkSource(Protocol):
    """A source from which the engine takes its work."""

    async def take(self) -> Work | None:
        """Wait for the next piece of work and return it; return `None` if there is no more work."""

    def find_obstacle(self, work: Work) -> str | None:
        """Return the reason why a piece of work cannot be carried out; `None` if it can be."""

    def mark_ended(self, work: Work) -> None:
        """Record that a piece of work is no longer in progress, whatever its result."""


class WorkList:
    """A source of work in which a conversation can begin only after its predecessor in the sequence has been played.

    Args:
        work: The work, which is read on demand, with the conversations of a sequence in their order.
        store: The run, which holds the state of each predecessor.
    """

    def __init__(self, work: Iterator[Work], store: RunStore) -> None:
        self._work = work
        self._store = store
        self._ready: deque[Work] = deque()
        self._waiting: dict[int, Work] = {}
        self._in_progress: set[int] = set()
        self._is_exhausted = False
        self._changed = asyncio.Event()

    @property
    def can_begin(self) -> bool:
        """Return whether there may be a piece of work that can begin now."""
        return bool(self._ready) or not self._is_exhausted

    @property
    def is_over(self) -> bool:
        """Return whether no more work can begin, neither now nor after the work in progress has ended."""
        return self._is_exhausted and not self._ready and not (self._waiting and self._in_progress)

    async def take(self) -> Work | None:
        """Wait until a piece of work can begin, and return it; return `None` at the end."""
        while (piece := self.take_nowait()) is None and not self.is_over:
            await self._changed.wait()
        return piece

    def take_nowait(self) -> Work | None:
        """Return the next piece of work that can begin now; `None` if there is none."""
        while True:
            piece = self._ready.popleft() if self._ready else next(self._work, None)
            if piece is None:
                self._is_exhausted = True
                return None
            predecessor = _predecessor_of(piece)
            if predecessor is None or self._store.state_of(predecessor) != "pending":
                self._in_progress.add(piece.position)
                return piece
            self._waiting[predecessor] = piece

    def find_obstacle(self, work: Work) -> str | None:
        """Return an error message if the predecessor of a piece of work failed; `None` if the work can be played."""
        predecessor = _predecessor_of(work)
        if predecessor is None or self._store.state_of(predecessor) != "failed":
            return None
        return (
            f"not played, because the conversation before it, scenario {predecessor + 1:,}, failed; retry to play both"
        )

    def mark_ended(self, work: Work) -> None:
        """Record that a piece of work is no longer in progress, whatever its result."""
        self._in_progress.discard(work.position)
        if work.position in self._waiting and self._store.state_of(work.position) != "pending":
            self._ready.append(self._waiting.pop(work.position))
        self._changed.set()
        self._changed = asyncio.Event()


def _predecessor_of(work: Work) -> int | None:
    """Return the position of the conversation that must be played before a piece of work; `None` if there is none."""
    return work.after if isinstance(work, PlayWork) else None


Result = TypeVar("Result")


async def run_in_thread(work: Callable[[Callable[[], bool]], Result], is_stopped: Callable[[], bool]) -> Result:
    """Run a function in a thread and return its result.

    If the caller is cancelled, the function is asked to stop and is awaited, so that it does not use files that the
    caller has closed.

    Args:
        work: The function to run. Its argument is a function that returns whether the work should stop.
        is_stopped: A function that returns whether the work should stop for a reason other than cancellation.
    """
    is_cancelled = threading.Event()
    task = asyncio.ensure_future(asyncio.to_thread(work, lambda: is_cancelled.is_set() or is_stopped()))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        is_cancelled.set()
        await asyncio.wait([task])
        raise


_MAX_RESTARTS = 3
"""The maximum number of times that a conversation is restarted because a player has lost its state."""

_RECURSION_LIMIT = 1_000_000
"""LangGraph's recursion limit. It is never reached in practice, because recipes end their conversations themselves."""

_EMPTY_OUTCOME = Outcome(messages=(), ended_by="error")
"""The outcome that is stored for a failed scenario if its partial outcome cannot be stored."""

CompiledGraph = CompiledStateGraph[Any, Any, Any, Any]


async def record_skipped(store: RunStore, work: Work, obstacle: str) -> ScenarioFailed:
    """Record a piece of work as failed because it cannot be carried out, and return the event."""
    await store.results.fail(work, str(Fault.PREDECESSOR), obstacle, _EMPTY_OUTCOME)
    return ScenarioFailed(work.position + 1, work.id, Fault.PREDECESSOR, obstacle)


class Engine:
    """An engine that carries out work until none is left, it is asked to stop, or continuing would be pointless.

    Args:
        store: The run's file.
        recipe: Provides initial states and outcomes.
        graph: The uncompiled graph to play: the recipe's own graph, or its graph for judging.
        cast: The roles.
        concurrency: The number of scenarios in progress at once.
        on_event: Called with each result, in the event loop's thread.
        fail_on_error: The number or percentage of failures that stops the run; by default failures do not stop it.
        drain_calls: Called when the engine begins to stop, so that calls that wait to be sent are given up.
        servers: The MCP servers that must be usable, even if no player accepts their tools.

    Attributes:
        stop_rule: The counter of results, with the reason if the work stopped by itself.
    """

    def __init__(
        self,
        store: RunStore,
        recipe: Recipe,
        graph: Graph,
        cast: Cast,
        concurrency: int,
        on_event: Callable[[Event], None],
        fail_on_error: int | str | None = None,
        drain_calls: Callable[[], None] = lambda: None,
        servers: Sequence[str] = (),
    ) -> None:
        self._store = store
        self._recipe = recipe
        self._graph = graph
        self._concurrency = concurrency
        self._on_event = on_event
        self._drain_calls = drain_calls
        self._servers = servers
        self._is_stateful = any(each.stateful for players in store.config.players for each in players.values())
        self._users = [cast, *(cast.with_model(USER, each) for each in store.config.users)]
        self.stop_rule = StopRule(on_event, fail_on_error, self.drain)
        self._graph_controls: dict[str, RunControl] = {}
        self._workers: list[asyncio.Task[None]] = []

    @property
    def is_draining(self) -> bool:
        """Return whether the engine was asked to stop."""
        return self.stop_rule.is_draining

    def drain(self) -> None:
        """Begin no new work, and stop each conversation at its next checkpoint."""
        self.stop_rule.is_draining = True
        for control in self._graph_controls.values():
            control.request_drain("interrupted")
        self._drain_calls()

    def stop(self) -> None:
        """Cancel the calls in flight. Committed results are kept."""
        self.drain()
        for worker in self._workers:
            worker.cancel()

    def on_provider_event(self, event: ProviderEvent) -> None:
        """Forward an event about a provider's availability; stop the run after too long an outage."""
        if not isinstance(event, ProviderLost):
            self._on_event(event)
            return
        reason = (
            f"provider {event.provider} could not be reached for {format_duration(event.seconds)} ({event.reason}), "
            "longer than the run's limit for outages"
        )
        self.stop_rule.stop(Stopping(Fault.PROVIDER_AWAY, reason, "patience"))

    async def run(self, work: WorkSource, resuming: bool) -> None:
        """Carry out all work.

        Args:
            work: The source of work. The next piece is taken only when fewer than `concurrency` are in progress.
            resuming: Whether conversations may already have checkpoints.

        Raises:
            StoreError, PromptError, BindingError, ToolError: An error that would occur in every scenario; the work
                stays pending.
        """
        async with mcp_connections(), self._store.checkpointer() as saver:
            graph = self._graph.compile(checkpointer=saver)
            self._workers = [
                asyncio.create_task(self._run_worker(work, graph, resuming)) for _ in range(self._concurrency)
            ]
            try:
                await asyncio.gather(*self._workers)
            except asyncio.CancelledError:
                if not self.is_draining:
                    raise
            finally:
                for worker in self._workers:
                    worker.cancel()
                await asyncio.gather(*self._workers, return_exceptions=True)

    async def _run_worker(self, work: WorkSource, graph: CompiledGraph, resuming: bool) -> None:
        while not self.is_draining and (piece := await work.take()) is not None:
            try:
                await load_remote_tools(self._servers)
                await self._execute(piece, graph, resuming, work.find_obstacle(piece))
            finally:
                work.mark_ended(piece)

    async def _execute(self, work: Work, graph: CompiledGraph, resuming: bool, obstacle: str | None) -> None:
        """Carry out a piece of work; restart the conversation from its beginning if a player has lost its state."""
        if self.is_draining:
            return
        if obstacle is not None:
            self.stop_rule.count(await record_skipped(self._store, work, obstacle))
            return
        for restart in range(_MAX_RESTARTS + 1):
            self._store.queue.begin(work)
            try:
                await self._attempt(work, graph, resuming, is_last=restart == _MAX_RESTARTS)
                return
            except StateLostError as error:
                note = f"{work.id} was restarted from its beginning: {error}"
                self._store.retries.restart_scenarios([work.position], note)
                self._on_event(NodeMessage(work.id, note))
            finally:
                self._store.queue.end(work)
            work = self._store.queue.work_of(self._recipe, work.position)

    async def _attempt(self, work: Work, graph: CompiledGraph, resuming: bool, *, is_last: bool) -> None:
        config: RunnableConfig = {"configurable": {"thread_id": work.thread}, "recursion_limit": _RECURSION_LIMIT}
        control = self._graph_controls[work.thread] = RunControl()
        try:
            state = await self._play(work, graph, config, control, resuming)
            await self._store.results.finish(work, self._build_outcome(work, state))
        except (GraphDrained, DrainedError):
            return
        except StateLostError as error:
            if not is_last and isinstance(work, PlayWork):
                raise
            await self._record_failure(work, graph, config, error)
        except BudgetError as error:
            self.stop_rule.stop(Stopping(Fault.BUDGET, str(error), error.setting))
        except Exception as error:
            await self._record_failure(work, graph, config, error)
        else:
            self.stop_rule.count(ScenarioDone(work.position + 1, work.id))
        finally:
            del self._graph_controls[work.thread]

    async def _play(
        self, work: Work, graph: CompiledGraph, config: RunnableConfig, control: RunControl, resuming: bool
    ) -> dict[str, Any]:
        """Play a conversation, from its last checkpoint if there is one, and return its final state."""
        self._store.ensure_trusted(load_references(work.scenario.loads))
        begin: dict[str, Any] | None = self._build_initial_state(work)
        if resuming:
            snapshot = await graph.aget_state(config)
            # `snapshot.next` is not used, because it leaves out the finished tasks of an unfinished step: a thread that
            # was killed when all its parallel judges had answered would seem to be finished without their judgements.
            if snapshot.tasks:
                begin = None
            elif snapshot.values:
                return dict(snapshot.values)
        stage = Stage(
            work.scenario,
            self._users[parse_episode_numbers(work.id)[1] - 1],
            work.thread,
            self._store.config.seed,
            work.sample,
            tell=lambda text: self._on_event(NodeMessage(work.id, text)),
            gate=self._store.gate,
            retries=self._store.config.user_retries,
            judged=work.outcome if isinstance(work, JudgeWork) else None,
            session=build_session(self._store, self._recipe, work),
        )
        # A step begins while the checkpoint before it is being committed. Nothing of that step can take effect before
        # the checkpoint is durable: a call is sent only once it is in the ledger, and the writer keeps the order.
        return dict(await graph.ainvoke(begin, config, context=stage, durability="async", control=control))

    def _build_initial_state(self, work: Work) -> dict[str, Any]:
        if isinstance(work, JudgeWork):
            return {"judgements": [judgement.model_dump(mode="json") for judgement in work.outcome.judgements]}
        return self._recipe.initial(work.scenario)

    async def _record_failure(self, work: Work, graph: CompiledGraph, config: RunnableConfig, error: Exception) -> None:
        """Record a failure with the conversation so far; raise an error that would occur in every scenario."""
        self._raise_if_fatal(error)
        fault = fault_of(error)
        text = _format_bug_message(error) if fault is Fault.BUG else str(error)
        for with_messages in (True, False):
            try:
                outcome = await self._build_partial_outcome(work, graph, config) if with_messages else _EMPTY_OUTCOME
                await self._store.results.fail(work, str(fault), text, outcome)
                break
            except Exception as another:  # the partial outcome cannot be computed or stored: fail without it
                self._raise_if_fatal(another)
        self.stop_rule.count(ScenarioFailed(work.position + 1, work.id, fault, text, identify_permanent_error(error)))

    def _raise_if_fatal(self, error: Exception) -> None:
        """Raise the error if it would occur in every other scenario too."""
        if isinstance(error, sqlite3.Error) and is_file_error(error):
            raise store_error(self._store.path, error) from error
        if fault_of(error) in FATAL:
            raise error

    async def _build_partial_outcome(self, work: Work, graph: CompiledGraph, config: RunnableConfig) -> Outcome | None:
        """Return the outcome so far of a scenario that is being played; `None` if it is being judged."""
        if not isinstance(work, PlayWork):
            return None
        return self._build_outcome(
            work, (await graph.aget_state(config)).values or self._build_initial_state(work), failed=True
        )

    def _build_outcome(self, work: Work, state: dict[str, Any], failed: bool = False) -> Outcome:
        """Return the outcome derived from a state, with its faults if the scenario was played and not only judged."""
        if isinstance(work, JudgeWork):
            judgements = tuple(Judgement.model_validate(value) for value in state.get("judgements", []))
            return complete_outcome(
                self._recipe, work.scenario, work.outcome.model_copy(update={"judgements": judgements})
            )
        outcome = build_outcome(self._recipe, work.scenario, state, failed)
        if self._is_stateful and work.sample:
            outcome = outcome.model_copy(update={"counts": {**outcome.counts, EARLIER_ATTEMPTS: work.sample}})
        return self._store.gate.add_faults(work.scenario, outcome)


def _format_bug_message(error: Exception) -> str:
    """Return the message of an unforeseen error, followed by the file and the line where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({Path(frame.filename).name}:{frame.lineno})" for frame in frames)
    return redact(to_well_formed(": ".join(filter(None, (type(error).__name__, str(error)))) + place))


def build_session(store: RunFile, recipe: Recipe, work: Work, branch: str = MAIN, sample: int | None = None) -> Session:
    """Return the session for stateful players: the ids of a scenario's conversation and person.

    Scenarios with the same value of the facet by which exports are split have the same person. In a recipe without such
    a facet, each scenario has its own person.

    Args:
        store: The run.
        recipe: Its recipe.
        work: The piece of work: a scenario that is played or judged.
        branch: The branch of the step debugger.
        sample: The sample number, by default that of the work. A conversation that is played again has a new sample
            number and therefore a new id.
    """
    facet = WithFacets.of(recipe).split_facet
    person = work.scenario.facets().get(facet, work.scenario.id) if facet else work.scenario.id
    trial, user = parse_episode_numbers(work.id)
    # A player must not remember the same person from another trial.
    trial_key = (trial,) if user == 1 else (trial, user)
    number = work.sample if sample is None and isinstance(work, PlayWork) else sample or 0
    return Session(
        conversation=make_session_id("conversation", store.id, work.thread, branch, number),
        person=make_session_id("person", store.id, person, *trial_key),
        number=work.session if isinstance(work, PlayWork) else 1,
        trial=trial,
    )
