"""The progress and spend of a run at one moment."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace

from dialoom.grouping import nest_triples
from dialoom.roles.gateway.budget import Spend
from dialoom.roles.gateway.calls import estimate_tokens
from dialoom.roles.gateway.model_facts import Prices

from .connections import transaction
from .judgement_sets import OWN_JUDGEMENTS
from .leases import OPEN_LEASES
from .texts import find_text


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of a group of calls. A value is `None` if a provider did not report it, or if the price is unknown.

    Attributes:
        calls: The number of calls that were answered or ended in an error.
        failed: The number of calls that ended in an error.
        unanswered: The number of calls that were sent and not answered: they are in progress, or a crash interrupted
            them.
        replays: The number of times that a recorded reply was reused instead of a call.
        cost: The cost in US dollars.
        cut: The number of replies that were cut off at their maximum length.
        refused: The number of replies that the provider marked as refusals.
        filtered: The number of replies that the provider's content filter cut.
        empty: The number of empty replies.
        only_thought: The number of replies that contain only the model's reasoning.
        models: The models called, in alphabetical order.
    """

    calls: int = 0
    failed: int = 0
    unanswered: int = 0
    replays: int = 0
    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cached_tokens: int | None = 0
    cost: float | None = 0.0
    cut: int = 0
    refused: int = 0
    filtered: int = 0
    empty: int = 0
    only_thought: int = 0
    models: tuple[str, ...] = ()

    @property
    def broken_off(self) -> dict[str, int]:
        """The numbers of incomplete replies, by problem. Problems that did not occur are left out."""
        found = {
            "cut off": self.cut,
            "refused": self.refused,
            "filtered": self.filtered,
            "empty": self.empty,
            "reasoning without an answer": self.only_thought,
        }
        return {name: count for name, count in found.items() if count}


@dataclass(frozen=True, slots=True)
class Status:
    """A run's progress and spend.

    Attributes:
        usage: The usage of all calls.
        by_role: The usage of the run's own calls, by role.
        by_judging: The usage of the calls that later sets of judgements made.
        gated: The number of finished scenarios that the gate has checked.
        faulty: The number of gated scenarios with a fault.
        faults: The number of faults in the gated scenarios.
        languages: The number of gated scenarios in each language, by ISO 639 code.
        leased: The number of scenarios that workers hold, whose latest calls are not in the file yet.
    """

    total: int
    done: int
    failed: int
    usage: Usage
    by_role: Mapping[str, Usage]
    by_judging: Mapping[str, Usage]
    gated: int
    faulty: int
    faults: int
    languages: Mapping[str, int]
    leased: int

    @property
    def pending(self) -> int:
        """The number of scenarios that are neither done nor failed, begun or not."""
        return self.total - self.done - self.failed


@dataclass(frozen=True, slots=True)
class FailedAttempts:
    """The failed attempts at one model's calls, including those after which a later attempt succeeded.

    Attributes:
        attempts: The number of failed attempts.
        throttled: The number of attempts that were rejected because of a rate limit or overload.
    """

    attempts: int
    throttled: int


@dataclass(frozen=True, slots=True)
class FailureCause:
    """A cause of failures, with the number of scenarios that failed because of it.

    Attributes:
        fault: The party at fault, in a word or two.
        error: The message.
        scenarios: The number of scenarios.
        first: The position of the first of these scenarios.
    """

    fault: str | None
    error: str
    scenarios: int
    first: int


@dataclass(frozen=True, slots=True)
class CheckErrors:
    """The errors of one check, which raised an exception or returned no score.

    Attributes:
        metric: The check's metric.
        conversations: The number of conversations.
        error: The error in the first of these conversations.
    """

    metric: str
    conversations: int
    error: str

    def __str__(self) -> str:
        noun = "conversation" if self.conversations == 1 else "conversations"
        return f"{self.metric} in {self.conversations:,} {noun} ({self.error})"


class StatusReader:
    """The reader of a run's progress and spend."""

    _reader: sqlite3.Connection

    def status(self) -> Status:
        """Read the status in one transaction, so that it is consistent while others write."""
        with transaction(self._reader):
            states = dict(self._reader.execute("SELECT state, count(*) FROM scenarios GROUP BY state").fetchall())
            by_role = _usage(self._reader, "role", "judging IS NULL")
            by_judging = _usage(self._reader, "judging", "judging IS NOT NULL")
            total = _usage(self._reader, "'all'", "true").get("all", Usage())
            gated, faulty, faults = self._reader.execute(_FAULTS).fetchone()
            languages = dict(self._reader.execute(_LANGUAGES).fetchall())
            (leased,) = self._reader.execute(f"SELECT count(*) {OPEN_LEASES}").fetchone()
        done, failed = states.get("done", 0), states.get("failed", 0)
        counts = (gated, faulty, faults, languages, leased)
        return Status(sum(states.values()), done, failed, total, by_role, by_judging, *counts)

    def changes(self) -> dict[str, dict[str, int]]:
        """Return the number of calls whose sent settings differ from the configured ones, by role and by reason."""
        return nest_triples(self._reader.execute(_CHANGES))

    def failed_attempts(self) -> dict[str, FailedAttempts]:
        """Return the failed attempts at calls by model, for models that have any."""
        return {model: FailedAttempts(*figures) for model, *figures in self._reader.execute(_FAILED_ATTEMPTS)}

    def usage_by_model(self) -> dict[str, Usage]:
        """Return the usage of all calls by the model called."""
        return _usage(self._reader, "model", "true")

    def failure_causes(self, most: int = 10) -> list[FailureCause]:
        """Return the causes of failed scenarios, the most frequent first."""
        return [
            FailureCause(*row)
            for row in self._reader.execute(
                "SELECT fault, coalesce(error, ''), count(*), min(position) FROM scenarios WHERE state = 'failed' "
                "GROUP BY 1, 2 ORDER BY 3 DESC, 4 LIMIT ?",
                (most,),
            )
        ]

    def check_errors(self) -> list[CheckErrors]:
        """Return the errors of checks in the run's own judgements, by metric."""
        return [
            CheckErrors(*row[:3])
            for row in self._reader.execute(
                "SELECT metric, count(DISTINCT scenario), explanation, min(scenario) FROM judgements "
                "WHERE judging = ? AND status = 'error' GROUP BY metric ORDER BY min(ordinal)",
                (OWN_JUDGEMENTS,),
            )
        ]

    def usage_by_scenario(self) -> dict[int, dict[str, Usage]]:
        """Return the usage of the run's own calls, by the scenario's position and the role."""
        query = "SELECT DISTINCT scenario FROM calls WHERE scenario IS NOT NULL ORDER BY scenario"
        positions = [row[0] for row in self._reader.execute(query)]
        return {
            position: _usage(self._reader, "role", f"judging IS NULL AND scenario = {int(position)}")
            for position in positions
        }

    def common_usage(self) -> tuple[dict[str, Usage], dict[str, Usage]]:
        """Return two usages by role: of the common calls that only one scenario uses, and of all other common calls."""
        common = "judging IS NULL AND scenario IS NULL"
        users = "(SELECT count(DISTINCT scenario) FROM common_uses WHERE common_uses.key = calls.key)"
        one, several = (_usage(self._reader, "role", f"{common} AND {users} {how}") for how in ("= 1", "<> 1"))
        return one, several

    def spend(self, prices: Prices) -> Spend:
        """Return the total spend that counts against the run's budget.

        Expected tokens are used for calls whose usage is unknown. Unanswered calls count too, because the provider may
        have billed calls that were in progress at a crash.
        """
        total = Spend()
        for model, calls, cost, tokens, *unpriced in self._reader.execute(_TAKEN).fetchall():
            total += Spend(calls, tokens, cost)
            if any(unpriced) and (price := prices.find_price(model)) is not None:
                total += Spend(cost=price.compute_cost(*unpriced))
        for model, calls, letters in self._reader.execute(_UNCOUNTED).fetchall():
            tokens = estimate_tokens(letters, calls)
            total += Spend(0, tokens, prices.estimate_cost(model, tokens) or 0.0)
        return total


def _usage(connection: sqlite3.Connection, group: str, which: str) -> dict[str, Usage]:
    nothing = find_text(connection, "")
    rows = connection.execute(_QUERY.format(group=group, which=which, nothing=-1 if nothing is None else nothing))
    usage = {}
    for name, models, *figures in rows:
        named = json.loads(models)
        if not all(isinstance(each, str) for each in (name, *named)):
            raise TypeError(f"a call's role and model must be texts, got {name!r}, {named!r}")
        usage[name] = replace(Usage(*figures), models=tuple(sorted(named)))
    return usage


# A sum is unknown if the value of any reply is unknown; calls without a reply count as 0, unless the provider has
# reported tokens.
_QUERY = """
SELECT {group}, json_group_array(DISTINCT model),
    count(reply) + count(error), count(error), count(*) - count(reply) - count(error), sum(replays),
    iif(count(coalesce(reply, input_tokens)) = count(input_tokens), CAST(total(input_tokens) AS INTEGER), NULL),
    iif(count(coalesce(reply, input_tokens)) = count(output_tokens), CAST(total(output_tokens) AS INTEGER), NULL),
    CAST(total(cached_tokens) AS INTEGER),
    iif(count(coalesce(reply, input_tokens)) = count(cost), total(cost), NULL),
    count(*) FILTER (WHERE finish_reason = 'length'), count(*) FILTER (WHERE finish_reason = 'refusal'),
    count(*) FILTER (WHERE finish_reason = 'content_filter'),
    count(*) FILTER (WHERE reply = {nothing} AND reasoning IS NULL),
    count(*) FILTER (WHERE reply = {nothing} AND reasoning IS NOT NULL)
FROM calls WHERE {which} GROUP BY {group}"""

# An attempt's error contains the provider's status: `MODEL: RateLimitError (429): ...`.
_FAULTS = """
SELECT count(faults), coalesce(sum(json_array_length(faults) > 0), 0), coalesce(sum(json_array_length(faults)), 0)
FROM outcomes
"""
_LANGUAGES = """
SELECT each.value, count(*) FROM outcomes, json_each(languages) AS each
WHERE faults IS NOT NULL GROUP BY 1 ORDER BY 1
"""
_CHANGES = """
SELECT role, content, count(*) FROM calls JOIN texts ON texts.id = changes
GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2
"""
_FAILED_ATTEMPTS = """
SELECT model, count(*), count(*) FILTER (WHERE
    attempts.error LIKE '%(429)%' OR attempts.error LIKE '%(503)%' OR attempts.error LIKE '%(529)%'
    OR attempts.error LIKE '%overloaded%')
FROM attempts JOIN calls ON calls.id = attempts.call GROUP BY model ORDER BY model"""


# Neither calls that ended in an error, without tokens, nor cache hits, which have no attempts, cost anything.
_TOOK = "(error IS NULL OR input_tokens IS NOT NULL) AND (reply IS NULL OR coalesce(attempts, 1) > 0)"

_TAKEN = f"""
SELECT model, count(*) - count(error), total(cost), CAST(total(input_tokens + output_tokens) AS INTEGER),
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
