"""The gate: rules that detect faults of a conversation, and the roles at fault."""

from dialoom.graphs.fault import KINDS, DialogueFault, is_sound

from .coverage import Coverage, coverage, coverage_table, is_reduced, reduced_shares
from .gate import Gate
from .prompt_words import PromptWords
from .rules import RULES, Rule
from .rules.leaks import copied_forms
from .talk import Facts, Said, Talk

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
