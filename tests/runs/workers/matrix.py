"""The matrix: what every recipe comes to by every operation is the same with one process and with workers.

Shared by the tests without Ray and those with it.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dialoom
from dialoom.personas.similarity import packed, unit
from dialoom.prompts import ChatMessage
from dialoom.runs.agreement import as_json, write_sample
from dialoom.runs.recipes import load_recipe
from dialoom.runs.store import RunFile
from dialoom.runs.trust import Trust
from tests.conftest import ROOT
from tests.logical_dump import differences, logical_dump

MODEL = "litellm:some/model"
"""An option `embedder` with which the role `embedder` is asked, which a function plays."""

_MOST = 10
"""Rows that a failing comparison shows."""

_TRIES = 30
"""Salts of which one makes some scenarios fail and others not, whatever the prompts are at present."""


def _drawn(messages: Sequence[ChatMessage], salt: object, one_in: int) -> tuple[bool, str]:
    """Whether a request is one of those that go wrong, and a few letters that no other request has."""
    said = hashlib.sha256(json.dumps([salt, messages], sort_keys=True).encode()).hexdigest()
    return one_in > 0 and int(said, 16) % one_in == 0, said[:8]


@dataclass
class Talker:
    """A player of words; to about one request in `one_in` it raises an error, whoever asks and how often."""

    one_in: int = 0
    salt: int = 0

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """A reply that follows from the request."""
        fails, letters = _drawn(messages, self.salt, self.one_in)
        if fails:
            raise ValueError(f"no reply to {letters}")
        return f"Certainly, as you prefer: {letters}."


VERDICT = {
    "verdict": True,
    "score": 3,
    "answer": "yes",
    "better": "first",
    "label": "unhelpful",
    "explanation": "It is as it is.",
}
"""Read as any judge's reply."""


@dataclass
class Judge:
    """A judge; to about one request in `one_in` it says nothing that can be read."""

    one_in: int = 0
    salt: int = 0

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """A verdict, or nonsense."""
        is_nonsense, letters = _drawn(messages, self.salt, self.one_in)
        return f"Hm, {letters}." if is_nonsense else json.dumps(VERDICT)


@dataclass
class Embedder:
    """An embedding model; to about one request in `one_in` it raises an error."""

    one_in: int = 0
    salt: int = 0

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """A vector for each text."""
        fails, letters = _drawn(messages, self.salt, self.one_in)
        if fails:
            raise ValueError(f"no vectors for {letters}")
        texts = [hashlib.sha256(each["content"].encode()).digest() for each in messages]
        return json.dumps({"vectors": [packed(unit([1.0 + part for part in text[:8]])) for text in texts]})


@dataclass(frozen=True)
class Case:
    """A recipe with small options, and players of whom some now and then raise an error or reply nonsense.

    Attributes:
        name: What the case is called.
        recipe: The recipe.
        options: The recipe's options.
        models: Functions that play roles; `offline/attentive` plays the others.
        sample: How many scenarios are drawn, if not all.
        failed: Whether some scenarios fail and others do not; else none fails.
        unparsed: Whether some judgements that playing makes are unparsed; else none is.
    """

    name: str
    recipe: str
    options: Mapping[str, Any] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)
    sample: int | None = None
    failed: bool = False
    unparsed: bool = False


CASES = [
    Case(
        "personalens",
        "personalens",
        {"users": "1", "settings": ("base",), "turn_limit": 3},
        {"assistant": Talker(9), "judge": Judge(4)},
        sample=4,
        failed=True,
        unparsed=True,
    ),
    Case(
        "aloe",
        "aloe",
        {"limit": 3, "rounds": 2, "verify_pairs": True},
        {"preferred": Talker(5), "judge": Judge(3)},
        failed=True,
        unparsed=True,
    ),
    Case(
        "aloe-eval",
        "aloe-eval",
        {"limit": 4, "rounds": 2},
        {"assistant": Talker(5), "judge": Judge(3)},
        failed=True,
        unparsed=True,
    ),
    Case(
        "persona-pool", "persona-pool", {"kind": "profile", "target": 12, "embedder": MODEL}, {"embedder": Embedder()}
    ),
    Case(
        "prefeval",
        "prefeval",
        {"turns": (2, 4), "method": ("zero-shot", "rag"), "embedder": MODEL, "limit": 12},
        {"assistant": Talker(6), "judge": Judge(4), "embedder": Embedder(4)},
        failed=True,
        unparsed=True,
    ),
    Case(
        "prefeval-pairs",
        "prefeval-pairs",
        {"topics": "all", "calls": 1, "per_call": 2, "keep": 1, "embedder": MODEL},
        {"embedder": Embedder(3)},
        sample=3,
        failed=True,
    ),
    Case("personalens-people", "personalens-people", {"people": 2, "single_tasks": 1, "multi_tasks": 1}),
    Case(
        "apollo",
        "apollo",
        {"limit": 6, "framework": ("function-calling", "rag"), "embedder": MODEL},
        {"assistant": Talker(4), "embedder": Embedder(5)},
        failed=True,
    ),
    Case("apollo-build", "apollo-build", {"users": 2, "pairs": 1, "errands": 1}),
    Case("apollo-write", "apollo-write", {"users": 2, "pairs": 1, "errands": 0, "flows": "flight"}),
    Case(
        "twenty-questions",
        f"{ROOT}/docs/examples/twenty_questions/recipe.py:RECIPE",
        {"words": "piano,heron,glacier,otter,lamp", "questions": 3, "judge": True},
        {"guesser": Talker(9), "judge": Judge(3)},
        failed=True,
        unparsed=True,
    ),
    Case("larder", f"{ROOT}/docs/examples/larder/larder.py:RECIPE", {"larders": 3}),
]
"""Every recipe that is registered or an example of the documentation."""


def check(case: Case, folder: Path) -> None:
    """Carry out every operation with one process and with two workers, and compare what they come to after each.

    Args:
        case: The case.
        folder: An empty folder for the runs.

    Raises:
        AssertionError: If they differ, naming the operation and the rows.
    """
    alone, among_workers = folder / "alone.db", folder / "workers.db"
    salt = next((salt for salt in range(_TRIES) if _is_mixed(case, _played(case, alone, salt))), None)
    assert salt is not None, f"{case.name}: the players fail too often, or too rarely"
    _played(case, among_workers, salt, workers=2)
    both = zip(_operations(case, alone), _operations(case, among_workers, workers=2), strict=True)
    for operation, _ in both:
        found = differences(logical_dump(alone), logical_dump(among_workers))
        assert not found, _told(case, operation, found)
        assert dict(_results(alone)) == dict(_results(among_workers)), f"{case.name}, {operation}"


def _played(case: Case, path: Path, salt: int, **how: Any) -> dialoom.Run:
    """Make a case's run, in the place of an earlier one; the salt decides to which requests the players fail."""
    path.unlink(missing_ok=True)
    models = {role: replace(player, salt=salt) for role, player in case.models.items()}
    given: dict[str, Any] = {"options": case.options, "models": models, "seed": 5, "sample": case.sample}
    return dialoom.play(case.recipe, path=path, concurrency=4, **given, **how)


def _is_mixed(case: Case, run: dialoom.Run) -> bool:
    """Whether all was played, and some scenarios failed and some judgements are unparsed where the case wants it."""
    status = run.status()
    unparsed = any(each.status == "unparsed" for episode in run.episodes() for each in episode.outcome.judgements)
    return status.done > 0 and not status.pending and (status.failed > 0, unparsed) == (case.failed, case.unparsed)


def _operations(case: Case, path: Path, **how: Any) -> Iterator[str]:
    """Carry out what can be done with a run that was played, one operation after the other; yields the name of each.

    Args:
        case: The case.
        path: The run's file.
        **how: How calls are made, such as `workers=2`.
    """
    yield "run"
    again: dict[str, Any] = {"concurrency": 4, **how}
    can_judge = load_recipe(case.recipe).judging() is not None
    faultless = {role: replace(player, one_in=0) for role, player in case.models.items()}
    if can_judge:
        dialoom.judge(path, Judge(3), name="again", **again)
        yield "judge"
    if can_judge and case.unparsed:
        dialoom.retry(path, unparsed=True, models=faultless, **again)
        yield "retry --unparsed"
    dialoom.retry(path, failed=True, scenarios=[1], models=faultless, **again)
    yield "retry"
    dialoom.review(path, Judge(3, salt=1), **again)
    yield "review"


def _results(path: Path) -> Iterator[tuple[str, Any]]:
    """What is made of a run: its export, and how far labels agree with its judgements."""
    run = dialoom.open_run(path, trust=True)
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    run.export("dialogues", target := folder / "dialogues.jsonl")
    yield "export", target.read_text()
    judgements = [each for episode in run.episodes() for each in episode.outcome.judgements]
    scales = run.recipe.scales
    metrics = {each.metric for each in judgements if isinstance(each.score, bool) or each.metric in scales}
    if any(each.score is not None for each in judgements if each.metric in metrics):
        labels = folder / "labels.csv"
        with RunFile(path, trust=Trust(everything=True)) as file:
            write_sample(file, labels, 6, ["ann"], metrics=metrics)
        yield "sample", labels.read_text()
        if importlib.util.find_spec("statsmodels") is not None:  # not in the environment of the tests with Ray
            yield "agreement", as_json(run.agreement(path=_labelled(labels)))


def _labelled(path: Path) -> Path:
    """Fill in every label of a sample with 1."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header, *rows = csv.reader(file)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([header, *([*row[:-1], "1"] for row in rows)])
    return path


def _told(case: Case, operation: str, found: Sequence[str]) -> str:
    lines = [f"{row:.300}" for row in found[:_MOST]]
    return "\n".join([f"{case.name}, {operation}: {len(found)} rows differ (- one process, + workers)", *lines])
