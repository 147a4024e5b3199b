"""Taking a file back to an older version of the layout, as it would have been written then."""

from __future__ import annotations

import sqlite3

from dialoom.runs.store import views
from dialoom.runs.store.documents import digest


def back_to_five(file: sqlite3.Connection) -> None:
    """As before the views of version 6: every row whole."""
    texts = file.execute("SELECT id, content FROM texts ORDER BY id").fetchall()
    for view in views.VIEWS:
        file.execute(f"DROP VIEW {view}")
    file.execute("DROP TABLE kept_texts")
    file.execute("CREATE TABLE texts (id INTEGER PRIMARY KEY, hash BLOB, content TEXT)")
    file.execute("CREATE UNIQUE INDEX idx_texts_hash ON texts (hash)")
    file.executemany("INSERT INTO texts VALUES (?, ?, ?)", [(id_, digest(text), text) for id_, text in texts])
    file.execute("ALTER TABLE judgements RENAME TO younger")
    file.execute(
        "CREATE TABLE judgements (scenario INTEGER, judging TEXT, ordinal INTEGER, metric TEXT, target TEXT, "
        "turn INTEGER, score FLOAT, is_verdict INTEGER, status TEXT, explanation TEXT, "
        "PRIMARY KEY (scenario, judging, ordinal))"
    )
    file.execute("INSERT INTO judgements SELECT * FROM younger")
    file.execute("DROP TABLE younger")
    file.execute("PRAGMA user_version = 5")
    file.commit()
