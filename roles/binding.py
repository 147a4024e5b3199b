"""Model bindings: the model or user code that plays each role, and its sampling settings."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, get_args
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator

from dialoom.errors import Advice

from .errors import BindingError
from .parameters import MOST_TOKENS, checked_limit, checked_parameters
from .players import OwnPlayer, check_player, name_of, named_player, takes_tools

OFFLINE = "offline/"
"""Prefix of the names of models that are played by understudies."""

ATTENTIVE = "offline/attentive"
PLACEHOLDER = "offline/placeholder"
"""The model that plays any role with replies that are valid in form and carry no meaning."""

OBJECT = "object:"
"""Prefix of the name of a model that was given as an object, which only the process that received it can resolve."""

Value = TypeVar("Value")

Structured: TypeAlias = Literal["auto", "schema", "json", "prompt"]
"""The constraint on the form of a reply: a JSON schema, JSON mode, or the prompt alone; `auto` picks the strictest one
that the model is known to support or does not reject.
"""

Temperature: TypeAlias = float | Literal["none"]
"""A sampling temperature from 0 to 2; `"none"` sends none, for models that reject the parameter."""


Player: TypeAlias = "str | OwnPlayer"
"""A model's name (LiteLLM's, `offline/...`, `python:...`, `graph:...`), an async function, a compiled graph, a function
of `tools` that returns one, or a LangChain chat model."""


@dataclass(frozen=True, slots=True)
class Model:
    """A player with options of its own.

    Attributes:
        player: The player.
        temperature: Sampling temperature, from 0 to 2; `"none"` to send none, `None` for the role's own. Ignored by
            functions and graphs.
        api_base: The address at which the model is served, if not the provider's own.
        max_reply: Maximum number of tokens in a reply, 0 for no limit; `None` for the role's own. Reasoning tokens
            count.
        params: Further sampling parameters by name: `top_p`, `stop`, `reasoning_effort`, ..., and `extra_body` for
            parameters that only the provider knows. `max_reply` and `params` are ignored by functions, graphs and
            understudies.
        structured: How a reply is constrained to its type: `auto`, `schema`, `json` or `prompt`.
        name: The name in the run file and in reports of a function, graph or LangChain model that is given as an
            object; by default its own name.
    """

    player: Player
    temperature: Temperature | None = None
    api_base: str | None = None
    max_reply: int | None = None
    params: Mapping[str, Any] | None = None
    structured: Structured | None = None
    name: str | None = None


ModelLike: TypeAlias = "Player | Model"


class ModelBinding(BaseModel):
    """A role's model, as stored in a run file.

    Attributes:
        model: A LiteLLM model (`openai/gpt-5`), `offline/attentive`, `python:package.module:function`,
            `graph:path/to/file.py:name`, or `object:NAME` for one that was given as an object.
        temperature: Sampling temperature; `None` if none is sent. Ignored by functions and graphs.
        api_base: The address at which the model is served, if not the provider's own.
        max_reply: Maximum number of tokens in a reply; `None` for no limit.
        params: Further sampling parameters by name.
        structured: How a reply is constrained to its type.
        takes_tools: Whether a user's own player accepts the tools offered by a request; for models, LiteLLM's table
            decides.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    model: str
    temperature: float | None = Field(ge=0.0, le=2.0)
    api_base: str | None = None
    max_reply: int | None = Field(None, ge=1, le=MOST_TOKENS)
    params: Mapping[str, Any] = {}

    @field_validator("params")
    @classmethod
    def _known(cls, params: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return checked_parameters(params)
        except BindingError as error:
            raise ValueError(error.message) from error

    structured: Structured = "auto"
    takes_tools: bool = False


@dataclass(frozen=True, slots=True)
class Bindings:
    """The models of all roles.

    Attributes:
        by_role: The bindings by role, as stored in the run file.
        objects: The functions and graphs among them, by the names stored in the file.
    """

    by_role: Mapping[str, ModelBinding]
    objects: Mapping[str, OwnPlayer] = field(default_factory=dict)


Players: TypeAlias = "ModelLike | list[ModelLike] | tuple[ModelLike, ...]"
"""The player of a role, or several players where several judges are allowed."""


class PlayerSettings(TypedDict, total=False):
    """Players and their sampling settings. A setting for one role overrides the setting for all roles.

    Attributes:
        models: The players by role; several judges, given as a list, judge one after the other, each into separate
            judgements.
        temperature: For all roles, or by role, where `None` sends none like `"none"`; a `Model`'s own temperature
            overrides it.
        api_base: The address of the models that have one, for all roles or by role.
        structured: How replies are constrained to their types, for all roles or by role.
        max_reply: Maximum number of tokens in a reply, for all roles or by role; 0 for no limit.
        params: Sampling parameters by role and name; under the empty role, for all roles.
    """

    models: Mapping[str, Players] | None
    temperature: Temperature | Mapping[str, Temperature | None] | None
    api_base: str | Mapping[str, str] | None
    structured: str | Mapping[str, str] | None
    max_reply: int | Mapping[str, int | None] | None
    params: Mapping[str, Mapping[str, Any]] | None


def bind(
    roles: Mapping[str, float],
    model: ModelLike | None = None,
    reply_limits: Mapping[str, int] | None = None,
    **settings: Unpack[PlayerSettings],
) -> Bindings:
    """Bind every role of a recipe to a model.

    Args:
        roles: The roles with their default temperatures.
        model: Plays every role that `models` does not name.
        reply_limits: The roles' own reply limits, where they have any.
        **settings: The players and their settings; see `PlayerSettings`.

    Raises:
        BindingError: If a role is unknown or has no model, a temperature is not a number from 0 to 2, an address is
            invalid, may hold a secret, or is given for a model without one, a parameter is unknown, or a player is of
            an unsupported kind.
    """
    told = _Told(
        models=settings.get("models") or {},
        temperature=_by_role(settings.get("temperature")),
        api_base=_by_role(settings.get("api_base")),
        structured=_by_role(settings.get("structured")),
        max_reply=_by_role(settings.get("max_reply")),
        params=settings.get("params") or {},
    )
    for each in fields(told):
        _check_roles(each.name, getattr(told, each.name), roles)
    bound: dict[str, ModelBinding] = {}
    objects: dict[str, OwnPlayer] = {}
    for role, usual in roles.items():
        given = told.models.get(role, model)
        if given is None:
            raise BindingError(f"models: role {role!r} has no model", setting="models")
        if isinstance(given, list | tuple):
            raise BindingError(f"models: role {role!r} is played by one model, not by {len(given)}", setting="models")
        chosen = given if isinstance(given, Model) else Model(given)
        name = _name(chosen, objects)
        bound[role] = told.binding(role, name, chosen, usual, (reply_limits or {}).get(role))
    return Bindings(bound, objects)


@dataclass(frozen=True, slots=True)
class _Told:
    """The settings as given, each by role; a setting for all roles is stored under the empty name."""

    models: Mapping[str, Players]
    temperature: Mapping[str, Temperature | None]
    api_base: Mapping[str, str]
    structured: Mapping[str, str]
    max_reply: Mapping[str, int | None]
    params: Mapping[str, Mapping[str, Any]]

    def binding(self, role: str, name: str, chosen: Model, temperature: float, limit: int | None) -> ModelBinding:
        """Return a role's binding; the model's own settings override the role's, all roles', and the recipe's."""
        shapes = self.structured
        limits = {role: limit, **({role: self.max_reply[""]} if "" in self.max_reply else {}), **self.max_reply}
        return ModelBinding(
            model=name,
            temperature=_temperature_of(role, chosen, self.temperature, temperature),
            api_base=_address_of(role, name, chosen, self.api_base),
            max_reply=checked_limit(limits[role] if chosen.max_reply is None else chosen.max_reply, role),
            params=_parameters_of(role, chosen, self.params),
            structured=checked_structured(chosen.structured or shapes.get(role) or shapes.get("")),
            takes_tools=does_take_tools(name, chosen.player),
        )


def does_take_tools(name: str, player: Player | None = None) -> bool:
    """Return whether a user's own player accepts the tools offered by a request; `False` for models.

    Args:
        name: The model's name.
        player: The player, if it was given as an object.

    Raises:
        BindingError: If a name leads to no player.
    """
    found = named_player(name) if player is None or isinstance(player, str) else player
    return found is not None and takes_tools(found)


def rebind(kept: Mapping[str, ModelBinding], models: Mapping[str, ModelLike] | None) -> Bindings:
    """Return the models stored in a run file together with the objects among them, which must be given again.

    Raises:
        BindingError: If an object is missing, or a role is given that another model plays by its name.
    """
    given = dict(models or {})
    _check_roles("models", given, kept)
    objects: dict[str, OwnPlayer] = {}
    for role, binding in kept.items():
        is_object = binding.model.startswith(OBJECT)
        player = given.get(role)
        if isinstance(player, Model):
            player = player.player
        if player is None:
            if is_object and binding.model not in objects:
                raise BindingError(
                    f"models: role {role!r} was played by {binding.model.removeprefix(OBJECT)!r}, which was given as "
                    "an object and is in no file",
                    setting="models",
                    advice=Advice("give_player", f'give it again, as models={{"{role}": ...}}', {"role": role}),
                )
        elif _is_kept(player, binding.model):
            continue
        elif not is_object or isinstance(player, str):
            raise BindingError(
                f"models: role {role!r} is played by {binding.model}, which a run keeps to its end", setting="models"
            )
        else:
            check_player(binding.model.removeprefix(OBJECT), player)
            objects[binding.model] = player
    return Bindings(kept, objects)


def _is_kept(player: Player, name: str) -> bool:
    """Return whether a player is the one that a run file stores under this name."""
    return player == name if isinstance(player, str) else name == f"python:{_import_path(player)}"


def _check_roles(setting: str, named: Mapping[str, Any], roles: Mapping[str, Any]) -> None:
    for role in named:
        if role and role not in roles:
            raise BindingError(f"{setting}: unknown role {role!r}; the roles are {', '.join(roles)}", setting=setting)


def _by_role(given: Value | Mapping[str, Value] | None) -> Mapping[str, Value]:
    """Return a setting by role; a value for all roles is stored under the empty name."""
    if given is None:
        return {}
    return given if isinstance(given, Mapping) else {"": given}


def _name(model: Model, objects: dict[str, OwnPlayer]) -> str:
    """Return a player's name; an object gets a name of its own, or the import path by which any process can find it."""
    player, given = model.player, model.name
    if isinstance(player, str):
        if not player.strip():
            raise BindingError("models: a name is empty; give PROVIDER/NAME", setting="models")
        if given is not None:
            raise BindingError(
                f"models: {player} is given by its name and cannot have the name {given!r} as well; only objects can",
                setting="models",
            )
        return player.strip()
    if given is not None and not given.strip():
        raise BindingError("models: the name of an object is empty", setting="models")
    plain = name_of(player) if given is None else given.strip()
    check_player(plain, player)
    if given is None and (path := _import_path(player)) is not None:
        return f"python:{path}"
    number, name = 1, f"{OBJECT}{plain}"
    while objects.get(name, player) is not player:
        number += 1
        name = f"{OBJECT}{plain}-{number}"
    objects[name] = player
    return name


def is_named(player: ModelLike, model: str) -> bool:
    """Return whether an object may be the one that a run file names `object:NAME`; `True` for all other models."""
    given, name = (player.player, player.name) if isinstance(player, Model) else (player, None)
    if isinstance(given, str) or not model.startswith(OBJECT):
        return True
    plain = re.escape(f"{OBJECT}{name or name_of(given)}")
    return re.fullmatch(rf"{plain}(-\d+)?", model) is not None


def _import_path(player: object) -> str | None:
    """Return `module:name` of a function that can be imported; `None` for one that is local or from a notebook."""
    module, name = getattr(player, "__module__", None), getattr(player, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or not name.isidentifier():
        return None
    return f"{module}:{name}" if getattr(sys.modules.get(module), name, None) is player else None


def _temperature_of(role: str, chosen: Model, given: Mapping[str, Temperature | None], usual: float) -> float | None:
    """Return a role's temperature: its model's, else its own, else all roles', else the recipe's; `None` for none."""
    named = {"": usual, **given}
    value = named.get(role, named[""]) if chosen.temperature is None else chosen.temperature
    return checked_temperature(value)


def checked_temperature(value: Temperature | None) -> float | None:
    """Return a temperature as sent to the provider; `None` if none is sent.

    Raises:
        BindingError: If it is neither a number from 0 to 2 nor `"none"`.
    """
    if value is None or value == "none":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 2.0:
        raise BindingError(
            f"temperature must be a number from 0 to 2, or 'none' to send none, got {value!r:.40}",
            setting="temperature",
        )
    return float(value)


def checked_structured(value: str | None) -> Structured:
    """Return how replies are constrained to their type, `auto` by default.

    Raises:
        BindingError: If the value is unknown.
    """
    if value is None:
        return "auto"
    if value not in get_args(Structured):
        raise BindingError(f"structured {value!r}: there are {', '.join(get_args(Structured))}", setting="structured")
    return cast(Structured, value)


def _parameters_of(role: str, chosen: Model, params: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a role's parameters: all roles', its own and its model's merged; later ones override earlier ones."""
    merged: dict[str, Any] = {}
    for of, each in (("", params.get("", {})), (role, params.get(role, {})), (role, chosen.params or {})):
        if not isinstance(each, Mapping):
            raise BindingError(
                f"params: {of or 'every role'} has {each!r:.60}; values by name are needed, as in "
                f'{{"{of}": {{"top_p": 0.9}}}}',
                setting="params",
            )
        merged |= checked_parameters(each, of)
    return merged


def _address_of(role: str, name: str, chosen: Model, addresses: Mapping[str, str]) -> str | None:
    has_address = not name.startswith(("offline/", "python:", "graph:", OBJECT))
    own = chosen.api_base or addresses.get(role)
    if own is not None and not has_address:
        raise BindingError(
            f"api_base of {role}: it is played by {name}, which is called at no address", setting="api_base"
        )
    url = own or (addresses.get("") if has_address else None)
    return None if url is None else _address(url)


def _address(url: str) -> str:
    """Return an address after checking that it holds no secret: it is stored in the run file and shown in messages."""
    try:
        parts = urlsplit(url)
        host, is_web = parts.hostname, parts.scheme in ("http", "https")
        holds_login = parts.username is not None or parts.password is not None
    except ValueError:
        host, is_web, holds_login = None, False, "@" in url
    if holds_login or (host and (parts.query or parts.fragment)):
        raise BindingError(
            f"api_base: the address of {host or 'a server'} holds a login or a query; give "
            "http(s)://HOST[:PORT]/PATH alone, and keys by the environment",
            setting="api_base",
        )
    if not host or not is_web:
        raise BindingError(f"api_base {url!r} is no address; give http(s)://HOST[:PORT]/PATH", setting="api_base")
    return url
