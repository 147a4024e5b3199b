"""Who is asked for, what is asked, and what should be called: users, and pairs of a session and a later query."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from ..flows import FlowRequest, GoldCall, Preference, Resident
from ..tools import Value
from ..world import World

PreferenceForm = Literal["explicit", "choice", "anti", "facts", "comparison", "tone"]
FORMS: tuple[PreferenceForm, ...] = get_args(PreferenceForm)
QueryKind = Literal["reactive", "proactive"]


class ApolloUser(BaseModel):
    """Somebody whom an assistant with tools knows.

    Attributes:
        id: Such as `u07`.
        name: First name.
        gender: Such as `woman`.
        age: In years.
        persona: A sentence or two about them; nothing in it bears on a preference.
        interests: What they call unrelated tools with, by the name of the parameter; agents are not shown it.
        city: Where they live.
        home: Their address.
        work: Where they work, an address in the same city.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    name: str = Field(min_length=1)
    gender: str
    age: int
    persona: str
    interests: dict[str, Value]
    city: str
    home: str
    work: str

    @property
    def resident(self) -> Resident:
        """Where they live and work."""
        return Resident(self.city, self.home, self.work)

    def information(self, today: str) -> tuple[str, ...]:
        """Lines of what an agent is told of them, with today's date."""
        return (
            f"Name: {self.name}, {self.gender}, aged {self.age}",
            f"About: {self.persona}",
            f"City: {self.city}",
            f"Home: {self.home}",
            f"Work: {self.work}",
            f"Today: {today}",
        )


class ApolloPair(BaseModel):
    """A session in which a preference is told, and a later query that it decides.

    Attributes:
        id: Its name in the source.
        user: Whose it is: the user's id.
        flow: The task that both are about.
        preference_set: Which of the user's preferences for the flow it is, from 1.
        form: How the session tells it: said outright (`explicit`), or one of the five implicit forms.
        query_kind: `reactive` asks for the thing; `proactive` describes what goes on around the user.
        kind: How the preference reaches the arguments, as `Flow.kind`.
        query: What is asked.
        today: The day on which it is asked.
        slots: What the query says, with `today`.
        values: What the preference gives every facet of the flow.
        order: The flow's lookups in the order of the session.
        gold: The calls that should be made.
        tools: The flow's tools: those of the gold calls, and where a rule decides, those of both its ends.
        session: The id of the session.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    id: str = Field(min_length=1)
    user: str
    flow: str
    preference_set: int = Field(ge=1)
    form: PreferenceForm
    query_kind: QueryKind
    kind: Literal["direct", "indirect", "conditional"]
    query: str = Field(min_length=1)
    today: str
    slots: dict[str, Value]
    values: dict[str, Value]
    order: tuple[str, ...]
    gold: tuple[GoldCall, ...] = Field(min_length=1)
    tools: tuple[str, ...]
    session: str

    @property
    def preference(self) -> Preference:
        """What is wanted."""
        return Preference(self.flow, self.values, self.order)

    def calls(self) -> list[dict[str, Any]]:
        """The gold calls alone."""
        return [call.call() for call in self.gold]

    def request(self, world: World, user: ApolloUser, preference: Preference | None = None) -> FlowRequest:
        """The query as a flow's request, for the pair's preference or another."""
        return FlowRequest(world, preference or self.preference, user.resident, self.slots)
