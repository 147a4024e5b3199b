"""The gate. It checks every conversation of a run for faults by rules, and reports the roles at fault."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal

from dialoom.graphs.outcome import FAULT_KINDS, JUDGE_FAULT, DialogueFault, Line, Outcome, is_sound
from dialoom.prompts import Prompt

from .role_rules import find_copied_forms
from .rules import RULES, TEXT_RULES, Rule
from .talk import UNDETERMINED, Facts, GateLine, PromptWords, Talk, load_vocabularies

if TYPE_CHECKING:
    from dialoom.graphs.capabilities import WithGate

__all__ = [
    "FAULT_KINDS",
    "RULES",
    "Coverage",
    "DialogueFault",
    "Facts",
    "Gate",
    "GateLine",
    "PromptWords",
    "Rule",
    "Talk",
    "coverage",
    "find_copied_forms",
    "format_reduced_coverage",
    "has_reduced_coverage",
    "is_sound",
]


class Gate:
    """A detector of faults in the conversations of a recipe.

    Args:
        recipe: The recipe, which extracts the conversations from an outcome.
        prompts: The prompts of the models.
    """

    def __init__(self, recipe: WithGate, prompts: Iterable[Prompt]) -> None:
        self._recipe = recipe
        self._prompts = prompts

    @cached_property
    def _prompt_words(self) -> PromptWords:
        return PromptWords.of(self._prompts)

    def add_faults(self, scenario: Any, outcome: Outcome) -> Outcome:
        """Return a copy of an outcome with its faults, in the order of the messages, and its conversations' languages.

        The faults are `None` if there is no conversation.
        """
        faults: dict[DialogueFault, None] = {}
        if not (talks := list(self._recipe.talks(scenario, outcome))):
            return outcome.model_copy(update={"faults": None, "languages": ()})
        for talk in talks:
            faults.update(dict.fromkeys(self._find_faults(talk)))
        faults.update(dict.fromkeys(self._recipe.find_faults(scenario, outcome)))
        languages = tuple(sorted({talk.language for talk in talks}))
        return outcome.model_copy(update={"faults": tuple(sorted(faults, key=_sort_key)), "languages": languages})

    def find_line_faults(self, scenario: Any, history: Sequence[Line], line: Line) -> list[DialogueFault]:
        """Return the faults of a line before it is added to the conversation."""
        talk = Talk.of([*history, line], self._recipe.facts(scenario))
        return [each for each in self._find_faults(replace(talk, since=len(talk.lines) - 1)) if each.role == line.role]

    def _find_faults(self, talk: Talk) -> Iterator[DialogueFault]:
        talk_with_prompts = replace(talk, prompts=self._prompt_words)
        for rule in RULES if talk.is_spoken else TEXT_RULES:
            for fault in rule(talk_with_prompts):
                yield fault.model_copy(update={"role": talk.author or fault.role})


def _sort_key(fault: DialogueFault) -> tuple[bool, int, str]:
    return (fault.message is None, fault.message or 0, fault.where)


Coverage = Literal["full", "some", "none"]

REQUIRED_LISTS: Mapping[str, tuple[str, ...]] = {
    "echo": ("is_split", "persons"),
    "repetition": ("is_split", "persons"),
    "loop": ("is_split", "stop"),
    "swapped_role": ("offers", "requests"),
    "task_not_stated": ("is_split", "stop"),
    "claimed_action": ("claims",),
    "glued_lines": ("persons",),
    "cut_line": ("unfinished",),
    "other_language": ("scripts",),
    "early_preferences": ("likes",),
    "early_end": ("stop", "fillers", "dealt", "asks", "closings"),
    "no_end": ("closings",),
}
"""The attributes of a `Vocabulary` that the rules need, by kind of fault. Other kinds are detected in any language."""

_PARTLY_WITHOUT_LISTS = frozenset({"cut_line", "glued_lines", "early_preferences", "early_end"})
"""Kinds of faults that are partly detected even without word lists."""

_MIN_LIST_SHARE = 0.5
"""The minimum length of a word list for full coverage, as a share of the length of the same list in English.

The rules were developed for English.
"""


@cache
def coverage(language: str) -> Mapping[str, Coverage]:
    """Return the coverage of each kind of fault by the word lists of a language.

    `full`: every list that the rule needs exists, with at least half as many entries as in English. `none`: the rule
    finds nothing, because all of its lists are missing, or because it compares words and cannot separate those of the
    language. `some`: everything in between.

    Args:
        language: An ISO 639 code.
    """
    return {kind: _compute_coverage(language, kind) for kind in FAULT_KINDS if kind != JUDGE_FAULT}


def has_reduced_coverage(language: str) -> bool:
    """Return whether some kind of fault has less coverage in a language than in English."""
    return any(level != "full" for level in coverage(language).values())


def format_reduced_coverage(languages: Mapping[str, int], gated: int) -> str:
    """Return a sentence about the conversations that the gate checked in languages with reduced coverage.

    Args:
        languages: The number of conversations by ISO 639 code.
        gated: The number of conversations that the gate checked.
    """
    if not (
        reduced := {
            language: count for language, count in languages.items() if count and has_reduced_coverage(language)
        }
    ):
        return f"In languages with reduced coverage: 0 of {gated:,}."
    shares = [
        f"{'unknown language' if language == UNDETERMINED else language} {count:,} "
        f"({count / gated:.1%}; {_describe_coverage(language)})"
        for language, count in sorted(reduced.items(), key=lambda each: (-each[1], each[0]))
    ]
    return f"In languages with reduced coverage: {'; '.join(shares)}. Faults there may be missed."


def _compute_coverage(language: str, kind: str) -> Coverage:
    vocabularies, needed = load_vocabularies(), REQUIRED_LISTS.get(kind, ())
    sizes, english = (vocabularies[code].sizes if code in vocabularies else {} for code in (language, "en"))
    shares = {group: sizes.get(group, 0) / english[group] for group in needed}
    if all(share >= _MIN_LIST_SHARE for share in shares.values()):
        return "full"
    is_partly_covered = (
        shares.get("is_spaced", shares.get("is_split", any(shares.values()))) or kind in _PARTLY_WITHOUT_LISTS
    )
    return "some" if is_partly_covered else "none"


def _describe_coverage(language: str) -> str:
    """Return a message that lists the kinds of faults that are not detected, or only partly detected, in a language."""
    if language == UNDETERMINED:
        return "no language declared or recognised, so the rules for English were used"
    levels = coverage(language)
    named = {
        what: ", ".join(kind for kind, each in levels.items() if each == level)
        for what, level in (("not detected", "none"), ("detected less reliably", "some"))
    }
    return "; ".join(f"{what}: {kinds}" for what, kinds in named.items() if kinds)
