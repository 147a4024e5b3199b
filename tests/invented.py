"""An invented person and task in the layout of the release, for tests to use and to damage."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

TWO_ASSISTANTS = """
async def user(messages):
    return f"Message {len(messages)}. TERMINATE" if len(messages) > 2 else "An alarm, please."

async def plain(messages):
    return "Set. worth 2"

async def kind(messages):
    return "Set, as you like it. worth 3"

async def judge(messages):
    if "Was this goal reached" in str(messages):
        return '{"verdict": true}'
    return '{"score": %d}' % (3 if "worth 3" in str(messages) else 2)
"""
"""Players of PersonaLens: two assistants to which the judge gives different scores."""

DEMOGRAPHICS = {
    "user_id": "user7",
    "age": "35-44 years old",
    "gender": "Female",
    "employment_status": "Working part-time",
    "education": "Apprenticeship",
    "marital_status": "Married",
    "english_proficiency": "Fluent",
    "ethnicity": "Mixed",
    "religion": "None",
    "birth_country": "Chile",
    "reside_country": "Portugal",
}
PROFILE: dict[str, Any] = {
    "affinities": {
        "Alarm": {"Wake-up Time": "5:45 AM", "Alarm Sound": "church bells"},
        "Restaurants": {"Favourite Cuisines": ["Peruvian", "Goan"], "Dietary Needs": []},
    },
    "demographics": DEMOGRAPHICS,
    "interests": {"Alarm": 1, "Restaurants": 1},
    "interactions": {
        "Alarm": "She bakes, so her alarm rings at 5:45 AM, with church bells; anything softer she sleeps through.",
        "Restaurants": "Twice she asked for Peruvian places with a counter, once for Goan food near the river.",
    },
}
SITUATION = {
    "Location": "Porto, Portugal",
    "Device": "Smartphone",
    "Time of Day": "Evening",
    "Day of the Week": "Thursday",
    "Environment": "On the tram",
}
ALARM: dict[str, Any] = {
    "Task Description": "The user wants an alarm for tomorrow's early shift.",
    "User Intent": "Get an alarm set for tomorrow's early shift, at your usual time and with the sound you wake to.",
    "Task Goal": "An alarm is set for the user's usual time with the user's sound.",
    "Relevant Affinity Types": ["Wake-up Time", "Alarm Sound"],
    "task_id": "SD-Alarm-task-1",
    "situations": SITUATION,
    "Relevant Domains": ["Alarm"],
}
BOTH: dict[str, Any] = {
    "Task Description": "The user wants a table for dinner and an alarm that still lets her get up.",
    "User Intent": "Book dinner for two tonight and set your alarm for the morning after.",
    "Task Goal": "A table is booked and an alarm is set.",
    "Relevant Affinity Types": ["Favourite Cuisines", "Wake-up Time"],
    "task_id": "MD-task-1",
    "situations": SITUATION,
    "Relevant Domains": ["Restaurants", "Alarm"],
}


def profile() -> dict[str, Any]:
    """Return a copy of the profile that may be changed."""
    return copy.deepcopy(PROFILE)


def write_release(
    root: Path, profile: dict[str, Any] | None = None, tasks: list[dict[str, Any]] | None = None, users: int = 1
) -> Path:
    """Write a release of `users` people (user7, user8, ...), each with an alarm task and a task of two domains.

    Non-ASCII letters are escaped, so that it can contain lone surrogates.
    """
    chosen = [ALARM, BOTH] if tasks is None else tasks
    for number in range(7, 7 + users):
        content = copy.deepcopy(profile or PROFILE)
        if users > 1:
            content["demographics"]["user_id"] = f"user{number}"
        folder = root / "data" / "profile" / f"user{number}"
        folder.mkdir(parents=True)
        (folder / "profile.json").write_text(json.dumps(content), encoding="utf-8")
        by_key = {f"Task {index}": task for index, task in enumerate(chosen, start=1)}
        (folder / "tasks.json").write_text(json.dumps(by_key), encoding="utf-8")
    return root
