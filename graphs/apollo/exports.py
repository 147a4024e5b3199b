"""APOLLO's format: a row per sample, with what should have been called, what was, and what it is worth."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from dialoom.graphs.capabilities import Exporter
from dialoom.graphs.outcome import Episode
from dialoom.prompts import PromptLibrary

from .scenario import ApolloScenario
from .training import RolloutOptions, grpo_rows, sft_rows


def sample_rows(
    episode: Episode,
    scenario: ApolloScenario,
    prompts: PromptLibrary,  # noqa: ARG001
    models: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """A sample as a row. What is not of one shape in all rows is JSON text, as a column must be."""
    if episode.state != "done":
        return
    details, outcome = episode.outcome.details, episode.outcome
    yield {
        "id": episode.id,
        "model": models["assistant"],
        **scenario.facets(),
        "protocol": details["protocol"],
        "request": details["request"],
        "preference": _json(dict(scenario.pair.values)),
        "tools": details["tools"],
        "gold_calls": _json(details["gold"]),
        "calls": _json(details["calls"]),
        "outputs": _json(details["outputs"]),
        "ended_by": outcome.ended_by,
        "flags": details["flags"],
        "turns": outcome.counts["turns"],
        "attempts": outcome.counts["attempts"],
        "hit": details.get("hit"),
        **details["scores"],
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


EXPORTERS: Mapping[str, Exporter] = {
    "apollo": Exporter(
        "a row per sample: its axes, the gold calls, those that were made, and the scores", "lines", sample_rows
    ),
    "grpo": Exporter(
        "prompts with the calls that should follow, for TRL's and verl's rewards",
        "lines",
        grpo_rows,
        RolloutOptions,
        tasks=("reinforcement-learning",),
    ),
    "sft": Exporter(
        "the right dialogue: messages, or TRL prompt-completion by step", "lines", sft_rows, RolloutOptions
    ),
}
