"""Model bindings: the model or user code that plays each role, and its sampling settings."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Unpack, cast
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from dialoom.errors import Advice
from dialoom.inputs import Record
from dialoom.settings import (
    MOST_TOKENS,
    Degree,
    Model,
    ModelLike,
    OwnPlayer,
    Player,
    PlayerSettings,
    ReplyTokens,
    SessionForm,
    Structured,
    by_name,
    checked,
    checked_value,
)

from .errors import BindingError
from .fingerprints import fingerprint
from .parameters import checked_parameters
from .players import GRAPH, PYTHON, check_player, name_of, named_player, takes_tools

OFFLINE = "offline/"
"""Prefix of the names of models that are played by understudies."""

ATTENTIVE = "offline/attentive"
PLACEHOLDER = "offline/placeholder"
"""An offline model that plays any role; its replies have a valid form and no meaning."""

OBJECT = "object:"
"""Prefix of the names of players given as Python objects; only the process that received them can use them."""

EMBEDDING = "embed:"
"""Prefix of the names of embedding models, such as `embed:openai/text-embedding-3-small`."""

_OWN = (OFFLINE, OBJECT, PYTHON, GRAPH, EMBEDDING)


def is_providers(model: str) -> bool:
    """Return whether a model is served by a provider, and is not an understudy or the user's own player."""
    return not model.startswith(_OWN)


REQUEST_SETTINGS = ("temperature", "max_reply", "structured", "session", "params")
"""The settings of requests to models, which have no effect on a user's own player."""


def without_effect(role: str, model: str) -> str:
    """Return the reason why a setting of requests has no effect on a role."""
    return f"{role} is played by {model}, which is called with messages only, so the setting has no effect"


def is_own(model: str) -> bool:
    """Return whether a model is a user's own function, graph or object."""
    return model.startswith((OBJECT, PYTHON, GRAPH))


class ModelBinding(Record):
    """A role's model, as stored in a run file.

    Attributes:
        model: A LiteLLM model (`openai/gpt-5`), `offline/attentive`, `python:package.module:function`,
            `graph:path/to/file.py:name`, or `object:NAME` for a player that was given as an object.
        temperature: Sampling temperature; `None` if none is sent. Ignored by functions and graphs.
        api_base: The address at which the model is served, if not the provider's own.
        max_reply: Maximum number of tokens in a reply; `None` for no limit.
        params: Further sampling parameters by name.
        structured: How a reply is constrained to its type.
        takes_tools: Whether the player accepts the tools offered by a request. For a model, this is true only if the
            user has stated it; otherwise LiteLLM's table decides.
        stateful: Whether the player keeps state between calls.
        session: The part of a request to a model that carries the session's id; `None` if the id is not sent.
        code: The fingerprint of a user's own function or class; `None` for models and graphs.
    """

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
    stateful: bool = False
    session: SessionForm | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Bindings:
    """The model bindings of all roles, with the players given as objects.

    Attributes:
        by_role: The bindings by role, as stored in the run file.
        objects: The players that were given as objects, by their names in the run file.
    """

    by_role: Mapping[str, ModelBinding]
    objects: Mapping[str, OwnPlayer] = field(default_factory=dict)


def bind(
    roles: Mapping[str, float],
    model: ModelLike | None = None,
    reply_limits: Mapping[str, int] | None = None,
    **settings: Unpack[PlayerSettings],
) -> Bindings:
    """Bind every role of a recipe to a model.

    Args:
        roles: The roles with their default temperatures.
        model: The model for every role that has none in `models`.
        reply_limits: The recipe's limits on the length of replies, for the roles that have one.
        **settings: The players and their settings; see `PlayerSettings`.

    Raises:
        BindingError: If a role is unknown or has no model, a temperature is not a number from 0 to 2, an address is
            invalid, may hold a secret, or is given for a player that has no address, a parameter is unknown, or a
            player is of an unsupported kind.
    """
    values = checked(PlayerSettings, settings)
    for name, named in values.items():
        given_by_role = dict.fromkeys(named, True) if isinstance(named, tuple) else named
        _check_roles(name, by_name(cast("Mapping[str, Any] | None", given_by_role)), roles)
    models = by_name(values["models"])
    bound: dict[str, ModelBinding] = {}
    objects: dict[str, OwnPlayer] = {}
    for role, usual in roles.items():
        given = models.get(role, model)
        if given is None:
            raise BindingError(f"models: role {role!r} has no model", setting="models")
        if isinstance(given, list | tuple):
            raise BindingError(
                f"models: role {role!r} can be played by only one model, got {len(given)}", setting="models"
            )
        chosen = given if isinstance(given, Model) else Model(given)
        stateful = chosen.stateful or role in (values["stateful"] or ())
        takes = chosen.takes_tools or role in (values["takes_tools"] or ())
        chosen = replace(chosen, stateful=stateful, takes_tools=takes)
        name = _name(chosen, objects)
        bound[role] = _binding(role, name, chosen, values, usual, (reply_limits or {}).get(role))
    return Bindings(bound, objects)


def _binding(
    role: str, name: str, chosen: Model, values: PlayerSettings, temperature: float, limit: int | None
) -> ModelBinding:
    """Return a role's binding. Settings of the model override those of the role, of all roles and of the recipe."""
    for setting in REQUEST_SETTINGS if is_own(name) else ():  # it is called with messages only
        if getattr(chosen, setting) is not None:
            raise BindingError(f"{setting}: {without_effect(role, name)}; leave it out", setting=setting)
    player = named_player(name, chosen.stateful) if isinstance(chosen.player, str) else chosen.player
    temperatures = {"": temperature, **by_name(values["temperature"])}
    limits = {"": limit, **by_name(values["max_reply"])}
    forms, sessions = {"": "auto", **by_name(values["structured"])}, by_name(values["session"])
    own = {
        setting: checked_value(setting, type_, value, role)
        for setting, type_, value in (
            ("temperature", Degree, chosen.temperature),
            ("max_reply", ReplyTokens, chosen.max_reply),
            ("structured", Structured, chosen.structured),
            ("session", SessionForm, chosen.session),
        )
        if value is not None
    }
    return ModelBinding(
        model=name,
        temperature=own.get("temperature", temperatures.get(role, temperatures[""])),
        api_base=_address_of(role, name, chosen, by_name(values["api_base"])),
        max_reply=own.get("max_reply", limits.get(role, limits[""])) or None,
        params=_parameters_of(role, chosen, by_name(values["params"])),
        structured=own.get("structured", forms.get(role, forms[""])),
        takes_tools=_takes_tools(role, name, player, chosen),
        stateful=chosen.stateful,
        session=own.get("session", sessions.get(role, sessions.get(""))),
        code=None if player is None else fingerprint(player),
    )


def _takes_tools(role: str, name: str, player: OwnPlayer | None, chosen: Model) -> bool:
    """Return whether a player accepts tools: a user's own player is inspected; for a model, the user must state it.

    Raises:
        BindingError: If a user's own player or an understudy is declared to accept tools but does not accept them.
    """
    does = player is not None and takes_tools(player)
    if chosen.takes_tools and not does and not is_providers(name):
        raise BindingError(
            f"takes_tools: {role} is played by {name}, which does not accept tools; only LiteLLM models can be "
            "declared to accept them; a function needs a parameter 'tools'",
            setting="takes_tools",
        )
    return does or chosen.takes_tools


def rebind(stored: Mapping[str, ModelBinding], models: Mapping[str, ModelLike] | None) -> Bindings:
    """Return the bindings stored in a run file, together with the players given as objects, which must be passed again.

    Raises:
        BindingError: If an object is missing, or the model given for a role differs from the stored one.
    """
    given = dict(models or {})
    _check_roles("models", given, stored)
    objects: dict[str, OwnPlayer] = {}
    for role, binding in stored.items():
        is_object, player = binding.model.startswith(OBJECT), given.get(role)
        player = player.player if isinstance(player, Model) else player
        if player is None:
            if is_object and binding.model not in objects:
                raise BindingError(
                    f"models: role {role!r} was played by {binding.model.removeprefix(OBJECT)!r}, which was passed as "
                    "an object and is not stored in the run",
                    setting="models",
                    advice=Advice("give_player", f'pass it again, as models={{"{role}": ...}}', {"role": role}),
                )
        elif _is_kept(player, binding.model):
            continue
        elif not is_object or isinstance(player, str):
            raise BindingError(
                f"models: role {role!r} is played by {binding.model}, which cannot change during a run",
                setting="models",
            )
        else:
            check_player(binding.model.removeprefix(OBJECT), player, binding.stateful)
            objects[binding.model] = player
    return Bindings(stored, objects)


def changed_objects(bindings: Bindings) -> list[str]:
    """Return the names of the functions given as objects whose code differs from that of the stored bindings."""
    given = [
        (each, bindings.objects[each.model]) for each in bindings.by_role.values() if each.model in bindings.objects
    ]
    return [each.model.removeprefix(OBJECT) for each, player in given if fingerprint(player) != each.code]


def _is_kept(player: Player, name: str) -> bool:
    """Return whether a run file stores this player under this name."""
    return player == name if isinstance(player, str) else name == f"python:{_import_path(player)}"


def _check_roles(setting: str, named: Mapping[str, Any], roles: Mapping[str, Any]) -> None:
    for role in named:
        if role and role not in roles:
            raise BindingError(f"{setting}: unknown role {role!r}; the roles are {', '.join(roles)}", setting=setting)


def _name(model: Model, objects: dict[str, OwnPlayer]) -> str:
    """Return a player's name; for an object, this is its import path if it has one, or else a unique `object:NAME`."""
    player, given = model.player, model.name
    if isinstance(player, str):
        if not player.strip():
            raise BindingError("models: a name is empty; give PROVIDER/NAME", setting="models")
        if given is not None:
            raise BindingError(
                f"models: {player} is given by its name, so it cannot have the name {given!r}; only objects can be "
                "named",
                setting="models",
            )
        return player.strip()
    if given is not None and not given.strip():
        raise BindingError("models: the name of an object is empty", setting="models")
    plain = name_of(player) if given is None else given.strip()
    check_player(plain, player, model.stateful)
    if given is None and (path := _import_path(player)) is not None:
        return f"python:{path}"
    number, name = 1, f"{OBJECT}{plain}"
    while objects.get(name, player) is not player:
        number += 1
        name = f"{OBJECT}{plain}-{number}"
    objects[name] = player
    return name


def _import_path(player: object) -> str | None:
    """Return the `module:name` of an importable function; `None` for a local function or one from a notebook."""
    module, name = getattr(player, "__module__", None), getattr(player, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or not name.isidentifier():
        return None
    return f"{module}:{name}" if getattr(sys.modules.get(module), name, None) is player else None


def _parameters_of(role: str, chosen: Model, params: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a role's parameters. Those of its model override the role's own, which override those of all roles."""
    merged: dict[str, Any] = {}
    for of, each in (("", params.get("", {})), (role, params.get(role, {})), (role, chosen.params or {})):
        if not isinstance(each, Mapping):
            raise BindingError(
                f"params: {of or 'every role'} has {each!r:.60}; it must be a mapping from names to values, as in "
                f'{{"{of}": {{"top_p": 0.9}}}}',
                setting="params",
            )
        merged |= checked_parameters(each, of)
    return merged


def _address_of(role: str, name: str, chosen: Model, addresses: Mapping[str, str]) -> str | None:
    """Return the address of a role's model. It must not contain a secret, because it is stored in the run file."""
    has_address = not name.startswith(("offline/", "python:", "graph:", OBJECT))
    own = chosen.api_base or addresses.get(role)
    if own is not None and not has_address:
        raise BindingError(f"api_base of {role}: it is played by {name}, which has no address", setting="api_base")
    if (url := own or (addresses.get("") if has_address else None)) is None:
        return None
    try:
        parts = urlsplit(url)
        host, is_web = parts.hostname, parts.scheme in ("http", "https")
        holds_login = parts.username is not None or parts.password is not None
    except ValueError:
        host, is_web, holds_login = None, False, "@" in url
    if holds_login or (host and (parts.query or parts.fragment)):
        raise BindingError(
            f"api_base: the address of {host or 'a server'} contains a login or a query; give only "
            "http(s)://HOST[:PORT]/PATH, and keys in environment variables",
            setting="api_base",
        )
    if not host or not is_web:
        raise BindingError(f"api_base {url!r} is not an address; give http(s)://HOST[:PORT]/PATH", setting="api_base")
    return url
