"""Long lists of messages cost the file what is new in them, and come back as they were."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from sqlite_utils import Database

from dialoom.runs.store.passages import LONG, Passages, Said, read_messages, reading
from dialoom.runs.store.schema import create_passages


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    """To a file that has the table."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        create_passages(Database(opened))
        yield opened


def turns(first: int, count: int) -> list[Said]:
    """Messages of texts that came into the file one after the other."""
    return [("user" if id_ % 2 else "assistant", id_) for id_ in range(first, first + count)]


def size(connection: sqlite3.Connection) -> int:
    """Letters in all passages."""
    (letters,) = connection.execute("SELECT coalesce(sum(length(messages)), 0) FROM passages").fetchone()
    return int(letters)


def test_any_list_comes_back_as_it_was(connection: sqlite3.Connection) -> None:
    """Of whatever length, from whatever texts, with repetitions, and read by one that remembers nothing."""
    draw = random.Random(5)
    passages = Passages()
    lists = [turns(1, length) for length in (0, 1, LONG, LONG + 1, LONG + 2, 3000)]
    lists += [
        [(draw.choice(("system", "user", "assistant")), draw.randrange(1, texts)) for _ in range(draw.randrange(400))]
        for texts in (2, 3, 20, 1000, 2**40)
        for _ in range(10)
    ]
    lists += [[("tools", 1), *(("assistant", id_, id_ + 1) for id_ in range(2, 90)), ("tool", 3, 4), ("user", 5)]]
    lists += [[("user", 7)] * 1000, [("user", id_ * 16) for id_ in range(1, 900)]]
    held = [passages.text_of(connection, messages) for messages in lists]
    assert [read_messages(text, reading(connection)) for text in held] == lists
    assert held == [Passages().text_of(connection, messages) for messages in lists]


def test_one_line_more_costs_little_more_than_that_line(connection: sqlite3.Connection) -> None:
    """However long the conversation is by then; and its last message stands where it can be seen."""
    passages = Passages()
    played = turns(1, 600)
    total = sum(len(passages.text_of(connection, played[:length])) for length in range(1, 601)) + size(connection)
    assert total < 600 * 500  # as lists it would be 2.5 million
    assert passages.text_of(connection, played).endswith('["assistant",600]]')


def test_a_stretch_is_stored_once_wherever_it_stands(connection: sqlite3.Connection) -> None:
    """With other messages before it, after it, or in the middle of it."""
    passages = Passages()
    middle = turns(1, 596)
    passages.text_of(connection, [*turns(1000, 2), *middle, *turns(1002, 1)])
    once = size(connection)
    for number in range(100):
        first = 2000 + 5 * number
        place = number * 6
        passages.text_of(connection, [*turns(first, 2), *middle, *turns(first + 3, 1)])
        passages.text_of(connection, [*middle[:place], *turns(first, 2), *middle[place:], *turns(first + 3, 1)])
    assert size(connection) - once < 200 * 500
