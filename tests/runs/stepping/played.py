"""Runs to step through, and queries of their files."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from dialoom import Budget, Stepper, step
from dialoom.runs.stepping import Stop
from tests.conftest import ROOT, Command, MadeOnce, write_quick_players
from tests.invented import write_release

T = TypeVar("T")

EXAMPLE = f"{ROOT / 'docs/examples/twenty_questions/recipe.py'}:RECIPE"

RECIPES: dict[str, list[object]] = {
    "personalens": ["personalens", "--limit", 1],
    "aloe": ["aloe", "--limit", 1, "--rounds", 3, "--branching", 1, "--verify-pairs"],
    "aloe-eval": ["aloe-eval", "--limit", 1, "--rounds", 3],
    "persona-pool": ["persona-pool", "--kind", "personality", "--target", 75, "--batch", 20],
    "a file": [EXAMPLE, "--words", "piano", "--questions", 4],
}
"""A small run of each recipe, with as many parallel calls as it can have."""


UNBOUNDED = Budget(max_calls=None)
"""A budget without a limit of calls, which replaces that of a run."""


class Calls(NamedTuple):
    """The counts of a run's ledger."""

    rows: int
    replays: int


def play(made_once: MadeOnce, recipe: str) -> Path:
    """Return the path of a finished run of a recipe."""
    return made_once(_play, recipe) / "run.db"


def _play(dialoom: Command, folder: Path, recipe: str) -> None:
    cast = _quiz_players(folder) if recipe == "a file" else []
    dialoom("run", *RECIPES[recipe], *cast, "--seed", 3, "-o", "run.db")


def dialogue(made_once: MadeOnce) -> Path:
    """Return the path of a finished run of one PersonaLens dialogue between quick players."""
    return made_once(_dialogue) / "run.db"


def _dialogue(dialoom: Command, folder: Path) -> None:
    write_release(folder / "release")
    dialoom("run", "personalens", "--profiles", "release", "--limit", 1, *write_quick_players(folder), "-o", "run.db")


def _quiz_players(folder: Path) -> list[str]:
    (folder / "quiz.py").write_text(
        """
async def guesser(messages):
    asked = sum(message["role"] == "assistant" for message in messages)
    return "Is it PIANO?" if asked == 2 else f"Is it bigger than {asked + 1} chairs?"

async def keeper(messages):
    return "You have found it." if "PIANO" in messages[-1]["content"] else "No."
"""
    )
    return [part for role in ("guesser", "keeper") for part in ("--model", f"{role}=python:quiz:{role}")]


def call_counts(path: Path) -> Calls:
    """Return the number of calls in a run's file and how often they were replayed."""
    with closing(sqlite3.connect(path)) as connection:
        return Calls(*connection.execute("SELECT count(*), sum(replays) FROM calls").fetchone())


def called_roles(path: Path, after: int = 0) -> list[str]:
    """Return the roles of the calls after the first `after`, in order."""
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT role FROM calls WHERE id > ? ORDER BY id", (after,))]


def stepping(path: Path, act: Callable[[Stepper], Awaitable[T]], **options: Any) -> T:
    """Return the result of an action in a stepper on a run's first scenario."""

    async def within() -> T:
        async with step(path, 1, **options) as stepper:
            return await act(stepper)

    return asyncio.run(within())


def shown(stop: Stop) -> dict[str, Any]:
    """Return what two stops with the same history have in common."""
    return {
        "ran": stop.ran,
        "next": stop.next,
        "why": stop.why,
        "changes": stop.changes,
        "counts": stop.counts,
        "state": stop.state,
        "transcript": stop.transcript,
        "calls": [(call.node, call.ordinal, call.ask, call.role, call.messages, call.reply) for call in stop.calls],
    }


def shown_stops(stops: list[Stop]) -> list[dict[str, Any]]:
    """Return the stops without LangGraph's marks of a rewind."""
    return [shown(stop) for stop in stops if stop.kind != "fork"]
