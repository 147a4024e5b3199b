"""The gate's precision and recall on its corpora, as in docs/gate.md: `make gate-figures` prints the tables."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dialoom import Line
from dialoom.graphs.capabilities import WithPrompts
from dialoom.graphs.gate import FAULT_KINDS, RULES, Facts, PromptWords, Talk
from dialoom.graphs.outcome import JUDGE_FAULT
from dialoom.graphs.tables.statistics import wilson
from dialoom.prompts import Prompt, PromptLibrary
from dialoom.prompts.prompt import SHIPPED_FOLDER
from dialoom.runs.configuration.recipes import load_recipe
from tests.conftest import ROOT
from tests.graphs.gate.cases import ALLOWED, cases

LABELLED = Path(__file__).parent / "labelled"
MAIN = ("echo", "repetition", "swapped_role", "prompt_leak", "task_not_stated")
"""The kinds with figures of their own; the others have too few faults."""

LETTERS = {
    "e": "echo",
    "r": "repetition",
    "s": "swapped_role",
    "p": "prompt_leak",
    "g": "glued_lines",
    "t": "task_not_stated",
    "c": "cut_line",
    "l": "other_language",
    "m": "empty_line",
    "x": "early_end",
    "n": "no_end",
}
"""The letters of the labels; `t`, `x` and `n` are about a whole dialogue, the others follow a line's number."""

OF_VARIANTS, OF_LANGUAGES = (*MAIN, "glued_lines"), (*LETTERS.values(),)
"""The kinds that are labelled in `variants.jsonl` and in `languages.jsonl`."""

Dialogue = Mapping[str, Any]

Counts = tuple[int, int, int]
"""The number of faults, of correct findings and of false findings."""


def planted() -> dict[str, Counts]:
    """Return the counts by kind in the test half of the invented dialogues."""
    actual, right, wrong = Counter[str](), Counter[str](), Counter[str]()
    for case in cases():
        if case.is_held_out:
            kinds, allowed = case.found(), frozenset[str]().union(*(ALLOWED.get(kind, ()) for kind in case.planted))
            actual.update(case.planted)
            right.update(kinds & case.planted)
            wrong.update(kinds - case.planted - allowed)
    return {kind: (actual[kind], right[kind], wrong[kind]) for kind in FAULT_KINDS if kind != JUDGE_FAULT}


@cache
def dialogues(name: str) -> list[Dialogue]:
    """Return the labelled dialogues of a file, `variants` (by SmolLM2) or `languages`."""
    return [json.loads(line) for line in (LABELLED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def half(name: str, which: str) -> list[Dialogue]:
    """Return the dialogues of a file that belong to one half, `development` or `held-out`."""
    return [each for each in dialogues(name) if each["half"] == which]


def labels(dialogue: Dialogue, key: str = "labels") -> set[tuple[int, str]]:
    """Return the labelled lines and kinds; a label of the whole dialogue has the line -1."""
    return {(int(label[:-1] or -1), LETTERS[label[-1]]) for label in dialogue[key].split()}


def found(dialogue: Dialogue, kinds: Collection[str]) -> set[tuple[int, str]]:
    """Return the lines and the kinds of faults that the rules find, for the given kinds."""
    lines = [Line(role={"u": "user", "a": "assistant"}[role], content=text) for role, text, *_ in dialogue["lines"]]
    facts = Facts(
        languages=(dialogue.get("language", "en"),),
        task=dialogue["task"],
        end_markers=("TERMINATE", "DONE"),
        user_ends="user",
        limit="limit",
    )
    prompts = own_prompts(dialogue) if "prompts" in dialogue else all_prompts()
    talk = replace(Talk.of(lines, facts, dialogue.get("ended_by", "limit")), prompts=prompts)
    faults = [fault for rule in RULES for fault in rule(talk) if fault.kind in kinds]
    whole = ("task_not_stated", "early_end", "no_end")
    return {(-1 if fault.kind in whole else fault.message or 0, fault.kind) for fault in faults}


def labelled(some: Iterable[Dialogue], kinds: Collection[str]) -> dict[str, Counts]:
    """Return the counts by kind in the given labelled dialogues."""
    actual, right, wrong = Counter[str](), Counter[str](), Counter[str]()
    for each in some:
        expected, detected = labels(each), found(each, kinds)
        actual.update(kind for _, kind in expected)
        right.update(kind for _, kind in expected & detected)
        wrong.update(kind for _, kind in detected - expected)
    return {kind: (actual[kind], right[kind], wrong[kind]) for kind in kinds}


def kappa(kind: str) -> float | None:
    """Return Cohen's kappa of the two labellings of all held-out lines (for `task_not_stated`: dialogues), if any."""
    cells = Counter[tuple[bool, bool]]()
    for each in half("variants", "held-out"):
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
    """Return the table of the invented dialogues, with the meaning of each kind."""
    counts = planted()
    rows = [(f"`{kind}`", FAULT_KINDS[kind], *_cells(counts[kind])) for kind in counts]
    rows.append(("other than the main five, pooled", "", *_cells(_pooled(counts))))
    return _table(("kind", "what it is", "faults", "flagged", "precision", "recall"), rows)


def labelled_table() -> str:
    """Return the table of the dialogues by SmolLM2."""
    seen, unseen = (labelled(half("variants", which), OF_VARIANTS) for which in ("development", "held-out"))
    rows = [
        (f"`{kind}`", *_cells(seen[kind]), *_cells(unseen[kind]), "" if agreed is None else f"{agreed:.2f}")
        for kind, agreed in ((kind, kappa(kind)) for kind in OF_VARIANTS)
    ]
    return _table(("kind", *_names("development"), *_names("held out"), "kappa"), rows)


def languages_table() -> str:
    """Return the table of the invented dialogues in languages other than English."""
    seen = labelled(half("languages", "development"), OF_LANGUAGES)
    languages = ("de", "es", "zh")
    each = [
        labelled((row for row in half("languages", "held-out") if row["language"] == language), OF_LANGUAGES)
        for language in languages
    ]
    whole = {kind: _added(counts[kind] for counts in each) for kind in OF_LANGUAGES}
    for counts in (seen, whole, *each):
        counts["other kinds, pooled"] = _pooled(counts)
    rows = [
        (
            f"`{kind}`" if kind in MAIN else kind,
            *_cells(seen[kind]),
            *_cells(whole[kind]),
            *(f"{counts[kind][1]} of {counts[kind][0]}" for counts in each),
        )
        for kind in (*MAIN, "other kinds, pooled")
    ]
    return _table(
        ("kind", *_names("development"), *_names("held out"), *(f"found in `{one}`" for one in languages)), rows
    )


def _names(half_: str) -> tuple[str, ...]:
    return f"{half_}: faults", "flagged", "precision", "recall"


def _pooled(counts: Mapping[str, Counts]) -> Counts:
    return _added(each for kind, each in counts.items() if kind not in MAIN)


def _added(counts: Iterable[Counts]) -> Counts:
    actual, right, wrong = zip(*counts, strict=True)
    return sum(actual), sum(right), sum(wrong)


def _cells(counts: Counts) -> tuple[str, ...]:
    actual, right, wrong = counts
    return str(actual), str(right + wrong), _share(right, right + wrong), _share(right, actual)


def _share(count: int, n: int) -> str:
    return f"{count / n:.2f} ({wilson(count / n, n)[0]:.2f})" if n else ""


def _table(names: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(names)
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


@cache
def all_prompts() -> PromptWords:
    """Return the words of the shipped prompts and of the prompts that the labelled dialogues were played with."""
    shipped = PromptLibrary.load(
        str(path.relative_to(SHIPPED_FOLDER))[:-3] for path in SHIPPED_FOLDER.rglob("*.md")
    ).values()
    study = WithPrompts.of(load_recipe(str(ROOT / "docs" / "examples" / "studies" / "support.toml")))
    composed = (prompt for sets in ((), ("small",)) for prompt in study.library(sets).values())
    own = (Prompt.parse(path.read_text(encoding="utf-8"), path.name) for path in (LABELLED / "prompts").glob("*.md"))
    return PromptWords.of([*shipped, *composed, *own])


def own_prompts(dialogue: Dialogue) -> PromptWords:
    """Return the words of the prompts stored with a dialogue, with its task replaced by a placeholder."""
    texts = (text.replace(dialogue["task"], "{{ task }}") for text in dialogue["prompts"].values())
    return PromptWords.of(
        Prompt.compose("labelled/speaker", "user", f"=== system ===\n{text}\n=== history ===") for text in texts
    )


if __name__ == "__main__":
    sys.stdout.write(f"{planted_table()}\n\n{labelled_table()}\n\n{languages_table()}\n")
