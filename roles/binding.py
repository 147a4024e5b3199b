"""Which model plays a role, and how it samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import BaseModel, ConfigDict, Field

from .errors import BindingError


class ModelBinding(BaseModel):
    """A role's model.

    Attributes:
        model: A LiteLLM model (`openai/gpt-5`), `offline/attentive`, `python:package.module:function` or
            `graph:path/to/file.py:name`.
        temperature: Sampling temperature; unused by `python:` and `graph:`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: str
    temperature: float = Field(ge=0.0, le=2.0)


def bindings(
    defaults: Mapping[str, float],
    models: Iterable[str],
    temperatures: Iterable[str],
    default_model: str | None = None,
) -> dict[str, ModelBinding]:
    """Bind every role of a recipe.

    Args:
        defaults: The recipe's roles with their default temperatures.
        models: `MODEL` for every role, or `ROLE=MODEL` for one; later ones win over earlier ones, named roles over all.
        temperatures: `T` for every role or `ROLE=T` for one.
        default_model: For roles that nothing names.

    Raises:
        BindingError: If a role is unknown or left without a model, or a temperature is no number from 0 to 2.
    """
    model_of = _by_role(models, defaults, "model")
    temperature_of = _by_role(temperatures, defaults, "temperature")
    bound: dict[str, ModelBinding] = {}
    for role, temperature in defaults.items():
        model = model_of.get(role) or model_of.get("") or default_model
        if model is None:
            raise BindingError(f"role {role!r} has no model; give --model MODEL or --model {role}=MODEL")
        chosen = temperature_of.get(role) or temperature_of.get("")
        bound[role] = ModelBinding(model=model, temperature=_temperature(chosen) if chosen else temperature)
    return bound


def _by_role(options: Iterable[str], roles: Iterable[str], what: str) -> dict[str, str]:
    """`ROLE=VALUE` options by role; a bare `VALUE` stands under the empty name."""
    known = list(roles)
    chosen: dict[str, str] = {}
    for option in options:
        role, equals, value = option.partition("=")
        if not equals or not role.isidentifier():
            role, value = "", option
        elif role not in known:
            raise BindingError(f"unknown role {role!r} in --{what} {option}; the roles are {', '.join(known)}")
        if not value.strip():
            raise BindingError(f"--{what} {option!r} names no {what}")
        chosen[role] = value.strip()
    return chosen


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 2.0:
        raise BindingError(f"--temperature {text!r} is no number from 0 to 2")
    return value
