"""Sessions in which a preference is told: made in a form, and read again."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from typing import Any

from ..executor import Output
from ..flows import FlowRequest, Gold, Preference
from ..flows.expressions import Flow, FlowStep, If, Query, User
from ..tools import Value
from .content import as_said, capital, content, filled
from .pair import ApolloUser, PreferenceForm
from .phrases import phrases
from .session import ApolloSession, PastCall, Speech

REQUESTS = content("requests")


@dataclass(frozen=True, slots=True)
class ToldPreference:
    """What a session tells.

    Attributes:
        flow: The flow's name.
        form: How it is told.
        values: What the preference gives each facet.
    """

    flow: str
    form: PreferenceForm
    values: Mapping[str, Value]


def told_turns(request: FlowRequest, gold: Gold, form: PreferenceForm, draw: random.Random) -> list[PastCall | Speech]:
    """A session about a request: what is wanted, how it is liked, the calls, and how it ends.

    The assistant makes no call before it has been told all, and repeats nothing of it.
    """
    turns: list[PastCall | Speech] = [*opening_turns(request.preference, request.slots, form, draw)]
    for call, output in zip(gold.calls, gold.outputs, strict=True):
        turns.append(PastCall(name=call.name, arguments=dict(call.arguments), output=output))
    return [*turns, *closing_turns(call.name, output, draw)]


def opening_turns(
    preference: Preference, slots: Mapping[str, Value], form: PreferenceForm, draw: random.Random
) -> list[Speech]:
    """What is said before the first call: what is wanted, and facet by facet how it is liked."""
    said, flow = REQUESTS["flows"][preference.flow], preference.flow
    turns = [_user(filled(draw.choice(said["openings"]), _slots(slots), draw))]
    used: set[str] = set()
    for number, (name, facet) in enumerate(phrases()[flow].items()):
        if name in preference.values:
            ask, reply = facet.exchange(preference.values[name], form, draw, used)
            lead = draw.choice(REQUESTS["leads" if number else "greetings"])
            turns += [Speech(speaker="assistant", text=f"{lead} {ask}".strip()), _user(reply)]
    return turns


def closing_turns(tool: str, output: Output, draw: random.Random) -> list[Speech]:
    """What is said when the last call has been answered."""
    answered = output[0] if isinstance(output, list) else output
    lines = REQUESTS["for_nothing" if answered.get("cost") == 0 else "done"][tool]
    done = filled(draw.choice(lines), {column: as_said(value) for column, value in answered.items()}, draw)
    return [Speech(speaker="assistant", text=done), _user(filled(draw.choice(REQUESTS["farewells"]), {}, draw))]


def read_preference(turns: Iterable[tuple[str, str]]) -> ToldPreference | None:
    """The preference that a session of the scripted source tells; None if it tells none.

    Args:
        turns: Who speaks (`user` or `assistant`) and what they say, in order; calls are left out.
    """
    said = list(turns)
    answers = [(asked, text) for (asker, asked), (_, text) in pairwise(said) if asker == "assistant"]
    for flow, facets in phrases().items():
        found = {
            name: read for asked, text in answers for name, facet in facets.items() if (read := facet.read(asked, text))
        }
        if found:
            forms = [form for name, (form, _) in found.items() if not facets[name].plain] or ["explicit"]
            return ToldPreference(
                flow, max(forms, key=forms.count), {name: value for name, (_, value) in found.items()}
            )
    return None


def spoken(session: ApolloSession) -> list[tuple[str, str]]:
    """Who says what in a session."""
    return [(turn.speaker, turn.text) for turn in session.turns if isinstance(turn, Speech)]


def slots_of(flow: Flow, session: ApolloSession, user: ApolloUser) -> dict[str, Value]:
    """What a session's request said, as its calls have it."""
    slots: dict[str, Value] = {}
    for turn in session.turns:
        for step in _steps(flow):
            if isinstance(turn, PastCall) and turn.name == step.tool:
                slots |= _said(step, turn.arguments, user)
    return slots


def _steps(flow: Flow) -> list[FlowStep]:
    last = [flow.last.then, flow.last.otherwise] if isinstance(flow.last, If) else [flow.last]
    return [*flow.lookups, *last]


def flow_tools(flow: Flow) -> tuple[str, ...]:
    """Every tool that a flow may need, both ends of a rule among them."""
    return tuple(dict.fromkeys(step.tool for step in _steps(flow)))


def _said(step: FlowStep, arguments: Mapping[str, Value], user: ApolloUser) -> dict[str, Value]:
    slots: dict[str, Value] = {}
    for name, expression in step.arguments.items():
        if isinstance(expression, Query) and name in arguments:
            slots[expression.slot] = arguments[name]
        elif expression == User("start"):
            slots["start"] = "home" if arguments.get(name) == user.home else "work"
    return slots


def _slots(slots: Mapping[str, Value]) -> dict[str, Any]:
    """What braces stand for in a session, where days have their dates."""
    return {**place_words(slots), "day": f"on {day_of_month(str(slots.get('date', slots['today'])))}"}


def place_words(slots: Mapping[str, Value]) -> dict[str, Any]:
    """What braces for places and nights stand for."""
    start, nights = slots.get("start", "home"), int(slots.get("nights", 1))
    return {
        **slots,
        "from": f"from {start}",
        "at": f"at {start}",
        "nights": f"{NUMBERS[nights]} night{'s'[: nights > 1]}",
    }


def day_of_month(day: str) -> str:
    """A day as one says it, such as `9 March`."""
    return f"{date.fromisoformat(day).day} {date.fromisoformat(day):%B}"


NUMBERS: Mapping[int, str] = dict(enumerate("no one two three four five six".split()))


def _user(text: str) -> Speech:
    return Speech(speaker="user", text=capital(text))
