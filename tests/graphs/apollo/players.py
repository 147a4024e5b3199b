"""Scripted agents that record their requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dialoom
from dialoom import Episode
from dialoom.graphs.apollo import RECIPE
from dialoom.personas.apollo.scores import format_call
from dialoom.personas.apollo.source import ApolloPair, ApolloSource
from tests.graphs.apollo.invented import source, write

FINISH = "[Finish]"
Messages = list[dict[str, str]]


def gold_lines(pair: ApolloPair) -> list[str]:
    """Return the lines of an agent that makes exactly the gold calls."""
    return [*map(format_call, pair.calls()), FINISH]


class Agent:
    """An agent that says the lines it has for a request, one per turn, and then that it has finished.

    Args:
        lines: The lines by request.
    """

    def __init__(self, lines: Mapping[str, Sequence[str]]) -> None:
        self._lines = lines
        self.sent: list[Messages] = []

    async def __call__(self, messages: Sequence[Any]) -> str:
        plain = [{"role": message["role"], "content": message["content"]} for message in messages]
        self.sent.append(plain)
        lines = self._lines[plain[1]["content"].split("<request>\n")[1].split("\n</request>")[0]]
        turn = sum(message["role"] == "assistant" for message in plain)
        return lines[turn] if turn < len(lines) else FINISH


def played(
    folder: Path,
    assistant: Any,
    made: ApolloSource | None = None,
    *,
    models: Mapping[str, Any] | None = None,
    **options: Any,
) -> dialoom.Run:
    """Play a run over a source, by default with samples of 2,000 tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = {"source": write(folder / "source", made or source()), "length": ("2k",), **options}
    players = {"assistant": assistant, **(models or {})}
    return dialoom.play(RECIPE, path=folder / "run.db", options=chosen, models=players)


def episodes(run: dialoom.Run) -> dict[str, Episode]:
    """Return the episodes of a run by their pairs; all must be done."""
    found = list(run.episodes())
    assert all(episode.state == "done" for episode in found), [episode.error for episode in found]
    return {str(episode.facets["pair"]): episode for episode in found}


def scores(episode: Episode) -> tuple[Any, Any]:
    """Return accuracy and F1."""
    found = {judgement.metric: judgement.score for judgement in episode.outcome.judgements}
    return found["accuracy"], found["f1"]
