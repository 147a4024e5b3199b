"""The tables: how much was made, and what each check looked at, found wrong, left out and could not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.statistics import share_of
from dialoom.graphs.reporting.table import Table

from .exports import is_complete
from .similar import Twins

_CHECKS: Mapping[str, str] = {
    "interests": "people",
    "form": "domains",
    "consistency": "people",
    "summary": "domains",
    "tasks": "tasks",
    "situation": "tasks of people",
    "twin": "people",
}
"""What each check looks at."""


def tables(episodes: Iterable[Episode]) -> list[Table]:
    """The people, and the checks."""
    made: Counter[str] = Counter()
    looked: Counter[str] = Counter()
    results: dict[str, Counter[str]] = {check: Counter() for check in _CHECKS}
    shared: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    written: dict[str, int] = {}
    twins: Twins | None = None
    for episode in episodes:
        if episode.state != "done":
            continue
        details = episode.outcome.details
        made["people"] += 1
        looked.update(details["looked"])
        written |= details["written"]
        shared |= {tuple(note.values()): note for note in details["task_notes"]}
        _count(results, details["notes"])
        if not is_complete(episode):
            made["incomplete"] += 1
            continue
        twins = twins or Twins(details["threshold"])
        looked["twin"] += 1
        if twins.twin_of(episode.facets["user"], details):
            results["twin"].update(("wrong", "left out"))
            continue
        made["domains"] += episode.outcome.counts["domains"]
        made.update("single" if len(task["domains"]) == 1 else "multi" for task in details["tasks"])
    looked["tasks"] = sum(written.values())
    for note in shared.values():
        _count(results, [note])
    return [_people(made, results), _checks(looked, results)] if made else []


def _count(results: Mapping[str, Counter[str]], notes: Iterable[Mapping[str, Any]]) -> None:
    """Count a person's notes: of what is wrong the first round. What a check is about, counts once."""
    counted = [note for note in notes if note["round"] == 1 or note["result"] == "left out"]
    for check, result in {(each["check"], each["result"]) for each in counted if _CHECKS[each["check"]] == "people"}:
        results[check][result] += 1
    for note in counted:
        if _CHECKS[note["check"]] != "people":
            results[note["check"]][note["result"]] += 1


def _people(made: Counter[str], results: Mapping[str, Counter[str]]) -> Table:
    table = Table(
        "people",
        "People, and what belongs to them",
        ["people", "incomplete", "twins", "left", "domains each", "single-domain", "multi-domain"],
    )
    out = made["people"] - made["incomplete"] - results["twin"]["left out"]
    each = made["domains"] / out if out else None
    twins = results["twin"]["left out"]
    table.rows.append([made["people"], made["incomplete"], twins, out, each, made["single"], made["multi"]])
    table.notes = [
        "Incomplete: nothing of theirs is whole, or no task is theirs. Single-domain, multi-domain: tasks of people, "
        "each of which makes a dialogue."
    ]
    return table


def _checks(looked: Counter[str], results: Mapping[str, Counter[str]]) -> Table:
    table = Table("checks", "What checks found", ["check", "of", "looked at", "wrong", "wrong %", "left out", "unread"])
    for check, unit in _CHECKS.items():
        count, n = results[check], looked[check]
        share = share_of(count["wrong"], n) if n else None
        table.rows.append([check, unit, n, count["wrong"], share, count["left out"], count["unread"]])
    table.notes = [
        "Wrong, at the first look, before anything was made again: a domain that there is not (interests); preferences "
        "not as the schema wants them (form), or ruled out by the demographics or each other (consistency); a summary "
        "with preferences that the person does not have; a task with preferences or domains that are not its own, or "
        "like another; a person too similar to somebody before (twin).",
        "Left out: in the end. Unread: replies that could not be read; what a judge's unread reply is about stays.",
    ]
    return table
