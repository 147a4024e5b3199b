"""Reading finished conversations page by page, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from dialoom.graphs import DialogueFault, Episode, Judgement, Line, Outcome
from dialoom.grouping import group_pairs, nest_triples
from dialoom.inputs import Frozen

from .connections import transaction
from .judgement_sets import words_of_panel
from .passages import StoredMessage, find_extra_fields, make_passage_reader, read_messages
from .references import ReadText, make_object_hook
from .texts import make_text_reader

_INDEX_PAGE = 500


class SpokenTexts:
    """The messages of a run's outcomes, by the ids of their texts.

    Args:
        reader: The connection that reads the run.
    """

    def __init__(self, reader: sqlite3.Connection) -> None:
        self._reader = reader
        self._passage = lru_cache(maxsize=4096)(make_passage_reader(reader))

    def of_changed(self, known: Mapping[int, bytes]) -> Iterator[tuple[int, bytes, list[int]]]:
        """Yield the messages of each scenario whose messages have changed since the given state.

        Args:
            known: The digests of the known messages, by position.

        Yields:
            The position, the digest of the messages, and the ids of their texts. There are no ids if the scenario is
            pending again.
        """
        after, seen = -1, set()
        while page := self._reader.execute(_PAGES, (after, _INDEX_PAGE)).fetchall():
            after = page[-1]["scenario"]
            for position, messages in page:
                seen.add(position)
                mark = hashlib.blake2b(messages.encode(), digest_size=8).digest()
                if known.get(position) != mark:
                    yield position, mark, [message[1] for message in read_messages(messages, self._passage)]
        for position in known.keys() - seen:
            if known[position]:
                yield position, b"", []

    def contents(self, ids: Sequence[int]) -> Iterator[tuple[int, str]]:
        """Yield the texts with these ids."""
        query = "SELECT id, content FROM texts WHERE id IN (SELECT value FROM json_each(?))"
        for start in range(0, len(ids), _INDEX_PAGE):
            yield from self._reader.execute(query, (json.dumps(ids[start : start + _INDEX_PAGE]),)).fetchall()


_PAGES = (
    "SELECT scenario, messages FROM outcomes JOIN scenarios ON position = scenario "
    "WHERE state IN ('done', 'failed') AND scenario > ? ORDER BY scenario LIMIT ?"
)


def read_state(connection: sqlite3.Connection, thread: str) -> dict[str, Any]:
    """Return the values of the graph's channels at a thread's latest checkpoint; empty if it has none."""
    from .checkpoints import ReadingSaver  # slow to import, and not needed for finished scenarios

    found = ReadingSaver(connection).get_tuple({"configurable": {"thread_id": thread}})
    return {} if found is None else dict(found.checkpoint["channel_values"])


class PromotedBranch(Frozen):
    """A branch of the step debugger from which an outcome came, with the changes that a person made on that branch.

    Attributes:
        name: The branch's name.
        models: The models that replaced those of the run, by role; several are joined by commas, in order of use.
        replaced: The models that they replaced, by role.
        edits: The number of edits of the state on the branch.
        said: The number of replies written by a person.
        prompts: The number of requests written by a person.
    """

    name: str
    models: Mapping[str, str] = {}
    replaced: Mapping[str, str] = {}
    edits: int = 0
    said: int = 0
    prompts: int = 0

    def done(self) -> str:
        """Return a short summary of a person's changes; empty if there are none."""
        done = [f"{role} played by {model} instead of {self.replaced[role]}" for role, model in self.models.items()]
        counted = ((self.edits, "edited"), (self.said, "said by a person"), (self.prompts, "asked by a person"))
        return ", ".join([*done, *(f"{count} {what}" for count, what in counted if count)])

    def summary(self) -> str:
        """Return the branch's name with the summary of a person's changes."""
        done = self.done()
        return f"branch {self.name}" + (f": {done}" if done else "")


@dataclass(frozen=True, slots=True)
class RecordedEpisode(Episode):
    """A finished scenario as read from a run's file.

    Attributes:
        branch: The branch from which the outcome came; `None` for the scenario's own line.
    """

    branch: PromotedBranch | None = None


_PAGE = 200


def read_episodes(
    connection: sqlite3.Connection, judging: Sequence[str], after: int = -1, before: int | None = None
) -> Iterator[RecordedEpisode]:
    """Yield the finished scenarios between two positions (both exclusive), in plan order.

    Args:
        connection: A connection to the file.
        judging: The set of judgements to include. If several sets are given, their judges' judgements are combined as a
            panel's.
        after: The lower position.
        before: The upper position; `None` for the end.
    """
    end = 2**62 if before is None else before
    while page := _page(connection, judging, after, end):
        yield from (episode for _, episode in page)
        after = page[-1][0]


def read_episode(connection: sqlite3.Connection, judging: Sequence[str], position: int) -> RecordedEpisode | None:
    """Return the outcome of the scenario at a position, with judgements as in `read_episodes`; `None` if pending."""
    return next(read_episodes(connection, judging, position - 1, position + 1), None)


def read_figures(connection: sqlite3.Connection, judging: Sequence[str]) -> Iterator[tuple[int, RecordedEpisode]]:
    """Yield every scenario's position and data in plan order, without messages, explanations and numbers of tokens.

    Lists of scenarios do not show what is left out, and reading it would take long.
    """
    after = -1
    while rows := connection.execute(_FIGURES, (after, _PAGE)).fetchall():
        last = rows[-1]["position"]
        scores = _of_sets(judging, partial(_scores, connection, after, last))
        for row in rows:
            position = row["position"]
            outcome = Outcome.model_construct(
                messages=(),
                ended_by=row["ended_by"] or "",
                counts=json.loads(row["counts"] or "{}"),
                judgements=() if row["state"] == "pending" else tuple(scores.get(position, ())),
                details={},
                faults=_faults(row["faults"]),
                languages=tuple(json.loads(row["languages"] or "[]")),
            )
            yield position, _episode(row, outcome, {})
        after = last


def read_outcome(connection: sqlite3.Connection, position: int) -> Outcome:
    """Return a finished scenario's outcome, without judgements."""
    row = connection.execute("SELECT *, scenario AS position FROM outcomes WHERE scenario = ?", (position,)).fetchone()
    messages, texts = _messages(connection, [row])
    return _outcome(row, messages[position], texts, (), make_text_reader(connection))


def _faults(text: str | None) -> tuple[DialogueFault, ...] | None:
    return None if text is None else tuple(DialogueFault.model_validate(each) for each in json.loads(text))


def _page(
    connection: sqlite3.Connection, judging: Sequence[str], after: int, end: int
) -> list[tuple[int, RecordedEpisode]]:
    """Return a page of episodes with their positions, read in one transaction."""
    with transaction(connection):
        rows = connection.execute(_EPISODES, (after, end, _PAGE)).fetchall()
        if not rows:
            return []
        last = rows[-1]["position"]
        messages, texts = _messages(connection, rows)
        judgements = _of_sets(judging, partial(_judgements, connection, after, last))
        tokens = _output_tokens(connection, after, last)
        read = make_text_reader(connection)
        found: list[tuple[int, RecordedEpisode]] = []
        for row in rows:
            at = row["position"]
            outcome = _outcome(row, messages[at], texts, tuple(judgements.get(at, ())), read)
            found.append((at, _episode(row, outcome, tokens.get(at, {}))))
        return found


def _episode(row: sqlite3.Row, outcome: Outcome, output_tokens: Mapping[str, int | None]) -> RecordedEpisode:
    return RecordedEpisode(
        id=row["id"],
        facets=json.loads(row["facets"]),
        state=row["state"],
        outcome=outcome,
        output_tokens=output_tokens,
        error=row["error"],
        at_fault=row["fault"],
        trial=row["trial"],
        branch=None if row["branch"] is None else PromotedBranch.model_validate_json(row["branch"]),
    )


_EPISODES = """
SELECT position, id, trial, facets, state, error, fault, branch, ended_by, counts, details, faults, languages,
    outcomes.messages
FROM scenarios JOIN outcomes ON scenario = position
WHERE state IN ('done', 'failed') AND position > ? AND position < ? ORDER BY position LIMIT ?"""


_FIGURES = """
SELECT position, id, trial, facets, state, error, fault, branch, ended_by, counts, faults, languages
FROM scenarios LEFT JOIN outcomes ON scenario = position AND state IN ('done', 'failed')
WHERE position > ? ORDER BY position LIMIT ?"""

_SCORES = """
SELECT scenario, metric, target, turn, score, is_verdict FROM judgements
WHERE judging = ? AND scenario > ? AND scenario <= ? ORDER BY scenario, ordinal"""


def _messages(
    connection: sqlite3.Connection, rows: list[sqlite3.Row]
) -> tuple[dict[int, list[StoredMessage]], dict[int, str]]:
    """Return the messages of each scenario by its position, and the texts of the messages by id."""
    passage = lru_cache(maxsize=None)(make_passage_reader(connection))
    by_position = {row["position"]: read_messages(row["messages"], passage) for row in rows}
    ids = {id_ for messages in by_position.values() for message in messages for id_ in message if isinstance(id_, int)}
    return by_position, dict(
        connection.execute(
            "SELECT id, content FROM texts WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(sorted(ids)),)
        ).fetchall()
    )


def _outcome(
    row: sqlite3.Row,
    stored: Sequence[StoredMessage],
    texts: Mapping[int, str],
    judgements: tuple[Judgement, ...],
    read: ReadText,
) -> Outcome:
    return Outcome(
        messages=tuple(_line(message, texts) for message in stored),
        ended_by=row["ended_by"],
        counts=json.loads(row["counts"]),
        details=json.loads(
            row["details"] or "{}", object_hook=make_object_hook(lambda id_: texts.get(id_) or read(id_))
        ),
        judgements=judgements,
        faults=_faults(row["faults"]),
        languages=tuple(json.loads(row["languages"] or "[]")),
    )


def _line(message: StoredMessage, texts: Mapping[int, str]) -> Line:
    role, id_, *rest = message
    reason = next((each for each in rest if isinstance(each, str)), None)
    beyond = find_extra_fields(message)
    return Line(role=role, content=texts[id_], finish_reason=reason, **json.loads(texts[beyond]) if beyond else {})


def _of_sets(
    judging: Sequence[str], read: Callable[[str], Mapping[int, list[Judgement]]]
) -> Mapping[int, list[Judgement]]:
    """Return the judgements of each scenario: those of one set or, for several sets, those of the panel."""
    found = {name: read(name) for name in judging}
    if len(found) < 2:
        return next(iter(found.values()), {})
    positions = sorted({position for by_position in found.values() for position in by_position})
    return {
        position: words_of_panel({name: found[name].get(position, []) for name in judging}) for position in positions
    }


def _scores(connection: sqlite3.Connection, after: int, last: int, judging: str) -> dict[int, list[Judgement]]:
    """Return the judgements of each scenario in a set, without explanations."""
    return group_pairs(
        (
            scenario,
            Judgement.model_construct(
                metric=metric,
                target=target,
                turn=turn,
                score=None if score is None else _score(score, is_verdict),
            ),
        )
        for scenario, metric, target, turn, score, is_verdict in connection.execute(_SCORES, (judging, after, last))
    )


def _judgements(connection: sqlite3.Connection, after: int, last: int, judging: str) -> dict[int, list[Judgement]]:
    query = "SELECT * FROM judgements WHERE judging = ? AND scenario > ? AND scenario <= ? ORDER BY scenario, ordinal"
    return group_pairs(
        (
            row["scenario"],
            Judgement(
                metric=row["metric"],
                target=row["target"],
                turn=row["turn"],
                score=None if row["score"] is None else _score(row["score"], row["is_verdict"]),
                status=row["status"],
                explanation=row["explanation"],
            ),
        )
        for row in connection.execute(query, (judging, after, last))
    )


def _score(score: float, is_verdict: int) -> bool | int | float:
    return bool(score) if is_verdict else int(score) if score.is_integer() else score


def _output_tokens(connection: sqlite3.Connection, after: int, last: int) -> dict[int, dict[str, int | None]]:
    """Return the output tokens by scenario and role; `None` if a call's count is unknown."""
    query = (
        "SELECT scenario, role, CAST(total(output_tokens) AS INTEGER), count(*) = count(output_tokens) FROM calls "
        "JOIN scenarios ON position = scenario AND calls.sample >= take "  # excludes calls of earlier takes
        "WHERE scenario > ? AND scenario <= ? AND reply IS NOT NULL AND judging IS NULL AND calls.branch IS NULL "
        "GROUP BY scenario, role"
    )
    rows = connection.execute(query, (after, last))
    return nest_triples((scenario, role, tokens if known else None) for scenario, role, tokens, known in rows)
