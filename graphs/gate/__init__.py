"""The gate: rules that detect faults of a conversation, and the roles at fault."""

from dialoom.graphs.outcome import KINDS, DialogueFault, is_sound

from .gate import Coverage, Gate, coverage, coverage_table, is_reduced, reduced_shares
from .rules import RULES, Rule
from .rules.lines import copied_forms
from .talk import Facts, Said, Talk
from .vocabulary import PromptWords

__all__ = [
    "KINDS",
    "RULES",
    "Coverage",
    "DialogueFault",
    "Facts",
    "Gate",
    "PromptWords",
    "Rule",
    "Said",
    "Talk",
    "copied_forms",
    "coverage",
    "coverage_table",
    "is_reduced",
    "is_sound",
    "reduced_shares",
]
