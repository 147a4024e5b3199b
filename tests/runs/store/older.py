"""Taking a file back to an older version of the layout, as it would have been written then."""

from __future__ import annotations

import sqlite3

from dialoom.runs.store import views
from dialoom.runs.store.documents import digest, text_of

_CALLS = """
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, key BLOB, scenario INTEGER, judging TEXT, node TEXT, step INTEGER, ordinal INTEGER,
    ask INTEGER, sample INTEGER, role TEXT, model TEXT, prompt TEXT, temperature FLOAT, seed INTEGER, messages TEXT,
    reply INTEGER, reasoning INTEGER, error TEXT, finish_reason TEXT, input_tokens INTEGER, output_tokens INTEGER,
    cached_tokens INTEGER, cost FLOAT, attempts INTEGER, latency FLOAT, replays INTEGER NOT NULL DEFAULT 0, branch TEXT
)"""


def back_to_six(file: sqlite3.Connection) -> None:
    """As before version 7: every document as text; and no languages, which came with version 9."""
    file.execute("ALTER TABLE outcomes DROP COLUMN languages")
    file.create_function("text_of", 1, text_of)
    file.execute("UPDATE documents SET content = text_of(content)")
    file.execute("PRAGMA user_version = 6")
    file.commit()


def back_to_five(file: sqlite3.Connection) -> None:
    """As before the views of version 6: every row whole."""
    back_to_six(file)
    for table in ("calls", "common_uses"):
        file.execute(f"CREATE TABLE older_{table} AS SELECT * FROM {table}")
    texts = file.execute("SELECT id, content FROM texts ORDER BY id").fetchall()
    for view in views.VIEWS:
        file.execute(f"DROP VIEW {view}")
    for table in ("kept_texts", "kept_calls", "kept_uses", "kinds"):
        file.execute(f"DROP TABLE {table}")
    file.execute(_CALLS)
    file.execute("INSERT INTO calls SELECT * FROM older_calls")
    file.execute("DROP TABLE older_calls")
    file.execute("CREATE INDEX idx_calls_scenario ON calls (scenario)")
    file.execute("CREATE UNIQUE INDEX calls_replayable ON calls (key) WHERE reply IS NOT NULL")
    file.execute("ALTER TABLE older_common_uses RENAME TO common_uses")
    for column in ("scenario", "key"):
        file.execute(f"CREATE INDEX idx_common_uses_{column} ON common_uses ({column})")
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
