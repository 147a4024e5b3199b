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
from dialoom.roles.gateway.secrets import redact
from dialoom.sandbox import Sandbox
from dialoom.text import to_well_formed

from .built_in_environments import (
    decode_snapshot,
    execute_statement,
    is_sqlite_snapshot,
    list_columns,
    restore_database,
)
from .environment import MAX_SHOWN_CHARACTERS, find_differences, format_value
from .outcome import Judgement, Line, Outcome, find_turn_ends

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
    def tool_results(self) -> tuple[tuple[FunctionCall, str | None], ...]:
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
        return cls(metric, make_sql_check(sql, expected), scale)

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
        return cls(metric, make_gold_check(gold))

    def judgement(self, conversation: Conversation) -> Judgement | None:
        """Return the check's judgement, or `None` where it does not apply.

        If the function raises an exception, the status is `error`.
        """
        fields = {"metric": self.metric, "target": self.target}
        try:
            result: Any = self.function(conversation)
            score, explanation = result if isinstance(result, tuple) and len(result) == 2 else (result, "")
            score = score.item() if hasattr(score, "item") else score  # a number or a verdict of NumPy
            reject_coroutine(result)
            if not isinstance(explanation, str):
                raise TypeError(f"the explanation must be a text, got {explanation!r:.60}")
            problem = "" if score is None else self._find_score_problem(score)
        except (Exception, SystemExit) as error:
            text = to_well_formed(redact(f"{type(error).__name__}: {error}"))
            return Judgement(**fields, status="error", explanation=text)
        if score is None:
            return None
        if problem:
            return Judgement(**fields, status="error", explanation=problem)
        return Judgement(**fields, score=score, explanation=to_well_formed(explanation))

    def _find_score_problem(self, score: Any) -> str:
        """Return the reason why a value is not a valid score of this check; empty if it is valid."""
        if not isinstance(score, bool | int | float):
            return f"a check returns a verdict, a number or None, got {type(score).__name__}"
        if not math.isfinite(score):
            return f"a score must be finite, got {score}"
        if self.scale is not None and not self.scale[0] <= score <= self.scale[1]:
            return f"a score must be from {self.scale[0]} to {self.scale[1]}, got {score}"
        return ""


def reject_coroutine(result: Any) -> None:
    """Check that a function of a conversation returned a value, not a coroutine.

    Raises:
        TypeError: If the function is async.
    """
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError(f"{result.__name__} is an async function; it must be a plain one")


def run_checks(checks: Iterable[Check], scenario: Any, outcome: Outcome) -> list[Judgement]:
    """Return the judgements of checks about a finished outcome, without those that do not apply."""
    conversation = Conversation(scenario, outcome)
    return [judgement for check in checks if (judgement := check.judgement(conversation)) is not None]


def select_judged_messages(outcome: Outcome, judgement: Judgement) -> Sequence[Line]:
    """Return the messages that a judgement is about: all messages, or the messages up to the end of the judged turn.

    A message with tool calls is part of the turn that continues after their results. If the target says nothing in the
    conversation, the first speaker's turns are counted instead.
    """
    messages = outcome.messages
    if judgement.turn is None or not messages:
        return messages
    speakers = [line.role for line in messages]
    ends = find_turn_ends(messages, judgement.target if judgement.target in speakers else speakers[0])
    return messages[: ends[judgement.turn - 1]] if 1 <= judgement.turn <= len(ends) else messages


def has_judgement(judgements: Iterable[Mapping[str, Any]], metric: str, target: str, turn: int | None = None) -> bool:
    """Return whether any parsed judgement has this metric, target and turn. Judgements are plain values."""
    return any(
        (judgement["metric"], judgement["target"], judgement.get("turn")) == (metric, target, turn)
        and judgement.get("status") != "unparsed"
        for judgement in judgements
    )


_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_QUOTED_PLACEHOLDER = re.compile(r"""(['"])[^'"]*\{\{.*?\}\}[^'"]*\1""", re.DOTALL)

Evaluator = Callable[[dict[str, Any]], Any]


class _CellText(str):
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


_MAX_COMPARED_ROWS = 100_000
"""Maximum number of rows that are compared with a list of expected values."""


def make_sql_check(sql: str, expected: Any = None) -> Callable[[Any], tuple[Any, str]]:
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
    if _QUOTED_PLACEHOLDER.search(sql):
        raise StateCheckError(
            f"sql has a {{{{ ... }}}} within quotes; leave out the quotes, because the value is bound as a parameter, "
            f"got {sql!r:.80}"
        )
    evaluators = [_compile_expression(each) for each in _PLACEHOLDER.findall(sql)]
    statement = _PLACEHOLDER.sub("?", sql)
    fill_expected = _compile_value(expected)

    def check(conversation: Any) -> tuple[Any, str]:
        if not is_sqlite_snapshot(conversation.environment):
            raise ValueError("sql needs an SQLite environment, but this conversation has none")
        fields = _collect_fields(conversation.scenario)
        parameters = [_to_parameter(evaluate(fields)) for evaluate in evaluators]
        expected_value = fill_expected(fields)
        is_list = isinstance(expected_value, list)
        rows = islice(
            execute_statement(restore_database(conversation.environment), statement, parameters),
            _MAX_COMPARED_ROWS + 1 if is_list else 1,
        )
        values = [next(iter(row.values()), None) for row in rows]
        if len(values) > _MAX_COMPARED_ROWS:
            raise ValueError(
                f"sql must select at most {_MAX_COMPARED_ROWS:,} rows to compare with a list, got more; count "
                "them in SQL"
            )
        actual = values if is_list else next(iter(values), None)
        query = f"{statement}{f' with {json.dumps(parameters, ensure_ascii=False)}' if parameters else ''}"
        if expected is None:
            return actual, f"{query}: {format_value(actual)}"
        return actual == expected_value, f"{query}: {_format_comparison(actual, expected_value)}"

    return check


def make_gold_check(gold: Any) -> Callable[[Any], tuple[Any, str]]:
    """Return a function that compares the final state with the right state, and states the differences.

    Args:
        gold: The right state, or the parts of it that matter: for a database its tables, each a list of rows, in any
            order and with the columns that matter. A string that consists of one `{{ expression }}` over the scenario's
            fields is replaced by the value of the expression. If this value is a string that holds JSON, the parsed
            JSON is used.

    Raises:
        StateCheckError: If an expression is wrong.
    """
    fill_gold = _compile_value(gold)

    def check(conversation: Any) -> tuple[Any, str]:
        if conversation.environment is None:
            raise ValueError("state compares the final state, but this conversation has no environment")
        expected = fill_gold(_collect_fields(conversation.scenario))
        if isinstance(expected, str):
            expected = json.loads(expected)
        if is_sqlite_snapshot(conversation.environment):
            _check_columns(expected, list_columns(conversation.environment))
        differences = find_differences(expected, decode_snapshot(conversation.environment))
        return not differences, "; ".join(differences)

    return check


def _check_columns(gold: Any, columns_by_table: Mapping[str, Sequence[str]]) -> None:
    """Check that a database has the tables and columns of its right state.

    Raises:
        ValueError: If it lacks one. The message lists those that it has.
    """
    for table, rows in gold.items() if isinstance(gold, Mapping) else ():
        if table not in columns_by_table:
            raise ValueError(
                f"gold has an unknown table {table!r}; the tables are {', '.join(columns_by_table) or 'none'}"
            )
        for row in rows if isinstance(rows, list) else ():
            for column in row if isinstance(row, Mapping) else ():
                if column not in columns_by_table[table]:
                    column_names = ", ".join(columns_by_table[table])
                    raise ValueError(
                        f"gold has an unknown column {column!r} of {table}; its columns are {column_names}"
                    )


def find_expressions(value: Any) -> Iterator[str]:
    """Yield the strings within a value that consist of one `{{ expression }}`."""
    if isinstance(value, str):
        if _PLACEHOLDER.fullmatch(value.strip()):
            yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from find_expressions(each)


def _compile_value(value: Any) -> Evaluator:
    """Return a function that, given a scenario's fields, returns a value with its expressions replaced."""
    if isinstance(value, str) and (match := _PLACEHOLDER.fullmatch(value.strip())):
        compute = _compile_expression(match[1])
        return lambda fields: _CellText(cell) if isinstance(cell := compute(fields), str) else cell
    if isinstance(value, Mapping):
        parts = {key: _compile_value(each) for key, each in value.items()}
        return lambda fields: {key: part(fields) for key, part in parts.items()}
    if isinstance(value, list | tuple):
        items = [_compile_value(each) for each in value]
        return lambda fields: [item(fields) for item in items]
    return lambda _names: value


def _compile_expression(text: str) -> Evaluator:
    try:
        compute, _ = Sandbox().expression(text.strip())
    except TemplateSyntaxError as error:
        raise StateCheckError(f"{{{{{text}}}}} is not an expression: {error.message}") from error

    def evaluate(fields: dict[str, Any]) -> Any:
        result = compute(fields)
        if isinstance(result, Undefined):
            raise ValueError(f"{{{{{text}}}}} has no value in this scenario")
        return result

    return evaluate


def _collect_fields(scenario: Any) -> dict[str, Any]:
    return {name: getattr(scenario, name) for name in type(scenario).model_fields}


def _to_parameter(value: Any) -> str | int | float | None:
    return value if isinstance(value, str | int | float | None) else json.dumps(value, ensure_ascii=False)


def _format_comparison(actual: Any, expected: Any) -> str:
    """Return a value and the expected value as text; of long lists and texts that differ, the first difference."""
    for kind, unit in ((list, "row"), (str, "character")):
        if (
            isinstance(actual, kind)
            and isinstance(expected, kind)
            and actual != expected
            and _is_truncated(actual, expected)
        ):
            pairs = enumerate(zip(actual, expected, strict=False))
            position = next(
                (position for position, (actual_item, expected_item) in pairs if actual_item != expected_item),
                min(len(actual), len(expected)),
            )
            actual_item, expected_item = (
                format_value(each[position]) if position < len(each) else "nothing" for each in (actual, expected)
            )
            lengths = f"{len(actual):,} {unit}s, expected {len(expected):,}"
            return f"{lengths}; they differ first in {unit} {position + 1:,}: {actual_item}, expected {expected_item}"
    return f"{format_value(actual)}, expected {format_value(expected)}"


def _is_truncated(*values: Any) -> bool:
    return any(len(json.dumps(value, ensure_ascii=False, default=str)) > MAX_SHOWN_CHARACTERS for value in values)
