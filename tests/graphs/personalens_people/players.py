"""Scripted players that make people for a schema of two domains, with replies that tests can replace."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dialoom
from dialoom.personas import PersonaLensRelease

SCHEMA: list[dict[str, Any]] = [
    {
        "domain": "hotels",
        "description": "A roof for the night.",
        "affinities": [
            {
                "name": "Stars",
                "is_categorical": True,
                "has_multiple_values": False,
                "possible_values": ["two", "three"],
            },
            {"name": "Needs", "is_categorical": True, "has_multiple_values": True, "possible_values": ["Lift", "cot"]},
        ],
    },
    {"domain": "Beekeeping", "affinities": [{"name": "Hive", "is_categorical": False, "has_multiple_values": False}]},
]


def part(text: str, tag: str) -> str:
    """Return the text of a part of a prompt."""
    found = re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.DOTALL)
    return found[1].strip() if found else ""


def domain_of(text: str) -> str:
    """Return the first domain that a prompt names."""
    found = re.search(r'domain="([^"]*)"|<domain name="([^"]*)"', text)
    return "".join(filter(None, found.groups())) if found else ""


class Players:
    """A player of all roles that counts and records requests, and answers by kind.

    Args:
        instead: Replies by kind: a value, or a function of the request's text.
    """

    def __init__(self, **instead: Any) -> None:
        self.asked: Counter[str] = Counter()
        self.received: list[tuple[str, str]] = []
        self._instead = instead

    async def __call__(self, messages: list[Any]) -> str:
        text = "\n".join(message["content"] for message in messages)
        kind = _kind(text)
        self.asked[kind] += 1
        self.received.append((kind, text))
        said = self._instead.get(kind, _USUAL[kind])
        said = said(text) if callable(said) else said
        return said if isinstance(said, str) else json.dumps(said)


def _kind(text: str) -> str:
    found = re.search(r'JSON object of[^"]*"(\w+)"', text)
    kind = found[1] if found else "summary"
    return "across" if kind == "tasks" and '"domains" (a list)' in text else kind


def preferences(text: str) -> dict[str, Any]:
    """Return the preferences that a prompt asks for, as the schema requires."""
    if domain_of(text) == "Beekeeping":
        return {"preferences": [{"name": "Hive", "values": [f"the hive of a {part(text, 'demographics')[:40]}"]}]}
    return {"preferences": [{"name": "stars", "values": ["TWO"]}, {"name": "Needs", "values": ["lift", "cot"]}]}


def task(number: int, preferences: list[str], domains: list[str] | None = None) -> dict[str, Any]:
    """Return a task."""
    texts = {key: f"{key} {number}" for key in ("description", "intent", "goal")}
    return {**texts, "preferences": preferences, "domains": domains or []}


_USUAL: Mapping[str, Any] = {
    "domains": {"domains": ["Beekeeping", "Hotels"]},
    "preferences": preferences,
    "contradictions": {"contradictions": []},
    "summary": lambda text: f"They asked for a room or a hive. {domain_of(text)}.",
    "passages": {"passages": []},
    "tasks": lambda text: {"tasks": [task(1, ["Hive" if domain_of(text) == "Beekeeping" else "STARS"])]},
    "across": {"tasks": [task(9, ["Stars", "Hive"], ["Hotels", "Beekeeping"])]},
    "location": {
        "location": "Lyon",
        "device": "Laptop",
        "time_of_day": "Night",
        "day_of_week": "Friday",
        "environment": "Quiet",
    },
}


def write_schema(folder: Path, schema: Any = SCHEMA) -> Path:
    """Write the schema to a file."""
    path = folder / "schema.json"
    path.write_text(json.dumps(schema))
    return path


def made(folder: Path, players: Players, others: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """Play a run, by default over one person."""
    chosen = {"people": 1, "affinity_schema": write_schema(folder), **options}
    models = {"writer": players, "judge": players, **(others or {})}
    return dialoom.play("personalens-people", path=folder / "run.db", options=chosen, models=models)


def release_of(run: dialoom.Run, folder: Path) -> PersonaLensRelease:
    """Export a run's people and read the folder."""
    run.export("profiles", folder / "made")
    return PersonaLensRelease(folder / "made")


def checks(run: dialoom.Run) -> dict[str, tuple[Any, ...]]:
    """Return the report's counts (rejected, dropped, unparsed) of each check that found something."""
    tables = [table for table in run.report().tables if table.name == "rejected"]
    rows = [dict(zip(table.columns, row, strict=True)) for table in tables for row in table.rows]
    return {str(row["check"]): tuple(row.get(name, 0) for name in ("rejected", "dropped", "unparsed")) for row in rows}


def twins(run: dialoom.Run) -> Any:
    """Return the number of people whom the report calls twins."""
    (table,) = run.report(tables=["people"]).tables
    return dict(zip(table.columns, table.rows[0], strict=True))["twins"]
