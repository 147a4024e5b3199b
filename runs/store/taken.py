"""What a run has taken from each model so far, and what that is to its budget where replies say too little."""

from __future__ import annotations

import sqlite3

from dialoom.roles.gateway.budget import Taken
from dialoom.roles.gateway.calls import expected_tokens
from dialoom.roles.gateway.prices import Prices


def counted(connection: sqlite3.Connection, prices: Prices) -> Taken:
    """All that was taken, as the gateway counts it: what is not known counts by what the call was expected to take.

    Calls that were not answered count too: a crash came in between, and the provider may have billed them.
    """
    total = Taken()
    for model, calls, cost, tokens, *unpriced in connection.execute(_TAKEN).fetchall():
        total += Taken(calls, tokens, cost)
        if any(unpriced) and (price := prices.price(model)) is not None:
            total.cost += price.of(*unpriced)
    for model, calls, letters in connection.execute(_UNCOUNTED).fetchall():
        tokens = expected_tokens(letters, calls)
        total += Taken(0, tokens, prices.expected(model, tokens) or 0.0)
    return total


# Nothing was taken by calls that ended in an error, nor by replies out of a cache, which took no attempt.
_TOOK = "error IS NULL AND (reply IS NULL OR coalesce(attempts, 1) > 0)"

_TAKEN = f"""
SELECT model, count(*), total(cost), CAST(total(input_tokens + output_tokens) AS INTEGER),
    CAST(total(input_tokens) FILTER (WHERE known AND cost IS NULL) AS INTEGER),
    CAST(total(output_tokens) FILTER (WHERE known AND cost IS NULL) AS INTEGER),
    CAST(total(cached_tokens) FILTER (WHERE known AND cost IS NULL) AS INTEGER)
FROM (SELECT *, input_tokens IS NOT NULL AND output_tokens IS NOT NULL AS known FROM calls)
WHERE {_TOOK} GROUP BY model ORDER BY model"""

_UNCOUNTED = f"""
SELECT model, count(*), sum((
    WITH RECURSIVE part (entry) AS (
        SELECT value FROM json_each(calls.messages)
        UNION ALL
        SELECT value FROM part JOIN passages ON passages.id = part.entry, json_each(passages.messages)
    )
    SELECT coalesce(sum(length(content)), 0)
    FROM part JOIN texts ON texts.id IN (json_extract(entry, '$[1]'), json_extract(entry, '$[2]'))
))
FROM calls
WHERE (input_tokens IS NULL OR output_tokens IS NULL) AND {_TOOK} GROUP BY model"""
