"""Expressions over what a run holds, as a person writes them: Jinja2's, in a sandbox, with no names but those given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, Undefined, UndefinedError
from jinja2.utils import missing

from dialoom.sandbox import Sandbox


class NotYetError(UndefinedError):
    """Something that is there only later."""


class Unknown(StrictUndefined):
    """What an expression names and is not there; the message says what there is instead."""

    __slots__ = ()

    def __init__(
        self, hint: str | None = None, obj: Any = missing, name: Any = None, exc: type[Exception] = UndefinedError
    ) -> None:
        beyond = isinstance(obj, list) and isinstance(name, int)
        super().__init__(hint, obj, name, NotYetError if beyond else exc)  # type: ignore[arg-type]

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint or self._undefined_obj is missing:
            return super()._undefined_message
        there = self._undefined_obj
        what = f"there is {', '.join(map(str, there)) or 'nothing'}" if isinstance(there, dict) else f"{there!r:.60}"
        return f"there is no {self._undefined_name!r}; {what}"


class Absent(Undefined):
    """A figure that was not had, such as an unparsed score: no comparison with it holds, and it counts as false."""

    __slots__ = ()

    def _never(self, _other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __contains__ = _never  # type: ignore[assignment]
    __hash__ = Undefined.__hash__


class _Environment(Sandbox):
    def getattr(self, obj: Any, attribute: str) -> Any:
        """A mapping's own keys first: `pool.items` is what the state calls so, never the method."""
        if isinstance(obj, Absent):
            return obj  # a part of what was not had was not had either
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)


_ENVIRONMENT = _Environment(undefined=Unknown)
_LONGEST = 1_000
"""Characters of an expression: what one computes is bounded by its length."""


def compiled(text: str) -> tuple[Callable[[dict[str, Any]], Any], set[str]]:
    """Return what computes an expression's value from the values of its names; and these names.

    Raises:
        TemplateError: If it is no expression, or longer than 1,000 characters.
    """
    if len(text) > _LONGEST:
        raise TemplateSyntaxError(f"it has {len(text):,} characters; an expression has at most {_LONGEST:,}", 1)
    return _ENVIRONMENT.expression(text)
