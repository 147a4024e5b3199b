"""A session: one scenario, one branch of it, one superstep at a time."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple

from dialoom.graphs import Outcome
from dialoom.prompts import ChatMessage
from dialoom.roles.gateway.gateway import check_model
from dialoom.runs.calling import CallPolicy
from dialoom.runs.store import RunStore
from dialoom.runs.store.branches import MAIN, Branch, Point

from .changes import changes
from .conditions import Condition, Position
from .context import START, ScenarioContext, at, one_step, open_context, steps, updates
from .gateway import Asked, Changes, NotAskedError, NotingGateway, SteppingError, SteppingGateway, check_said
from .paths import replaced
from .stop import Stop

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")


class HistoryEntry(NamedTuple):
    """A checkpoint in the history.

    Attributes:
        number: The checkpoint's.
        parent: That of the one it came from.
        stop: What is to be seen there.
        branches: Those that stand there.
    """

    number: int
    parent: int | None
    stop: Stop
    branches: tuple[str, ...]


class Session:
    """Stands at a checkpoint of a branch of one scenario, and moves from there.

    Made by `Session.open`; `fork` and `switch` give further ones over the same run. None may be used while another one
    is in the middle of a step.
    """

    def __init__(self, context: ScenarioContext, branch: Branch, head: str) -> None:
        self.context = context
        self._branch = branch
        self._head = head

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        store: RunStore,
        scenario: str | int,
        *,
        branch: str = MAIN,
        policy: CallPolicy | None = None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> AsyncIterator[Session]:
        """A session on a scenario, finished, failed or not yet begun.

        Args:
            store: The run, open for writing, with its plan; it stays open.
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            branch: Where to stand: at that branch's head.
            policy: How calls are made; by default as the run's file says.
            tell: Takes what nodes have to say.

        Raises:
            StoreError: If there is no such scenario.
            SteppingError: If there is no such branch.
        """
        async with open_context(store, store.resolve(str(scenario)), policy, tell) as context:
            yield await cls._standing_at(context, branch)

    @classmethod
    async def _standing_at(cls, context: ScenarioContext, name: str) -> Session:
        branch = context.branch(name)
        head = branch.head or context.latest(branch.thread) or await context.begin()
        session = cls(context, branch, head)
        await session.here()
        return session

    # Looking

    @property
    def scenario(self) -> str:
        """The scenario's id."""
        return str(self.context.work.scenario.id)

    @property
    def branch(self) -> str:
        """The name of the branch."""
        return self._branch.name

    @property
    def roles(self) -> list[str]:
        """The roles of the run."""
        return list(self.context.models)

    @property
    def nodes(self) -> list[str]:
        """The nodes of the graph."""
        return [name for name in self.context.graph.builder.nodes if name != START]

    async def here(self) -> Stop:
        """What is to be seen here."""
        return await self._stop(self.context.line(self._head))

    @property
    def state(self) -> dict[str, Any]:
        """The values of the graph's channels here."""
        return dict(self.context.states[self._head])

    async def outcome(self) -> Outcome:
        """What the conversation has come to, as exports would have it."""
        stop = await self.here()
        return self.context.outcome(stop.state, stop.is_end)

    async def stops(self) -> list[Stop]:
        """Every stop from the beginning of this branch to here."""
        line = self.context.line(self._head)
        return [await self._stop(line[:end]) for end in range(1, len(line) + 1)]

    @property
    def is_pending(self) -> bool:
        """Whether the scenario has no outcome yet."""
        return self.context.is_pending

    @property
    def outcome_branch(self) -> str:
        """The branch that the scenario's outcome comes from."""
        return self.context.store.outcome_branch(self.context.work.position)

    async def history(self) -> list[HistoryEntry]:
        """Every checkpoint of the scenario, on whatever branch, in the order in which they were made."""
        points = self.context.points()
        heads: dict[str, list[str]] = {}
        for branch in self.branches():
            if (head := branch.head or self.context.latest(branch.thread)) is not None:
                heads.setdefault(head, []).append(branch.name)
        found = []
        for point in points.values():
            if point.source == "fork" and point.id not in heads and point.id != self._head:
                continue  # LangGraph's mark of a rewind: nothing happened there
            parent = point.parent
            while parent is not None and parent in points and points[parent].source == "fork":
                parent = points[parent].parent
            stop = await self._stop(self.context.line(point.id))
            number = points[parent].number if parent in points else None
            found.append(HistoryEntry(point.number, number, stop, tuple(heads.get(point.id, ()))))
        return found

    def understood(self, stop: Stop) -> dict[int, Any]:
        """What was understood of replies that had to be of a form, by the calls' rows in the ledger."""
        return {call.id: known for call in stop.calls if (known := self.context.understood(call)) is not None}

    def branches(self) -> list[Branch]:
        """All branches of the scenario, `main` first."""
        return self.context.branches()

    async def asking(self) -> list[Asked]:
        """What the next step would ask first in each of its nodes; nothing is sent and nothing kept."""
        line = self.context.line(self._head)
        coming = await self.context.nodes_after(line[-1])
        gateway = NotingGateway(self._branch.models)
        stage = replace(self.context.stage(gateway, self._branch, steps(line)), tell=lambda _text: None)
        config = at(self._branch.thread, self._head)
        with suppress(NotAskedError):
            await self.context.scratch.ainvoke(None, config, context=stage, **one_step(coming))
        return gateway.asked()

    # Moving

    async def step(self, changed: Changes | None = None) -> Stop:
        """Play one superstep.

        Args:
            changed: What is different in its calls; see `say` and `ask_instead`.

        Raises:
            SteppingError: At the end of the conversation.
            RoleError, PromptError: What a node met; the session stays where it is.
        """
        await self._ensure_more()
        if self.branch != MAIN or not self._main_goes_on():
            await self._leave_main()
        await self._play(changed or Changes())
        return await self.here()

    async def run(self, until: Sequence[Condition] = (), on_stop: Callable[[Stop], None] | None = None) -> Stop:
        """Play on until one of the conditions is met, or to the end; at least one step.

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

    async def meets(self, conditions: Sequence[Condition], stop: Stop) -> bool:
        """Whether one of the conditions is met at a stop of this branch."""
        if not conditions:
            return False
        roles = frozenset(asked.role for asked in await self.asking()) if not stop.is_end else frozenset()
        standing = Position(stop.next, roles, stop.counts, stop.state)
        return any(condition.met(standing) for condition in conditions)

    def condition(self, text: str) -> Condition:
        """A condition in the words of `until`.

        Raises:
            ConditionError: If it is none.
        """
        counts = self.context.recipe.counted(self.context.recipe.initial(self.context.work.scenario))
        return Condition.parse(text, self.nodes, self.roles, counts, self.context.graph.stream_channels_list)

    async def rewind(self, count: int = 1) -> Stop:
        """Go back by so many steps (an edit is one, too). Nothing is lost: what was after here stays in the history.

        Raises:
            SteppingError: If there are not so many.
        """
        line = [point for point in self.context.line(self._head) if point.source != "fork"]
        here = max(0, len(line) - 1)
        if not 0 < count <= here:
            raise SteppingError(f"there are {here} steps before this one; back takes 1 to {here}")
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
            raise SteppingError(f"{after} steps were played after this one on {self.branch}; 'next' plays one")
        return await self._stand(line[here + count])

    async def goto(self, checkpoint: str | int) -> Stop:
        """Go to a checkpoint of this scenario, by its number or id. One of another branch is gone to in that branch.

        Raises:
            SteppingError: If there is none.
        """
        points = self.context.points()
        for point in points.values():
            if point.id == checkpoint or str(point.number) == str(checkpoint).removeprefix("#"):
                if self._branch.thread not in point.threads:
                    self._branch = next(each for each in self.branches() if each.thread in point.threads)
                return await self._stand(point)
        raise SteppingError(f"there is no checkpoint {checkpoint!r}; 'history' shows 0 to {len(points) - 1}")

    async def goto_where(self, condition: Condition) -> Stop:
        """Go to the first stop of this branch's line where a condition is met.

        Raises:
            SteppingError: If it is met nowhere.
        """
        line = self.context.line(self._end())
        for end in range(1, len(line) + 1):
            there = Session(self.context, self._branch, line[end - 1].id)
            if await there.meets([condition], await self._stop(line[:end])):
                return await self._stand(line[end - 1])
        raise SteppingError(f"nowhere on {self.branch} is {condition} met")

    # Changing

    async def edit(self, path: str, value: Any) -> Stop:
        """Set a place in the state; the edges behind the nodes that ran last choose again.

        Args:
            path: Such as `turns`, `messages[2].content` or `rounds[0].user`.
            value: The new value.

        Raises:
            PathError: If there is no such place, or it takes no such value.
            SteppingError: If the conversation has not begun.
        """
        if START in await self.context.nodes_after(self.context.points()[self._head]):
            raise SteppingError("nothing is in the state yet; 'next' takes in what the conversation begins with")
        channel, whole = replaced(self.state, path, value)
        await self._leave_main()
        nodes = await self.context.nodes_before(self.context.line(self._head))
        edit = updates(self.context.graph, {channel: whole}, nodes)
        config = await self.context.graph.abulk_update_state(at(self._branch.thread, self._head), [edit])
        await self._moved(str(config["configurable"]["checkpoint_id"]))
        return await self.here()

    async def say(self, role: str, text: str) -> Stop:
        """Play one step in which a role says this, in place of its model.

        Args:
            role: The role; where several nodes ask it, one of these; `NODE:NUMBER` where one asks it more often.
            text: Its words, of the form that its reply must have.

        Raises:
            SteppingError: If the next step does not ask that role, or it cannot say that.
        """
        asked = await self._asked(role)
        check_said(asked.request, text)
        sample = self.context.store.branches.next_sample(self.context.work.position)
        await self._leave_main()
        return await self.step(Changes(said={asked.key: (text, sample)}))

    async def ask_instead(self, role: str, messages: Sequence[ChatMessage]) -> Stop:
        """Play one step in which a role is asked this, in place of what its prompt gives.

        Args:
            role: As for `say`.
            messages: The request.

        Raises:
            SteppingError: If the next step does not ask that role.
        """
        asked = await self._asked(role)
        await self._leave_main()
        return await self.step(Changes(messages={asked.key: messages}))

    async def exchange(self, role: str, model: str) -> None:
        """Let another model play a role from here on, in this branch.

        Raises:
            SteppingError: If there is no such role.
            BindingError: If there is no such model.
        """
        if role not in self.context.models:
            raise SteppingError(f"there is no role {role!r}; there are {', '.join(self.roles)}")
        check_model(model)
        await self._leave_main()
        models = {**self._branch.models, role: model}
        if model == self.context.models[role].model:
            del models[role]  # its own: served where the run says
        await self._keep(replace(self._branch, models=models))

    async def resample(self) -> int:
        """Have replies of their own from here on, in this branch; returns the sample's number."""
        await self._leave_main()
        sample = self.context.store.branches.next_sample(self.context.work.position)
        await self._keep(replace(self._branch, sample=sample))
        return sample

    # Branches

    async def fork(self, name: str) -> Session:
        """A new branch that begins here; this session stays on its own.

        Raises:
            SteppingError: If there is one of that name, or it is no name.
        """
        if not _NAME.fullmatch(name):
            raise SteppingError(f"{name!r} is no name for a branch; letters, digits, '-' and '_' are")
        if any(branch.name == name for branch in self.branches()):
            raise SteppingError(f"there is a branch {name!r} already; 'switch {name}' goes there")
        await self._index_main()
        thread = f"{self.context.work.thread}~{name}"
        saver = self.context.graph.checkpointer
        assert saver is not None and not isinstance(saver, bool)
        await saver.adelete_thread(thread)  # what a fork that was killed in the middle may have left
        await saver.acopy_thread(self._branch.thread, thread)
        await self.context.store.branches.keep_only(thread, [point.id for point in self.context.line(self._head)])
        branch = replace(self._branch, name=name, thread=thread, head=self._head, origin=self._branch.name)
        await self.context.store.branches.keep(self.context.work.position, branch)
        return Session(self.context, branch, self._head)

    async def switch(self, name: str) -> Session:
        """A session on another branch, where that stands.

        Raises:
            SteppingError: If there is none.
        """
        return await Session._standing_at(self.context, name)

    async def promote(self) -> Outcome:
        """Make what came of this branch the scenario's outcome. What other judges said of the one before is dropped.

        Raises:
            SteppingError: If the branch is not at its end.
        """
        stop = await self.here()
        if not stop.is_end:
            raise SteppingError(f"{self.branch} is not at its end, so there is no outcome of it yet; 'continue' first")
        if self.branch == self.outcome_branch == MAIN and not self.context.is_pending:
            return await self.outcome()  # nothing else was promoted, and other judges' words are on this
        await self._index_main()
        line = self.context.line(self._head)
        calls = [call.id for call in await self.context.calls_on(line)]
        outcome = self.context.outcome(stop.state, is_end=True)
        taken = await self.context.taken(self._branch, line)
        await self.context.store.results.promote(self.context.work, taken, outcome, calls)
        return outcome

    # Within

    async def _stop(self, line: Sequence[Point]) -> Stop:
        context, point = self.context, line[-1]
        snapshot = await context.snapshot(point)
        state = dict(snapshot.values)
        before = dict((await context.snapshot(line[-2])).values) if len(line) > 1 else {}
        ran = await context.nodes_after(line[-2]) if point.source == "loop" and len(line) > 1 else ()
        coming = await context.nodes_after(point)
        outcome = context.outcome(state, is_end=not coming)
        return Stop(
            branch=self.branch,
            number=point.number,
            checkpoint=point.id,
            kind={"loop": "step", "update": "edit"}.get(point.source, point.source),
            ran=ran,
            next=coming,
            why=context.why(await context.nodes_before(line), coming),
            changes=changes(before, state),
            calls=await context.calls(line),
            counts=context.counted(state),
            state=state,
            transcript=context.transcript(outcome),
        )

    async def _ensure_more(self) -> None:
        if not await self.context.nodes_after(self.context.points()[self._head]):
            raise SteppingError(f"{self.branch} is at its end; go back first ('back', 'goto')")

    async def _asked(self, who: str) -> Asked:
        asked = await self.asking()
        meant = [each for each in asked if who in (each.role, each.node, each.name)]
        if len(nodes := dict.fromkeys(each.node for each in meant)) > 1:
            raise SteppingError(f"the next step asks {who} in several nodes; name one: {', '.join(nodes)}")
        if meant:
            return meant[0]
        if who not in (*self.roles, *self.nodes):
            raise SteppingError(f"there is no such role as {who!r}; there are {', '.join(self.roles)}")
        await self._ensure_more()
        roles = ", ".join(dict.fromkeys(each.role for each in asked)) or "nobody"
        raise SteppingError(f"the next step asks {roles}, not {who!r}; 'until {who}' goes to where it is asked")

    def _main_goes_on(self) -> bool:
        """Whether a step here is one of `main`: that goes only forward, and only while it is to be played."""
        return self.context.is_pending and self._head == self._end()

    def _end(self) -> str:
        """The checkpoint of this branch that was made last of those that came of this one; itself if there are none."""
        points, ends = self.context.points(), {self._head}
        for point in points.values():
            if point.parent in ends and self._branch.thread in point.threads:
                ends.add(point.id)
        return max(ends, key=lambda id_: points[id_].number)

    async def _leave_main(self) -> None:
        """Make a branch here, unless this is one; then read it anew, as another session may have changed it."""
        if self.branch != MAIN:
            self._branch = self.context.branch(self.branch)
            return
        names = {branch.name for branch in self.branches()}
        name = next(f"b{number}" for number in range(1, len(names) + 2) if f"b{number}" not in names)
        forked = await self.fork(name)
        self._branch = forked._branch

    async def _index_main(self) -> None:
        """Write down which calls led to the engine's checkpoints, before others are made beside them."""
        context, position = self.context, self.context.work.position
        if (end := context.latest(context.work.thread)) is None:
            return
        line, known = context.line(end), context.store.branches.indexed(position)
        led = {
            line[length - 1].id: [(call.node, call.key, call.is_edited) for call in await context.calls(line[:length])]
            for length in range(2, len(line) + 1)
            if line[length - 1].id not in known
        }
        await context.store.branches.keep_calls(position, led)

    async def _play(self, changed: Changes) -> None:
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
