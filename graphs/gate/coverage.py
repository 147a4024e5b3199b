"""How well the gate's rules cover a language, derived from the word lists that there are of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from dialoom.graphs.fault import BY_JUDGES, KINDS

from .vocabulary import UNDETERMINED, vocabularies

Coverage = Literal["full", "some", "none"]

NEEDS: Mapping[str, tuple[str, ...]] = {
    "echo": ("is_spaced",),
    "repetition": ("is_spaced",),
    "loop": ("is_spaced", "stop"),
    "swapped_role": ("offers", "requests"),
    "glued_lines": ("persons",),
    "cut_line": ("unfinished",),
    "other_language": ("scripts",),
    "early_preferences": ("likes",),
    "early_end": ("stop", "fillers", "dealt", "asks", "closings"),
    "no_end": ("closings",),
}
"""What of a language's `Vocabulary` the rule of each kind of fault needs; all other kinds are found in any language."""

_ALSO_WITHOUT = frozenset({"cut_line", "glued_lines", "early_preferences", "early_end"})
"""Kinds of which the rule finds some without any word list."""

_ENOUGH = 0.5
"""This share of the entries of English, by which the rules were made and measured, is full coverage."""


@cache
def coverage(language: str) -> Mapping[str, Coverage]:
    """Return how well each kind of fault in a conversation is found, by the word lists of its language.

    `full`: every list that the rule needs is there, with at least half as many entries as in English. `none`: the rule
    finds nothing, as all of its lists are missing, or it compares words and blanks do not separate them. `some`:
    anything between.

    Args:
        language: An ISO 639 code.
    """
    return {kind: _coverage(language, kind) for kind in KINDS if kind != BY_JUDGES}


def is_reduced(language: str) -> bool:
    """Return whether some kind of fault is found less well in a language than in English."""
    return any(level != "full" for level in coverage(language).values())


def reduced_shares(languages: Mapping[str, int], gated: int) -> str:
    """Return a sentence on how many conversations that passed the gate are in languages with reduced coverage.

    Args:
        languages: How many conversations are in each language, by its ISO 639 code.
        gated: How many conversations passed the gate.
    """
    reduced = {language: count for language, count in languages.items() if count and is_reduced(language)}
    if not reduced:
        return f"In languages with reduced coverage: 0 of {gated:,}."
    told = [
        f"{language} {count:,} ({count / gated:.1%}; {_told(language)})"
        for language, count in sorted(reduced.items(), key=lambda each: (-each[1], each[0]))
    ]
    return f"In languages with reduced coverage: {'; '.join(told)}. Faults there may be missed."


def coverage_table() -> str:
    """Return a Markdown table of the coverage of each language and kind of fault whose rule needs words."""
    kinds = [kind for kind in coverage("en") if kind in NEEDS]
    rows = [["language", *(f"`{kind}`" for kind in kinds)], ["---"] * (len(kinds) + 1)]
    rows += [[f"`{code}`", *(coverage(code)[kind] for kind in kinds)] for code in vocabularies()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _coverage(language: str, kind: str) -> Coverage:
    known, needed = vocabularies(), NEEDS.get(kind, ())
    sizes, english = (known[code].sizes if code in known else {} for code in (language, "en"))
    shares = {group: sizes.get(group, 0) / english[group] for group in needed}
    if all(share >= _ENOUGH for share in shares.values()):
        return "full"
    is_found = shares.get("is_spaced", any(shares.values())) or kind in _ALSO_WITHOUT
    return "some" if is_found else "none"


def _told(language: str) -> str:
    """Return which kinds of faults are not found in a language, and which less well."""
    if language == UNDETERMINED:
        return "no language declared or recognised: the rules took it for English"
    levels = coverage(language)
    named = {
        what: ", ".join(kind for kind, each in levels.items() if each == level)
        for what, level in (("not found", "none"), ("found less well", "some"))
    }
    return "; ".join(f"{what}: {kinds}" for what, kinds in named.items() if kinds)
