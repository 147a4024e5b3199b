"""What makes a request fit to tell who knows a preference from who does not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from dialoom.errors import DialoomError

from ..executor import execute
from ..scores import compare
from ..tools import Value
from ..world import CITIES, World
from .catalogue import FLOWS
from .expressions import Above, Among, Bands, Flow, If, Preference
from .gold import FlowRequest, Gold, Resident, Slots

DRAWS = 50
_FEWEST_ROWS = 3
_TOLD_IN, _ASKED_IN = range(7), range(14, 21)  # so that the past is past, whatever day of the next week it was about


class FlowError(DialoomError):
    """No request can be found for a preference: which check refuses them."""


class FlowPair(NamedTuple):
    """Two requests for one preference: one in whose session it was told, and a later one that it decides."""

    told: FlowRequest
    told_gold: Gold
    asked: FlowRequest
    asked_gold: Gold


def find_sets(
    world: World,
    flow: Flow,
    resident: Resident,
    draw: random.Random,
    sets: int,
    count: int,
    also: Callable[[Slots], str | None] | None = None,
) -> list[list[FlowPair]]:
    """Preferences that somebody has had for a flow one after the other, and so many pairs for each.

    Any two preferences differ in all that has three values or more, numbers aside, and on each request that is asked
    the calls differ.

    Args:
        world: Where it takes place.
        flow: The flow.
        resident: Who asks.
        draw: Where preferences, days and places come from.
        sets: How many preferences.
        count: How many pairs for each.
        also: One more check of what is asked, as of `find_request`.

    Raises:
        FlowError: If there are not so many pairs, for any preferences of 50 draws.
    """
    for attempt in range(1, DRAWS + 1):
        preferences = _preferences(flow, draw, sets)
        try:
            return find_pairs(world, preferences, resident, draw, count, also)
        except FlowError:
            if attempt == DRAWS:
                raise
    raise AssertionError(flow.name)


def find_pairs(
    world: World,
    preferences: Sequence[Preference],
    resident: Resident,
    draw: random.Random,
    count: int,
    also: Callable[[Slots], str | None] | None = None,
) -> list[list[FlowPair]]:
    """So many pairs for each of the preferences that somebody has had for a flow; arguments as of `find_sets`.

    Raises:
        FlowError: If there are not so many.
    """

    def refused(slots: Slots) -> str | None:
        return (also(slots) if also else None) or _same_calls(world, preferences, resident, slots)

    return [
        [_found_pair(world, preference, resident, draw, refused) for _ in range(count)] for preference in preferences
    ]


def _preferences(flow: Flow, draw: random.Random, count: int) -> list[Preference]:
    drawn: list[Preference] = []
    refused = 0
    while len(drawn) < count:
        new = flow.preference(draw)
        if all(apart(flow, old, new) for old in drawn):
            drawn.append(new)
        elif (refused := refused + 1) % DRAWS == 0:
            drawn.clear()  # what was drawn before may leave nothing else
    return drawn


def apart(flow: Flow, one: Preference, other: Preference) -> bool:
    """Two preferences agree in nothing that has three values or more, numbers aside."""
    for name, value in one.values.items():
        many = len(flow.facet(name).values) > 2 and isinstance(value, str)
        if many and other.values.get(name) == value:
            return False
    return True


def _same_calls(world: World, preferences: Sequence[Preference], resident: Resident, slots: Slots) -> str | None:
    golds = [FlowRequest(world, preference, resident, slots).gold() for preference in preferences]
    same = any(one.same_calls(other) for one, other in combinations(golds, 2))
    return "same calls: two of the preferences ask for the same" if same else None


def _found_pair(
    world: World,
    preference: Preference,
    resident: Resident,
    draw: random.Random,
    also: Callable[[Slots], str | None],
) -> FlowPair:
    told = find_request(world, preference, resident, draw, days=_TOLD_IN)
    return FlowPair(*told, *find_request(world, preference, resident, draw, told[0].slots, _ASKED_IN, also))


def find_request(
    world: World,
    preference: Preference,
    resident: Resident,
    draw: random.Random,
    before: Slots | None = None,
    days: range = range(21),
    also: Callable[[Slots], str | None] | None = None,
) -> tuple[FlowRequest, Gold]:
    """A request that passes all checks, and what should be done.

    Args:
        world: Where it takes place.
        preference: What is wanted.
        resident: Who asks.
        draw: Where its days and places come from.
        before: What an earlier request said: this one is for another day and another place.
        days: Those of the world's days, from 0, on which it may be made.
        also: One more check, of what the request says: what is wrong with it, or None.

    Raises:
        FlowError: If none of 50 that were drawn passes.
    """
    flow, refusals = FLOWS[preference.flow], Counter[str]()
    for _ in range(DRAWS):
        request = FlowRequest(world, preference, resident, drawn_slots(world, flow, resident, draw, days))
        gold = request.gold()
        refused = _repeated(request, before or {}) or (also and also(request.slots)) or refusal(request, gold)
        if refused is None:
            return request, gold
        refusals[refused] += 1
    wanted = ", ".join(f"{name} {value}" for name, value in preference.values.items())
    most = refusals.most_common(1)[0][0]
    raise FlowError(f"flow {flow.name} ({wanted}): none of {DRAWS} requests will do, most for this: {most}")


def drawn_slots(world: World, flow: Flow, resident: Resident, draw: random.Random, days: range) -> dict[str, Value]:
    """What a request may say: today, a day in the week from then, where from and where to."""
    today = draw.choice(days)
    venues = [place.name for place in world.places(world.city(resident.city)) if not place.is_address]
    drawn: dict[str, Value] = {
        "today": world.days[today],
        "date": world.days[today + draw.randrange(7)],
        "start": draw.choice(("home", "work")),
        "destination": draw.choice(venues),
        "to_city": draw.choice([city for city in CITIES if city != resident.city]),
        "nights": draw.randint(1, 5),
    }
    return {slot: drawn[slot] for slot in flow.slots}


def refusal(request: FlowRequest, gold: Gold) -> str | None:
    """The name of the first check that fails, and how; None if the request is kept (the protocol, section 3)."""
    checks = (_not_played, _pick, _idle_facet, _idle_lookup, _close_number, _guessed)
    return next((refused for check in checks if (refused := check(request, gold))), None)


def _repeated(request: FlowRequest, before: Slots) -> str | None:
    """It is about other days and places, so that no answer can be copied."""
    for slot in ("today", "date", "destination", "to_city"):
        if slot in before and request.slots.get(slot) == before[slot]:
            return f"repeated: {slot} {before[slot]} was asked for before"
    return None


def _not_played(request: FlowRequest, gold: Gold) -> str | None:
    """The calls run, with no other tools than they need, and answer what the flow went by."""
    tools = {call.name for call in gold.calls}
    for call, output in zip(gold.plain(), gold.outputs, strict=True):
        again = execute(request.world, call, tools)
        if again != output or "error" in again:
            return f"not played: {call['name']} answers {again}"
    return None


def _pick(_: FlowRequest, gold: Gold) -> str | None:
    """One row of several is what the preference wants."""
    if gold.picked_from is None:
        return None
    rows, matches = gold.picked_from
    if matches == 1 and rows >= _FEWEST_ROWS:
        return None
    return f"pick: {matches} of {rows} rows match, which should be one of {_FEWEST_ROWS} or more"


def _idle_facet(request: FlowRequest, gold: Gold) -> str | None:
    """Each facet that was used could have been such that other calls are right."""
    wanted, flow = request.preference, request.flow
    for name in sorted(gold.used):
        facet = flow.facet(name)
        others = [{**wanted.values, name: value} for value in (*facet.values, *facet.beyond)]
        changed = [replace(wanted, values=values) for values in others if flow.consistent(values)]
        if all(request.gold(other).same_calls(gold) for other in changed):
            return f"idle facet: no other {name} changes the calls"
    return None


def _idle_lookup(request: FlowRequest, gold: Gold) -> str | None:
    """Each lookup of a rule could have said what makes other calls right, so that nobody can do without."""
    last = request.flow.last
    for part in last.tests if isinstance(last, If) else last.arguments.values():
        if not isinstance(part, Above | Among | Bands):
            continue
        others = (
            request.gold(said={part.lookup: {part.column: value}}) for value in _outcomes(part, request.preference)
        )
        if all(other.same_calls(gold) for other in others):
            return f"idle lookup: whatever {part.lookup} says, the calls are the same"
    return None


def _outcomes(part: Above | Among | Bands, preference: Preference) -> list[Value]:
    """What a lookup could say, on every side of the rule."""
    if isinstance(part, Among):
        return list(part.outcomes)
    limits = (part.limit,) if isinstance(part, Above) else part.limits
    return [float(preference.values[limit]) + side for limit in limits for side in (-1, 1)]


def _close_number(_: FlowRequest, gold: Gold) -> str | None:
    """What was looked up is not so near a limit that one could argue."""
    for gap, margin in gold.gaps:
        if gap < margin:
            return f"close number: what was looked up is {gap} off a limit, which should be {margin} or more"
    return None


def _guessed(request: FlowRequest, gold: Gold) -> str | None:
    """Who takes the first of everything does something else in the end."""
    guess = request.gold(request.flow.unknowing(request.preference), blind=True)
    if guess.calls and compare(guess.plain()[-1:], gold.plain()[-1:]).accuracy:
        return "guessed: who takes the first of everything makes the same last call"
    return None
