"""The shortcut check: a table of how well each feature separates the replies, and a warning."""

from __future__ import annotations

from dialoom.graphs import Table
from dialoom.graphs.reporting.statistics import FEWEST

from .sample import MOST_PEOPLE, MOST_PROMPTS, PairSample

WARN_ABOVE = 0.65
"""AUC above which there is a warning."""

FEWEST_FOR_WORDS = 20
"""With fewer people, the classifier of words is not estimated."""


def shortcut_table(sample: PairSample) -> Table | None:
    """Return how well length, punctuation and words separate the replies of a sample; `None` if it has none."""
    people = sample.people()
    if not people:
        return None
    from . import separation as by  # deferred: imports numpy, which is slow and only needed for preference datasets

    table = Table("shortcuts", "What separates chosen from rejected replies", ["by", "AUC", "same prompt"])
    warned = []
    for name, features, fewest in (
        ("length", by.lengths, FEWEST),
        ("punctuation", by.punctuation, FEWEST),
        ("words", by.words, FEWEST_FOR_WORDS),
    ):
        found = by.separation(people, features) if len(people) >= fewest else (None, None)
        table.rows.append([name, *found])
        if any(each is not None and each.mean > WARN_ABOVE for each in found):
            warned.append(name)
    if warned:
        table.notes.append(
            f"Warning: chosen and rejected replies can be told apart without the person, by {', '.join(warned)} "
            f"(above {WARN_ABOVE}). A model trained on these pairs can learn that instead of a person's preferences."
        )
    if len(people) < FEWEST_FOR_WORDS:
        table.notes.append(
            f"The classifier of words cannot be estimated with {len(people)} people; it needs {FEWEST_FOR_WORDS}, "
            f"and length and punctuation {FEWEST}."
        )
    table.notes.append(
        "AUC: the probability that a chosen reply scores higher than a rejected one; 0.5 if nothing separates them. "
        "Same prompt: the share of prompts whose chosen reply scores higher. The score is a regularised linear "
        f"discriminant of the reply alone, without prompt or person, cross-validated by person in {by.FOLDS} folds: no "
        "person is in both train and test. Length: numbers of characters and words. Punctuation: shares of kinds of "
        f"marks, emoji and line breaks among all characters. Words: which of the {by.MOST_WORDS} commonest occur. "
        "In brackets: 95 % intervals, clustered by person; n: replies, and prompts."
    )
    if sample.is_partial:
        table.notes.append(
            f"At most {MOST_PEOPLE} people and {MOST_PROMPTS} prompts of each are compared, chosen by hash."
        )
    return table
