"""Moving through a branch: steps, rewinding, conditions, and reading without playing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from dialoom.runs.store import RunFile
from dialoom.runs.store.branches import MAIN, Branch, Point

from .context import PlayableContext, ScenarioContext, at, one_step, open_to_look, steps
from .gateway import CallOverrides, SteppingError, SteppingGateway
from .stop import Stop
from .tree import fork_branch
from .view import Condition, StepperView


class Navigation(StepperView):
    """A stepper that moves along a scenario's branches; `main` only goes forward, other new steps are on branches."""

    context: PlayableContext

    def __init__(self, context: PlayableContext, branch: Branch, head: str) -> None:
        super().__init__(context, branch, head)

    async def step(self, changed: CallOverrides | None = None) -> Stop:
        """Advance one superstep: to one that was already played from here in the same way, else by playing it.

        Args:
            changed: Changes to its calls; see `say` and `ask_instead`.

        Raises:
            SteppingError: At the end of the conversation.
            RoleError, PromptError: The error of a node; the stepper does not move.
        """
        await self._ensure_more()
        if changed is None and (played := await self._played_already()) is not None:
            return await self._stand(played)
        if self.branch != MAIN or not self._main_goes_on():
            await self._branch_off()
        await self._play(changed or CallOverrides())
        return await self.here()

    async def run(self, until: Sequence[Condition] = (), on_stop: Callable[[Stop], None] | None = None) -> Stop:
        """Advance with `step`, at least once, until one of the conditions is met, or to the end.

        Args:
            until: The conditions.
            on_stop: Called with each stop on the way.
        """
        while True:
            stop = await self.step()
            if on_stop is not None:
                on_stop(stop)
            if stop.is_end or await self.meets(until, stop):
                return stop

    async def rewind(self, count: int = 1) -> Stop:
        """Go back by a number of steps (an edit counts as one). Nothing is lost: later checkpoints stay in the history.

        Raises:
            SteppingError: If there are fewer steps.
        """
        line = [point for point in self.context.line(self._head) if point.source != "fork"]
        here = max(0, len(line) - 1)
        if not 0 < count <= here:
            raise SteppingError(f"there are {here} steps before this one; give a number from 1 to that")
        return await self._stand(line[here - count])

    async def forward(self, count: int = 1) -> Stop:
        """Go forward by a number of steps of this branch that were already played; nothing is played.

        Raises:
            SteppingError: If there are fewer steps.
        """
        line = [point for point in self.context.line(self._end()) if point.source != "fork" or point.id == self._head]
        here = next((place for place, point in enumerate(line) if point.id == self._head), len(line) - 1)
        after = len(line) - 1 - here
        if not 0 < count <= after:
            raise SteppingError(f"{after} steps were played after this one on {self.branch}; forward goes no further")
        return await self._stand(line[here + count])

    async def goto(self, checkpoint: str | int) -> Stop:
        """Go to a checkpoint of this scenario, by its number or id; switch to its branch if it is on another one.

        Raises:
            SteppingError: If there is no such checkpoint.
        """
        self._branch, point = self.context.found(self._branch, checkpoint)
        return await self._stand(point)

    async def goto_where(self, condition: Condition) -> Stop:
        """Go to the first stop on this branch where a condition is met.

        Raises:
            SteppingError: If it is met nowhere.
        """
        return await self.goto((await self.first_where(condition)).number)

    async def _ensure_more(self) -> None:
        if not await self.context.nodes_after(self.context.points()[self._head]):
            raise SteppingError(f"{self.branch} is at its end; go back first")

    async def _played_already(self) -> Point | None:
        """Return the next step if it was already played on this branch as it would be played now; else `None`."""
        points, befores, after = self.context.points(), {self._head}, list[Point]()
        for point in points.values():
            if point.parent in befores and self._branch.thread in point.threads:
                if point.source == "fork":
                    befores.add(point.id)  # LangGraph's marker of a rewind: not a step
                elif point.source == "loop":
                    after.append(point)
        for point in reversed(after):
            if self.branch == MAIN or await self._is_as_now(point):
                return point
        return None

    async def _is_as_now(self, point: Point) -> bool:
        """Return whether a step's calls match what this branch would ask now: same models, no changes by a person."""
        context, branch = self.context, self._branch
        if context.store.branches.calls_of(context.work.position, point.id) is None:
            return False  # the process was killed before the step's calls were recorded
        return all(
            call.model == branch.models.get(call.role, context.models[call.role].model)
            and not call.is_edited
            and branch.sample in (call.sample, context.main().sample)
            for call in await context.calls(context.line(point.id))
        )

    def _main_goes_on(self) -> bool:
        """Return whether a step here extends `main`, which only goes forward, while the scenario is pending."""
        return self.context.is_pending and self._head == self._end()

    async def _branch_off(self) -> None:
        """Fork a branch here, unless this one is unfinished; reload that, as other steppers may have changed it."""
        if self.branch != MAIN:
            self._branch = self.context.branch(self.branch)
            if not await self._is_over():
                return
        names = {branch.name for branch in self.branches()}
        name = next(f"b{number}" for number in range(1, len(names) + 2) if f"b{number}" not in names)
        self._branch = await fork_branch(self.context, self._branch, self._head, name)

    async def _is_over(self) -> bool:
        """Return whether this branch goes on from here to an end of its own, so that another branch is forked."""
        points, end = self.context.points(), self._end()
        return end != self._head and len(points[end].threads) == 1 and not await self.context.nodes_after(points[end])

    async def _play(self, changed: CallOverrides) -> None:
        context, branch = self.context, self._branch
        changed = replace(changed, models={**branch.models, **changed.models})
        gateway = SteppingGateway(context.gateway, context.store.ledger, changed)
        is_last = context.latest(branch.thread) == self._head
        coming = await context.nodes_after(context.points()[self._head])
        stage = context.stage(gateway, branch, steps(context.line(self._head)))
        config = at(branch.thread, None if is_last else self._head)
        is_main = branch.name == MAIN
        if not is_main:
            # Partial writes of an interrupted step may be of other models or another sample.
            await context.store.branches.drop_writes(branch.thread, self._head)
        context.store.queue.begin(context.work, None if is_main else branch.name)
        try:
            await context.graph.ainvoke(None, config, context=stage, durability="sync", **one_step(coming))
        finally:
            context.store.queue.end(context.work)
            context.forget(self._head)  # an interrupted step leaves partial writes there
        latest = context.latest(branch.thread)
        assert latest is not None
        if not is_main:
            await context.store.branches.keep_calls(context.work.position, {latest: gateway.made()})
        await self._moved(latest)
        if is_main and not await context.nodes_after(context.points()[latest]):
            await context.store.results.finish(context.work, await self.outcome())

    async def _stand(self, point: Point) -> Stop:
        await self._moved(point.id)
        return await self.here()

    async def _moved(self, head: str) -> None:
        self._head = head
        if self.branch != MAIN:
            # Reloaded: another stepper may have changed a model on it.
            await self._keep(replace(self.context.branch(self.branch), head=head))

    async def _keep(self, branch: Branch) -> None:
        self._branch = branch
        await self.context.store.branches.keep(self.context.work.position, branch)


class NotBegunError(SteppingError):
    """The scenario has no checkpoint yet, not even its initial state."""


class Looking(StepperView):
    """A read-only view at a checkpoint, like a `Stepper`; it moves no branch, as others may use it.

    Opened by `Looking.open`; `at` gives further ones over the same file.
    """

    @classmethod
    @asynccontextmanager
    async def open(
        cls, run: RunFile, scenario: str | int, *, branch: str = MAIN, checkpoint: str | int | None = None
    ) -> AsyncIterator[Looking]:
        """Open a view of a scenario.

        Args:
            run: The run, open for reading; it stays open.
            scenario: Its id, a prefix of its id, or its position in the plan (from 1).
            branch: The branch to inspect.
            checkpoint: A checkpoint's number or id; by default the branch's head.

        Raises:
            StoreError: If there is no such scenario.
            NotBegunError: If none of it was played yet.
            SteppingError: If there is no such branch or checkpoint.
            TrustError: If it is played by code, or at an address, that only the run's author has named.
        """
        async with open_to_look(run, run.resolve(str(scenario))) as context:
            looking = cls._of(context, branch, checkpoint)
            await looking.here()
            yield looking

    async def at(self, branch: str, checkpoint: str | int | None = None) -> Looking:
        """Return a view of another place of the same scenario; see `open`."""
        looking = Looking._of(self.context, branch, checkpoint)
        await looking.here()
        return looking

    def numbers(self) -> list[int]:
        """Return the numbers of this branch's checkpoints from its beginning to its end."""
        return [point.number for point in self.context.line(self._end()) if point.source != "fork"]

    def number_before(self, step: int) -> int:
        """Return the number of this branch's checkpoint from which a step was played.

        Args:
            step: The step as in calls; the first is 0.

        Raises:
            SteppingError: If this branch has no such step.
        """
        line = self.context.line(self._end())
        found = [point.number for end, point in enumerate(line, start=1) if steps(line[:end]) == step]
        if not found:
            raise SteppingError(f"{self.branch} has no step {step}; it has {steps(line)}")
        return found[-1]

    @classmethod
    def _of(cls, context: ScenarioContext, name: str, checkpoint: str | int | None) -> Looking:
        branch = context.branch(name)
        head = branch.head or context.latest(branch.thread)
        if head is None:
            raise NotBegunError(f"{context.work.scenario.id} has not begun yet")
        if checkpoint is not None:
            branch, point = context.found(branch, checkpoint)
            head = point.id
        return cls(context, branch, head)
