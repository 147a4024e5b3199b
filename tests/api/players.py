"""Quick players, which can be imported, and what a small run is told."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dialoom import PlaySettings, Run
from dialoom.prompts import ChatMessage

Messages = list[ChatMessage]


async def user(messages: Messages) -> str:
    """Three lines, the last one ending the dialogue."""
    said = sum(message["role"] == "assistant" for message in messages)
    return f"Line {said} of mine." + (" TERMINATE" if said >= 2 else "")


async def assistant(messages: Messages) -> str:
    """What was said to it."""
    return f"Reply to: {messages[-1]['content']}"


async def judge(messages: Messages) -> str:
    """The same of everyone."""
    if "Was this goal reached" in messages[-1]["content"]:
        return '{"verdict": true, "explanation": "it is done"}'
    return '{"score": 3, "explanation": "fair"}'


async def sterner(messages: Messages) -> str:
    """A point less than the other judge."""
    return (await judge(messages)).replace("3", "2")


CAST = {"user": user, "assistant": assistant, "judge": judge}
NAMES = {role: f"python:{__name__}:{role}" for role in CAST}


def told(release: Path, **more: Any) -> PlaySettings:
    """The settings of a run of quick players on a release; `more` wins, its `options` and `models` are added."""
    options: Mapping[str, Any] = {"profiles": release, **more.pop("options", {})}
    models: Mapping[str, Any] = {**CAST, **more.pop("models", {})}
    return {"options": options, "models": models, **more}  # type: ignore[typeddict-item]


def talk(run: Run) -> list[str]:
    """All that came of a run, whoever played it."""
    return [f"{episode.id} {episode.outcome.model_dump_json()}" for episode in run.episodes()]
