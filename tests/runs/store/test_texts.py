"""Texts that repeat lines of earlier ones are stored in parts."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from dialoom.runs.store import schema, texts
from dialoom.runs.store.texts import Texts, make_text_reader


@pytest.fixture
def file() -> Iterator[sqlite3.Connection]:
    """Yield a connection to an empty run file."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("PRAGMA trusted_schema = OFF")
        schema.create(connection)
        yield connection


def stored_characters(file: sqlite3.Connection) -> int:
    """Return the number of characters of texts in the file."""
    query = "SELECT sum(coalesce(length(content), 0) + coalesce(length(parts), 0)) FROM kept_texts"
    return int(file.execute(query).fetchone()[0])


RULES = "\n".join(f"- rule {number}: an answer that breaks it is none, however well it is put" for number in range(9))


def test_repeated_parts_of_a_text_are_stored_once(file: sqlite3.Connection) -> None:
    said = [f"Which of the {number} museums by the river should I see first?" for number in range(20)]
    said += [
        f"Answer {number}: see the smallest of them first,\nas long as it rains; so much for that." for number in said
    ]
    sent = [f"Question:\n{each}\n\nIs it kind?\n\n{RULES}\nSay yes or no." for each in said]
    memory = Texts()
    ids = [memory.get_or_insert(file, text) for text in (*said, *sent)]
    assert dict(file.execute("SELECT id, content FROM texts").fetchall()) == dict(zip(ids, [*said, *sent], strict=True))
    assert [make_text_reader(file)(id_) for id_ in ids] == [*said, *sent]
    assert stored_characters(file) < sum(map(len, said)) + 2 * len(RULES) + 100 * len(sent)
    assert [Texts().get_or_insert(file, text) for text in sent] == ids[len(said) :], "each is found again"


def test_any_text_is_read_back_unchanged(file: sqlite3.Connection) -> None:
    draw = random.Random(7)
    words = ["a quiet seat near the window of the early train", "ünïcödé 😀 in a line that is long enough to be found"]
    lines = ["", "-", "short", '"quoted"', "\ttab", "back\\slash", "nul \0 within a line that is long enough to matter"]
    lines += [f"{draw.choice(words)} {number}" for number in range(40)]
    made = ["\n".join(draw.choices(lines, k=draw.randrange(1, 30))) for _ in range(600)]
    memory = Texts()
    ids = {text: memory.get_or_insert(file, text) for text in made}
    for text, id_ in ids.items():
        assert file.execute("SELECT content FROM texts WHERE id = ?", (id_,)).fetchone() == (text,)
    assert file.execute("SELECT count(*) FROM kept_texts WHERE parts IS NOT NULL").fetchone()[0] > 100


def test_texts_of_one_hash_are_distinguished(file: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "text_hash", lambda _content: 1)
    first, second = (Texts().get_or_insert(file, text) for text in ("one", "two"))
    assert first != second
    assert [Texts().find(file, text) for text in ("one", "two", "three")] == [first, second, None]


def test_text_that_lacks_a_part_is_an_error(file: sqlite3.Connection) -> None:
    memory = Texts()
    rules = memory.get_or_insert(file, RULES)
    sent = memory.get_or_insert(file, f"Is it kind?\n{RULES}\nSay yes or no.")
    file.execute("UPDATE kept_texts SET content = NULL, parts = ? WHERE id = ?", (f"[{rules}]", rules))
    for id_ in (rules, sent):
        with pytest.raises(LookupError, match="one of its parts, is missing"):
            make_text_reader(file)(id_)


def test_rolled_back_text_is_not_referred_to(file: sqlite3.Connection) -> None:
    memory = Texts()
    file.execute("BEGIN")
    memory.get_or_insert(file, RULES)
    file.execute("ROLLBACK")
    memory.clear()
    sent = memory.get_or_insert(file, f"Is it kind?\n{RULES}\nSay yes or no.")
    assert RULES in make_text_reader(file)(sent)
