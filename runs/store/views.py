"""What readers of a run's file see as one row where the tables keep its parts: views, the same in every file.

Whoever reads needs none of the tables under them; only the writer knows these.
"""

from __future__ import annotations

import sqlite3

PER_SECOND = 10_000
"""In what part of a second latencies are kept."""

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

_CALLS = f"""
CREATE VIEW calls AS
SELECT kept_calls.id AS id, key, scenario, judging, node, step, ordinal, ask, sample, role, model, prompt, temperature,
    seed, messages, reply, reasoning, error, finish_reason, input_tokens, output_tokens, cached_tokens, cost, attempts,
    latency / {PER_SECOND}.0 AS latency, replays, branch
FROM kept_calls LEFT JOIN kinds ON kinds.id = kept_calls.kind
"""

_COMMON_USES = """
CREATE VIEW common_uses AS
SELECT scenario, sample, judging, branch, node, step, ordinal, ask, key
FROM kept_uses LEFT JOIN kinds ON kinds.id = kept_uses.kind
"""

VIEWS: dict[str, str] = {
    "texts": _TEXTS.strip(),
    "calls": _CALLS.strip(),
    "common_uses": _COMMON_USES.strip(),
}
"""The definition of each view, by its name."""


def create_views(connection: sqlite3.Connection) -> None:
    """Make them."""
    for definition in VIEWS.values():
        connection.execute(definition)
