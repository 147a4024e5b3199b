"""Checks of the state that an assistant leaves behind: an SQL query of it, or a comparison with the right state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from jinja2 import TemplateSyntaxError, Undefined

from dialoom.errors import DialoomError
from dialoom.sandbox import Sandbox

from .built_in_environments import is_sqlite, readable, restored, rows
from .environment import difference

_BLANK = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_QUOTED_BLANK = re.compile(r"""(['"])[^'"]*\{\{.*?\}\}[^'"]*\1""", re.DOTALL)

Values = Callable[[dict[str, Any]], Any]


class StateCheckError(DialoomError):
    """A check of the final state that cannot work as declared."""


def sql_check(sql: str, expected: Any = None) -> Callable[[Any], tuple[Any, str]]:
    """Return a function that runs one SELECT statement on the final state of an SQLite environment.

    Args:
        sql: The statement. Each `{{ expression }}` over the scenario's fields is the value of a parameter, never a part
            of the statement.
        expected: The value, or for a list the values, of the first column: the score is a verdict. A text that is
            one `{{ expression }}` stands for its value. `None`: the first value of the first row is the score.

    Raises:
        StateCheckError: If an expression is wrong, or stands within quotes.
    """
    if "{%" in sql:
        raise StateCheckError(f"sql may hold {{{{ ... }}}} and no statements of a template, got {sql!r:.80}")
    if _QUOTED_BLANK.search(sql):
        raise StateCheckError(
            f"sql has a {{{{ ... }}}} within quotes; leave out the quotes: it is bound as a parameter, got {sql!r:.80}"
        )
    values = [_expression(each) for each in _BLANK.findall(sql)]
    statement = _BLANK.sub("?", sql)
    wanted = _filled(expected)

    def check(conversation: Any) -> tuple[Any, str]:
        if not is_sqlite(conversation.environment):
            raise ValueError("sql needs an SQLite environment, and this conversation has none")
        names = _names(conversation.scenario)
        bound = [_parameter(value(names)) for value in values]
        found = [next(iter(row.values()), None) for row in rows(restored(conversation.environment), statement, bound)]
        first = found[0] if found else None
        told = f"{statement}{f' with {json.dumps(bound, ensure_ascii=False)}' if bound else ''}"
        if expected is None:
            return first, f"{told}: {_shown(first)}"
        right = wanted(names)
        got = found if isinstance(right, list) else first
        return got == right, f"{told}: {_shown(got)}, expected {_shown(right)}"

    return check


def gold_check(gold: Any) -> Callable[[Any], tuple[Any, str]]:
    """Return a function that compares the final state with the right one, and names the differences.

    Args:
        gold: The right state, or the parts of it that matter: for a database its tables, each a list of rows, in any
            order and with the columns that matter. A text that is one `{{ expression }}` over the scenario's fields
            stands for its value; if that is a text, for the JSON value that it holds.

    Raises:
        StateCheckError: If an expression is wrong.
    """
    wanted = _filled(gold)

    def check(conversation: Any) -> tuple[Any, str]:
        if conversation.environment is None:
            raise ValueError("the final state is compared, and this conversation has no environment")
        right = wanted(_names(conversation.scenario))
        if isinstance(right, str):
            right = json.loads(right)
        found = difference(right, readable(conversation.environment))
        return not found, "; ".join(found)

    return check


def expressions(value: Any) -> Iterator[str]:
    """Yield the texts within a value that are one `{{ expression }}`, for the check of the columns that they name."""
    if isinstance(value, str):
        if _BLANK.fullmatch(value.strip()):
            yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from expressions(each)


def _filled(value: Any) -> Values:
    """Return a function that returns a value with its expressions replaced."""
    if isinstance(value, str) and (found := _BLANK.fullmatch(value.strip())):
        return _expression(found[1])
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
        raise StateCheckError(f"{{{{{text}}}}} is no expression: {error.message}") from error

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


def _shown(value: Any) -> str:
    return f"{json.dumps(value, ensure_ascii=False, default=str):.200}"
