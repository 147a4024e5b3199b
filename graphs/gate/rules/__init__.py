"""The rules: each reads a conversation and yields the faults that it detects, without calls to models."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dialoom.graphs.gate.talk import Talk
from dialoom.graphs.outcome import DialogueFault

from .copies import copied_lines, glued_lines, loops, swapped_roles
from .lines import (
    cut_lines,
    early_ends,
    early_preferences,
    empty_lines,
    endless_goodbyes,
    foreign_lines,
    leaked_prompts,
    stray_markers,
    unfilled_blanks,
)

Rule = Callable[[Talk], Iterator[DialogueFault]]

RULES: tuple[Rule, ...] = (
    copied_lines,
    loops,
    swapped_roles,
    leaked_prompts,
    stray_markers,
    glued_lines,
    empty_lines,
    cut_lines,
    foreign_lines,
    early_preferences,
    early_ends,
    endless_goodbyes,
)
"""All rules for conversations, in the order in which faults of the same line are reported."""

TEXT_RULES: tuple[Rule, ...] = (copied_lines, leaked_prompts, empty_lines, cut_lines, foreign_lines, unfilled_blanks)
"""All rules for texts that are not spoken."""

__all__ = ["RULES", "TEXT_RULES", "Rule"]
