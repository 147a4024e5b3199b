"""The flags and YAML keys about replies, by role: sampling, length and time-outs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialoom.inputs import DataError, parse_json, parse_yaml
from dialoom.roles.binding import Temperature
from dialoom.runs.errors import RunError

UNBOUNDED = "none"
"""The value that removes a bound."""


def parameters(given: Any) -> dict[str, dict[str, Any]]:
    """Return parameters by role and name; those of every role are under the empty name.

    Args:
        given: `[ROLE.]KEY=VALUE` texts with YAML or JSON as values; or a YAML file's mapping: by role, and of every
            role by name.

    Raises:
        RunError: If a text is none of these, or a parameter is given twice.
    """
    found: dict[str, dict[str, Any]] = {}
    for role, name, value in _of_mapping(given) if isinstance(given, Mapping) else map(_of_text, _listed(given)):
        if name in found.setdefault(role, {}):
            whole = f"{role}.{name}" if role else name
            raise RunError(f"params: {whole} is given twice, as {found[role][name]!r} and {value!r}", setting="params")
        found[role][name] = value
    return found


def joined(*given: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]] | None:
    """Merge parameters of several sources, of which the later take precedence; `None` if there are none."""
    roles = dict.fromkeys(role for each in given for role in each)
    return {role: {name: each[role][name] for each in given for name in each.get(role, {})} for role in roles} or None


def reply_limits(texts: Mapping[str, str] | None) -> dict[str, int | None] | None:
    """Return the most tokens of a reply, by role.

    Raises:
        RunError: If one is neither a whole number nor `none`.
    """
    found: dict[str, int | None] = {}
    for role, text in (texts or {}).items():
        if text.lower() != UNBOUNDED and not text.isdecimal():
            raise RunError(f"max_reply {text!r} is no whole number of tokens, nor {UNBOUNDED!r}", setting="max_reply")
        found[role] = None if text.lower() == UNBOUNDED else int(text)
    return found or None


def temperatures(texts: Mapping[str, str] | None) -> dict[str, Temperature | None] | None:
    """Return sampling temperatures by role; `None` in place of one that is not sent.

    Raises:
        RunError: If one is neither a number nor `none`.
    """
    found: dict[str, Temperature | None] = {}
    for role, text in (texts or {}).items():
        try:
            found[role] = None if text.lower() == UNBOUNDED else float(text)
        except ValueError as error:
            raise RunError(
                f"temperature must be a number from 0 to 2, or {UNBOUNDED!r} to send none, got {text!r}",
                setting="temperature",
            ) from error
    return found or None


def timeouts(texts: Mapping[str, str] | None) -> dict[str, float | None] | None:
    """Return the seconds of one attempt, by role.

    Raises:
        RunError: If one is neither a number nor `none`.
    """
    found: dict[str, float | None] = {}
    for role, text in (texts or {}).items():
        try:
            found[role] = None if text.lower() == UNBOUNDED else float(text)
        except ValueError as error:
            raise RunError(f"timeout {text!r} is no number of seconds, nor {UNBOUNDED!r}", setting="timeout") from error
    return found or None


def _listed(given: Any) -> list[str]:
    if given is None:
        return []
    return [str(each) for each in given] if isinstance(given, list) else [str(given)]


def _of_text(text: str) -> tuple[str, str, Any]:
    """Return role, name and value of `[ROLE.]KEY=VALUE`."""
    named, equals, written = text.partition("=")
    if not equals or not named.strip() or not written.strip():
        raise RunError(f"params {text!r} is not of the form [ROLE.]KEY=VALUE", setting="params")
    role, _, name = named.strip().rpartition(".") if named.count(".") == 1 else ("", "", named.strip())
    return role, name, _value(written, text)


def _of_mapping(given: Mapping[Any, Any]) -> list[tuple[str, str, Any]]:
    found: list[tuple[str, str, Any]] = []
    for key, each in given.items():
        role, dot, name = str(key).partition(".")
        if dot or not isinstance(each, Mapping):
            found.append((role, name, each) if dot else ("", role, each))
        else:
            found += [(role, str(name), value) for name, value in each.items()]
    return found


def _value(written: str, text: str) -> Any:
    for parse in (parse_json, parse_yaml):  # YAML takes 1e-3 for a text
        try:
            return parse(written, "params")
        except DataError as error:
            problem = error
    raise RunError(f"params {text!r:.100}: the value is neither JSON nor YAML ({problem})", setting="params")
