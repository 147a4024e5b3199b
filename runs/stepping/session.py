"""A session: one scenario, one branch of it, one superstep at a time; it looks, moves, edits and branches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from dialoom.graphs import Outcome
from dialoom.prompts import ChatMessage
from dialoom.roles.gateway.gateway import check_model, check_parameters
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.store import RunStore
from dialoom.runs.store.branches import MAIN
from dialoom.runs.trust import player_named
from dialoom.text import well_formed_value

from .branching import fork_branch, index_main
from .context import START, PlayableContext, at, open_context, updates
from .gateway import CallOverrides, NextRequest, SteppingError, said_reply
from .navigation import Navigation
from .stop import Stop
from .values import replaced


class Session(Navigation):
    """Stands at a checkpoint of a branch of one scenario, looks, moves from there, edits and makes branches.

    Made by `Session.open`; `fork` and `switch` give further ones over the same run. None may be used while another one
    is in the middle of a step.
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
            TrustError: If it is played by code, or at an address, that only the run's author has named.
        """
        async with open_context(store, store.resolve(str(scenario)), policy, tell) as context:
            yield await cls._at_head_of(context, branch)

    @classmethod
    async def _at_head_of(cls, context: PlayableContext, name: str) -> Session:
        branch = context.branch(name)
        context.store.permit(named for model in branch.models.values() for named in player_named(model))
        head = branch.head or context.latest(branch.thread) or await context.begin()
        session = cls(context, branch, head)
        await session.here()
        return session

    # Editing

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
        """Play one step in which a role says this, in place of its model.

        Args:
            role: The role; where several nodes ask it, one of these; `NODE:NUMBER` where one asks it more often.
            text: Its words, of the form that its reply must have; or, where it may call tools, a call as JSON:
                `{"name": "get_weather", "arguments": {"city": "Vellin"}}`, or a list of calls.

        Raises:
            SteppingError: If the next step does not ask that role, or it cannot say that.
        """
        asked = await self._asked(role)
        said_reply(asked.request, text)
        sample = self.context.store.branches.next_sample(self.context.work.position)
        await self._branch_off()
        return await self.step(CallOverrides(said={asked.key: (text, sample)}))

    async def ask_instead(self, role: str, messages: Sequence[ChatMessage]) -> Stop:
        """Play one step in which a role is asked this, in place of what its prompt gives.

        Args:
            role: As for `say`.
            messages: The request.

        Raises:
            SteppingError: If the next step does not ask that role.
        """
        asked = await self._asked(role)
        await self._branch_off()
        whole: list[ChatMessage] = well_formed_value([{**message} for message in messages])
        return await self.step(CallOverrides(messages={asked.key: whole}))

    async def exchange(self, role: str, model: str) -> None:
        """Let another model play a role from here on, in this branch.

        Raises:
            SteppingError: If there is no such role.
            BindingError: If there is no such model, or it takes no such parameters as the role has.
        """
        if role not in self.context.models:
            raise SteppingError(f"there is no role {role!r}; there are {', '.join(self.roles)}")
        check_model(model)
        check_parameters({role: self.context.models[role].model_copy(update={"model": model})})
        self.context.store.give(player_named(model))
        await self._branch_off()
        models = {**self._branch.models, role: model}
        if model == self.context.models[role].model:
            del models[role]  # its own: served where the run says
        await self._keep(replace(self._branch, models=models))

    async def resample(self) -> int:
        """Have replies of their own from here on, in this branch; returns the sample's number."""
        await self._branch_off()
        sample = self.context.store.branches.next_sample(self.context.work.position)
        await self._keep(replace(self._branch, sample=sample))
        return sample

    # Branches

    async def fork(self, name: str) -> Session:
        """A new branch that begins here; this session stays on its own.

        Raises:
            SteppingError: If there is one of that name, or it is no name.
        """
        branch = await fork_branch(self.context, self._branch, self._head, name)
        return Session(self.context, branch, self._head)

    async def switch(self, name: str) -> Session:
        """A session on another branch, where that stands.

        Raises:
            SteppingError: If there is none.
        """
        return await Session._at_head_of(self.context, name)

    async def promote(self) -> Outcome:
        """Make what came of this branch the scenario's outcome. What other judges said of the one before is dropped.

        Raises:
            SteppingError: If the branch is not at its end.
        """
        stop = await self.here()
        if not stop.is_end:
            raise SteppingError(
                f"{self.branch} is not at its end, so there is no outcome of it yet; play it to its end first"
            )
        if self.branch == self.outcome_branch == MAIN and not self.context.is_pending:
            return await self.outcome()  # nothing else was promoted, and other judges' words are on this
        await index_main(self.context)
        line = self.context.line(self._head)
        calls = [call.id for call in await self.context.calls_on(line)]
        outcome = self.context.outcome(stop.state, is_end=True)
        taken = await self.context.branch_taken(self._branch, line)
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
