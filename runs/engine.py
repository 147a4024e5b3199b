"""The engine: plays scenarios through a compiled graph, a bounded number at once, each from its last checkpoint."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphDrained
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import RunControl

from dialoom.graphs import Judgement, Outcome, Recipe, Stage
from dialoom.graphs.judge import Graph
from dialoom.graphs.mcp_servers import connected
from dialoom.graphs.outcome import EARLIER_ATTEMPTS
from dialoom.graphs.recipe import completed, finished
from dialoom.roles import BudgetError, Cast, DrainedError
from dialoom.roles.errors import StateLostError
from dialoom.roles.gateway.availability import ProviderEvent, ProviderLost
from dialoom.roles.gateway.secrets import redacted
from dialoom.shown import duration
from dialoom.text import well_formed

from .configuration.trust import load_references
from .errors import FATAL, Fault, fault_of, lasting_cause
from .gateway_setup import FailOnError
from .progress import Event, NodeSaid, ScenarioDone, ScenarioFailed, Stopping, StopRule
from .sessions import session_of
from .store import JudgeWork, PlayWork, RejudgeWork, RunStore, Work
from .store.errors import is_about_the_file, store_error


class WorkSource(Protocol):
    """A source of work."""

    async def take(self) -> Work | None:
        """Return the next piece of work once there is one; `None` if there will be no more."""
        ...

    def obstacle(self, work: Work) -> str | None:
        """Return the reason for which taken work cannot be carried out; `None` if it can be."""
        ...

    async def ended(self, work: Work) -> None:
        """Note that a piece of work is no longer in progress, whatever its result."""
        ...


class WorkList:
    """A source of listed work, which is read on demand.

    Args:
        work: The work; conversations of one sequence in their order.
        store: Tells what has become of the predecessors of conversations.
    """

    def __init__(self, work: Iterator[Work], store: RunStore) -> None:
        self._order = WorkInOrder(work, store)
        self._changed = asyncio.Condition()

    async def take(self) -> Work | None:
        """Return the next piece of work that can begin; `None` at the end."""
        async with self._changed:
            while (piece := self._order.take()) is None and not self._order.is_over:
                await self._changed.wait()
            return piece

    def obstacle(self, work: Work) -> str | None:
        """Return the error of work whose predecessor failed; `None` for any other."""
        return self._order.obstacle(work)

    async def ended(self, work: Work) -> None:
        """Let a successor begin."""
        async with self._changed:
            self._order.ended(work)
            self._changed.notify_all()


class WorkInOrder:
    """Work of which a conversation begins only when its predecessor in a sequence has been played.

    Args:
        work: The work; conversations of one sequence in their order.
        store: Tells what has become of predecessors.
    """

    def __init__(self, work: Iterator[Work], store: RunStore) -> None:
        self._work = work
        self._store = store
        self._ready: deque[Work] = deque()
        self._waiting: dict[int, Work] = {}
        self._open: set[int] = set()
        self._is_read = False

    @property
    def can_begin(self) -> bool:
        """Return whether there may be work that can begin now."""
        return bool(self._ready) or not self._is_read

    @property
    def is_over(self) -> bool:
        """Return whether no more work can begin, now or when what is in progress has ended."""
        return self._is_read and not self._ready and not (self._waiting and self._open)

    def take(self) -> Work | None:
        """Return the next piece of work that can begin now; `None` if there is none."""
        while True:
            if self._ready:
                piece = self._ready.popleft()
            elif (next_piece := next(self._work, None)) is None:
                self._is_read = True
                return None
            else:
                piece = next_piece
            before = _predecessor(piece)
            if before is None or self._store.state_of(before) != "pending":
                self._open.add(piece.position)
                return piece
            self._waiting[before] = piece

    def obstacle(self, work: Work) -> str | None:
        """Return the error of work that cannot be played because its predecessor failed; `None` if it can be."""
        before = _predecessor(work)
        if before is None or self._store.state_of(before) != "failed":
            return None
        return f"not played, because the conversation before it, scenario {before + 1:,}, failed; retry plays both"

    def ended(self, work: Work) -> None:
        """Note that a piece of work is no longer in progress, whatever its result."""
        self._open.discard(work.position)
        if (successor := self._waiting.get(work.position)) is not None and self._store.state_of(
            work.position
        ) != "pending":
            del self._waiting[work.position]
            self._ready.append(successor)


def _predecessor(work: Work) -> int | None:
    """Return the position of the conversation that must be played before a piece of work; `None` for none."""
    return work.after if isinstance(work, PlayWork) else None


Result = TypeVar("Result")


async def in_thread(work: Callable[[Callable[[], bool]], Result], is_stopped: Callable[[], bool]) -> Result:
    """Run work in a thread and return its result.

    If the caller is cancelled, the work is told to stop and awaited, because it must not continue with files that are
    closed meanwhile.

    Args:
        work: Called with a function that returns whether to stop.
        is_stopped: Returns whether the work should stop for another reason.
    """
    is_dropped = threading.Event()
    working = asyncio.ensure_future(asyncio.to_thread(work, lambda: is_dropped.is_set() or is_stopped()))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        is_dropped.set()
        await asyncio.wait([working])
        raise


_RESTARTS = 3
"""How often a conversation is played from its beginning because a player has lost its state."""

_NO_LIMIT = 1_000_000
"""LangGraph's recursion limit: recipes end their conversations themselves."""

_EMPTY_OUTCOME = Outcome(messages=(), ended_by="error")
"""The outcome that is stored for a failed scenario if its own cannot be stored."""

Compiled = CompiledStateGraph[Any, Any, Any, Any]


async def skipped(store: RunStore, work: Work, obstacle: str) -> ScenarioFailed:
    """Record work that cannot be carried out as failed, and return the event."""
    await store.results.fail(work, str(Fault.PREDECESSOR), obstacle, _EMPTY_OUTCOME)
    return ScenarioFailed(work.position + 1, work.id, Fault.PREDECESSOR, obstacle)


class Engine:
    """The engine, which carries out work until none is left, it is asked to stop, or continuing is pointless.

    Args:
        store: The run's file.
        recipe: Provides initial states and outcomes.
        graph: The uncompiled graph to play: the recipe's own, or its judging.
        cast: The roles.
        seed: The run's seed.
        concurrency: The number of scenarios in progress at once.
        on_event: Called with each result, in the event loop's thread.
        fail_on_error: The bound on failures that stops the run; by default there is none.
        drain_calls: Ends the waits of calls; called when the engine begins to stop.

    Attributes:
        tally: The results so far, and the reason if the work stopped by itself.
    """

    def __init__(
        self,
        store: RunStore,
        recipe: Recipe,
        graph: Graph,
        cast: Cast,
        seed: int,
        concurrency: int,
        on_event: Callable[[Event], None],
        fail_on_error: FailOnError | None = None,
        drain_calls: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._recipe = recipe
        self._gate = store.gate
        self._graph = graph
        self._cast = cast
        self._seed = seed
        self._concurrency = concurrency
        self._on_event = on_event
        self._drain_calls = drain_calls
        self._is_stateful = any(binding.stateful for binding in store.config.models.values())
        self.stop_rule = StopRule(on_event, fail_on_error or FailOnError(), self.drain)
        self._control: dict[str, RunControl] = {}
        self._workers: list[asyncio.Task[None]] = []

    @property
    def is_draining(self) -> bool:
        """Return whether it was asked to stop."""
        return self.stop_rule.is_draining

    def drain(self) -> None:
        """Begin nothing new; let each conversation reach its next checkpoint, and stop there."""
        self.stop_rule.is_draining = True
        for control in self._control.values():
            control.request_drain("interrupted")
        self._drain_calls()

    def stop(self) -> None:
        """Cancel the calls in flight. Committed results are kept."""
        self.drain()
        for worker in self._workers:
            worker.cancel()

    def on_provider_event(self, event: ProviderEvent) -> None:
        """Forward a provider's availability; stop the run when the patience with it is exhausted."""
        if not isinstance(event, ProviderLost):
            self._on_event(event)
            return
        reason = (
            f"provider {event.provider} could not be reached for {duration(event.seconds)} ({event.reason}), "
            "which is as long as patience lasts"
        )
        self.stop_rule.stop(Stopping(Fault.PROVIDER_AWAY, reason, "patience"))

    async def run(self, work: WorkSource, resuming: bool) -> None:
        """Carry out all work.

        Args:
            work: The work; the next item is taken only when there is room for it.
            resuming: Whether the work may have checkpoints already.

        Raises:
            StoreError, PromptError, BindingError: An error that every scenario would meet; the work stays pending.
        """
        async with connected(), self._store.checkpointer() as saver:
            graph = self._graph.compile(checkpointer=saver)
            self._workers = [
                asyncio.create_task(self._work_through(work, graph, resuming)) for _ in range(self._concurrency)
            ]
            try:
                await asyncio.gather(*self._workers)
            except asyncio.CancelledError:
                if not self.is_draining:
                    raise
            finally:
                await self._abandon()

    async def _abandon(self) -> None:
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _work_through(self, work: WorkSource, graph: Compiled, resuming: bool) -> None:
        while not self.is_draining and (piece := await work.take()) is not None:
            try:
                await self._carry_out(piece, graph, resuming, work.obstacle(piece))
            finally:
                await work.ended(piece)

    async def _carry_out(self, work: Work, graph: Compiled, resuming: bool, obstacle: str | None) -> None:
        """Carry out a piece of work; if a player has lost its state, play the conversation from its beginning."""
        if self.is_draining:
            return
        if obstacle is not None:
            self.stop_rule.count(await skipped(self._store, work, obstacle))
            return
        for restart in range(_RESTARTS + 1):
            self._store.queue.begin(work)
            try:
                await self._attempt(work, graph, resuming, is_last=restart == _RESTARTS)
                return
            except StateLostError as error:
                note = f"{work.id} was played again from its beginning: {error}"
                self._store.retries.scenarios([work.position], note)
                self._on_event(NodeSaid(work.id, note))
            finally:
                self._store.queue.end(work)
            work = self._store.queue.work_of(self._recipe, work.position)

    async def _attempt(self, work: Work, graph: Compiled, resuming: bool, *, is_last: bool) -> None:
        config: RunnableConfig = {"configurable": {"thread_id": work.thread}, "recursion_limit": _NO_LIMIT}
        control = self._control[work.thread] = RunControl()
        try:
            state = await self._play(work, graph, config, control, resuming)
            await self._store.results.finish(work, self._outcome(work, state))
        except (GraphDrained, DrainedError):
            return
        except StateLostError as error:
            if is_last or not isinstance(work, PlayWork):
                await self._failed(work, graph, config, error)
                return
            raise
        except BudgetError as error:
            self.stop_rule.stop(Stopping(Fault.BUDGET, str(error), error.setting))
        except Exception as error:
            await self._failed(work, graph, config, error)
        else:
            self.stop_rule.count(ScenarioDone(work.position + 1, work.id))
        finally:
            del self._control[work.thread]

    async def _play(
        self, work: Work, graph: Compiled, config: RunnableConfig, control: RunControl, resuming: bool
    ) -> dict[str, Any]:
        """Return the final state, continuing from the last checkpoint if there is one."""
        self._store.permit(load_references(work.scenario.loads))
        begin: dict[str, Any] | None = self._initial(work)
        if resuming:
            snapshot = await graph.aget_state(config)
            # Not `snapshot.next`: it leaves out finished tasks of an unfinished step, so a thread that was killed when
            # all its parallel judges had answered would seem to be finished without their judgements.
            if snapshot.tasks:
                begin = None
            elif snapshot.values:
                return dict(snapshot.values)
        stage = Stage(
            work.scenario,
            self._cast,
            work.thread,
            self._seed,
            _sample(work),
            tell=lambda text: self._on_event(NodeSaid(work.id, text)),
            gate=self._gate,
            retries=self._store.config.user_retries,
            judged=None if isinstance(work, PlayWork) else work.outcome,
            session=session_of(self._store, self._recipe, work),
        )
        # A step begins while the checkpoint before it is being committed. Nothing of that step can take effect before
        # the checkpoint is durable: a call is sent only once it is in the ledger, and the writer keeps the order.
        state = await graph.ainvoke(begin, config, context=stage, durability="async", control=control)
        return dict(state)

    def _initial(self, work: Work) -> dict[str, Any]:
        match work:
            case PlayWork(scenario=scenario):
                return self._recipe.initial(scenario)
            case JudgeWork(outcome=outcome) | RejudgeWork(outcome=outcome):
                return {"judgements": [judgement.model_dump(mode="json") for judgement in outcome.judgements]}

    async def _failed(self, work: Work, graph: Compiled, config: RunnableConfig, error: Exception) -> None:
        """Record the failure with the conversation so far, unless every other scenario would meet the error too."""
        self._raise_if_fatal(error)
        fault = fault_of(error)
        text = _bug_message(error) if fault is Fault.BUG else str(error)
        for is_kept in (True, False):
            try:
                outcome = await self._partial_outcome(work, graph, config) if is_kept else _EMPTY_OUTCOME
                await self._store.results.fail(work, str(fault), text, outcome)
                break
            except Exception as another:  # the partial outcome cannot be computed or stored: fail without it
                self._raise_if_fatal(another)
        self.stop_rule.count(ScenarioFailed(work.position + 1, work.id, fault, text, lasting_cause(error)))

    def _raise_if_fatal(self, error: Exception) -> None:
        """Raise an error that every other scenario would meet as well."""
        if isinstance(error, sqlite3.Error) and is_about_the_file(error):
            raise store_error(self._store.path, error) from error
        if fault_of(error) in FATAL:
            raise error

    async def _partial_outcome(self, work: Work, graph: Compiled, config: RunnableConfig) -> Outcome | None:
        """Return the partial outcome of a played scenario; `None` for judging."""
        if not isinstance(work, PlayWork):
            return None
        snapshot = await graph.aget_state(config)
        return self._outcome(work, snapshot.values or self._initial(work), failed=True)

    def _outcome(self, work: Work, state: dict[str, Any], failed: bool = False) -> Outcome:
        """Return the outcome of a state; for a played scenario, including its faults."""
        if isinstance(work, PlayWork):
            outcome = finished(self._recipe, work.scenario, state, failed)
            if self._is_stateful and work.sample:
                outcome = outcome.model_copy(update={"counts": {**outcome.counts, EARLIER_ATTEMPTS: work.sample}})
            return self._gate.passed(work.scenario, outcome)
        found = tuple(Judgement.model_validate(value) for value in state.get("judgements", []))
        return completed(self._recipe, work.scenario, work.outcome.model_copy(update={"judgements": found}))


def _sample(work: Work) -> int:
    """Return the work's sample number, which selects among the replies to equal requests."""
    match work:
        case PlayWork(sample=sample) | RejudgeWork(sample=sample):
            return sample
        case JudgeWork():
            return 0


def _bug_message(error: Exception) -> str:
    """Return the message of an unforeseen error, with the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    said = ": ".join(filter(None, (type(error).__name__, str(error))))
    return redacted(well_formed(f"{said}{place}"))
