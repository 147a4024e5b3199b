"""What readers of a run's file see as one row where the tables keep its parts: views, the same in every file.

Whoever reads needs none of the tables under them; only the writer knows these.
"""

from __future__ import annotations

import sqlite3

_PLACE = "(SELECT place.atom FROM json_each(part.value) AS place WHERE place.key = {})"
"""Of a span: whose it is, its beginning, and its letters."""

_TEXTS = f"""
CREATE VIEW texts AS
SELECT id, hash, iif(parts IS NULL, content, (
    -- A part that is not there makes the whole unknown, and not a text with a hole.
    SELECT iif(count(*) = count(piece), group_concat(piece, ''), NULL) FROM (
        SELECT CASE part.type
            WHEN 'text' THEN part.atom
            WHEN 'integer' THEN (SELECT whole.content FROM kept_texts AS whole WHERE whole.id = part.atom)
            ELSE (
                SELECT substr(whole.content, 1 + {_PLACE.format(1)}, {_PLACE.format(2)})
                FROM kept_texts AS whole WHERE whole.id = {_PLACE.format(0)}
            )
        END AS piece FROM json_each(kept_texts.parts) AS part ORDER BY part.id
    )
)) AS content
FROM kept_texts
"""
"""SQLite takes json_extract for unsafe in a view (where `trusted_schema` is off), and json_each for safe."""

VIEWS: dict[str, str] = {"texts": _TEXTS.strip()}
"""The definition of each view, by its name."""


def create(connection: sqlite3.Connection) -> None:
    """Make them."""
    for definition in VIEWS.values():
        connection.execute(definition)
