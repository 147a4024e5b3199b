"""A full-text index of messages, in its own file so that searching never writes to the run."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from dialoom.outputs import create_private_file
from dialoom.runs.errors import RunError
from dialoom.runs.store import RunFile
from dialoom.runs.store.connections import signature

_LAYOUT_VERSION = 2
_PROGRESS_INTERVAL = 500
"""The number of conversations or texts between two progress reports."""
_LOCK_TIMEOUT_SECONDS = 60.0
"""The seconds to wait for another process that is updating the index."""


OnProgress = Callable[[str, int, int], None]
"""A listener that gets the operation, its progress and the total; an exception that it raises ends the operation."""


def ignore_progress(_what: str, _done: int, _of: int) -> None:
    """Ignore progress."""


_CREATE_TABLES = f"""
BEGIN IMMEDIATE;
DROP TABLE IF EXISTS seen;
DROP TABLE IF EXISTS said;
DROP TABLE IF EXISTS indexed;
DROP TABLE IF EXISTS words;
DROP TABLE IF EXISTS taken_in;
CREATE TABLE seen (position INTEGER PRIMARY KEY, messages BLOB);
CREATE TABLE said (text INTEGER, position INTEGER, PRIMARY KEY (text, position)) WITHOUT ROWID;
CREATE INDEX said_by_position ON said (position);
CREATE TABLE taken_in (mark TEXT);
CREATE TABLE indexed (text INTEGER PRIMARY KEY);
CREATE VIRTUAL TABLE words USING fts5(content, content='', tokenize='unicode61 remove_diacritics 2');
PRAGMA user_version = {_LAYOUT_VERSION};
COMMIT;
"""


class SearchIndex:
    """A full-text index of a run's finished conversations.

    Args:
        run: The run, open for as long as the index is used.
        folder: The folder for index files; by default the user's cache folder.

    Raises:
        OutputError: If the index cannot be stored in the folder.
    """

    def __init__(self, run: RunFile, folder: Path | None = None) -> None:
        self._run = run
        self._texts = run.message_texts()
        # The name is made from the run's id and its path, because a copy of a run may have diverged.
        name = hashlib.blake2b(f"{run.id}\0{run.path.resolve()}".encode(), digest_size=16).hexdigest()
        self.path = (folder or _cache_folder()) / f"{name}.db"
        create_private_file(self.path)

    def search(self, words: str, on_progress: OnProgress = ignore_progress) -> dict[int, int]:
        """Return the scenarios with a message that contains all of some words.

        Args:
            words: Words that must occur in one message, in any order. `"in quotes"` is a phrase, and `begin*` a prefix.
            on_progress: Called with the operation, the progress and the total while the index is created or updated; an
                exception that it raises ends the operation.

        Returns:
            The positions of scenarios, each with the id of the first text that contains the words.

        Raises:
            RunError: If `words` contains no word.
        """
        expression = _fts_query(words)
        with closing(sqlite3.connect(self.path, timeout=_LOCK_TIMEOUT_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = OFF")  # the index can be rebuilt
            if connection.execute("PRAGMA user_version").fetchone()[0] != _LAYOUT_VERSION:
                connection.executescript(_CREATE_TABLES)
            self._update(connection, on_progress)
            found = connection.execute(
                "SELECT position, min(text) FROM said WHERE text IN (SELECT rowid FROM words WHERE words MATCH ?) "
                "GROUP BY position",
                (expression,),
            )
            return dict(found.fetchall())

    def _update(self, connection: sqlite3.Connection, on_progress: OnProgress) -> None:
        """Index the messages that were added since the last update."""
        mark = repr(signature(self._run.path))
        if connection.execute("SELECT mark FROM taken_in").fetchone() == (mark,):
            return
        planned = self._run.planned
        known = dict(connection.execute("SELECT position, messages FROM seen").fetchall())
        connection.execute("BEGIN IMMEDIATE")
        with connection:  # commits, or rolls back after an error
            for number, (position, messages, texts) in enumerate(self._texts.of_changed(known)):
                if number % _PROGRESS_INTERVAL == 0:
                    on_progress("reading conversations", position, planned)
                connection.execute("INSERT OR REPLACE INTO seen VALUES (?, ?)", (position, messages))
                connection.execute("DELETE FROM said WHERE position = ?", (position,))
                rows = [(text, position) for text in dict.fromkeys(texts)]
                connection.executemany("INSERT OR IGNORE INTO said VALUES (?, ?)", rows)
            query = "SELECT DISTINCT text FROM said WHERE text NOT IN (SELECT text FROM indexed)"
            new = [int(text) for (text,) in connection.execute(query).fetchall()]
            for number, (id_, content) in enumerate(self._texts.contents(new)):
                if number % _PROGRESS_INTERVAL == 0:
                    on_progress("indexing messages", number, len(new))
                connection.execute("INSERT INTO words (rowid, content) VALUES (?, ?)", (id_, content))
                connection.execute("INSERT INTO indexed VALUES (?)", (id_,))
            connection.execute("DELETE FROM taken_in")
            connection.execute("INSERT INTO taken_in VALUES (?)", (mark,))


def extract_snippet(text: str, words: str, length: int = 160) -> str:
    """Return the part of a text around the first match of some words.

    Args:
        text: The text.
        words: The searched words, as for `dialoom.Run.scenarios`.
        length: The maximum length in characters.
    """
    lowered = text.casefold()
    positions = [lowered.find(word.casefold()) for word in words.replace('"', " ").replace("*", " ").split()]
    start = max(min([at for at in positions if at >= 0], default=0) - length // 4, 0)
    part = " ".join(text[start : start + length].split())
    return f"{'…' if start else ''}{part}{'…' if start + length < len(text) else ''}"


def _fts_query(words: str) -> str:
    """Return the words as an FTS5 query. Each word is quoted, so that none is taken as an operator."""
    parts = enumerate(words.replace("\0", " ").split('"'))  # every second one is a phrase
    terms = [term for number, part in parts for term in ([part] if number % 2 else part.split())]
    if not any(char.isalnum() for term in terms for char in term):
        raise RunError(f"search must contain a word, got {words!r:.80}", setting="search")
    return " ".join(
        '"' + term.rstrip("*").replace('"', "") + '"' + ("*" if term.endswith("*") else "") for term in terms
    )


def _cache_folder() -> Path:
    """Return the cache folder by the XDG base directory specification, which ignores relative paths."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(folder) if os.path.isabs(folder) else Path.home() / ".cache"  # noqa: PTH117
    return base / "dialoom" / "words"
