"""Small pairs and a pool for tests, in the release's layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TOPICS = ("boats", "hats", "lamps")


def row(topic: str, index: int) -> dict[str, Any]:
    """Return the fields that all files of a topic have in a row."""
    return {
        "preference": f"I never want {topic} of kind {index}.",
        "question": f"Which {topic} would you buy, number {index}?",
        "explanation": f"Kind {index} is the usual one.",
    }


def rows(topic: str, form: str, count: int = 2) -> list[dict[str, Any]]:
    """Return a topic's rows in the file of a form, or of the options (`mcq`)."""
    found = []
    for index in range(count):
        each = row(topic, index)
        if form == "explicit":
            each["conflicting_preference"] = f"I only want {topic} of kind {index}."
        elif form == "choice":
            each["conversation"] = {
                "query": f"Which {topic} are there?",
                "assistant_options": "One, two, three or four.",
                "user_selection": f"Not kind {index}.",
                "assistant_acknowledgment": "Fine.",
            }
        elif form == "persona":
            each["conversation"] = {
                str(turn): {"user": f"Turn {turn} of {topic} {index}.", "assistant": f"Yes, {turn}."}
                for turn in range(3)
            }
        else:
            each["classification_task_options"] = [f"{topic} {index} {word}" for word in ("right", "b", "c", "d")]
        found.append(each)
    return found


FOLDERS = {
    "explicit": "explicit_preference",
    "choice": "implicit_preference/choice-based",
    "persona": "implicit_preference/persona-driven",
    "mcq": "mcq_options",
}


def write_pairs(folder: Path, count: int = 2) -> Path:
    """Write all forms of all topics."""
    for form, name in FOLDERS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for topic in TOPICS:
            write(folder / name / f"{topic}.json", rows(topic, form, count))
    return folder


def write_pool(path: Path, turns: int = 12, a_chat: int = 5) -> Path:
    """Write chats of `turns` turns in all; each turn contains its number."""
    said = [
        {"role": role, "content": f"{word} t{turn}"}
        for turn in range(turns)
        for role, word in (("user", "Ask"), ("assistant", "Say"))
    ]
    chats = [{"conversation": said[start : start + 2 * a_chat]} for start in range(0, len(said), 2 * a_chat)]
    return write(path, chats)


def write(path: Path, value: Any) -> Path:
    """Write a value as JSON."""
    path.write_text(json.dumps(value))
    return path
