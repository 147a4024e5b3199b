"""Checks that a request distinguishes agents that know a preference from agents that do not know it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

from dialoom.errors import DialoomError

from ..calls import Value
from ..executor import execute
from ..scores import compare
from ..world import CITIES, World
from .catalogue import FLOWS, Above, Among, Bands, Flow, If, Preference
from .gold import FlowRequest, Gold, Resident, Slots

MAX_DRAWS = 50
_MIN_ROWS = 3
_STATED_DAYS, _ASKED_DAYS = (
    range(7),
    range(14, 21),
)  # with a gap, so that the first request's dates are past at the second request


class FlowError(DialoomError):
    """An error if no request was found for a preference. The message states the check that rejected most requests."""


class FlowPair(NamedTuple):
    """Two requests for a preference: one in whose session the preference is stated, and a later one that it decides."""

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
    """Return successive preferences of a resident for a flow, and `count` pairs of requests for each.

    Any two preferences differ in every facet with at least three values, except numbers, and lead to different calls
    for each later request.

    Args:
        world: The world.
        flow: The flow.
        resident: The user.
        draw: The random stream for preferences, days and places.
        sets: The number of preferences.
        count: The number of pairs per preference.
        also: An additional check of the later request, as in `find_request`.

    Raises:
        FlowError: If each of 50 draws gives preferences with too few pairs.
    """
    for attempt in range(1, MAX_DRAWS + 1):
        try:
            return find_pairs(world, _draw_preferences(flow, draw, sets), resident, draw, count, also)
        except FlowError:
            if attempt == MAX_DRAWS:
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
    """Return `count` pairs of requests for each preference of a resident; for the arguments, see `find_sets`.

    Raises:
        FlowError: If there are too few pairs.
    """

    def refused(slots: Slots) -> str | None:
        return (also(slots) if also else None) or _check_same_calls(world, preferences, resident, slots)

    return [
        [_find_pair(world, preference, resident, draw, refused) for _ in range(count)] for preference in preferences
    ]


def _draw_preferences(flow: Flow, draw: random.Random, count: int) -> list[Preference]:
    drawn: list[Preference] = []
    refused = 0
    while len(drawn) < count:
        new = flow.preference(draw)
        if all(are_distinct(flow, old, new) for old in drawn):
            drawn.append(new)
        elif (refused := refused + 1) % MAX_DRAWS == 0:
            drawn.clear()  # the earlier draws may leave no valid draw
    return drawn


def are_distinct(flow: Flow, one: Preference, other: Preference) -> bool:
    """Return whether two preferences differ in every facet with at least three values, except numbers."""
    for name, value in one.values.items():
        if len(flow.facet(name).values) > 2 and isinstance(value, str) and other.values.get(name) == value:
            return False
    return True


def _check_same_calls(world: World, preferences: Sequence[Preference], resident: Resident, slots: Slots) -> str | None:
    golds = [FlowRequest(world, preference, resident, slots).gold() for preference in preferences]
    same = any(one.same_calls(other) for one, other in combinations(golds, 2))
    return "same calls: two of the preferences lead to the same calls" if same else None


def _find_pair(
    world: World,
    preference: Preference,
    resident: Resident,
    draw: random.Random,
    also: Callable[[Slots], str | None],
) -> FlowPair:
    stated = find_request(world, preference, resident, draw, days=_STATED_DAYS)
    return FlowPair(*stated, *find_request(world, preference, resident, draw, stated[0].slots, _ASKED_DAYS, also))


def find_request(
    world: World,
    preference: Preference,
    resident: Resident,
    draw: random.Random,
    before: Slots | None = None,
    days: range = range(21),
    also: Callable[[Slots], str | None] | None = None,
) -> tuple[FlowRequest, Gold]:
    """Return a request that passes all checks, and its gold calls.

    Args:
        world: The world.
        preference: The preference.
        resident: The user.
        draw: The random stream for days and places.
        before: The slots of an earlier request. The returned request has another day and another place.
        days: The indices of the world's days on which the request may be made, from 0.
        also: An additional check of the slots, which returns the problem or None.

    Raises:
        FlowError: If none of 50 drawn requests passes.
    """
    flow, refusals = FLOWS[preference.flow], Counter[str]()
    for _ in range(MAX_DRAWS):
        request = FlowRequest(world, preference, resident, draw_slots(world, flow, resident, draw, days))
        gold = request.gold()
        refused = (
            _check_repetition(request, before or {}) or (also and also(request.slots)) or check_request(request, gold)
        )
        if refused is None:
            return request, gold
        refusals[refused] += 1
    values = ", ".join(f"{name} {value}" for name, value in preference.values.items())
    most = refusals.most_common(1)[0][0]
    raise FlowError(f"flow {flow.name} ({values}): none of {MAX_DRAWS} requests passes all checks; most fail: {most}")


def draw_slots(world: World, flow: Flow, resident: Resident, draw: random.Random, days: range) -> dict[str, Value]:
    """Draw a request's slots: today, a day of the following week, the start and the destination."""
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


def check_request(request: FlowRequest, gold: Gold) -> str | None:
    """Return the first failed check with its reason; None if the request passes."""
    checks = (_check_execution, _check_pick, _check_facets, _check_lookups, _check_margins, _check_guess)
    return next((refused for check in checks if (refused := check(request, gold))), None)


def _check_repetition(request: FlowRequest, before: Slots) -> str | None:
    """Refuse requests that repeat the day or place of the earlier one, so that its answer cannot be copied."""
    for slot in ("today", "date", "destination", "to_city"):
        if slot in before and request.slots.get(slot) == before[slot]:
            return f"repeated: the earlier request has the same {slot}, {before[slot]}"
    return None


def _check_execution(request: FlowRequest, gold: Gold) -> str | None:
    """Refuse requests whose calls fail, or have other results than in the flow, if only their own tools are offered."""
    tools = {call.name for call in gold.calls}
    for call, output in zip(gold.plain(), gold.outputs, strict=True):
        if (again := execute(request.world, call, tools)) != output or "error" in again:
            return f"not played: {call['name']} returns {again} if only the flow's tools are offered"
    return None


def _check_pick(_: FlowRequest, gold: Gold) -> str | None:
    """Require that exactly one of several rows matches the preference."""
    if gold.picked_from is None:
        return None
    rows, matches = gold.picked_from
    if matches == 1 and rows >= _MIN_ROWS:
        return None
    return f"pick: {matches} of {rows} rows match; exactly one of at least {_MIN_ROWS} must match"


def _check_facets(request: FlowRequest, gold: Gold) -> str | None:
    """Require that each used facet matters: another value leads to other calls."""
    preference, flow = request.preference, request.flow
    for name in sorted(gold.used):
        facet = flow.facet(name)
        others = [{**preference.values, name: value} for value in (*facet.values, *facet.beyond)]
        changed = [replace(preference, values=values) for values in others if flow.consistent(values)]
        if all(request.gold(other).same_calls(gold) for other in changed):
            return f"idle facet: no other value of {name} changes the calls"
    return None


def _check_lookups(request: FlowRequest, gold: Gold) -> str | None:
    """Require that each lookup of a rule matters: another result leads to other calls."""
    last = request.flow.last
    for part in last.tests if isinstance(last, If) else last.arguments.values():
        if not isinstance(part, Above | Among | Bands):
            continue
        others = (
            request.gold(overrides={part.lookup: {part.column: value}})
            for value in _possible_results(part, request.preference)
        )
        if all(other.same_calls(gold) for other in others):
            return f"idle lookup: no other result of {part.lookup} changes the calls"
    return None


def _possible_results(part: Above | Among | Bands, preference: Preference) -> list[Value]:
    """Return possible results of a lookup, with at least one for each outcome of the rule."""
    if isinstance(part, Among):
        return list(part.outcomes)
    limits = (part.limit,) if isinstance(part, Above) else part.limits
    return [float(preference.values[limit]) + side for limit in limits for side in (-1, 1)]


def _check_margins(_: FlowRequest, gold: Gold) -> str | None:
    """Refuse results so close to a limit that the decision is debatable."""
    for gap, margin in gold.gaps:
        if gap < margin:
            return f"close number: a looked-up number is {gap} from a limit; it must be at least {margin} from it"
    return None


def _check_guess(request: FlowRequest, gold: Gold) -> str | None:
    """Refuse requests whose last call is also reached by always taking the first option."""
    guess = request.gold(request.flow.unknowing(request.preference), blind=True)
    if guess.calls and compare(guess.plain()[-1:], gold.plain()[-1:]).accuracy:
        return "guessed: an agent that always takes the first option makes the same last call"
    return None
