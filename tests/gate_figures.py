"""The gate's precision and recall on its corpora, as in docs/gate.md: `make gate-figures` prints the tables."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dialoom import Line
from dialoom.graphs.capabilities import WithPrompts
from dialoom.graphs.gate import KINDS, RULES, Facts, PromptWords, Talk
from dialoom.graphs.outcome import BY_JUDGES
from dialoom.graphs.reporting.statistics import wilson
from dialoom.prompts import Prompt, PromptLibrary
from dialoom.prompts.prompt import SHIPPED
from dialoom.runs.configuration.recipes import load_recipe
from tests.conftest import ROOT
from tests.graphs.gate.cases import ALLOWED, cases

LABELLED = Path(__file__).parent / "labelled"
MAIN = ("echo", "repetition", "swapped_role", "prompt_leak", "task_not_stated")
"""The kinds with figures of their own; there are too few faults of the others."""

LETTERS = {"e": "echo", "r": "repetition", "s": "swapped_role", "p": "prompt_leak", "g": "glued_lines"}
"""The kinds of the labels in `variants.jsonl`, where `t` is `task_not_stated`."""

Counts = tuple[int, int, int]
"""How many faults there are, how many of them are found, and how many are found where there is none."""


def planted() -> dict[str, Counts]:
    """Return the counts by kind in the test half of the invented dialogues."""
    there, right, wrong = Counter[str](), Counter[str](), Counter[str]()
    for case in cases():
        if case.is_kept_apart:
            kinds, brought = case.found(), frozenset[str]().union(*(ALLOWED.get(kind, ()) for kind in case.planted))
            there.update(case.planted)
            right.update(kinds & case.planted)
            wrong.update(kinds - case.planted - brought)
    return {kind: (there[kind], right[kind], wrong[kind]) for kind in KINDS if kind != BY_JUDGES}


@cache
def variants() -> list[Mapping[str, Any]]:
    """Return the dialogues of SmolLM2 with four sets of prompts at two temperatures."""
    return [json.loads(line) for line in (LABELLED / "variants.jsonl").read_text(encoding="utf-8").splitlines()]


def labels(dialogue: Mapping[str, Any], key: str = "labels") -> set[tuple[int, str]]:
    """Return the labelled lines and kinds; a task that is not stated has the line -1."""
    found = (label for label in dialogue[key].split())
    return {(-1, "task_not_stated") if label == "t" else (int(label[:-1]), LETTERS[label[-1]]) for label in found}


def found(dialogue: Mapping[str, Any]) -> set[tuple[int, str]]:
    """Return the lines and kinds that the rules find."""
    roles = {"u": "user", "a": "assistant"}
    said = [Line(role=roles[role], content=text) for role, text, *_ in dialogue["lines"]]
    facts = Facts(languages=("en",), task=dialogue["task"], end_markers=("TERMINATE", "DONE"))
    talk = replace(Talk.of(said, facts, "limit"), prompts=all_prompts())
    faults = [fault for rule in RULES for fault in rule(talk)]
    kinds = {*LETTERS.values(), "task_not_stated"}
    lines = ((-1 if fault.kind == "task_not_stated" else fault.message or 0, fault.kind) for fault in faults)
    return {(line, kind) for line, kind in lines if kind in kinds}


def labelled(half: str) -> dict[str, Counts]:
    """Return the counts by kind in one half of SmolLM2's dialogues."""
    there, right, wrong = Counter[str](), Counter[str](), Counter[str]()
    for each in variants():
        if each["half"] == half:
            mine, told = labels(each), found(each)
            there.update(kind for _, kind in mine)
            right.update(kind for _, kind in mine & told)
            wrong.update(kind for _, kind in told - mine)
    return {kind: (there[kind], right[kind], wrong[kind]) for kind in (*MAIN, "glued_lines")}


def kappa(kind: str) -> float | None:
    """Return Cohen's kappa of the two passes over all held-out lines, or dialogues for `task_not_stated`, if any."""
    cells = Counter[tuple[bool, bool]]()
    for each in (each for each in variants() if each["half"] == "held-out"):
        first, second = labels(each, "first"), labels(each, "second")
        for line in [-1] if kind == "task_not_stated" else range(len(each["lines"])):
            cells[(line, kind) in first, (line, kind) in second] += 1
    if not (n := cells.total()):
        return None
    agreed = (cells[True, True] + cells[False, False]) / n
    ones = [(cells[True, True] + cells[cell]) / n for cell in ((True, False), (False, True))]
    expected = ones[0] * ones[1] + (1 - ones[0]) * (1 - ones[1])
    return (agreed - expected) / (1 - expected)


def planted_table() -> str:
    """Return the table of the invented dialogues, with the kinds' meanings."""
    counts = planted()
    rows = [(f"`{kind}`", KINDS[kind], *_cells(counts[kind])) for kind in counts]
    rows.append(("other than the main five, pooled", "", *_cells(_pooled(counts))))
    return _table(("kind", "what it is", "faults", "flagged", "precision", "recall"), rows)


def labelled_table() -> str:
    """Return the table of SmolLM2's dialogues."""
    seen, unseen = labelled("development"), labelled("held-out")
    rows = [
        (f"`{kind}`", *_cells(seen[kind]), *_cells(unseen[kind]), "" if agreed is None else f"{agreed:.2f}")
        for kind, agreed in ((kind, kappa(kind)) for kind in (*MAIN, "glued_lines"))
    ]
    columns = ("faults", "flagged", "precision", "recall")
    names = (*(f"development: {columns[0]}", *columns[1:]), *(f"held out: {columns[0]}", *columns[1:]))
    return _table(("kind", *names, "kappa"), rows)


def _pooled(counts: Mapping[str, Counts]) -> Counts:
    there, right, wrong = zip(*(each for kind, each in counts.items() if kind not in MAIN), strict=True)
    return sum(there), sum(right), sum(wrong)


def _cells(counts: Counts) -> tuple[str, ...]:
    there, right, wrong = counts
    return str(there), str(right + wrong), _share(right, right + wrong), _share(right, there)


def _share(count: int, n: int) -> str:
    return f"{count / n:.2f} ({wilson(count / n, n)[0]:.2f})" if n else ""


def _table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(names)
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


@cache
def all_prompts() -> PromptWords:
    """Return the words of the shipped prompts, and of those with which labelled dialogues were played."""
    shipped = PromptLibrary.load(str(path.relative_to(SHIPPED))[:-3] for path in SHIPPED.rglob("*.md")).values()
    study = WithPrompts.of(load_recipe(str(ROOT / "docs" / "examples" / "studies" / "support.toml")))
    composed = (prompt for sets in ((), ("small",)) for prompt in study.library(sets).values())
    own = (Prompt.parse(path.read_text(encoding="utf-8"), path.name) for path in (LABELLED / "prompts").glob("*.md"))
    return PromptWords.of([*shipped, *composed, *own])


if __name__ == "__main__":
    sys.stdout.write(f"{planted_table()}\n\n{labelled_table()}\n")
