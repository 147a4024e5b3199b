"""Scripted players that build pairs: replies depend on the request, and tests can replace them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dialoom

Say = Callable[[str], Any]
WORDS = "heron otter lemon glacier piano canal violin thistle lantern barrel kettle saddle".split()


def part(text: str, tag: str) -> str:
    """Return the text of a part of a prompt."""
    found = re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.DOTALL)
    return found[1].strip() if found else ""


def pair(number: int) -> dict[str, str]:
    """Return a pair that passes all checks."""
    word = WORDS[number]
    return {
        "preference": f"I never touch a {word}.",
        "question": f"Which {word * 2} suits Rome in May?",
        "explanation": "x",
    }


class Players:
    """A player of all roles that counts requests and answers by kind.

    Args:
        instead: Replies by kind: a value, or a function of the request's text.
    """

    def __init__(self, **instead: Any) -> None:
        self.asked: Counter[str] = Counter()
        self._instead = instead

    async def __call__(self, messages: list[Any]) -> str:
        text = "\n".join(message["content"] for message in messages)
        kind = _kind(text)
        self.asked[kind] += 1
        said = self._instead.get(kind, _USUAL[kind])
        said = said(text) if callable(said) else said
        return said if isinstance(said, str) else json.dumps(said)

    def cast(self, **others: Any) -> dict[str, Any]:
        """Return the models of a run."""
        return {**dict.fromkeys(("writer", "answerer", "judge", "rater"), self), **others}


def _kind(text: str) -> str:
    if "Use no more than 300 words." in text:
        return "answer"
    if "Does the answer violate" in text:
        return "violates"
    name: str = re.findall(r'JSON object of[^"]*"(\w+)"', text)[-1]
    if name == "explanation":
        return "number" if "<persona " in text else "validity"
    kinds = {
        "items": "pairs",
        "discard": "rating",
        "assistant_options": "offer",
        "turns": "talk",
        "preference": "earlier",
    }
    return kinds.get(name, name)


def _talk(text: str) -> dict[str, Any]:
    passage = part(text, "preference")
    count = int(re.findall(r"exactly (\d+) turns", text)[0])
    turns = [{"user": f"Step {number}?", "assistant": "Yes."} for number in range(count)]
    turns[1]["user"] = f"Well. {passage} So much for that."
    return {"turns": turns, "passage": passage}


_USUAL: Mapping[str, Any] = {
    "pairs": lambda text: {
        "items": [pair(number) for number in range(int(re.findall(r"Write (\d+) new items", text)[0]))]
    },
    "validity": {"verdict": "valid"},
    "answer": "Take a heron, or two.",
    "violates": {"explanation": "so", "answer": "yes"},
    "rating": {"discard": False, "violation_probability": "high", "reasoning_difficulty": "high"},
    "query": {"query": "Which kinds are there?"},
    "options": {"options": ["The right one.", "One.", "Two.", "Three."]},
    "offer": {"assistant_options": "Four.", "user_selection": "The right one.", "assistant_acknowledgment": "Fine."},
    "number": {"number": 1},
    "talk": _talk,
    "earlier": {"preference": "I touch them all."},
}


def write_topics(folder: Path, *names: str) -> Path:
    """Write a file of topics."""
    path = folder / "topics.json"
    path.write_text(json.dumps([{"topic": name, "subtopics": ["big ones"]} for name in names]))
    return path


def built(
    folder: Path, players: Players, name: str = "run", models: Mapping[str, Any] | None = None, **options: Any
) -> Any:
    """Play a run over the topic `boats`, by default with one call for four pairs."""
    chosen = {"per_call": 4, "calls": 1, **options}
    if "drafts" not in chosen:
        chosen["topic_file"] = write_topics(folder, "boats")
    return dialoom.play(
        "prefeval-pairs", path=folder / f"{name}.db", options=chosen, models=players.cast(**(models or {}))
    )
