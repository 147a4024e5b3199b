"""Families of models, and the parameters that each family accepts; the table is `families.toml`."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict

MAX_TOKENS = "max_tokens"
"""LiteLLM's name for the maximum number of tokens in a reply."""

SEED = "seed"
"""Name of the seed parameter, whose value dialoom derives for each call."""

THINKING, EFFORT = "thinking", "reasoning_effort"
"""LiteLLM's names for the parameters that control a model's thinking, as defined by Anthropic and by OpenAI."""


class Family(BaseModel):
    """The parameters that a family of models accepts; the comment at the beginning of the table explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: str
    pattern: str
    source: str
    rejects: frozenset[str] = frozenset()
    fixed: Mapping[str, float] = {}
    at_most: Mapping[str, float] = {}
    either: tuple[str, str] | None = None
    thinking: frozenset[str] = frozenset()
    at_least: Mapping[str, float] = {}
    thinks: Literal["budget", "either", "adaptive"] | None = None
    by_default: bool = False
    budgets: Mapping[str, int] = {}
    returns: Literal["thinking_blocks", "signatures", "reasoning_content"] | None = None
    responses: bool = False
    limit: str = MAX_TOKENS
    system: str = "system"
    schema_: bool | None = None
    tools: bool | None = None


class Change(NamedTuple):
    """A difference between what is configured and what is sent.

    Attributes:
        name: The parameter.
        value: The configured value; `None` if none is configured.
        sent: The value that is sent; `None` if none is sent.
        reason: The reason for the difference.
    """

    name: str
    value: Any
    sent: Any
    reason: str

    def __str__(self) -> str:
        became = "not sent" if self.sent is None else f"sent as {self.sent!r}"
        is_shown = self.name != SEED and self.value is not None  # seeds differ in each call
        value = f" {self.value!r:.60}" if is_shown else ""
        return f"{self.name}{value} {became} ({self.reason})"


Changes: TypeAlias = tuple[Change, ...]


@functools.cache
def load_families() -> tuple[Family, ...]:
    """Return the families of models in the table."""
    rows = tomllib.loads(resources.files(__package__).joinpath("families.toml").read_text(encoding="utf-8"))["family"]
    return tuple(
        Family(**{"schema_" if name == "schema" else name: value for name, value in row.items()}) for row in rows
    )


@functools.cache
def find_family(model: str) -> Family | None:
    """Return the family that the last part of a model's name belongs to; `None` if the model is in no family."""
    name = strip_prefixes(model).lower()
    return next((each for each in load_families() if re.search(each.pattern, name)), None)


def strip_prefixes(model: str) -> str:
    """Return a model's name without the prefixes of its provider and router, and of OpenAI's fine-tuned models."""
    return model.rpartition("/")[2].removeprefix("ft:")


def fit_parameters(model: str, values: Mapping[str, Any]) -> tuple[Mapping[str, Any], Changes]:
    """Return the parameters to send to a model, with the differences from the configured ones.

    Args:
        model: The model's name.
        values: The configured values by LiteLLM's names, without those that are `None`.
    """
    family = find_family(model)
    if family is None:
        return values, ()
    sent, changes = dict(values), []
    for name, value in values.items():
        accepted, reason = _adapt_value(family, name, value, values)
        if accepted == value and not reason:
            continue
        changes.append(Change(name, value, accepted, reason))
        del sent[name]
        if name == THINKING and accepted is not None:
            sent = {**accepted, **sent}
        elif accepted is not None:
            sent[name] = accepted
    if family.limit != MAX_TOKENS and MAX_TOKENS in sent:
        sent[family.limit] = sent.pop(MAX_TOKENS)
    return sent, tuple(changes)


def _adapt_value(family: Family, name: str, value: Any, values: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the value to send for a parameter, or `None` to send none, and the reason for any difference."""
    if name in family.rejects:
        return None, f"{family.name} do not accept it"
    if name in family.fixed and value != family.fixed[name]:
        return None, f"{family.name} accept only {family.fixed[name]:g}"
    if name in family.thinking and _is_thinking(family, values):
        return None, f"{family.name} do not accept it while thinking"
    if family.either is not None and name == family.either[0] and family.either[1] in values:
        return None, f"{family.name} do not accept it with {family.either[1]}"
    if name in family.at_most and value > family.at_most[name]:
        return family.at_most[name], f"{family.name} accept at most {family.at_most[name]:g}"
    if name in family.at_least and value < family.at_least[name] and _is_thinking(family, values):
        return family.at_least[name], f"{family.name} accept no less than {family.at_least[name]:g} while thinking"
    if name == MAX_TOKENS and value <= (budget := _get_thinking_budget(family, values)):
        return value + budget, f"it must exceed the thinking budget of {budget:,} tokens"
    if name == THINKING and family.thinks == "adaptive" and isinstance(value, Mapping):
        return _adapt_thinking(family, value)
    return value, ""


def _adapt_thinking(family: Family, thinking: Mapping[str, Any]) -> tuple[Any, str]:
    """Return the value of `thinking` to send to a model that sets its own budget, and the reason for any difference."""
    if thinking.get("type") == "disabled" and family.by_default:
        return None, f"{family.name} always think"
    if thinking.get("type") != "enabled":
        return thinking, ""
    budget = thinking.get("budget_tokens") or 0
    efforts = [effort for effort, tokens in family.budgets.items() if budget >= tokens]
    return {EFFORT: efforts[-1] if efforts else next(iter(family.budgets))}, f"{family.name} accept no budget"


def _is_thinking(family: Family, values: Mapping[str, Any]) -> bool:
    thinking, effort = values.get(THINKING), values.get(EFFORT)
    if isinstance(thinking, Mapping) and THINKING not in family.rejects:
        return thinking.get("type") != "disabled"
    return family.by_default if effort is None else effort != "none"


def _get_thinking_budget(family: Family, values: Mapping[str, Any]) -> int:
    """Return the number of tokens reserved for thinking."""
    thinking = values.get(THINKING)
    if family.thinks not in ("budget", "either") or not _is_thinking(family, values):
        return 0
    if not isinstance(thinking, Mapping):
        return family.budgets.get(str(values.get(EFFORT)), 0) if family.thinks == "budget" else 0
    budget = thinking.get("budget_tokens")
    return budget if isinstance(budget, int) else 0
