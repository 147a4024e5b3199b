"""The worker matrix: every operation on every recipe has the same results with one process and with workers.

Used by the tests without Ray and those with it.
"""

from __future__ import annotations

import csv
import hashlib
import importlib.util
import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import dialoom
from dialoom.graphs import WithJudging
from dialoom.personas.similarity import encode_vector, normalize_vector
from dialoom.prompts import ChatMessage
from dialoom.runs.agreement import as_json, write_sample
from dialoom.runs.configuration.recipes import load_recipe
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.control import MAX_CONSECUTIVE_ERRORS
from dialoom.runs.store import RunFile
from tests.conftest import ROOT
from tests.logical_dump import differences, logical_dump

MODEL = "litellm:some/model"
"""A value of the option `embedder` that has the role `embedder` called, which a function plays."""

_MOST = 10
"""The number of rows that a failing comparison shows."""

_TRIES = 40
"""The number of salts tried until some scenarios fail and others do not, which depends on the prompts."""

_MANY = 6
"""The number of a judge's calls from which on some should fail."""


def _number(salt: int, messages: Sequence[ChatMessage]) -> int:
    """Return a number that depends on a request and decides whether it fails."""
    return int(hashlib.sha256(json.dumps([salt, messages], sort_keys=True).encode()).hexdigest()[:12], 16)


def _is_one(number: int, one_in: int) -> bool:
    return one_in > 0 and number % one_in == 0


@dataclass
class Player:
    """A player whose replies and failures depend on the request alone.

    Attributes:
        fails: About one request in this many raises an error; 0 for none.
        unparseable: About one request in this many gets an unparseable (for texts: empty) reply; 0 for none.
        salt: A value that decides which requests these are.
    """

    fails: int = 0
    unparseable: int = 0
    salt: int = 0

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        """Return a reply, or raise an error."""
        number = _number(self.salt, messages)
        if _is_one(number, self.fails):
            raise ValueError(f"no reply to {number}")
        return self.nonsense(number) if _is_one(number // 7, self.unparseable) else self.reply(number, messages)

    def nonsense(self, number: int) -> str:
        """Return an unparseable reply."""
        return ""

    def reply(self, number: int, messages: Sequence[ChatMessage]) -> str:
        """Return a parseable reply."""
        return f"Certainly, as you prefer: {number}."


VERDICT = {
    "verdict": True,
    "score": 3,
    "answer": "yes",
    "better": "first",
    "label": "unhelpful",
    "notes": ["They like it quiet."],
    "explanation": "It is as it is.",
}
"""A valid reply of any judge, and of APOLLO's memory."""


class Judge(Player):
    """A judge that gives `VERDICT`."""

    def nonsense(self, number: int) -> str:
        """Return a reply without JSON."""
        return f"Hm, {number}."

    def reply(self, number: int, messages: Sequence[ChatMessage]) -> str:
        """Return the verdict."""
        return json.dumps(VERDICT)


class Embedder(Player):
    """An embedding model."""

    def reply(self, number: int, messages: Sequence[ChatMessage]) -> str:
        """Return a vector for each text."""
        texts = [hashlib.sha256(each["content"].encode()).digest() for each in messages]
        return json.dumps(
            {"vectors": [encode_vector(normalize_vector([1.0 + part for part in text[:8]])) for text in texts]}
        )


@dataclass(frozen=True)
class Case:
    """A recipe with small options, and players that sometimes raise an error or give an unparseable reply.

    Attributes:
        name: The case's name.
        recipe: The recipe.
        options: The recipe's options.
        models: Functions that play roles; `offline/attentive` plays the others.
        sample: The number of scenarios to draw, if not all.
        failed: Whether some scenarios fail and others do not; else none fails.
        unparsed: Whether some judgements of the run itself are unparsed; else none is.
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
        {"assistant": Player(fails=9, unparseable=9), "judge": Judge(unparseable=4)},
        sample=3,
        failed=True,
        unparsed=True,
    ),
    Case(
        "aloe",
        "aloe",
        {"limit": 3, "rounds": 2, "verify_pairs": True},
        {"preferred": Player(fails=6, unparseable=6), "judge": Judge(unparseable=3)},
        failed=True,
        unparsed=True,
    ),
    Case(
        "aloe-eval",
        "aloe-eval",
        {"limit": 4, "rounds": 2},
        {"assistant": Player(fails=6, unparseable=6), "judge": Judge(unparseable=3)},
        failed=True,
        unparsed=True,
    ),
    Case(
        "persona-pool", "persona-pool", {"kind": "profile", "target": 12, "embedder": MODEL}, {"embedder": Embedder()}
    ),
    Case(
        "prefeval",
        "prefeval",
        {"turns": (2, 40), "method": ("zero-shot", "rag"), "embedder": MODEL, "limit": 12},
        {"assistant": Player(fails=8, unparseable=8), "judge": Judge(unparseable=4), "embedder": Embedder(fails=4)},
        failed=True,
        unparsed=True,
    ),
    Case(
        "prefeval-pairs",
        "prefeval-pairs",
        {"calls": 1, "per_call": 2, "keep": 1, "embedder": MODEL},
        {"embedder": Embedder(fails=2)},
        sample=3,
        failed=True,
    ),
    Case("personalens-people", "personalens-people", {"people": 2, "single_tasks": 1, "multi_tasks": 1}),
    Case(
        "apollo",
        "apollo",
        {"limit": 6, "framework": ("function-calling", "memory", "rag"), "embedder": MODEL},
        {"assistant": Player(fails=8), "memory": Judge(fails=12, unparseable=4), "embedder": Embedder(fails=8)},
        failed=True,
    ),
    Case("apollo-build", "apollo-build", {"users": 2, "pairs": 1, "errands": 1}),
    Case("apollo-write", "apollo-write", {"users": 2, "pairs": 1, "errands": 0, "flows": "flight"}),
    Case(
        "twenty-questions",
        f"{ROOT}/docs/examples/twenty_questions/recipe.py:RECIPE",
        {"words": "piano,heron,glacier,otter,lamp", "questions": 3, "judge": True},
        {"guesser": Player(fails=14, unparseable=14), "judge": Judge(unparseable=3)},
        failed=True,
        unparsed=True,
    ),
    Case("larder", f"{ROOT}/docs/examples/larder/larder.py:RECIPE", {"larders": 3}),
    Case(
        "study",
        f"{ROOT}/docs/examples/studies/support.toml",
        {},
        {"assistant": Player(fails=20, unparseable=20), "judge": Judge(unparseable=4)},
        sample=6,
        failed=True,
        unparsed=True,
    ),
]
"""Every registered recipe and every example of the documentation."""


Carry = Callable[..., object]
"""An operation on a run's file, `carry_out(path, salt, **how)`; the salt decides which requests fail."""

Wanted = Callable[[Path], bool]
"""A check that an operation had failures, but no two of one scenario.

Which of two failures ends a scenario depends on timing, with one process, too.
"""


def check(case: Case, folder: Path) -> None:
    """Carry out every operation with one process and with two workers, and compare the results after each.

    Args:
        case: The case.
        folder: An empty folder for the runs.

    Raises:
        AssertionError: If the results differ; the message names the operation and the rows.
    """
    alone, before, among_workers = (folder / f"{name}.db" for name in ("alone", "before", "workers"))
    for operation, carry_out, is_wanted in _operations(case):
        if alone.exists():
            shutil.copy(alone, before)
        for salt in range(_TRIES):
            alone.unlink(missing_ok=True)
            if before.exists():
                shutil.copy(before, alone)
            carry_out(alone, salt)
            if is_wanted(alone):
                break
        else:
            raise AssertionError(f"{case.name}, {operation}: the players fail too often, or too rarely")
        carry_out(among_workers, salt, workers=2)
        found = differences(logical_dump(alone), logical_dump(among_workers))
        assert not found, _difference_report(case, operation, found)
    assert dict(_results(alone)) == dict(_results(among_workers)), case.name


def _operations(case: Case) -> Iterator[tuple[str, Carry, Wanted]]:
    """Yield the operations on a case's run, in a possible order."""
    again: dict[str, Any] = {"concurrency": 4}
    faultless = {role: type(player)() for role, player in case.models.items()}

    def run(path: Path, salt: int, **how: Any) -> None:
        models = {role: replace(player, salt=salt) for role, player in case.models.items()}
        given: dict[str, Any] = {"options": case.options, "models": models, "seed": 5, "sample": case.sample}
        dialoom.play(case.recipe, path=path, **given, **again, **how)

    def judge(path: Path, salt: int, **how: Any) -> None:
        dialoom.judge(path, Judge(fails=12, unparseable=3, salt=salt), name="again", **again, **how)

    def judge_failed(path: Path, salt: int, **how: Any) -> None:
        dialoom.judge(path, Judge(unparseable=3, salt=salt), name="again", retry_failed=True, **again, **how)

    def retry_unparsed(path: Path, salt: int, **how: Any) -> None:  # noqa: ARG001
        dialoom.retry(path, unparsed=True, models=faultless, **again, **how)

    def retry(path: Path, salt: int, **how: Any) -> None:  # noqa: ARG001
        dialoom.retry(path, failed=True, scenarios=[1], models=faultless, **again, **how)

    def review(path: Path, salt: int, **how: Any) -> None:
        dialoom.review(path, Judge(fails=12, unparseable=3, salt=salt), name="review", **again, **how)

    yield "run", run, lambda path: _is_mixed(case, path)
    if WithJudging.of(load_recipe(case.recipe)).judging() is not None:
        yield "judge", judge, lambda path: _is_judged(path, "again")
        yield "judge --retry-failed", judge_failed, lambda _path: True
        if case.unparsed:
            yield "retry --unparsed", retry_unparsed, lambda _path: True
    yield "retry", retry, lambda _path: True
    yield "review", review, lambda path: _is_judged(path, "review")


def _is_mixed(case: Case, path: Path) -> bool:
    """Return whether all was played, with failed scenarios and unparsed judgements where the case requires them."""
    run = dialoom.open_run(path, trust=True)
    status = run.status()
    unparsed = any(each.status == "unparsed" for episode in run.episodes() for each in episode.outcome.judgements)
    is_mixed = status.done > 0 and not status.pending and (status.failed > 0, unparsed) == (case.failed, case.unparsed)
    return is_mixed and max(_failures(path, None).values(), default=0) <= 1


def _is_judged(path: Path, judging: str) -> bool:
    """Return whether some of a set's judgings failed, if there are enough for that, but too few to stop the work.

    Which failures come in a row, and what stays pending if they stop the work, depends on timing.
    """
    failures = _failures(path, judging)
    with RunFile(path) as run:
        asked = sum(each["judging"] == judging for each in run.calls())
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT count(*) FROM judged WHERE judging = ? AND error IS NOT NULL"
        (failed,) = connection.execute(query, (judging,)).fetchone()
    return (
        max(failures.values(), default=0) <= 1 and failed < MAX_CONSECUTIVE_ERRORS and (bool(failures) or asked < _MANY)
    )


def _failures(path: Path, judging: str | None) -> Counter[int]:
    """Return the number of failed calls by scenario, in the run or in a set's judging; common calls count together.

    A scenario may wait for several common calls at once, such as the notes of a user's sessions.
    """
    with RunFile(path) as run:
        failed = [each for each in run.calls() if each["judging"] == judging and each["error"] is not None]
    return Counter(each["number"] for each in failed)


def _results(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield a run's results: its export, a sample to label, and the agreement of labels with its judgements."""
    run = dialoom.open_run(path, trust=True)
    folder = Path(tempfile.mkdtemp(dir=path.parent))
    run.export("dialogues", target := folder / "dialogues.jsonl")
    yield "export", target.read_text()
    judgements = [each for episode in run.episodes() for each in episode.outcome.judgements]
    scales = WithJudging.of(run.recipe).scales
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


def _difference_report(case: Case, operation: str, found: Sequence[str]) -> str:
    lines = [f"{row:.300}" for row in found[:_MOST]]
    return "\n".join([f"{case.name}, {operation}: {len(found)} rows differ (- one process, + workers)", *lines])
