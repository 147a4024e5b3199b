"""A real model's dialogues, labelled by hand: the consistency of the labels, and the figures of the gate's rules."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from dialoom import Line, Outcome
from dialoom.graphs.aloe import RECIPE as ALOE
from dialoom.graphs.aloe.tree import AloeScenario
from dialoom.graphs.gate import RULES, Facts, Talk
from tests.conftest import ROOT
from tests.gate_figures import all_prompts

LABELLED = Path(__file__).parent / "labelled" / "smollm2.jsonl"
KINDS = ("cut_line", "echo", "glued_lines", "prompt_leak", "repetition", "swapped_role")
SEEN = 24
"""The first dialogues, whose missed faults were read before the rules were corrected; the others are held out."""

ANYBODY = AloeScenario(person="anybody", profile="-", personality="-", rounds=2, branching=0)

Dialogue = Mapping[str, Any]


@cache
def dialogues() -> list[Dialogue]:
    """Return all labelled dialogues, in the order of the file."""
    return [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]


def labels(dialogue: Dialogue) -> set[tuple[str, str]]:
    """Return the hand-labelled speakers and kinds."""
    return {(who, kind) for who, kind in dialogue["faults"]}


def found(dialogue: Dialogue) -> set[tuple[str, str]]:
    """Return the speakers and kinds of the faults that the rules find."""
    faults = (
        fault for talk in talks(dialogue) for rule in RULES for fault in rule(replace(talk, prompts=all_prompts()))
    )
    return {(fault.role, fault.kind) for fault in faults if fault.kind in KINDS}


def talks(dialogue: Dialogue) -> Iterator[Talk]:
    """Yield the dialogue's conversations as its recipe splits them."""
    if dialogue["recipe"] == "aloe":
        yield from ALOE.talks(ANYBODY, Outcome(messages=(), ended_by="", details={"rounds": dialogue["rounds"]}))
    else:
        lines = [Line.model_validate(line) for line in dialogue["messages"]]
        talk = Talk.of(lines, Facts(languages=("en",)), dialogue["ended_by"])
        yield replace(talk, since=1) if dialogue["recipe"] == "prefeval" else talk  # its first line is data


def figures(some: Iterable[Dialogue]) -> dict[str, tuple[int, int, int]]:
    """Return the counts by kind of labels, of findings with a label, and of findings without one."""
    labelled, right, wrong = Counter[str](), Counter[str](), Counter[str]()
    for each in some:
        expected, detected = labels(each), found(each)
        labelled.update(kind for _, kind in expected)
        right.update(kind for _, kind in expected & detected)
        wrong.update(kind for _, kind in detected - expected)
    return {kind: (labelled[kind], right[kind], wrong[kind]) for kind in KINDS}


def test_every_label_has_a_kind_and_a_speaker() -> None:
    assert len({each["id"] for each in dialogues()}) == len(dialogues()) >= 40
    assert {each["recipe"] for each in dialogues()} == {"personalens", "aloe", "aloe-eval", "prefeval"}
    for each in dialogues():
        lines = [line for talk in talks(each) for line in talk.checked_lines()]
        assert {kind for _, kind in labels(each)} <= set(KINDS)
        assert {who for who, _ in labels(each)} <= {line.role for line in lines}
        assert {(line.role, "cut_line") for line in lines if line.is_cut} <= labels(each)


def test_documented_figures_of_the_rules_are_current() -> None:
    text = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    seen, unseen = figures(dialogues()[:SEEN]), figures(dialogues()[SEEN:])
    for kind in KINDS:
        labelled, right, wrong = unseen[kind]
        precision = f"{right / (right + wrong):.2f}" if right + wrong else ""
        recall = f"{right / labelled:.2f}" if labelled else ""
        row = (f"`{kind}`", *map(str, (*seen[kind], *unseen[kind])), precision, recall)
        assert f"| {' | '.join(row)} |" in text
