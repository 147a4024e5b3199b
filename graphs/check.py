"""Checks, i.e. functions that score a finished conversation or its final state, and the messages that are judged."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

from jinja2 import TemplateSyntaxError, Undefined

from dialoom.errors import DialoomError
from dialoom.prompts import FunctionCall
from dialoom.roles.gateway.secrets import redacted
from dialoom.sandbox import Sandbox
from dialoom.text import well_formed

from .built_in_environments import columns_by_table, is_sqlite, readable, restored, rows
from .environment import MOST_SHOWN, difference, shown
from .outcome import Judgement, Line, Outcome, turn_ends

Score: TypeAlias = "bool | int | float | None"
"""The result of a check: a verdict, a number, or `None` if the check does not apply."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A finished conversation as a check sees it.

    Attributes:
        scenario: The scenario that was played.
        outcome: Its outcome.
    """

    scenario: Any
    outcome: Outcome

    @property
    def messages(self) -> tuple[Line, ...]:
        """All messages, in order."""
        return self.outcome.messages

    def text(self, role: str) -> str:
        """Return the messages of a role, one per line."""
        return "\n".join(line.content for line in self.messages if line.role == role)

    @property
    def environment(self) -> Any:
        """The final state of the assistant's environment, i.e. its last snapshot; `None` without an environment."""
        return self.outcome.environment

    @property
    def tool_results(self) -> Iterator[tuple[FunctionCall, str | None]]:
        """Each tool call, paired with the tool's result. The result is `None` for a call that was never answered."""
        return self.outcome.tool_results


@dataclass(frozen=True, slots=True)
class Check:
    """A metric that a function computes once a conversation has ended.

    Example:
        >>> check = dialoom.Check("gave_number", lambda talk: "AB-12345" in talk.text("assistant"))

    Attributes:
        metric: The name of the metric.
        function: A function that returns a verdict, a score, or `None` where the metric does not apply. It may also
            return a pair of this value and an explanation.
        scale: The lowest and the highest score; `None` for a verdict or for a number without bounds.
        target: The role whose messages are measured.
        lower_is_better: Whether low scores are good and, for a verdict, whether false is.
    """

    metric: str
    function: Callable[[Conversation], Score | tuple[Score, str]]
    scale: tuple[int, int] | None = None
    target: str = "assistant"
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise DialoomError(f"the function of check {self.metric!r} must be callable, got {self.function!r:.60}")
        if isinstance(self.scale, tuple) and not self.scale[0] < self.scale[1]:
            raise DialoomError(f"check {self.metric!r}: scale must go from low to high, got {self.scale!r}")

    @classmethod
    def sql(cls, metric: str, sql: str, expected: Any = None, scale: tuple[int, int] | None = None) -> Check:
        """Return a check that runs one SELECT statement on the final state of an SQLite environment.

        Example:
            >>> Check.sql("refunded", "SELECT count(*) FROM refunds WHERE order_id = {{ task.order }}", 1)

        Args:
            metric: The name of the metric.
            sql: The statement; each `{{ expression }}` over the scenario's fields is bound as a parameter.
            expected: The expected value of the first column in the first row, or a list of its values in all rows. The
                score is then a verdict. A string that consists of one `{{ expression }}` is replaced by the value of
                the expression; if this value is a text, it equals the number that it shows. If `expected` is `None`,
                the value itself is the score.
            scale: The lowest and the highest score.
        """
        return cls(metric, sql_check(sql, expected), scale)

    @classmethod
    def state(cls, metric: str, gold: Any) -> Check:
        """Return a check that compares the final state with the right state, and explains the differences.

        Example:
            >>> Check.state("right_state", {"refunds": [{"order_id": "{{ task.order }}"}]})

        Args:
            metric: The name of the metric.
            gold: The right state, or the parts of it that matter. A database is compared as its tables, by the columns
                that the right rows have. A string that consists of one `{{ expression }}` is replaced by the value of
                the expression; if this value is a text, it equals the number that it shows.
        """
        return cls(metric, gold_check(gold))

    def judgement(self, conversation: Conversation) -> Judgement | None:
        """Return the check's judgement, or `None` where it does not apply.

        If the function raises an exception, the status is `error`.
        """
        about = {"metric": self.metric, "target": self.target}
        try:
            found: Any = self.function(conversation)
            score, explanation = found if isinstance(found, tuple) and len(found) == 2 else (found, "")
            score = score.item() if hasattr(score, "item") else score  # a number or a verdict of NumPy
            check_not_async(found)
            if not isinstance(explanation, str):
                raise TypeError(f"the explanation must be a text, got {explanation!r:.60}")
            why = "" if score is None else self._refusal(score)
        except (Exception, SystemExit) as error:
            text = well_formed(redacted(f"{type(error).__name__}: {error}"))
            return Judgement(**about, status="error", explanation=text)
        if score is None:
            return None
        if why:
            return Judgement(**about, status="error", explanation=why)
        return Judgement(**about, score=score, explanation=well_formed(explanation))

    def _refusal(self, score: Any) -> str:
        """Return the reason why a value is not a valid score of this check; empty if it is valid."""
        if not isinstance(score, bool | int | float):
            return f"a check returns a verdict, a number or None, got {type(score).__name__}"
        if not math.isfinite(score):
            return f"a score must be finite, got {score}"
        if self.scale is not None and not self.scale[0] <= score <= self.scale[1]:
            return f"a score must be from {self.scale[0]} to {self.scale[1]}, got {score}"
        return ""


def check_not_async(found: Any) -> None:
    """Check that a function of a conversation returned a value, not a coroutine.

    Raises:
        TypeError: If the function is async.
    """
    if inspect.iscoroutine(found):
        found.close()
        raise TypeError(f"{found.__name__} is an async function; it must be a plain one")


def checked(checks: Iterable[Check], scenario: Any, outcome: Outcome) -> list[Judgement]:
    """Return the judgements of checks about a finished outcome, without those that do not apply."""
    conversation = Conversation(scenario, outcome)
    return [found for check in checks if (found := check.judgement(conversation)) is not None]


def conversation_to(outcome: Outcome, judgement: Judgement) -> Sequence[Line]:
    """Return the messages that a judgement is about: all messages, or the messages up to the end of the judged turn.

    A message with tool calls is part of the turn that continues after their results. If the target says nothing in the
    conversation, the first speaker's turns are counted instead.
    """
    messages = outcome.messages
    if judgement.turn is None or not messages:
        return messages
    speakers = [line.role for line in messages]
    ends = turn_ends(messages, judgement.target if judgement.target in speakers else speakers[0])
    return messages[: ends[judgement.turn - 1]] if 1 <= judgement.turn <= len(ends) else messages


def is_judged(judgements: Iterable[Mapping[str, Any]], metric: str, target: str, turn: int | None = None) -> bool:
    """Return whether any parsed judgement has this metric, target and turn. Judgements are plain values."""
    return any(
        (each["metric"], each["target"], each.get("turn")) == (metric, target, turn)
        and each.get("status") != "unparsed"
        for each in judgements
    )


_BLANK = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_QUOTED_BLANK = re.compile(r"""(['"])[^'"]*\{\{.*?\}\}[^'"]*\1""", re.DOTALL)

Values = Callable[[dict[str, Any]], Any]


class _Cell(str):
    """A text from a row, which equals the number that it shows, because all cells of CSV files are texts."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, bool) or not isinstance(other, int | float):
            return super().__eq__(other)
        try:
            return str(other) == self or float(self) == other
        except ValueError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class StateCheckError(DialoomError):
    """An error in the declaration of a check of the final state."""


_MOST_COMPARED = 100_000
"""Maximum number of rows that are compared with a list of expected values."""


def sql_check(sql: str, expected: Any = None) -> Callable[[Any], tuple[Any, str]]:
    """Return a function that runs one SELECT statement on the final state of an SQLite environment.

    Args:
        sql: The statement. Each `{{ expression }}` over the scenario's fields is bound as a parameter.
        expected: The expected value of the first column in the first row, or a list of its values in all rows. The
            score is then a verdict. A string that consists of one `{{ expression }}` is replaced by the value of the
            expression. If `expected` is `None`, the value itself is the score.

    Raises:
        StateCheckError: If an expression is wrong, or is within quotes.
    """
    if "{%" in sql:
        raise StateCheckError(f"sql may contain {{{{ ... }}}} but no template statements, got {sql!r:.80}")
    if _QUOTED_BLANK.search(sql):
        raise StateCheckError(
            f"sql has a {{{{ ... }}}} within quotes; leave out the quotes, because the value is bound as a parameter, "
            f"got {sql!r:.80}"
        )
    values = [_expression(each) for each in _BLANK.findall(sql)]
    statement = _BLANK.sub("?", sql)
    fill = _filled(expected)

    def check(conversation: Any) -> tuple[Any, str]:
        if not is_sqlite(conversation.environment):
            raise ValueError("sql needs an SQLite environment, but this conversation has none")
        names = _names(conversation.scenario)
        bound = [_parameter(value(names)) for value in values]
        right = fill(names)
        is_all = isinstance(right, list)
        read = islice(rows(restored(conversation.environment), statement, bound), _MOST_COMPARED + 1 if is_all else 1)
        found = [next(iter(row.values()), None) for row in read]
        if len(found) > _MOST_COMPARED:
            raise ValueError(
                f"sql must select at most {_MOST_COMPARED:,} rows to compare with a list, got more; count them in SQL"
            )
        got = found if is_all else next(iter(found), None)
        query = f"{statement}{f' with {json.dumps(bound, ensure_ascii=False)}' if bound else ''}"
        if expected is None:
            return got, f"{query}: {shown(got)}"
        return got == right, f"{query}: {_compared(got, right)}"

    return check


def gold_check(gold: Any) -> Callable[[Any], tuple[Any, str]]:
    """Return a function that compares the final state with the right state, and states the differences.

    Args:
        gold: The right state, or the parts of it that matter: for a database its tables, each a list of rows, in any
            order and with the columns that matter. A string that consists of one `{{ expression }}` over the scenario's
            fields is replaced by the value of the expression. If this value is a string that holds JSON, the parsed
            JSON is used.

    Raises:
        StateCheckError: If an expression is wrong.
    """
    fill = _filled(gold)

    def check(conversation: Any) -> tuple[Any, str]:
        if conversation.environment is None:
            raise ValueError("state compares the final state, but this conversation has no environment")
        right = fill(_names(conversation.scenario))
        if isinstance(right, str):
            right = json.loads(right)
        if is_sqlite(conversation.environment):
            _check_names(right, columns_by_table(conversation.environment))
        found = difference(right, readable(conversation.environment))
        return not found, "; ".join(found)

    return check


def _check_names(right: Any, known: Mapping[str, Sequence[str]]) -> None:
    """Check that a database has the tables and columns of its right state.

    Raises:
        ValueError: If it lacks one. The message lists those that it has.
    """
    for table, expected in right.items() if isinstance(right, Mapping) else ():
        if table not in known:
            raise ValueError(f"gold has an unknown table {table!r}; the tables are {', '.join(known) or 'none'}")
        for row in expected if isinstance(expected, list) else ():
            for column in row if isinstance(row, Mapping) else ():
                if column not in known[table]:
                    columns = ", ".join(known[table])
                    raise ValueError(f"gold has an unknown column {column!r} of {table}; its columns are {columns}")


def expressions(value: Any) -> Iterator[str]:
    """Yield the strings within a value that consist of one `{{ expression }}`."""
    if isinstance(value, str):
        if _BLANK.fullmatch(value.strip()):
            yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from expressions(each)


def _filled(value: Any) -> Values:
    """Return a function that, given a scenario's fields, returns a value with its expressions replaced."""
    if isinstance(value, str) and (found := _BLANK.fullmatch(value.strip())):
        compute = _expression(found[1])
        return lambda names: _Cell(cell) if isinstance(cell := compute(names), str) else cell
    if isinstance(value, Mapping):
        parts = {key: _filled(each) for key, each in value.items()}
        return lambda names: {key: part(names) for key, part in parts.items()}
    if isinstance(value, list | tuple):
        items = [_filled(each) for each in value]
        return lambda names: [item(names) for item in items]
    return lambda _names: value


def _expression(text: str) -> Values:
    try:
        compute, _ = Sandbox().expression(text.strip())
    except TemplateSyntaxError as error:
        raise StateCheckError(f"{{{{{text}}}}} is not an expression: {error.message}") from error

    def value(names: dict[str, Any]) -> Any:
        found = compute(names)
        if isinstance(found, Undefined):
            raise ValueError(f"{{{{{text}}}}} has no value in this scenario")
        return found

    return value


def _names(scenario: Any) -> dict[str, Any]:
    return {name: getattr(scenario, name) for name in type(scenario).model_fields}


def _parameter(value: Any) -> str | int | float | None:
    return value if isinstance(value, str | int | float | None) else json.dumps(value, ensure_ascii=False)


def _compared(got: Any, right: Any) -> str:
    """Return a value and the expected value as text; of long lists and texts that differ, the first difference."""
    for kind, unit in ((list, "row"), (str, "character")):
        if isinstance(got, kind) and isinstance(right, kind) and got != right and _is_cut(got, right):
            pairs = enumerate(zip(got, right, strict=False))
            place = next((place for place, (one, other) in pairs if one != other), min(len(got), len(right)))
            one, other = (shown(each[place]) if place < len(each) else "nothing" for each in (got, right))
            lengths = f"{len(got):,} {unit}s, expected {len(right):,}"
            return f"{lengths}; they differ first in {unit} {place + 1:,}: {one}, expected {other}"
    return f"{shown(got)}, expected {shown(right)}"


def _is_cut(*values: Any) -> bool:
    return any(len(json.dumps(value, ensure_ascii=False, default=str)) > MOST_SHOWN for value in values)
