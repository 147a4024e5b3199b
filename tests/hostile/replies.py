"""Runs of a single round whose players give fixed replies."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import dialoom

Player = Callable[[list[Any]], Awaitable[str]]


def saying(text: str) -> Player:
    """Return a player that always gives the same reply."""

    async def say(_messages: list[Any]) -> str:
        return text

    return say


def play(folder: Path, people: int = 3, name: str = "run", **players: Any) -> dialoom.Run:
    """Play `aloe-eval` with `people` people; roles that are not given have valid replies."""
    personas = [{"profile": f"She keeps {number} hens.", "personality": "She is calm."} for number in range(people)]
    source = folder / f"{name}.jsonl"
    source.write_text("".join(f"{json.dumps(each)}\n" for each in personas), encoding="utf-8")
    judge = saying('{"score": 3, "explanation": "fair"}')
    models = {"user": saying("Hello."), "assistant": saying("Hello yourself."), "judge": judge, **players}
    options = {"personas": str(source), "rounds": 1}
    return dialoom.play("aloe-eval", path=folder / f"{name}.db", models=models, options=options, concurrency=2)
