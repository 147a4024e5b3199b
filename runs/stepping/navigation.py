"""Moving from where a session stands: a step that is played, steps played on to a condition, and back and forth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from dialoom.runs.store.branches import MAIN, Branch, Point

from .branching import fork_branch
from .context import PlayableContext, at, one_step, steps
from .gateway import CallOverrides, SteppingError, SteppingGateway
from .stop import Stop
from .view import Condition, SessionView


class Navigation(SessionView):
    """Moves along the branches of a scenario; its own line only goes forward, and what is new elsewhere is a branch."""

    context: PlayableContext

    def __init__(self, context: PlayableContext, branch: Branch, head: str) -> None:
        super().__init__(context, branch, head)

    async def step(self, changed: CallOverrides | None = None) -> Stop:
        """Go one superstep on: to what was played from here already if it would be played so again, else by playing it.

        Args:
            changed: What is different in its calls; see `say` and `ask_instead`.

        Raises:
            SteppingError: At the end of the conversation.
            RoleError, PromptError: What a node met; the session stays where it is.
        """
        await self._ensure_more()
        if changed is None and (played := await self._played_already()) is not None:
            return await self._stand(played)
        if self.branch != MAIN or not self._main_goes_on():
            await self._branch_off()
        await self._play(changed or CallOverrides())
        return await self.here()

    async def run(self, until: Sequence[Condition] = (), on_stop: Callable[[Stop], None] | None = None) -> Stop:
        """Go on until one of the conditions is met, or to the end; at least one step, as `step` goes.

        Args:
            until: The conditions.
            on_stop: Is told of each stop on the way.
        """
        while True:
            stop = await self.step()
            if on_stop is not None:
                on_stop(stop)
            if stop.is_end or await self.meets(until, stop):
                return stop

    async def rewind(self, count: int = 1) -> Stop:
        """Go back by so many steps (an edit is one, too). Nothing is lost: what was after here stays in the history.

        Raises:
            SteppingError: If there are not so many.
        """
        line = [point for point in self.context.line(self._head) if point.source != "fork"]
        here = max(0, len(line) - 1)
        if not 0 < count <= here:
            raise SteppingError(f"there are {here} steps before this one; give a number from 1 to that")
        return await self._stand(line[here - count])

    async def forward(self, count: int = 1) -> Stop:
        """Go on by so many steps of this branch that were played already; nothing is played.

        Raises:
            SteppingError: If there are not so many.
        """
        line = [point for point in self.context.line(self._end()) if point.source != "fork" or point.id == self._head]
        here = next((place for place, point in enumerate(line) if point.id == self._head), len(line) - 1)
        after = len(line) - 1 - here
        if not 0 < count <= after:
            raise SteppingError(f"{after} steps were played after this one on {self.branch}; forward goes no further")
        return await self._stand(line[here + count])

    async def goto(self, checkpoint: str | int) -> Stop:
        """Go to a checkpoint of this scenario, by its number or id. One of another branch is gone to in that branch.

        Raises:
            SteppingError: If there is none.
        """
        self._branch, point = self.context.found(self._branch, checkpoint)
        return await self._stand(point)

    async def goto_where(self, condition: Condition) -> Stop:
        """Go to the first stop of this branch's line where a condition is met.

        Raises:
            SteppingError: If it is met nowhere.
        """
        return await self.goto((await self.first_where(condition)).number)

    async def _ensure_more(self) -> None:
        if not await self.context.nodes_after(self.context.points()[self._head]):
            raise SteppingError(f"{self.branch} is at its end; go back first")

    async def _played_already(self) -> Point | None:
        """The step after this one that was played on this branch as it would be played now; `None` if there is none."""
        points, befores, after = self.context.points(), {self._head}, list[Point]()
        for point in points.values():
            if point.parent in befores and self._branch.thread in point.threads:
                if point.source == "fork":
                    befores.add(point.id)  # LangGraph's mark of a rewind: nothing happened there
                elif point.source == "loop":
                    after.append(point)
        for point in reversed(after):
            if self.branch == MAIN or await self._is_as_now(point):
                return point
        return None

    async def _is_as_now(self, point: Point) -> bool:
        """Whether what led to a checkpoint is what this branch asks now: of these models, and nothing by a person."""
        context, branch = self.context, self._branch
        if context.store.branches.calls_of(context.work.position, point.id) is None:
            return False  # a step that was killed before it was told
        return all(
            call.model == branch.models.get(call.role, context.models[call.role].model)
            and not call.is_edited
            and branch.sample in (call.sample, context.main().sample)
            for call in await context.calls(context.line(point.id))
        )

    def _main_goes_on(self) -> bool:
        """Whether a step here is one of `main`: that goes only forward, and only while it is to be played."""
        return self.context.is_pending and self._head == self._end()

    async def _branch_off(self) -> None:
        """Make a branch here, unless this is one that is not over; then read it anew, as others may have changed it."""
        if self.branch != MAIN:
            self._branch = self.context.branch(self.branch)
            if not await self._is_over():
                return
        names = {branch.name for branch in self.branches()}
        name = next(f"b{number}" for number in range(1, len(names) + 2) if f"b{number}" not in names)
        self._branch = await fork_branch(self.context, self._branch, self._head, name)

    async def _is_over(self) -> bool:
        """Whether this branch goes from here to an end that no other has: it keeps that, and another is made here."""
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
            # What a step that was broken off had come to may be of other models or another sample than this one is.
            await context.store.branches.drop_writes(branch.thread, self._head)
        context.store.queue.begin(context.work, None if is_main else branch.name)
        try:
            await context.graph.ainvoke(None, config, context=stage, durability="sync", **one_step(coming))
        finally:
            context.store.queue.end(context.work)
            context.forget(self._head)  # a step that was broken off leaves what it had come to there
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
            # As it is now: another session may have exchanged a model on it.
            await self._keep(replace(self.context.branch(self.branch), head=head))

    async def _keep(self, branch: Branch) -> None:
        self._branch = branch
        await self.context.store.branches.keep(self.context.work.position, branch)
