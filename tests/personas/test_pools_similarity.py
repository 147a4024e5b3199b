"""Embedders and neighbours: unit vectors, symmetry, and what the lexical similarity means."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.personas import KINDS, EmbedderError, LexicalEmbedder, check_embedder, local_embedder, shipped_seeds
from dialoom.personas.similarity import VectorIndex, content_words, nearest_neighbours, packed, unit, unpacked


def similarity(one: str, other: str) -> float:
    """The lexical one."""
    first, second = LexicalEmbedder().embed([one, other])
    return float(first @ second)


@settings(max_examples=100)
@given(st.text(), st.text())
def test_every_text_has_a_unit_vector(one: str, other: str) -> None:
    """Even an empty one; similarities are within bounds and the same both ways."""
    vectors = LexicalEmbedder().embed([one, other])
    assert all(abs(float(np.linalg.norm(vector)) - 1) < 1e-5 for vector in vectors)
    assert -1.00001 <= similarity(one, other) <= 1.00001
    assert similarity(one, other) == similarity(other, one)
    assert similarity(one, one) == pytest.approx(1, abs=1e-5)


def test_the_same_in_other_inflections_and_order_is_the_same() -> None:
    """Stems count, not forms; function words and words that everybody's description has do not."""
    assert content_words("She often bakes cherry pies.") == content_words("He baked a cherry pie!")
    assert similarity("She is baking pies for the neighbours.", "For a neighbour, he baked a pie.") == pytest.approx(1)


def test_what_the_threshold_means() -> None:
    """A reworded copy is above 0.6, another person with the same town, job and hobby far below."""
    text = (
        "She is 41 and lives in Turin. She works as a midwife. She has two sons. She cycles to the hospital. "
        "She collects old maps. She bakes rye bread. Her sister sings in a choir. She is allergic to wasps."
    )
    reworded = (
        "This woman of 41, from Turin, is a midwife with two sons. She goes to the hospital by cycle, collects maps, "
        "and bakes bread out of rye. A sister of hers is in a choir. Wasps cause her an allergic reaction."
    )
    another = (
        "She is 29 and lives in Turin. She works as a midwife. She shares a flat with a student of law. She collects "
        "old maps. Her car broke down in May. She boxes on Fridays. Her father grows lemons in Calabria."
    )
    assert similarity(text, reworded) > 0.6
    assert similarity(text, another) < 0.4
    assert "0.6" in LexicalEmbedder.meaning


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_are_unlike_each_other(kind: str) -> None:
    """All shipped seeds pass the filter, by far."""
    texts = [seed.text for seed in shipped_seeds(kind)]  # type: ignore[arg-type]
    assert max(near[1] for near in nearest_neighbours(LexicalEmbedder().embed(texts)) if near) < 0.3


def test_vectors_are_the_same_in_every_process() -> None:
    """Nothing depends on Python's own hash, which each process salts."""
    script = (
        "from dialoom.personas import LexicalEmbedder as L; print(L().embed(['A heron stood there.'])[0].tobytes())"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


@settings(max_examples=50)
@given(st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3).filter(any), min_size=1, max_size=100))
def test_the_nearest_of_those_kept_is_found(values: list[list[float]]) -> None:
    """As by trying all; packing and unpacking changes nothing."""
    try:
        vectors = [unit(value) for value in values]
    except ValueError:
        return  # too close to nothing to have a direction
    kept = VectorIndex(vectors[: len(vectors) // 2])
    for vector in vectors[len(vectors) // 2 :]:
        kept.add(vector)
    place, nearest = kept.nearest(vectors[0]) or (0, 0.0)
    products = [float(vector @ vectors[0]) for vector in vectors]
    assert nearest == pytest.approx(max(products), abs=1e-5)
    assert products[place] == pytest.approx(nearest, abs=1e-5)
    assert (unpacked(packed(vectors[0])) == vectors[0]).all()


def test_vectors_that_cannot_be_compared_are_refused() -> None:
    """Another length, no direction, no vector."""
    with pytest.raises(ValueError, match="an embedding of 2 numbers cannot be compared with one of 3"):
        VectorIndex([unit([1, 0, 0])]).nearest(unit([1, 0]))
    for wrong in ([0.0, 0.0], [float("nan")], [[1.0]]):
        with pytest.raises(ValueError, match="not all 0"):
            unit(wrong)  # type: ignore[arg-type]
    assert VectorIndex().nearest(unit([1])) is None
    assert nearest_neighbours([unit([1])]) == [None]


@pytest.mark.parametrize("wrong", ["", "bert", "st:", "litellm: ", "lexical:x"])
def test_an_unknown_embedder_is_refused(wrong: str) -> None:
    """With the forms that there are."""
    with pytest.raises(EmbedderError, match="is no embedder; give lexical, st:MODEL"):
        check_embedder(wrong)


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`st:` needs an extra."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(EmbedderError, match=r"pip install 'dialoom\[st\]'"):
        local_embedder("st:some-model")
