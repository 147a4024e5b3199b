"""The scripted source, which is deterministic for a seed, and descriptions and examples for writing models."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from dialoom.personas.apollo.calls import TOOLS, Value, json_text
from dialoom.personas.apollo.executor import execute
from dialoom.personas.apollo.flows import FLOWS, Flow, FlowError, FlowPair, Resident, find_request, find_sets
from dialoom.personas.apollo.world import CITIES, World

from .checks import check_pair, check_unrelated_session, find_leaking_place, list_day_phrases, write_query
from .phrases import load_content, phrases, telltale_words
from .sessions import (
    REQUESTS,
    SCRIPTS,
    SESSION_TOKENS,
    build_preference_turns,
    build_unrelated_sessions,
    generate_errand_turns,
    list_flow_tools,
)
from .source import (
    FORMS,
    ApolloPair,
    ApolloSession,
    ApolloUser,
    PreferenceForm,
    QueryKind,
    stems,
)

PEOPLE = load_content("people")["people"]
MAX_USERS = len(PEOPLE)


def draw_users(world: World, count: int, seed: int) -> list[ApolloUser]:
    """Return the first `count` people, each in a city. No address contains a word that reveals a preference."""
    return [
        ApolloUser(id=format_user_id(number), **person, **draw_resident(world, seed, number)._asdict())
        for number, person in enumerate(PEOPLE[:count], start=1)
    ]


def format_user_id(number: int) -> str:
    """Return the id of the user with a given number."""
    return f"u{number:02}"


def draw_resident(world: World, seed: int, number: int) -> Resident:
    """Draw a user's city, home and work."""
    draw = random.Random(f"users {seed} {number}")
    city = draw.randrange(len(CITIES))
    telltale = telltale_words()
    places = [place.name for place in world.places(city) if place.is_address and not telltale & stems(place.name)]
    return Resident(CITIES[city], *draw.sample(places, 2))


SETS_PER_FLOW, PAIRS_PER_SET, ERRANDS_PER_TOOL = 3, 4, 3
_EXPLICIT_PER_DOZEN = 5
_MAX_TRIES = 50


class UserPart(NamedTuple):
    """The parts of a source that belong to a user.

    Attributes:
        sessions: All sessions.
        pairs: The pairs of all flows for which pairs were found.
        left_out: The reasons why the other flows have no pairs.
    """

    sessions: list[ApolloSession]
    pairs: list[ApolloPair]
    left_out: dict[str, str]


def build_user_part(world: World, user: ApolloUser, pairs_of_set: int, errands: int, seed: int) -> UserPart:
    """Return a user's sessions and pairs, which do not depend on other users.

    Raises:
        PairError: If an unrelated session does not pass its checks.
    """
    part = UserPart([], [], {})
    for place, flow in enumerate(FLOWS.values()):
        try:
            made = list(_build_user_pairs(world, user, flow, pairs_of_set, place + int(user.id[1:]), seed))
        except FlowError as error:  # no request from this home and work distinguishes preferences
            part.left_out[flow.name] = str(error)
            continue
        part.pairs.extend(pair for pair, _ in made)
        part.sessions.extend(session for _, session in made)
    for session in build_unrelated_sessions(world, user, errands, seed):
        if (refused := check_unrelated_session(world, session)) is not None:
            raise PairError(f"session {session.id}: {refused}")
        part.sessions.append(session)
    return part


class PairError(FlowError):
    """A pair or session for which no wording passes the checks.

    The message states the pair or session, and the reason.
    """


def _build_user_pairs(
    world: World, user: ApolloUser, flow: Flow, pairs_of_set: int, turn: int, seed: int
) -> Iterator[tuple[ApolloPair, ApolloSession]]:
    """Yield a user's pairs for a flow, with their sessions."""
    draw = random.Random(f"pairs {seed} {user.id} {flow.name}")
    labels = draw_pair_labels(SETS_PER_FLOW * pairs_of_set, turn, draw)
    sets = find_sets(
        world, flow, user.resident, draw, SETS_PER_FLOW, pairs_of_set, partial(find_leaking_place, flow.name)
    )
    for set_, found in enumerate(sets, start=1):
        for number, one in enumerate(found, start=1):
            form, kind = labels.pop()
            yield _word_pair(world, user, one, f"{user.id}-{flow.name}-{set_}-{number}", form, kind, draw)


def draw_pair_labels(count: int, turn: int, draw: random.Random) -> list[tuple[PreferenceForm, QueryKind]]:
    """Return forms and query kinds for pairs.

    Of twelve pairs, five are explicit, and each implicit form occurs at least once. Half of the queries are reactive.
    """
    implicit = FORMS[1:]
    explicit = max(1, count * _EXPLICIT_PER_DOZEN // 12)
    forms = [FORMS[0]] * explicit + [implicit[(turn + n) % len(implicit)] for n in range(count - explicit)]
    kinds: tuple[QueryKind, QueryKind] = ("reactive", "proactive")
    labels = [(form, kinds[(turn + n) % 2]) for n, form in enumerate(forms)]
    draw.shuffle(labels)
    return labels


def _word_pair(
    world: World,
    user: ApolloUser,
    found: FlowPair,
    name: str,
    form: PreferenceForm,
    kind: QueryKind,
    draw: random.Random,
) -> tuple[ApolloPair, ApolloSession]:
    """Return a pair and its session, worded so that they pass the checks."""
    request, told_gold, asked, gold = found
    refused = None
    for _ in range(_MAX_TRIES):
        session = ApolloSession(
            id=f"s-{name}",
            user=user.id,
            kind="preference",
            topic=f"{request.flow.domain}/{told_gold.calls[0].name}",
            turns=tuple(build_preference_turns(request, told_gold, form, draw)),
        )
        pair = ApolloPair(
            id=name,
            user=user.id,
            flow=asked.flow.name,
            preference_set=int(name.split("-")[-2]),
            form=form,
            query_kind=kind,
            kind=asked.flow.kind,
            query=write_query(asked.flow.name, kind, user.name, user.gender, asked.slots, draw),
            today=str(asked.slots["today"]),
            slots=dict(asked.slots),
            values=dict(asked.preference.values),
            order=asked.preference.order,
            gold=gold.calls,
            tools=list_flow_tools(asked.flow),
            session=session.id,
        )
        if (refused := check_pair(world, user, pair, session)) is None:
            return pair, session
    raise PairError(
        f"pair {name}: none of {_MAX_TRIES} wordings passes the checks; the last one was rejected: {refused}"
    )


_EXAMPLE_USER_NUMBER = 10_000
"""A number beyond those of all users, so that examples are about another person."""


def describe_flow(flow: str) -> str:
    """Return a flow's description."""
    return " ".join(str(REQUESTS["flows"][flow]["about"]).split())


def describe_facets(flow: str, values: Mapping[str, Value]) -> list[dict[str, Any]]:
    """Return a preference's facets: the question, all possible values, and the preferred value, as JSON."""
    return [
        {
            "name": name,
            "about": facet.asks[0],
            "plain": facet.plain,
            "words": [f"{json_text(value)}: {facet.names[value][0]}" for value in FLOWS[flow].facet(name).values],
            "wanted": json_text(values[name]),
        }
        for name, facet in phrases()[flow].items()
        if name in values
    ]


def format_values(values: Mapping[str, Value]) -> str:
    """Return values as readable text: `cabin premium, insurance true`."""
    return ", ".join(f"{name} {json_text(value)}" for name, value in values.items())


def format_slots(slots: Mapping[str, Value]) -> dict[str, str]:
    """Return a request's slots as `key: value` pairs. Dates are also written out."""
    shown = {name: str(value) for name, value in slots.items()}
    return {**shown, **({"day": list_day_phrases("", shown["date"])[0]} if "date" in shown else {})}


def format_definitions(tools: Sequence[str]) -> list[str]:
    """Return tools as JSON, for models that write calls of these tools."""
    return [json_text(TOOLS[name].definition()["function"]) for name in tools]


@lru_cache(maxsize=256)
def build_example_session(world_seed: int, flow: str, form: PreferenceForm) -> tuple[str, ...]:
    """Return another person's session that states a preference for a flow in a form, with its calls and outputs."""
    world, draw = World(world_seed), random.Random(f"example {flow}")
    resident = draw_resident(world, 0, _EXAMPLE_USER_NUMBER)
    while True:
        try:
            request, gold = find_request(world, FLOWS[flow].preference(draw), resident, draw)
            break
        except FlowError:
            continue
    return _format_turns(build_preference_turns(request, gold, form, random.Random(f"example {flow} {form}")))


@lru_cache(maxsize=256)
def build_example_errand(world_seed: int, tool: str) -> tuple[str, ...]:
    """Return another person's session about an unrelated tool."""
    script, draw, world = SCRIPTS[tool][0], random.Random(f"example {tool}"), World(world_seed)
    while True:
        lines = _format_turns([*generate_errand_turns(TOOLS[tool], script, {}, draw, partial(execute, world))])
        if -(-len("\n".join(lines)) // 4) in SESSION_TOKENS:
            return lines


def _format_turns(turns: Sequence[Any]) -> tuple[str, ...]:
    return ApolloSession(id="example", user="nobody", kind="unrelated", topic="", turns=tuple(turns)).lines
