"""Pool files and the importer: real files are survived and counted, broken ones named, and pools read as written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.personas import (
    KINDS,
    DataError,
    Mendings,
    Persona,
    PoolEntry,
    PoolKind,
    combined,
    read_personas,
    read_pool,
    shipped_seeds,
    write_personas,
    write_pool,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda text: " ".join(text.split()))


def written(folder: Path, content: bytes | str) -> Path:
    """A file with that content."""
    path = folder / "pool.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read(folder: Path, content: bytes | str) -> tuple[list[str], str]:
    """A file's texts, and what was mended."""
    mendings = Mendings()
    return [entry.text for entry in read_pool(written(folder, content), mendings)], mendings.summary()


@pytest.mark.parametrize("kind", KINDS)
def test_twenty_seeds_are_shipped_of_each_kind(kind: PoolKind) -> None:
    """Of 8 to 10 sentences each, of round 0, all different."""
    seeds = shipped_seeds(kind)
    assert len({seed.text for seed in seeds}) >= 20
    assert all(8 <= seed.text.count(". ") + 1 <= 10 and seed.text.endswith(".") for seed in seeds)
    assert {seed.round for seed in seeds} == {0}


def test_the_release_is_read_as_it_is(tmp_path: Path) -> None:
    """One line holds two texts, one has trailing spaces, some are blank: all mended and counted."""
    content = '"One lives in Rome."\n"Two has a boat.""Three has none."\n\n"Four sings."   \r\n   \n"Five sleeps."'
    found, mended = read(tmp_path, content)
    assert found == ["One lives in Rome.", "Two has a boat.", "Three has none.", "Four sings.", "Five sleeps."]
    assert mended == "2 blank lines left out; 1 line with several values split; 1 line with spaces at their end"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"\xef\xbb\xbf" + '"Zoë bakes."\n'.encode(), "1 byte order mark left out"),
        ('"Zoë bakes."\n'.encode("utf-16"), "1 file in UTF-16 read as such"),
        ('"Zoë bakes."\n'.encode("cp1252"), "1 line beyond UTF-8 read as Windows-1252"),
        ('"Zoë\\n  bakes."\n'.encode(), "1 text with stray spaces or line breaks mended"),
        (
            '"Zoë bakes."\n"Zoë  bakes."\n""\n'.encode(),
            "1 empty text left out; 1 repeated text left out",
        ),
    ],
)
def test_other_encodings_and_untidy_texts_are_mended_and_counted(tmp_path: Path, content: bytes, told: str) -> None:
    """The text comes out whole."""
    found, mended = read(tmp_path, content)
    assert found == ["Zoë bakes."]
    assert told in mended


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "the pool is empty"),
        ("\n \n", "the pool is empty"),
        ('"fine"\n{"text": "cut o', "pool.jsonl:2: not JSON: Unterminated string"),
        ("She has no quotes.", "pool.jsonl:1: not JSON"),
        ('"fine" and more', "pool.jsonl:1: not JSON: Expecting value at column 8 ('and more')"),
        ("17", "pool.jsonl:1: holds int 17; a text or an object with a 'text' is needed"),
        ('["one", "two"]', "pool.jsonl:1: holds list"),
        ('{"profile": "x"}', "pool.jsonl:1: holds an object with 'profile'"),
        ('{"text": "x", "round": -1}', "pool.jsonl:1: 'round' is -1"),
        ('{"text": "x", "note": 1}', "pool.jsonl:1: 'note' is 1"),
        ('{"text": "x", "id": "a"}\n{"text": "y", "id": "a"}', "pool.jsonl:2: the id 'a' is also that of line 1"),
        (b'"\x81"', "pool.jsonl:1: byte 0x81 is neither UTF-8 nor Windows-1252"),
        (b"\xff\xfe\x00", "begins as UTF-16"),
        ("[" * 100_000, "pool.jsonl:1: nested more than 100 deep"),
    ],
)
def test_what_cannot_be_mended_is_refused_with_its_place(tmp_path: Path, content: bytes | str, told: str) -> None:
    """File, line, the bad value and what would be right."""
    with pytest.raises(DataError) as caught:
        read(tmp_path, content)
    assert told in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    """By its name."""
    with pytest.raises(DataError, match=r"none\.jsonl: there is no such file"):
        read_pool(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match="is a folder; a regular file is needed"):
        read_pool(tmp_path)


@settings(max_examples=50)
@given(st.lists(texts.filter(bool), min_size=1, unique=True))
def test_a_pool_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, found: list[str]) -> None:
    """Whatever the texts hold."""
    path = tmp_path_factory.mktemp("pools") / "pool.jsonl"
    entries = [PoolEntry.of(text, 1, "x", 0.123456) for text in found]
    assert write_pool(path, entries) == len(entries)
    assert read_pool(path) == entries


def test_a_pool_that_somebody_edited_is_read(tmp_path: Path) -> None:
    """A text added by hand needs no id, and one that was changed keeps its id."""
    write_pool(tmp_path / "pool.jsonl", [PoolEntry.of("She rows.", 3, None, None)])
    line = (tmp_path / "pool.jsonl").read_text()
    edited = line.replace("She rows.", "She rows at dawn.") + '{"text": "He fences."}\n'
    found = read_pool(written(tmp_path, edited))
    assert [entry.text for entry in found] == ["She rows at dawn.", "He fences."]
    assert found[0].id == PoolEntry.of("She rows.").id
    assert found[1] == PoolEntry.of("He fences.")


def test_personas_are_read_as_they_were_written(tmp_path: Path) -> None:
    """With ids from their content; an object without an id gets it."""
    people = [Persona.of("She rows.", "She is calm."), Persona.of("She rows.", "She is loud.")]
    write_personas(tmp_path / "people.jsonl", people)
    assert read_personas(tmp_path / "people.jsonl") == people
    bare = [{"profile": person.profile, "personality": person.personality} for person in people]
    assert read_personas(written(tmp_path, "\n".join(map(json.dumps, bare)))) == people


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "holds no persona"),
        ('"a text"', ":1: holds str; an object with profile and personality is needed"),
        ('{"profile": "x"}', ":1: 'id' is missing"),
        ('{"profile": "x", "personality": 3}', ":1: "),
        ('{"profile": "x", "personality": "y"}\n' * 2, ":2: the id "),
    ],
)
def test_broken_personas_are_refused_with_their_place(tmp_path: Path, content: str, told: str) -> None:
    """File and line."""
    with pytest.raises(DataError) as caught:
        read_personas(written(tmp_path, content))
    assert told in str(caught.value)


@settings(max_examples=50)
@given(st.integers(1, 8), st.integers(1, 8), st.data(), st.integers())
def test_no_pair_is_drawn_twice(profiles: int, personalities: int, data: st.DataObject, seed: int) -> None:
    """All pairs can be had, the seed alone decides, and ids follow from the content."""
    first = [PoolEntry.of(f"a {n}") for n in range(profiles)]
    second = [PoolEntry.of(f"b {n}") for n in range(personalities)]
    count = data.draw(st.integers(1, profiles * personalities))
    people = list(combined(first, second, count, seed))
    assert len({person.id for person in people}) == len(people) == count
    assert {person.profile for person in people} <= {entry.text for entry in first}
    assert people == list(combined(first, second, count, seed))


def test_more_personas_than_pairs_are_refused() -> None:
    """With the number of pairs."""
    pools = [PoolEntry.of("a"), PoolEntry.of("b")], [PoolEntry.of("c")]
    with pytest.raises(ValueError, match="give 2 pairs; give a number from 1 to that"):
        list(combined(*pools, 3, 0))
