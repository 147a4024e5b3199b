"""Which model plays a role, and how it samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from .errors import BindingError


class ModelBinding(BaseModel):
    """A role's model.

    Attributes:
        model: A LiteLLM model (`openai/gpt-5`), `offline/attentive`, `python:package.module:function` or
            `graph:path/to/file.py:name`.
        temperature: Sampling temperature; unused by `python:` and `graph:`.
        api_base: Where the model is served, if not at its provider's own address.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: str
    temperature: float = Field(ge=0.0, le=2.0)
    api_base: str | None = None


def bindings(
    defaults: Mapping[str, float],
    models: Iterable[str],
    temperatures: Iterable[str],
    default_model: str | None = None,
    api_bases: Iterable[str] = (),
) -> dict[str, ModelBinding]:
    """Bind every role of a recipe.

    Args:
        defaults: The recipe's roles with their default temperatures.
        models: `MODEL` for every role, or `ROLE=MODEL` for one; later ones win over earlier ones, named roles over all.
        temperatures: `T` for every role or `ROLE=T` for one.
        default_model: For roles that nothing names.
        api_bases: `URL` for every role whose model has an address, or `ROLE=URL` for one.

    Raises:
        BindingError: If a role is unknown or left without a model, a temperature is no number from 0 to 2, or an
            address is none, may hold a secret, or is given to a model that has none.
    """
    model_of = _by_role(models, defaults, "model")
    temperature_of = _by_role(temperatures, defaults, "temperature")
    address_of = {role: _address(url) for role, url in _by_role(api_bases, defaults, "api-base").items()}
    bound: dict[str, ModelBinding] = {}
    for role, temperature in defaults.items():
        model = model_of.get(role) or model_of.get("") or default_model
        if model is None:
            raise BindingError(f"role {role!r} has no model; give --model MODEL or --model {role}=MODEL")
        chosen = temperature_of.get(role) or temperature_of.get("")
        if role in address_of and not _has_address(model):
            raise BindingError(f"--api-base {role}=...: {role} is played by {model}, which is called at no address")
        bound[role] = ModelBinding(
            model=model,
            temperature=_temperature(chosen) if chosen else temperature,
            api_base=address_of.get(role) or (address_of.get("") if _has_address(model) else None),
        )
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


def _has_address(model: str) -> bool:
    return not model.startswith(("offline/", "python:", "graph:"))


def _address(url: str) -> str:
    """An address is kept in a run's file and shown: it must hold no secret, and no message may either."""
    try:
        parts = urlsplit(url)
        host, is_web = parts.hostname, parts.scheme in ("http", "https")
        holds_login = parts.username is not None or parts.password is not None
    except ValueError:
        host, is_web, holds_login = None, False, "@" in url
    if holds_login or (host and (parts.query or parts.fragment)):
        raise BindingError(
            f"--api-base: the address of {host or 'a server'} holds a login or a query; give "
            "http(s)://HOST[:PORT]/PATH alone, and keys by the environment"
        )
    if not host or not is_web:
        raise BindingError(f"--api-base {url!r} is no address; give [ROLE=]http(s)://HOST[:PORT]/PATH")
    return url
