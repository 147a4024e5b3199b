"""Descriptions of flows, facets, requests and tools for writers, and an example of a session of each kind."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from ..executor import execute
from ..flows import FLOWS, FlowError, find_request
from ..tools import TOOLS, Value
from ..world import World
from .asking import day_phrases
from .phrases import phrases
from .scripted import drawn_resident
from .sessions import REQUESTS, SIZE, errand_scripts, errand_turns, told_turns
from .source import ApolloSession, PreferenceForm

_ELSEWHERE = 10_000
"""A user number beyond all users: examples are about another person."""


def about_flow(flow: str) -> str:
    """Return a flow's description."""
    return " ".join(str(REQUESTS["flows"][flow]["about"]).split())


def facets_shown(flow: str, values: Mapping[str, Value]) -> list[dict[str, Any]]:
    """Return a preference's facets: the question, all possible values, and the preferred value, as JSON."""
    return [
        {
            "name": name,
            "about": facet.asks[0],
            "plain": facet.plain,
            "words": [f"{_json(value)}: {facet.names[value][0]}" for value in FLOWS[flow].facet(name).values],
            "wanted": _json(values[name]),
        }
        for name, facet in phrases()[flow].items()
        if name in values
    ]


def values_text(values: Mapping[str, Value]) -> str:
    """Return values as readable text: `cabin premium, insurance true`."""
    return ", ".join(f"{name} {_json(value)}" for name, value in values.items())


def occasion(slots: Mapping[str, Value]) -> dict[str, str]:
    """Return a request's slots as `key: value` pairs, with the date also in words."""
    shown = {name: str(value) for name, value in slots.items()}
    return {**shown, **({"day": day_phrases("", shown["date"])[0]} if "date" in shown else {})}


def definitions(tools: Sequence[str]) -> list[str]:
    """Return tools as JSON, for writers of their calls."""
    return [_json(TOOLS[name].definition()["function"]) for name in tools]


@lru_cache(maxsize=256)
def example_session(world_seed: int, flow: str, form: PreferenceForm) -> tuple[str, ...]:
    """Return another person's session that states a preference for a flow in a form, with its calls and outputs."""
    world, draw = World(world_seed), random.Random(f"example {flow}")
    resident = drawn_resident(world, 0, _ELSEWHERE)
    while True:
        try:
            request, gold = find_request(world, FLOWS[flow].preference(draw), resident, draw)
            break
        except FlowError:
            continue
    return _lines(told_turns(request, gold, form, random.Random(f"example {flow} {form}")))


@lru_cache(maxsize=256)
def example_errand(world_seed: int, tool: str) -> tuple[str, ...]:
    """Return another person's session about an unrelated tool."""
    script, draw, world = errand_scripts(tool)[0], random.Random(f"example {tool}"), World(world_seed)
    while True:
        lines = _lines([*errand_turns(TOOLS[tool], script, {}, draw, partial(execute, world))])
        if -(-len("\n".join(lines)) // 4) in SIZE:
            return lines


def _lines(turns: Sequence[Any]) -> tuple[str, ...]:
    return ApolloSession(id="example", user="nobody", kind="unrelated", topic="", turns=tuple(turns)).lines


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
