"""The example study with a real model, and the effect of its rules for simulated users: `pytest -s` prints figures."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import dialoom
from tests.conftest import ROOT
from tests.llm.conftest import Server
from tests.llm.test_recipes import export_bytes

_TIMEOUT_SECONDS = 7200.0
_CONVERSATION_COUNT = int(os.environ.get("DIALOOM_MEASURED", "1"))
"""The number of conversations measured with the rules, and without: 20 for the figures in the documentation."""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Return the path of a copy of the example study with short conversations."""
    folder = Path(shutil.copytree(ROOT / "docs/examples/studies", tmp_path / "studies"))
    path = folder / "support.toml"
    path.write_text(path.read_text().replace("max_turns = 8", "max_turns = 2"))
    return path


def test_example_study_of_a_real_model(served: Server, study: Path, tmp_path: Path) -> None:
    """Every conversation is played and scored; a replay from the cache gives the same bytes."""
    plan: dict[str, Any] = {"model": served.model, "seed": 5, "sample": 2, "trials": 2, "concurrency": 1}
    plan |= {"max_reply": {"": 32, "judge": 64}, "timeout": _TIMEOUT_SECONDS, "cache": tmp_path / "kept.db"}
    run = dialoom.play(str(study), path=tmp_path / "run.db", **plan)
    answered = served.count_answered()
    status = run.status()
    assert (status.total, status.pending) == (4, 0)
    for episode in run.episodes():
        assert episode.outcome.ended_by and (episode.state == "done") == (episode.error is None)
        found = {each.metric for each in episode.outcome.judgements}
        assert found == {"resolved", "tone", "gave_number", "words_per_reply"} or episode.state == "failed"
    again = dialoom.play(str(study), path=tmp_path / "again.db", **plan, replay_only=True)
    assert export_bytes(again, tmp_path / "again.jsonl") == export_bytes(run, tmp_path / "run.jsonl")
    assert served.count_answered() == answered, "no request was repeated"


def test_effect_of_the_rules_for_simulated_users(served: Server, study: Path, tmp_path: Path) -> None:
    """The figures are printed and not checked, as a model of this size follows few rules."""
    free = study.with_name("free.toml")
    free.write_text(study.read_text().replace("[user]\n", "[user]\nrules = false\n"))
    plan: dict[str, Any] = {"model": served.model, "seed": 5, "sample": _CONVERSATION_COUNT, "concurrency": 1}
    plan |= {"max_reply": {"user": 96, "assistant": 48}, "timeout": _TIMEOUT_SECONDS, "options": {"judge": False}}
    for name, path in (("with rules", study), ("without", free)):
        run = dialoom.play(str(path), path=tmp_path / f"{path.stem}.db", **plan)
        assert run.status().done == _CONVERSATION_COUNT
        sys.stdout.write(f"\n{name}: {_compute_figures(run)}\n")


def _compute_figures(run: dialoom.Run) -> dict[str, Any]:
    """Return figures of the simulated users' behaviour."""
    episodes = list(run.episodes())
    spoken = [[line.content for line in each.outcome.messages if line.role == "user"] for each in episodes]
    faults = Counter(
        kind for each in episodes for kind in {f.kind for f in each.outcome.faults or () if f.role == "user"}
    )
    offers = ("help you", "assist you", "how can i help", "i'm here to")
    return {
        "conversations": len(episodes),
        "words of the opening": round(fmean(len(lines[0].split()) for lines in spoken), 1),
        "words per message": round(fmean(len(line.split()) for lines in spoken for line in lines), 1),
        "openings with the order number": sum(
            str(each.facets["order"]) in lines[0] for each, lines in zip(episodes, spoken, strict=True)
        ),
        "conversations in which the user offers help": sum(
            any(offer in line.lower() for line in lines for offer in offers) for lines in spoken
        ),
        "endings": dict(Counter(each.outcome.ended_by for each in episodes)),
        "conversations with a fault of the user's": sum(
            any(fault.role == "user" for fault in each.outcome.faults or ()) for each in episodes
        ),
        "by fault": dict(faults),
    }
