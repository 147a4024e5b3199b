"""Pool files, the importer, embedders and neighbours."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.personas import (
    POOL_KINDS,
    DataError,
    EmbedderError,
    LexicalEmbedder,
    Persona,
    PoolEntry,
    PoolKind,
    Repairs,
    check_embedder,
    combine,
    load_local_embedder,
    load_seeds,
    read_personas,
    read_pool,
    write_personas,
    write_pool,
)
from dialoom.personas.similarity import (
    VectorIndex,
    content_words,
    decode_vector,
    encode_vector,
    find_nearest_neighbours,
    normalize_vector,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda text: " ".join(text.split()))


def written(folder: Path, content: bytes | str) -> Path:
    """Write a file with that content."""
    path = folder / "pool.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: bytes | str) -> tuple[list[str], str]:
    """Return a file's texts and the summary of repairs."""
    repairs = Repairs()
    return [entry.text for entry in read_pool(written(folder, content), repairs)], repairs.summary()


@pytest.mark.parametrize("kind", POOL_KINDS)
def test_twenty_seeds_are_shipped_of_each_kind(kind: PoolKind) -> None:
    """They have 8 to 10 sentences each, are of round 0 and all different."""
    seeds = load_seeds(kind)
    assert len({seed.text for seed in seeds}) >= 20
    assert all(8 <= seed.text.count(". ") + 1 <= 10 and seed.text.endswith(".") for seed in seeds)
    assert {seed.round for seed in seeds} == {0}


def test_pool_of_the_release_is_read(tmp_path: Path) -> None:
    content = '"One lives in Rome."\n"Two has a boat.""Three has none."\n\n"Four sings."   \r\n   \n"Five sleeps."'
    found, report = read(tmp_path, content)
    assert found == ["One lives in Rome.", "Two has a boat.", "Three has none.", "Four sings.", "Five sleeps."]
    assert report == "2 blank lines left out; 1 line with several values split; 1 line with spaces at their end"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xef\xbb\xbf" + '"Zoë bakes."\n'.encode(), "1 byte order mark left out"),
        ('"Zoë bakes."\n'.encode("utf-16"), "1 file read as UTF-16"),
        ('"Zoë bakes."\n'.encode("cp1252"), "1 line read as Windows-1252"),
        ('"Zoë\\n  bakes."\n'.encode(), "1 text with stray spaces or line breaks repaired"),
        ('"Zoë bakes."\n"Zoë  bakes."\n""\n'.encode(), "1 empty text left out; 1 repeated text left out"),
    ],
)
def test_other_encodings_and_untidy_texts_are_repaired_and_counted(
    tmp_path: Path, content: bytes, message: str
) -> None:
    found, report = read(tmp_path, content)
    assert found == ["Zoë bakes."]
    assert message in report


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the pool contains no texts"),
        ("\n \n", "the pool contains no texts"),
        ('"fine"\n{"text": "cut o', "pool.jsonl:2: not JSON: Unterminated string"),
        ("She has no quotes.", "pool.jsonl:1: not JSON"),
        ('"fine" and more', "pool.jsonl:1: not JSON: Expecting value at column 8 ('and more')"),
        ("17", "pool.jsonl:1: holds int 17; a line must be a string or an object with a 'text'"),
        ('["one", "two"]', "pool.jsonl:1: holds list"),
        ('{"profile": "x"}', "pool.jsonl:1: holds an object with 'profile'"),
        ('{"text": "x", "round": -1}', "pool.jsonl:1: 'round' is -1"),
        ('{"text": "x", "note": 1}', "pool.jsonl:1: unknown key 'note'; the keys are id, text"),
        ('{"text": "x", "id": "a"}\n{"text": "y", "id": "a"}', "pool.jsonl:2: the id 'a' is already used on line 1"),
        (b'"\x81"', "pool.jsonl:1: byte 0x81 is neither UTF-8 nor Windows-1252"),
        (b"\xff\xfe\x00", "begins as UTF-16"),
        ("[" * 100_000, "pool.jsonl:1: nested more than 100 deep"),
    ],
)
def test_unrepairable_line_is_refused_with_its_place(tmp_path: Path, content: bytes | str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(tmp_path, content)
    assert message in str(caught.value)


def test_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.jsonl: there is no such file"):
        read_pool(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="is a folder; it must be a regular file"):
        read_pool(tmp_path)


@settings(max_examples=50)
@given(st.lists(texts.filter(bool), min_size=1, unique=True))
def test_pool_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, found: list[str]) -> None:
    path = tmp_path_factory.mktemp("pools") / "pool.jsonl"
    entries = [PoolEntry.of(text, 1, "x", 0.123456) for text in found]
    assert write_pool(path, entries) == len(entries)
    assert read_pool(path) == entries


def test_edited_pool_is_read(tmp_path: Path) -> None:
    write_pool(tmp_path / "pool.jsonl", [PoolEntry.of("She rows.", 3, None, None)])
    line = (tmp_path / "pool.jsonl").read_text()
    edited = line.replace("She rows.", "She rows at dawn.") + '{"text": "He fences."}\n'
    found = read_pool(written(tmp_path, edited))
    assert [entry.text for entry in found] == ["She rows at dawn.", "He fences."]
    assert found[0].id == PoolEntry.of("She rows.").id
    assert found[1] == PoolEntry.of("He fences.")


def test_personas_are_read_as_they_were_written(tmp_path: Path) -> None:
    people = [Persona.of("She rows.", "She is calm."), Persona.of("She rows.", "She is loud.")]
    write_personas(tmp_path / "people.jsonl", people)
    assert read_personas(tmp_path / "people.jsonl") == people
    bare = [{"profile": person.profile, "personality": person.personality} for person in people]
    assert read_personas(written(tmp_path, "\n".join(map(json.dumps, bare)))) == people


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "contains no persona"),
        ('"a text"', ":1: holds str; each line must be an object with profile and personality"),
        ('{"profile": "x"}', ":1: 'personality' is missing"),
        ('{"profile": "x", "personality": 3}', ":1: "),
        ('{"profile": "x", "personality": "y"}\n' * 2, ":2: the id "),
    ],
)
def test_broken_personas_are_refused_with_their_place(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_personas(written(tmp_path, content))
    assert message in str(caught.value)


@settings(max_examples=50)
@given(st.integers(1, 8), st.integers(1, 8), st.data(), st.integers())
def test_no_pair_is_drawn_twice(profiles: int, personalities: int, data: st.DataObject, seed: int) -> None:
    first = [PoolEntry.of(f"a {n}") for n in range(profiles)]
    second = [PoolEntry.of(f"b {n}") for n in range(personalities)]
    count = data.draw(st.integers(1, profiles * personalities))
    people = list(combine(first, second, count, seed))
    assert len({person.id for person in people}) == len(people) == count
    assert {person.profile for person in people} <= {entry.text for entry in first}
    assert people == list(combine(first, second, count, seed))


def test_more_personas_than_pairs_are_refused() -> None:
    pools = [PoolEntry.of("a"), PoolEntry.of("b")], [PoolEntry.of("c")]
    with pytest.raises(ValueError, match="give 2 pairs; give a number from 1 to 2"):
        list(combine(*pools, 3, 0))


def similarity(one: str, other: str) -> float:
    """Return the lexical similarity."""
    first, second = LexicalEmbedder().embed([one, other])
    return float(first @ second)


@settings(max_examples=100)
@given(st.text(), st.text())
def test_every_text_has_a_unit_vector(one: str, other: str) -> None:
    vectors = LexicalEmbedder().embed([one, other])
    assert all(abs(float(np.linalg.norm(vector)) - 1) < 1e-5 for vector in vectors)
    assert -1.00001 <= similarity(one, other) <= 1.00001
    assert similarity(one, other) == similarity(other, one)
    assert similarity(one, one) == pytest.approx(1, abs=1e-5)


def test_inflection_and_order_do_not_change_similarity() -> None:
    assert content_words("She often bakes cherry pies.") == content_words("He baked a cherry pie!")
    assert similarity("She is baking pies for the neighbours.", "For a neighbour, he baked a pie.") == pytest.approx(1)


def test_threshold_separates_copies_from_other_people() -> None:
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


@pytest.mark.parametrize("kind", POOL_KINDS)
def test_seeds_are_dissimilar(kind: str) -> None:
    texts = [seed.text for seed in load_seeds(kind)]  # type: ignore[arg-type]
    assert max(near[1] for near in find_nearest_neighbours(LexicalEmbedder().embed(texts)) if near) < 0.3


def test_vectors_are_the_same_in_every_process() -> None:
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
def test_nearest_kept_vector_is_found(values: list[list[float]]) -> None:
    try:
        vectors = [normalize_vector(value) for value in values]
    except ValueError:
        return  # too close to zero to have a direction
    index = VectorIndex(vectors[: len(vectors) // 2])
    for vector in vectors[len(vectors) // 2 :]:
        index.add(vector)
    place, nearest = index.nearest(vectors[0]) or (0, 0.0)
    products = [float(vector @ vectors[0]) for vector in vectors]
    assert nearest == pytest.approx(max(products), abs=1e-5)
    assert products[place] == pytest.approx(nearest, abs=1e-5)
    assert (decode_vector(encode_vector(vectors[0])) == vectors[0]).all()


def test_vectors_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match="an embedding of 2 numbers cannot be compared with one of 3"):
        VectorIndex([normalize_vector([1, 0, 0])]).nearest(normalize_vector([1, 0]))
    for wrong in ([0.0, 0.0], [float("nan")], [[1.0]]):
        with pytest.raises(ValueError, match="not all 0"):
            normalize_vector(wrong)  # type: ignore[arg-type]
    assert VectorIndex().nearest(normalize_vector([1])) is None
    assert find_nearest_neighbours([normalize_vector([1])]) == [None]


@pytest.mark.parametrize("wrong", ["", "bert", "st:", "litellm: ", "lexical:x"])
def test_unknown_embedder_is_refused(wrong: str) -> None:
    with pytest.raises(EmbedderError, match="is not an embedder; give lexical, st:MODEL"):
        check_embedder(wrong)


def test_missing_library_is_named_with_its_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(EmbedderError, match=r"pip install 'dialoom\[st\]'"):
        load_local_embedder("st:some-model")
