"""The plan of a user with a profile and preferences: sessions, queries, pairs."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dialoom.personas.apollo.flows import FLOWS, FlowRequest, Preference
from dialoom.personas.apollo.source import (
    ApolloPair,
    ApolloSession,
    ApolloUser,
    PastCall,
    PreferenceForm,
    QueryKind,
)
from dialoom.personas.apollo.source.drafts import RequestSlots, SessionDraft, digest
from dialoom.personas.apollo.source.scripted import SETS, pair_labels
from dialoom.personas.apollo.source.sessions import UNRELATED_TOOLS, flow_tools
from dialoom.personas.apollo.tools import TOOLS

from .drafts import draft_of
from .scenario import WriteScenario, world_of


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """A session and a later query to be written for one preference.

    Attributes:
        id: The id of the pair and of the query.
        user: The user.
        preference: The preference.
        set_number: The number, from 1, of the user's preference for the flow.
        story: The reason for the preference.
        form: The form in which the session states it.
        kind: The speaker of the query.
        slots: The slots of both requests.
    """

    id: str
    user: ApolloUser
    preference: Preference
    set_number: int
    story: str
    form: PreferenceForm
    kind: QueryKind
    slots: RequestSlots

    @property
    def session_id(self) -> str:
        """The session's id."""
        return f"s-{self.id}"

    @property
    def told(self) -> str:
        """A hash of the session's inputs; see `SessionDraft.about`."""
        return digest([*self._wanted, self.form, self.slots.told, self.user.resident])

    @property
    def asked(self) -> str:
        """A hash of the query's inputs; see `QueryDraft.about`."""
        return digest([*self._wanted, self.kind, self.slots.asked, self.user.information("")])

    @property
    def _wanted(self) -> list[Any]:
        return [self.preference.flow, self.preference.values, self.preference.order]

    def request(self, scenario: WriteScenario) -> FlowRequest:
        """Return the request in whose session the preference is stated."""
        return FlowRequest(world_of(scenario), self.preference, self.user.resident, self.slots.told)

    def session(self, draft: SessionDraft) -> ApolloSession:
        """Return the session of a draft."""
        flow = FLOWS[self.preference.flow]
        first = next((turn.name for turn in draft.turns if isinstance(turn, PastCall)), flow_tools(flow)[0])
        return _session(draft, "preference", f"{flow.domain}/{first}")

    def pair(self, scenario: WriteScenario, query: str) -> ApolloPair:
        """Return the pair with a query."""
        flow, slots = FLOWS[self.preference.flow], self.slots.asked
        request = FlowRequest(world_of(scenario), self.preference, self.user.resident, slots)
        return ApolloPair(
            id=self.id,
            user=self.user.id,
            flow=flow.name,
            preference_set=self.set_number,
            form=self.form,
            query_kind=self.kind,
            kind=flow.kind,
            query=query,
            today=str(slots["today"]),
            slots=dict(slots),
            values=dict(self.preference.values),
            order=self.preference.order,
            gold=request.gold().calls,
            tools=flow_tools(flow),
            session=self.session_id,
        )


@dataclass(frozen=True, slots=True)
class PlannedErrand:
    """A session to be written about an unrelated tool.

    Attributes:
        id: The session's id.
        tool: The tool to call.
        number: The number, from 1, of the session among those about this tool.
    """

    id: str
    tool: str
    number: int

    @property
    def told(self) -> str:
        """A hash of the session's inputs."""
        return digest([self.tool])

    def session(self, draft: SessionDraft) -> ApolloSession:
        """Return the session of a draft."""
        return _session(draft, "unrelated", f"{TOOLS[self.tool].domain}/{self.tool}")


def planned_pairs(scenario: WriteScenario, state: Mapping[str, Any]) -> Iterator[PlannedPair]:
    """Yield the pairs of every flow whose preferences have passed; none for a user whose profile has not passed."""
    user = draft_of(state, "users", scenario.user)
    if user is None or not user.is_sound:
        return
    for place, flow in enumerate(FLOWS):
        draft = draft_of(state, "preferences", f"{scenario.user}-{flow}")
        if flow not in scenario.flows or draft is None or not draft.is_sound:
            continue
        draw = random.Random(f"labels {scenario.seed} {scenario.user} {flow}")
        labels = pair_labels(SETS * scenario.pairs, place + int(scenario.user[1:]), draw)
        for number, each in enumerate(draft.sets, start=1):
            for count, slots in enumerate(each.requests, start=1):
                form, kind = labels.pop()
                preference = Preference(flow, each.values, each.order)
                name = f"{scenario.user}-{flow}-{number}-{count}"
                yield PlannedPair(name, user.person(), preference, number, each.story, form, kind, slots)


def planned_errands(scenario: WriteScenario, state: Mapping[str, Any]) -> Iterator[PlannedErrand]:
    """Yield the sessions about each unrelated tool."""
    user = draft_of(state, "users", scenario.user)
    if user is not None and user.is_sound:
        for number in range(1, scenario.errands + 1):
            for tool in UNRELATED_TOOLS:
                yield PlannedErrand(f"{scenario.user}-{tool}-{number}", tool, number)


def planned_sessions(scenario: WriteScenario, state: Mapping[str, Any]) -> dict[str, PlannedPair | PlannedErrand]:
    """Return all sessions by their ids."""
    pairs = {each.session_id: each for each in planned_pairs(scenario, state)}
    return {**pairs, **{each.id: each for each in planned_errands(scenario, state)}}


def _session(draft: SessionDraft, kind: Any, topic: str) -> ApolloSession:
    return ApolloSession(id=draft.id, user=draft.user, kind=kind, topic=topic, turns=draft.turns)
