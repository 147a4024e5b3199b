"""A sentence embedder from a folder: it recognizes paraphrases, which the lexical one does not."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import dialoom
from dialoom.personas import load_local_embedder

PARAPHRASES = (
    (
        "She keeps two hens and bakes bread before dawn.",
        "Early each morning she makes loaves; a pair of chickens is hers.",
    ),
    ("He drives a tram and has twin sons.", "He steers a streetcar and is the father of two boys of the same age."),
)


def test_embedder_recognizes_paraphrases(minilm: str) -> None:
    for texts in PARAPHRASES:
        assert similarity(minilm, *texts) > 0.5 > 0.2 > similarity("lexical", *texts)
    for first, second in pairwise(texts[0] for texts in PARAPHRASES):
        assert max(similarity(minilm, first, second), similarity("lexical", first, second)) < 0.3


def test_embedder_retrieves_a_preference_without_common_words(minilm: str, tmp_path: Path) -> None:
    preference = "I only take in old animals that nobody else wants, never a young one."
    asked = "We'd love a dog. What should we look for in a puppy, or in a breeder?"
    pair = {"topic": "pets", "preference": preference, "question": asked}
    (tmp_path / "pairs.json").write_text(json.dumps([pair]))
    options = {"pairs": tmp_path / "pairs.json", "method": ["rag"], "retrieved": [1], "turns": [8], "judge": False}
    for embedder, is_found in ((minilm, True), ("lexical", False)):
        path = tmp_path / f"{embedder[:2]}.db"
        run = dialoom.play("prefeval", path=path, options={**options, "embedder": embedder})
        (episode,) = run.episodes()
        assert episode.outcome.details["hit"] is is_found


def similarity(embedder: str, first: str, second: str) -> float:
    """Return the cosine similarity of two texts."""
    one, other = load_local_embedder(embedder).embed([first, second])
    return float(one @ other)
