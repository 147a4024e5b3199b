"""A sentence embedder from a folder: it sees what texts mean, which counting words does not."""

from __future__ import annotations

from itertools import pairwise

from dialoom.personas import local_embedder

SAME_IN_OTHER_WORDS = (
    (
        "She keeps two hens and bakes bread before dawn.",
        "Early each morning she makes loaves; a pair of chickens is hers.",
    ),
    ("He drives a tram and has twin sons.", "He steers a streetcar and is the father of two boys of the same age."),
)


def test_it_knows_the_same_in_other_words(minilm: str) -> None:
    """Where the lexical embedder finds nothing in common; people who differ are far apart by both."""
    for texts in SAME_IN_OTHER_WORDS:
        assert similarity(minilm, *texts) > 0.5 > 0.2 > similarity("lexical", *texts)
    for first, second in pairwise(texts[0] for texts in SAME_IN_OTHER_WORDS):
        assert max(similarity(minilm, first, second), similarity("lexical", first, second)) < 0.3


def similarity(embedder: str, first: str, second: str) -> float:
    """The cosine similarity of two texts."""
    one, other = local_embedder(embedder).embed([first, second])
    return float(one @ other)
