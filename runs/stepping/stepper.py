"""A stepper of the step debugger, which plays one branch of one scenario, one step at a time."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import Judgement, Line, Outcome, WithJudging, WithLabels
from dialoom.prompts import ChatMessage
from dialoom.roles.gateway.calls import WRITTEN_BY_PERSON
from dialoom.roles.gateway.gateway import check_model, check_parameters
from dialoom.runs.configuration.trust import player_references
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store import MAIN, Branch, Point, RunStore
from dialoom.text import to_well_formed_value

from .context import START, PlayableContext, build_updates, count_steps, interrupt_options, open_context, thread_config
from .gateway import CallOverrides, NextRequest, SteppingError, SteppingGateway, reply_from_text
from .stop import PLAYERS_KEY, Stop
from .tree import fork_branch, index_main
from .values import format_short, replace_value
from .view import Condition, StepperView


class Stepper(StepperView):
    """A stepper at a checkpoint of one branch of a scenario. It can inspect, move, edit and fork.

    `main` can only be continued at its end; steps from other checkpoints go to new branches. A stepper is opened by
    `Stepper.open`; `fork` and `switch` return further steppers over the same run. Only one of them may be used at a
    time.

    Example:
        >>> async def messages_after_a_step():
        ...     async with dialoom.open_run("run.db").step(2) as stepper:
        ...         await stepper.goto(2)
        ...         return len((await stepper.forward()).state["messages"])
        >>> asyncio.run(messages_after_a_step())
        2
    """

    context: PlayableContext

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
    ) -> AsyncIterator[Stepper]:
        """Open a stepper on a scenario, which may be finished, failed or not yet begun.

        Args:
            store: The run, which must be open for writing and have a plan. It stays open.
            scenario: Its id, a prefix of its id, or its position in the plan (from 1).
            branch: The branch; the stepper starts at the branch's latest checkpoint.
            policy: The policy for calls; by default the one stored in the run file.
            tell: Called with the messages of nodes.

        Raises:
            StoreError: If there is no such scenario.
            SteppingError: If there is no such branch.
            TrustError: If a model is code or an address that is specified only by the author of the run's file.
        """
        async with open_context(store, store.resolve(str(scenario)), policy, tell) as context:
            yield await cls._open_branch(context, branch)

    @classmethod
    async def _open_branch(cls, context: PlayableContext, name: str) -> Stepper:
        branch = context.branch(name)
        context.store.ensure_trusted(named for model in branch.models.values() for named in player_references(model))
        head = branch.head or context.latest_checkpoint(branch.thread) or await context.begin()
        stepper = cls(context, branch, head)
        await stepper.here()
        return stepper

    # Moving between checkpoints

    async def step(self, changed: CallOverrides | None = None) -> Stop:
        """Advance one step. A step that this branch has already played in the same way is not repeated.

        Args:
            changed: Changes to the calls of the step; see `say` and `edit_request`.

        Raises:
            SteppingError: If the conversation is at its end.
            RoleError, PromptError: If a node failed; the stepper does not move.
        """
        await self._ensure_not_at_end()
        if changed is None and (played := await self._find_played_step()) is not None:
            return await self._stop_at(played)
        # A step extends `main` only if the scenario is pending, and this is its last checkpoint.
        if self.branch != MAIN or not self.context.is_pending or self._head != self._last_checkpoint():
            await self._branch_off()
        await self._play(changed or CallOverrides())
        return await self.here()

    async def run(self, until: Sequence[Condition] = (), on_stop: Callable[[Stop], None] | None = None) -> Stop:
        """Advance step by step, at least once, until one of the conditions is met or the conversation ends.

        Args:
            until: The conditions.
            on_stop: Called with the stop after each step.
        """
        while True:
            stop = await self.step()
            if on_stop is not None:
                on_stop(stop)
            if stop.is_end or await self.meets(until, stop):
                return stop

    async def rewind(self, count: int = 1) -> Stop:
        """Go back by a number of steps; an edit counts as a step. Later checkpoints stay in the history.

        Raises:
            SteppingError: If there are fewer steps.
        """
        line = [point for point in self.context.lineage(self._head) if point.source != "fork"]
        here = max(0, len(line) - 1)
        if not 0 < count <= here:
            raise SteppingError(f"there are {here} steps before this one; give a number from 1 to {here}")
        return await self._stop_at(line[here - count])

    async def forward(self, count: int = 1) -> Stop:
        """Go forward by a number of steps that this branch has already played.

        Raises:
            SteppingError: If there are fewer steps.
        """
        line = [
            point
            for point in self.context.lineage(self._last_checkpoint())
            if point.source != "fork" or point.id == self._head
        ]
        here = next((place for place, point in enumerate(line) if point.id == self._head), len(line) - 1)
        after = len(line) - 1 - here
        if not 0 < count <= after:
            more = await self.context.nodes_after(self.context.points()[self._head]) and "; 'next' plays a step"
            raise SteppingError(
                f"{after} steps were played after this one on {self.branch}; forward goes no further{more or ''}"
            )
        return await self._stop_at(line[here + count])

    async def goto(self, checkpoint: str | int) -> Stop:
        """Go to a checkpoint of this scenario, given by its number or id, and to its branch if it is on another one.

        Raises:
            SteppingError: If there is no such checkpoint.
        """
        self._branch, point = self.context.find_checkpoint(self._branch, checkpoint)
        return await self._stop_at(point)

    async def goto_where(self, condition: Condition) -> Stop:
        """Go to the first stop on this branch where a condition is met.

        Raises:
            SteppingError: If the condition is not met at any stop of this branch.
        """
        return await self.goto((await self.find_stop(condition)).number)

    # Changing the state and the calls

    async def edit(self, path: str, value: Any) -> Stop:
        """Set a value in the state. The next nodes are chosen again, by the edges of the nodes that ran last.

        Args:
            path: A path such as `turns`, `messages[2].content` or `rounds[0].user`.
            value: The new value.

        Raises:
            PathError: If the path does not exist, or does not accept such a value.
            SteppingError: If the conversation has not begun, the recipe cannot read the edited state, or the value was
                already judged.
        """
        if START in await self.context.nodes_after(self.context.points()[self._head]):
            raise SteppingError(
                "the state is empty before the first step, which writes the initial values; play one step first"
            )
        if path.partition(".")[0] == PLAYERS_KEY and self.context.has_stateful_players:
            raise SteppingError(
                f"{path} cannot be set: it belongs to a player's own state, which only the player can change"
            )
        channel, whole = replace_value(self.state, path, to_well_formed_value(value))
        self._ensure_settable(path, value, {channel: whole})
        await self._branch_off()
        nodes = await self.context.nodes_before(self.context.lineage(self._head))
        edit = build_updates(self.context.graph, {channel: whole}, nodes)
        config = await self.context.graph.abulk_update_state(thread_config(self._branch.thread, self._head), [edit])
        await self._move_to(str(config["configurable"]["checkpoint_id"]))
        return await self.here()

    async def say(self, role: str, text: str) -> Stop:
        """Play one step with a given reply of a role instead of its model's reply.

        Args:
            role: The role. If several nodes call the role, the node; if one node calls it several times, `NODE:NUMBER`.
            text: Text that parses as the reply type. If tools are offered, it can also be a tool call in JSON,
                `{"name": "get_weather", "arguments": {"city": "Vellin"}}`, or a list of tool calls.

        Raises:
            SteppingError: If the next step does not call this role, or the text is not a valid reply.
        """
        request = await self._find_request(role)
        reply_from_text(request.request, text)
        sample = self.context.store.branches.next_sample(self.context.work.position)
        await self._branch_off()
        return await self.step(CallOverrides(replies={request.key: (text, sample)}))

    async def edit_request(self, role: str, messages: Sequence[ChatMessage]) -> Stop:
        """Play one step with a given request to a role instead of its rendered prompt.

        Args:
            role: The role, given as in `say`.
            messages: The request.

        Raises:
            SteppingError: If the next step does not call this role.
        """
        request = await self._find_request(role)
        await self._branch_off()
        whole: list[ChatMessage] = to_well_formed_value([{**message} for message in messages])
        stop = await self.step(CallOverrides(messages={request.key: whole}))
        if request.request.is_stateful:  # its later replies depend on this request, even where theirs are as before
            await self.resample()
        return stop

    async def replace_model(self, role: str, model: str) -> None:
        """Replace a role's model for the following steps of this branch.

        Raises:
            SteppingError: If there is no such role.
            BindingError: If there is no such model, or it does not accept the role's parameters.
        """
        if role not in self.context.models:
            raise SteppingError(f"there is no role {role!r}; the roles are {', '.join(self.roles)}")
        self.context.store.trust_specified(player_references(model))
        binding = self.context.binding(role, model)
        check_model(model, binding.stateful)
        check_parameters({role: binding})
        await self._branch_off({role})
        models = {**self._branch.models, role: model}
        if model == self.context.models[role].model:
            del models[role]  # the role's original model, at the address that the run states for it
        await self._save_branch(replace(self._branch, models=models))

    async def resample(self) -> int:
        """Request new samples of all replies in the following steps of this branch; return the sample number."""
        await self._branch_off()
        sample = self.context.store.branches.next_sample(self.context.work.position)
        await self._save_branch(replace(self._branch, sample=sample))
        return sample

    # Creating, switching and promoting branches

    async def fork(self, name: str) -> Stepper:
        """Create a branch at this checkpoint and return a stepper on it. This stepper stays on its branch.

        Raises:
            SteppingError: If the name is taken or invalid.
        """
        branch = await fork_branch(self.context, self._branch, self._head, name)
        return Stepper(self.context, branch, self._head)

    async def switch(self, name: str) -> Stepper:
        """Return a stepper at the latest checkpoint of another branch.

        Raises:
            SteppingError: If there is no such branch.
        """
        return await Stepper._open_branch(self.context, name)

    async def promote(self) -> Outcome:
        """Make this branch's result the outcome of the scenario. Later judgements of the previous outcome are deleted.

        Raises:
            SteppingError: If the branch is not at its end.
        """
        stop = await self.here()
        if not stop.is_end:
            end = self.context.points()[self._last_checkpoint()]
            is_played = not await self.context.nodes_after(end)
            way = f"but at {stop.number}; go to {end.number} or" if is_played else "so it has no outcome yet;"
            raise SteppingError(f"{self.branch} is not at its end, {way} play it to its end first")
        self.context.ensure_unchanged()
        if self.branch == self.outcome_branch == MAIN and not self.context.is_pending:
            return await self.outcome()  # `main` is already the outcome, and later judgements refer to it
        await index_main(self.context)
        line = self.context.lineage(self._head)
        calls = [call.id for call in await self.context.lineage_calls(line)]
        outcome = self.context.outcome_at(stop.checkpoint, stop.state, is_end=True)
        taken = await self.context.promoted_branch(self._branch, line)
        await self.context.store.results.promote(self.context.work, taken, outcome, calls)
        self._report_later_conversations()
        return outcome

    def _report_later_conversations(self) -> None:
        """Report finished conversations in which a stateful player remembers the former outcome of this one."""
        store, position = self.context.store, self.context.work.position
        if any(binding.stateful for binding in self.context.models.values()) and (
            later := store.queue.later([position]).intersection(store.positions("done"))
        ):
            self.context.tell(
                "later conversations of the same person, in which a player remembers the former outcome: "
                f"{len(later):,}; retry scenario {min(later) + 1} to play them again"
            )

    def _ensure_settable(self, path: str, value: Any, changed: Mapping[str, Any]) -> None:
        """Raise `SteppingError` if the recipe cannot read an edited state, or if what was judged would change."""
        context = self.context
        before = context.outcome(self.state, is_end=False)
        try:
            after = context.outcome({**self.state, **changed}, is_end=False)
        except Exception as error:  # any error of the recipe's code
            why = first_problem(error)[1] if isinstance(error, ValidationError) else f"{type(error).__name__}: {error}"
            raise SteppingError(f"{path} cannot be {format_short(value)}: {why}") from error
        scales = WithJudging.of(context.recipe).scales
        for each in after.judgements:
            low, high = scales.get(each.metric, (-math.inf, math.inf))
            if each not in before.judgements and each.score is not None and not low <= each.score <= high:
                raise SteppingError(
                    f"{path} cannot be {format_short(value)}: {each.metric} is scored from {low} to {high}"
                )

        def judged_lines(outcome: Outcome, judgement: Judgement) -> list[Line] | None:
            with suppress(Exception):  # of the recipe's code, e.g. while what was judged is not yet in the outcome
                return list(WithLabels.of(context.recipe).judged_lines(outcome, judgement))
            return None

        judged = before.judgements
        if stale := [each.metric for each in judged if judged_lines(before, each) != judged_lines(after, each)]:
            raise SteppingError(
                f"{path} cannot be set after it was judged ({', '.join(dict.fromkeys(stale))}); go back to a step "
                "before the judges, and set it there"
            )
        if before.messages and not after.messages:
            raise SteppingError(f"{path} cannot be {format_short(value)}: no message would be left to continue from")

    async def _find_request(self, who: str) -> NextRequest:
        requests = await self.next_requests()
        meant = [each for each in requests if who in (each.role, each.node, each.name)]
        if len(nodes := dict.fromkeys(each.node for each in meant)) > 1:
            raise SteppingError(f"the next step calls {who} in several nodes; name one: {', '.join(nodes)}")
        if meant:
            return meant[0]
        if who not in (*self.roles, *self.nodes):
            raise SteppingError(f"there is no such role as {who!r}; the roles are {', '.join(self.roles)}")
        await self._ensure_not_at_end()
        roles = ", ".join(dict.fromkeys(each.role for each in requests)) or "no role"
        raise SteppingError(
            f"the next step calls {roles}, not {who!r}; 'back' leads to earlier steps, and 'until {who}' plays on "
            f"until {who} is next"
        )

    # Playing steps

    async def _ensure_not_at_end(self) -> None:
        if not await self.context.nodes_after(self.context.points()[self._head]):
            raise SteppingError(f"{self.branch} has no further steps; go back first")

    async def _find_played_step(self) -> Point | None:
        """Return the next checkpoint if this branch has already played the step in the same way; else `None`."""
        points, befores, after = self.context.points(), {self._head}, list[Point]()
        for point in points.values():
            if point.parent in befores and self._branch.thread in point.threads:
                if point.source == "fork":
                    befores.add(point.id)  # a checkpoint that LangGraph adds on a rewind: not a step
                elif point.source == "loop":
                    after.append(point)
        for point in reversed(after):
            if self.branch == MAIN or await self._would_repeat(point):
                return point
        return None

    async def _would_repeat(self, point: Point) -> bool:
        """Return whether repeating a step would make the same calls: no model, request or sample has changed."""
        context, branch = self.context, self._branch
        if context.store.branches.calls_of(context.work.position, point.id) is None:
            return False  # the process was killed before the step's calls were recorded
        models = {role: binding.model for role, binding in context.models.items()} | {**branch.models}
        return all(
            call.model == models.get(call.role, call.model)  # the calls of tools belong to no role
            and call.model != WRITTEN_BY_PERSON
            and not call.is_edited
            and branch.sample in (call.sample, context.main().sample)
            for call in await context.step_calls(context.lineage(point.id))
        )

    async def _branch_off(self, exchanged: Collection[str] = ()) -> None:
        """Create a branch here if this one has ended; otherwise reload it, as other steppers may have changed it.

        Args:
            exchanged: Roles whose model is replaced on the new branch.

        Raises:
            RunError: If functions of the run's study have changed, so that no step can be played.
        """
        self.context.ensure_unchanged()
        if self.branch != MAIN:
            self._branch = self.context.branch(self.branch)
            if not await self._has_end():
                return
        names = {branch.name for branch in self.branches()}
        name = next(f"b{number}" for number in range(1, len(names) + 2) if f"b{number}" not in names)
        self._branch = await fork_branch(self.context, self._branch, self._head, name, exchanged)

    async def _has_end(self) -> bool:
        """Return whether this branch was played to an end that it does not share with its origin."""
        origin = self.context.branch(self._branch.origin or MAIN).thread
        own = [point for point in self.context.points().values() if self._branch.thread in point.threads]
        inner = {point.parent for point in own}
        ends = [point for point in own if point.id not in inner and origin not in point.threads]
        return not all([await self.context.nodes_after(point) for point in ends])

    async def _play(self, changed: CallOverrides) -> None:
        context, branch = self.context, self._branch
        context.ensure_unchanged()
        changed = replace(changed, models=context.bindings(branch))
        gateway = SteppingGateway(context.gateway, context.store.ledger, changed)
        is_last = context.latest_checkpoint(branch.thread) == self._head
        coming = await context.nodes_after(context.points()[self._head])
        line = context.lineage(self._head)
        stage = context.stage(gateway, branch, count_steps(line))
        config = thread_config(branch.thread, None if is_last else self._head)
        is_main = branch.name == MAIN
        if not is_main:
            # The partial writes of an interrupted step are dropped, because they may come from other models or another
            # sample.
            await context.store.branches.drop_writes(branch.thread, self._head)
        made = [call.key for call in await context.lineage_calls(line)] if context.has_stateful_players else []
        context.store.queue.begin(context.work, None if is_main else branch.name, made)
        try:
            await context.graph.ainvoke(None, config, context=stage, durability="sync", **interrupt_options(coming))
        finally:
            context.store.queue.end(context.work)
            context.forget(self._head)  # an interrupted step leaves partial writes there
        latest = context.latest_checkpoint(branch.thread)
        assert latest is not None
        if not is_main:
            await context.store.branches.keep_calls(context.work.position, {latest: gateway.list_calls()})
        await self._move_to(latest)
        if is_main and not await context.nodes_after(context.points()[latest]):
            await context.store.results.finish(context.work, await self.outcome())

    async def _stop_at(self, point: Point) -> Stop:
        await self._move_to(point.id)
        return await self.here()

    async def _move_to(self, head: str) -> None:
        self._head = head
        if self.branch != MAIN:
            # The branch is reloaded, because another stepper may have changed a model on it.
            await self._save_branch(replace(self.context.branch(self.branch), head=head))

    async def _save_branch(self, branch: Branch) -> None:
        self._branch = branch
        await self.context.store.branches.keep(self.context.work.position, branch)
