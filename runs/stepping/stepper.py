"""A stepper of the step debugger: one scenario, one branch of it, one superstep at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from dialoom.graphs import Outcome
from dialoom.prompts import ChatMessage
from dialoom.roles.gateway.gateway import check_model, check_parameters
from dialoom.runs.configuration.trust import player_named
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store import RunStore
from dialoom.runs.store.branches import MAIN
from dialoom.text import well_formed_value

from .context import START, PlayableContext, at, open_context, updates
from .gateway import CallOverrides, NextRequest, SteppingError, said_reply
from .navigation import Navigation
from .stop import Stop
from .tree import fork_branch, index_main
from .values import replaced


class Stepper(Navigation):
    """A stepper at a checkpoint of a branch of one scenario; it inspects, moves, edits and forks.

    Opened by `Stepper.open`; `fork` and `switch` give further ones over the same run. None may be used while another
    one
    is playing a step.
    """

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
        """Open a stepper on a scenario, finished, failed or not yet begun.

        Args:
            store: The run, open for writing, with its plan; it stays open.
            scenario: Its id, a prefix of its id, or its position in the plan (from 1).
            branch: The branch; the stepper starts at its head.
            policy: How calls are made; by default as stored in the run file.
            tell: Receives the messages of nodes.

        Raises:
            StoreError: If there is no such scenario.
            SteppingError: If there is no such branch.
            TrustError: If it is played by code, or at an address, that only the run's author has named.
        """
        async with open_context(store, store.resolve(str(scenario)), policy, tell) as context:
            yield await cls._at_head_of(context, branch)

    @classmethod
    async def _at_head_of(cls, context: PlayableContext, name: str) -> Stepper:
        branch = context.branch(name)
        context.store.permit(named for model in branch.models.values() for named in player_named(model))
        head = branch.head or context.latest(branch.thread) or await context.begin()
        stepper = cls(context, branch, head)
        await stepper.here()
        return stepper

    # Editing

    async def edit(self, path: str, value: Any) -> Stop:
        """Set a value in the state; the edges of the nodes that ran last choose again.

        Args:
            path: A path such as `turns`, `messages[2].content` or `rounds[0].user`.
            value: The new value.

        Raises:
            PathError: If the path does not exist, or does not accept such a value.
            SteppingError: If the conversation has not begun.
        """
        if START in await self.context.nodes_after(self.context.points()[self._head]):
            raise SteppingError(
                "nothing is in the state yet; the first step takes in what the conversation begins with"
            )
        channel, whole = replaced(self.state, path, well_formed_value(value))
        await self._branch_off()
        nodes = await self.context.nodes_before(self.context.line(self._head))
        edit = updates(self.context.graph, {channel: whole}, nodes)
        config = await self.context.graph.abulk_update_state(at(self._branch.thread, self._head), [edit])
        await self._moved(str(config["configurable"]["checkpoint_id"]))
        return await self.here()

    async def say(self, role: str, text: str) -> Stop:
        """Play one step with this reply of a role, in place of its model's.

        Args:
            role: The role; the node where several nodes call it; `NODE:NUMBER` where one node calls it several times.
            text: Text that parses as the reply type; or, where tools are offered, a tool call as JSON: `{"name":
                "get_weather", "arguments": {"city": "Vellin"}}`, or a list of calls.

        Raises:
            SteppingError: If the next step does not call that role, or the reply is not possible.
        """
        asked = await self._asked(role)
        said_reply(asked.request, text)
        sample = self.context.store.branches.next_sample(self.context.work.position)
        await self._branch_off()
        return await self.step(CallOverrides(said={asked.key: (text, sample)}))

    async def ask_instead(self, role: str, messages: Sequence[ChatMessage]) -> Stop:
        """Play one step with this request to a role, in place of its rendered prompt.

        Args:
            role: As for `say`.
            messages: The request.

        Raises:
            SteppingError: If the next step does not call that role.
        """
        asked = await self._asked(role)
        await self._branch_off()
        whole: list[ChatMessage] = well_formed_value([{**message} for message in messages])
        return await self.step(CallOverrides(messages={asked.key: whole}))

    async def exchange(self, role: str, model: str) -> None:
        """Replace a role's model from here on, on this branch.

        Raises:
            SteppingError: If there is no such role.
            BindingError: If there is no such model, or it does not accept the role's parameters.
        """
        if role not in self.context.models:
            raise SteppingError(f"there is no role {role!r}; there are {', '.join(self.roles)}")
        check_model(model)
        check_parameters({role: self.context.models[role].model_copy(update={"model": model})})
        self.context.store.give(player_named(model))
        await self._branch_off()
        models = {**self._branch.models, role: model}
        if model == self.context.models[role].model:
            del models[role]  # its own model: served at the run's address
        await self._keep(replace(self._branch, models=models))

    async def resample(self) -> int:
        """Sample new replies from here on, on this branch; return the sample's number."""
        await self._branch_off()
        sample = self.context.store.branches.next_sample(self.context.work.position)
        await self._keep(replace(self._branch, sample=sample))
        return sample

    # Branches

    async def fork(self, name: str) -> Stepper:
        """Fork a branch here and return a stepper on it; this stepper stays on its branch.

        Raises:
            SteppingError: If the name is taken or invalid.
        """
        branch = await fork_branch(self.context, self._branch, self._head, name)
        return Stepper(self.context, branch, self._head)

    async def switch(self, name: str) -> Stepper:
        """Return a stepper at the head of another branch.

        Raises:
            SteppingError: If there is no such branch.
        """
        return await Stepper._at_head_of(self.context, name)

    async def promote(self) -> Outcome:
        """Make this branch's result the scenario's outcome; other judges' judgements of the previous one are dropped.

        Raises:
            SteppingError: If the branch is not at its end.
        """
        stop = await self.here()
        if not stop.is_end:
            raise SteppingError(
                f"{self.branch} is not at its end, so there is no outcome of it yet; play it to its end first"
            )
        if self.branch == self.outcome_branch == MAIN and not self.context.is_pending:
            return await self.outcome()  # `main` is the outcome already, and other judges' judgements are of it
        await index_main(self.context)
        line = self.context.line(self._head)
        calls = [call.id for call in await self.context.calls_on(line)]
        outcome = self.context.outcome(stop.state, is_end=True)
        taken = await self.context.promoted_branch(self._branch, line)
        await self.context.store.results.promote(self.context.work, taken, outcome, calls)
        return outcome

    async def _asked(self, who: str) -> NextRequest:
        asked = await self.next_requests()
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
