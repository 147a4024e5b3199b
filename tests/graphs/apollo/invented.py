"""A small source for tests: one user, pairs for some flows, and unrelated sessions."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel

from dialoom.outputs import folder_output, format_json_line
from dialoom.personas.apollo import CITIES, PREFERENCE_DOMAINS, TOOLS, Tool, World, execute
from dialoom.personas.apollo.calls import Value
from dialoom.personas.apollo.flows import FLOWS, FlowPair, Gold, find_sets
from dialoom.personas.apollo.source import (
    ApolloMeta,
    ApolloPair,
    ApolloSession,
    ApolloSource,
    ApolloUser,
    PastCall,
    Speech,
)
from dialoom.personas.apollo.source.source import META, PAIRS, SESSIONS, USERS

USER = "u1"
WORLD = World(0)
FLOW_NAMES = ("commute-rule", "flight", "music")


def source(flows: Sequence[str] = FLOW_NAMES, unrelated: int = 40, sets: int = 1) -> ApolloSource:
    """Return a source of one user, with `sets` pairs for each flow, each of a preference, and unrelated sessions."""
    home, work = [place.name for place in WORLD.places(0) if place.is_address][:2]
    user = ApolloUser(
        id=USER,
        name="Nora",
        gender="woman",
        age=40,
        persona="Mends clocks.",
        interests={},
        city=CITIES[0],
        home=home,
        work=work,
    )
    made = [
        (f"{flow}-{number}", number, pair)
        for flow in flows
        for number, (pair,) in enumerate(_sets(flow, user, sets), start=1)
    ]
    pairs = [_pair(*each) for each in made]
    telling = [_telling(name, found) for name, _, found in made]
    others = [_unrelated(number) for number in range(unrelated)]
    meta = ApolloMeta(seed=0, world=WORLD.hash)
    return ApolloSource.of([user], [*telling, *others], pairs, meta)


def write_source(folder: Path, made: ApolloSource) -> None:
    """Write a source to a folder, or add its files to those of an equal source."""
    files: dict[str, Iterable[BaseModel]] = {
        USERS: made.users.values(),
        SESSIONS: made.sessions.values(),
        PAIRS: made.pairs.values(),
        META: [made.meta],
    }
    with folder_output(folder) as written:
        for name, models in files.items():
            with written.text(name) as file:
                file.writelines(format_json_line(model.model_dump()) for model in models)


def write(folder: Path, made: ApolloSource | None = None) -> Path:
    """Write a source to a folder."""
    write_source(folder, made or source())
    return folder


def _sets(flow: str, user: ApolloUser, sets: int) -> list[list[FlowPair]]:
    return find_sets(WORLD, FLOWS[flow], user.resident, random.Random(flow), sets, 1)


def _pair(name: str, number: int, found: FlowPair) -> ApolloPair:
    flow, asked = found.asked.flow, found.asked
    tools = dict.fromkeys(call.name for call in found.asked_gold.calls)
    return ApolloPair(
        id=name,
        user=USER,
        flow=flow.name,
        preference_set=number,
        form="explicit",
        query_kind="reactive",
        kind=flow.kind,
        query=f"Do it for me: {json.dumps(dict(asked.slots))}.",
        today=str(asked.slots["today"]),
        slots=dict(asked.slots),
        values=dict(asked.preference.values),
        order=asked.preference.order,
        gold=found.asked_gold.calls,
        tools=tuple(tools),
        session=f"s-{name}",
    )


def _telling(name: str, found: FlowPair) -> ApolloSession:
    wanted = ", ".join(f"{facet} {value}" for facet, value in found.told.preference.values.items())
    past, flow = _past(found.told_gold), found.told.flow
    turns = (Speech(speaker="user", text=f"I want this: {wanted}."), *past)
    return ApolloSession(
        id=f"s-{name}", user=USER, kind="preference", topic=f"{flow.domain}/{past[0].name}", turns=turns
    )


def _past(gold: Gold) -> tuple[PastCall, ...]:
    return tuple(
        PastCall(name=call.name, arguments=dict(call.arguments), output=output)
        for call, output in zip(gold.calls, gold.outputs, strict=True)
    )


def _unrelated(number: int) -> ApolloSession:
    """Return a session of filler text and a call of a tool that needs no text."""
    tool = _SIMPLE[number % len(_SIMPLE)]
    call = {"name": tool.name, "arguments": _some_arguments(tool, number)}
    output = execute(WORLD, call)
    turns = (
        Speech(speaker="user", text=f"Something else, number {number}: " + "well and so on and so forth, " * 8),
        PastCall(name=tool.name, arguments=_some_arguments(tool, number), output=output),
        Speech(speaker="assistant", text="There you are."),
    )
    return ApolloSession(id=f"n{number}", user=USER, kind="unrelated", topic=f"{tool.domain}/{tool.name}", turns=turns)


def _some_arguments(tool: Tool, number: int) -> dict[str, Value]:
    return {
        name: parameter.of[number % len(parameter.of)] if parameter.of else int(parameter.least or 0) + 1
        for name, parameter in tool.parameters.items()
    }


_SIMPLE = [
    tool
    for tool in TOOLS.values()
    if tool.domain not in PREFERENCE_DOMAINS
    and all(parameter.of or parameter.least is not None for parameter in tool.parameters.values())
    and "from_station" not in tool.parameters
]
