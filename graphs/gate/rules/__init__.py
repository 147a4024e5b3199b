"""The rules: each reads a conversation and yields the faults that it detects, without calls to models."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.gate.talk import Talk

from .copies import copied_lines, loops
from .course import early_ends, early_preferences, endless_goodbyes
from .leaks import leaked_prompts, stray_markers, unfilled_blanks
from .lines import cut_lines, empty_lines, foreign_lines
from .parts import glued_lines, swapped_roles

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
