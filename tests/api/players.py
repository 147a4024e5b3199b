"""Fast importable players, and the settings of a small run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialoom import PlaySettings, Run
from dialoom.prompts import ChatMessage

Messages = list[ChatMessage]


async def user(messages: Messages) -> str:
    """Return one of three lines, of which the last one ends the dialogue."""
    number = sum(message["role"] == "assistant" for message in messages)
    return f"Line {number} of mine." + (" TERMINATE" if number >= 2 else "")


async def assistant(messages: Messages) -> str:
    """Repeat the last message."""
    return f"Reply to: {messages[-1]['content']}"


async def judge(messages: Messages) -> str:
    """Return the same verdict or score for every request."""
    if "Was this goal reached" in messages[-1]["content"]:
        return '{"verdict": true, "explanation": "it is done"}'
    return '{"score": 3, "explanation": "fair"}'


async def sterner(messages: Messages) -> str:
    """Return a score one lower than the other judge's."""
    return (await judge(messages)).replace("3", "2")


CAST = {"user": user, "assistant": assistant, "judge": judge}
NAMES = {role: f"python:{__name__}:{role}" for role in CAST}


def run_settings(release: Path, **more: Any) -> PlaySettings:
    """Return the settings of a run of fast players; `more` overrides them or adds `options` and `models`."""
    options: Mapping[str, Any] = {"profiles": release, **more.pop("options", {})}
    models: Mapping[str, Any] = {**CAST, **more.pop("models", {})}
    return {"options": options, "models": models, **more}  # type: ignore[typeddict-item]


def outcome_texts(run: Run) -> list[str]:
    """Return the ids and outcomes of a run as text, to compare runs."""
    return [f"{episode.id} {episode.outcome.model_dump_json()}" for episode in run.episodes()]
