"""The dialogues of a real model that were labelled by hand are what their page says."""

from __future__ import annotations

import json
from pathlib import Path

from dialoom.graphs import Line

LABELLED = Path(__file__).parent / "labelled" / "smollm2.jsonl"
KINDS = {"cut_line", "echo", "repetition", "swapped_role", "prompt_leak", "glued_lines"}


def test_every_label_is_of_a_kind_and_of_somebody_who_speaks() -> None:
    """And a line that its server cut off is labelled as cut."""
    dialogues = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    assert len({each["id"] for each in dialogues}) == len(dialogues) == 24
    for each in dialogues:
        lines = [Line.model_validate(line) for line in each["messages"]]
        faults = {tuple(fault) for fault in each["faults"]}
        assert {kind for _, kind in faults} <= KINDS
        assert {who for who, _ in faults} <= {line.role for line in lines}
        assert {(line.role, "cut_line") for line in lines if line.finish_reason == "length"} <= faults
