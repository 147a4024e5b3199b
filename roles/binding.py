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
    MAX_REPLY_TOKENS,
    Model,
    ModelLike,
    OptionalTemperature,
    Player,
    PlayerObject,
    PlayerSettings,
    ReplyTokens,
    SessionForm,
    Structured,
    as_mapping,
    validate_settings,
    validate_value,
)

from .errors import BindingError
from .fingerprints import fingerprint
from .parameters import validate_parameters
from .players import GRAPH_PREFIX, PYTHON_PREFIX, check_player, get_player_name, load_player, takes_tools

OFFLINE_PREFIX = "offline/"
"""Prefix of the names of models that are played by understudies."""

ATTENTIVE = "offline/attentive"
PLACEHOLDER = "offline/placeholder"
"""An offline model that plays any role; its replies have a valid form and no meaning."""

OBJECT_PREFIX = "object:"
"""Prefix of the names of players given as Python objects; only the process that received them can use them."""

EMBEDDING_PREFIX = "embed:"
"""Prefix of the names of embedding models, such as `embed:openai/text-embedding-3-small`."""

_NON_PROVIDER_PREFIXES = (OFFLINE_PREFIX, OBJECT_PREFIX, PYTHON_PREFIX, GRAPH_PREFIX, EMBEDDING_PREFIX)


def is_provider_model(model: str) -> bool:
    """Return whether a model is served by a provider, and is not an understudy or the user's own player."""
    return not model.startswith(_NON_PROVIDER_PREFIXES)


REQUEST_SETTINGS = ("temperature", "max_reply", "structured", "session", "params")
"""The settings of requests to models, which have no effect on a user's own player."""


def explain_no_effect(role: str, model: str) -> str:
    """Return the reason why a setting of requests has no effect on a role."""
    return f"{role} is played by {model}, which is called with messages only, so the setting has no effect"


def is_user_player(model: str) -> bool:
    """Return whether a model is a user's own function, graph or object."""
    return model.startswith((OBJECT_PREFIX, PYTHON_PREFIX, GRAPH_PREFIX))


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
    max_reply: int | None = Field(None, ge=1, le=MAX_REPLY_TOKENS)
    params: Mapping[str, Any] = {}

    @field_validator("params")
    @classmethod
    def _validate_params(cls, params: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            return validate_parameters(params)
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
    objects: Mapping[str, PlayerObject] = field(default_factory=dict)


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
    values = validate_settings(PlayerSettings, settings)
    for name, by_role in values.items():
        given_by_role = dict.fromkeys(by_role, True) if isinstance(by_role, tuple) else by_role
        _check_roles(name, as_mapping(cast("Mapping[str, Any] | None", given_by_role)), roles)
    models = as_mapping(values["models"])
    bindings: dict[str, ModelBinding] = {}
    objects: dict[str, PlayerObject] = {}
    for role, default_temperature in roles.items():
        player = models.get(role, model)
        if player is None:
            raise BindingError(f"models: role {role!r} has no model", setting="models")
        if isinstance(player, list | tuple):
            raise BindingError(
                f"models: role {role!r} can be played by only one model, got {len(player)}", setting="models"
            )
        model_settings = player if isinstance(player, Model) else Model(player)
        stateful = model_settings.stateful or role in (values["stateful"] or ())
        accepts_tools = model_settings.takes_tools or role in (values["takes_tools"] or ())
        model_settings = replace(model_settings, stateful=stateful, takes_tools=accepts_tools)
        name = _resolve_name(model_settings, objects)
        bindings[role] = _build_binding(
            role, name, model_settings, values, default_temperature, (reply_limits or {}).get(role)
        )
    return Bindings(bindings, objects)


def _build_binding(
    role: str, name: str, model: Model, values: PlayerSettings, temperature: float, limit: int | None
) -> ModelBinding:
    """Return a role's binding. Settings of the model override those of the role, of all roles and of the recipe."""
    for setting in REQUEST_SETTINGS if is_user_player(name) else ():  # it is called with messages only
        if getattr(model, setting) is not None:
            raise BindingError(f"{setting}: {explain_no_effect(role, name)}; leave it out", setting=setting)
    player = load_player(name, model.stateful) if isinstance(model.player, str) else model.player
    temperatures = {"": temperature, **as_mapping(values["temperature"])}
    limits = {"": limit, **as_mapping(values["max_reply"])}
    forms, sessions = {"": "auto", **as_mapping(values["structured"])}, as_mapping(values["session"])
    overrides = {
        setting: validate_value(setting, type_, value, role)
        for setting, type_, value in (
            ("temperature", OptionalTemperature, model.temperature),
            ("max_reply", ReplyTokens, model.max_reply),
            ("structured", Structured, model.structured),
            ("session", SessionForm, model.session),
        )
        if value is not None
    }
    return ModelBinding(
        model=name,
        temperature=overrides.get("temperature", temperatures.get(role, temperatures[""])),
        api_base=_resolve_address(role, name, model, as_mapping(values["api_base"])),
        max_reply=overrides.get("max_reply", limits.get(role, limits[""])) or None,
        params=_merge_parameters(role, model, as_mapping(values["params"])),
        structured=overrides.get("structured", forms.get(role, forms[""])),
        takes_tools=_takes_tools(role, name, player, model),
        stateful=model.stateful,
        session=overrides.get("session", sessions.get(role, sessions.get(""))),
        code=None if player is None else fingerprint(player),
    )


def _takes_tools(role: str, name: str, player: PlayerObject | None, model: Model) -> bool:
    """Return whether a player accepts tools: a user's own player is inspected; for a model, the user must state it.

    Raises:
        BindingError: If a user's own player or an understudy is declared to accept tools but does not accept them.
    """
    is_capable = player is not None and takes_tools(player)
    if model.takes_tools and not is_capable and not is_provider_model(name):
        raise BindingError(
            f"takes_tools: {role} is played by {name}, which does not accept tools; only LiteLLM models can be "
            "declared to accept them; a function needs a parameter 'tools'",
            setting="takes_tools",
        )
    return is_capable or model.takes_tools


def rebind(stored: Mapping[str, ModelBinding], models: Mapping[str, ModelLike] | None) -> Bindings:
    """Return the bindings stored in a run file, together with the players given as objects, which must be passed again.

    Raises:
        BindingError: If an object is missing, or the model given for a role differs from the stored one.
    """
    given = dict(models or {})
    _check_roles("models", given, stored)
    objects: dict[str, PlayerObject] = {}
    for role, binding in stored.items():
        is_object, player = binding.model.startswith(OBJECT_PREFIX), given.get(role)
        player = player.player if isinstance(player, Model) else player
        if player is None:
            if is_object and binding.model not in objects:
                raise BindingError(
                    f"models: role {role!r} was played by {binding.model.removeprefix(OBJECT_PREFIX)!r}, which was "
                    "passed as an object and is not stored in the run",
                    setting="models",
                    advice=Advice("give_player", f'pass it again, as models={{"{role}": ...}}', {"role": role}),
                )
        elif _is_stored_player(player, binding.model):
            continue
        elif not is_object or isinstance(player, str):
            raise BindingError(
                f"models: role {role!r} is played by {binding.model}, which cannot change during a run",
                setting="models",
            )
        else:
            check_player(binding.model.removeprefix(OBJECT_PREFIX), player, binding.stateful)
            objects[binding.model] = player
    return Bindings(stored, objects)


def find_changed_objects(bindings: Bindings) -> list[str]:
    """Return the names of the functions given as objects whose code differs from that of the stored bindings."""
    players = [
        (each, bindings.objects[each.model]) for each in bindings.by_role.values() if each.model in bindings.objects
    ]
    return [each.model.removeprefix(OBJECT_PREFIX) for each, player in players if fingerprint(player) != each.code]


def _is_stored_player(player: Player, name: str) -> bool:
    """Return whether a run file stores this player under this name."""
    return player == name if isinstance(player, str) else name == f"python:{_find_import_path(player)}"


def _check_roles(setting: str, by_role: Mapping[str, Any], roles: Mapping[str, Any]) -> None:
    for role in by_role:
        if role and role not in roles:
            raise BindingError(f"{setting}: unknown role {role!r}; the roles are {', '.join(roles)}", setting=setting)


def _resolve_name(model: Model, objects: dict[str, PlayerObject]) -> str:
    """Return a player's name; for an object, this is its import path if it has one, or else a unique `object:NAME`."""
    player, given_name = model.player, model.name
    if isinstance(player, str):
        if not player.strip():
            raise BindingError("models: a name is empty; give PROVIDER/NAME", setting="models")
        if given_name is not None:
            raise BindingError(
                f"models: {player} is given by its name, so it cannot have the name {given_name!r}; only objects "
                "can be named",
                setting="models",
            )
        return player.strip()
    if given_name is not None and not given_name.strip():
        raise BindingError("models: the name of an object is empty", setting="models")
    base_name = get_player_name(player) if given_name is None else given_name.strip()
    check_player(base_name, player, model.stateful)
    if given_name is None and (path := _find_import_path(player)) is not None:
        return f"python:{path}"
    number, name = 1, f"{OBJECT_PREFIX}{base_name}"
    while objects.get(name, player) is not player:
        number += 1
        name = f"{OBJECT_PREFIX}{base_name}-{number}"
    objects[name] = player
    return name


def _find_import_path(player: object) -> str | None:
    """Return the `module:name` of an importable function; `None` for a local function or one from a notebook."""
    module, name = getattr(player, "__module__", None), getattr(player, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__" or not name.isidentifier():
        return None
    return f"{module}:{name}" if getattr(sys.modules.get(module), name, None) is player else None


def _merge_parameters(role: str, model: Model, params: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a role's parameters. Those of its model override the role's own, which override those of all roles."""
    merged: dict[str, Any] = {}
    for owner, values in (("", params.get("", {})), (role, params.get(role, {})), (role, model.params or {})):
        if not isinstance(values, Mapping):
            raise BindingError(
                f"params: {owner or 'every role'} has {values!r:.60}; it must be a mapping from names to values, as in "
                f'{{"{owner}": {{"top_p": 0.9}}}}',
                setting="params",
            )
        merged |= validate_parameters(values, owner)
    return merged


def _resolve_address(role: str, name: str, model: Model, addresses: Mapping[str, str]) -> str | None:
    """Return the address of a role's model. It must not contain a secret, because it is stored in the run file."""
    has_address = not name.startswith((OFFLINE_PREFIX, PYTHON_PREFIX, GRAPH_PREFIX, OBJECT_PREFIX))
    role_address = model.api_base or addresses.get(role)
    if role_address is not None and not has_address:
        raise BindingError(f"api_base of {role}: it is played by {name}, which has no address", setting="api_base")
    if (url := role_address or (addresses.get("") if has_address else None)) is None:
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
