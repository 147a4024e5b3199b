"""Merging of the command line and a YAML file into the API's settings, in this one place: flags take precedence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import Recipe
from dialoom.graphs.capabilities import WithJudging
from dialoom.inputs import read_yaml
from dialoom.roles.gateway.budget import Budget
from dialoom.roles.gateway.prices import Price
from dialoom.runs.config import DEFAULT_CONCURRENCY, DEFAULT_PATIENCE
from dialoom.runs.control import Control
from dialoom.runs.errors import RunError

from .parameters import UNBOUNDED, joined, parameters, reply_limits, temperatures, timeouts

_FORMS = {**dict.fromkeys(("rpm", "tpm"), "N, or MODEL=N for one model"), "context": "MODEL=N, in tokens"}
_UNITS = {"s": 1, "m": 60, "h": 3600}


class _Common(BaseModel):
    """The options of every run as flags and YAML files give them: `NAME=VALUE` texts or a mapping, by role or model."""

    model_config = ConfigDict(extra="forbid")
    out: Path | None = None
    folder: Path | None = None
    model: list[str] | str | dict[str, str | list[str]] | None = None
    temperature: list[str] | float | str | dict[str, float | str | None] | None = None
    api_base: list[str] | str | dict[str, str] | None = None
    structured: list[str] | str | dict[str, str] | None = None
    max_reply: list[str] | int | str | dict[str, int | str | None] | None = None
    param: list[str] | str | dict[str, Any] | None = None
    seed: int | None = None
    sample: int | None = None
    on_user_fault: str | None = None
    concurrency: int | None = None
    prompts: Path | None = None
    synchronous: Literal["normal", "full"] | None = None
    max_cost: float | str | None = None
    max_tokens: int | str | None = None
    max_calls: int | str | None = None
    price: list[str] | str | dict[str, str | list[float]] | None = None
    rpm: list[str] | int | str | dict[str, int] | None = None
    tpm: list[str] | int | str | dict[str, int] | None = None
    context: list[str] | str | dict[str, int | str | None] | None = None
    timeout: list[str] | float | str | dict[str, float | str | None] | None = None
    env_file: Path | None = None
    fail_on_error: int | str | None = None
    patience: float | str | None = None
    cache: Path | None = None
    workers: int | None = None
    ray: str | None = None
    otel: bool = False
    replay_only: bool = False
    log_format: Literal["text", "json"] | None = None


_ADDED = ("model", "temperature", "api_base", "structured", "max_reply", "price", "rpm", "tpm", "context", "timeout")
"""Options that are merged by role or model: flags for one of them keep the file's values for others."""


def merged(
    recipe: Recipe, given: Mapping[str, Any], common: Mapping[str, Any], needs_path: bool = True
) -> tuple[dict[str, Any], str | None]:
    """Return the arguments of `play`, merged from defaults, a YAML file and flags; and the format of log lines.

    Args:
        recipe: The recipe.
        given: Its own options, by the names of their fields.
        common: The options of every run, `config` among them; what was not given is `None`, `False` or empty.
        needs_path: Whether there must be a file to keep the run in.

    Raises:
        RunError: Naming the flag or the file and what is wrong with it.
    """
    from_file, own = _config_file(common.get("config"), recipe)
    values = dict(from_file)
    for name, value in common.items():
        if name in _Common.model_fields and value is not None and value is not False and value != []:
            values[name] = _added(name, values.get(name), value) if name in _ADDED else value
    chosen = _Common.model_validate(values)
    if chosen.out is None and needs_path:
        raise RunError("-o RUN is missing: give the file in which the run is to be kept, such as -o run.db")
    judging = WithJudging.of(recipe)
    params = joined(*(parameters(each.get("param")) for each in (from_file, common)))
    return {
        "path": chosen.out,
        **({"folder": chosen.folder} if chosen.folder else {}),
        **players(chosen.model_dump(), judging.judging_roles() if judging.judging() is not None else ()),
        "params": params,
        "options": {**own, **given},
        "seed": chosen.seed or 0,
        "sample": chosen.sample,
        **({"on_user_fault": chosen.on_user_fault} if chosen.on_user_fault else {}),
        "prompts": chosen.prompts,
        **call_settings(chosen.model_dump(), chosen.concurrency),
    }, chosen.log_format


def players(given: Mapping[str, Any], several: Collection[str] = ()) -> dict[str, Any]:
    """Return the players and their sampling, as the API takes them.

    Args:
        given: By the names of the flags.
        several: Roles whom several may play, each in judgements of its own; of another role the last that is named
            plays.

    Raises:
        RunError: Naming the flag and the value that is wrong.
    """
    models = _models_by_role(given)
    return {
        "model": models.pop("", [None])[-1],
        "models": {role: named if role in several and named[1:] else named[-1] for role, named in models.items()},
        "temperature": temperatures(texts_by_name(_texts(given.get("temperature")), "temperature")),
        "api_base": texts_by_name(_texts(given.get("api_base"))),
        "structured": texts_by_name(_texts(given.get("structured")), "structured"),
        "max_reply": reply_limits(texts_by_name(_texts(given.get("max_reply")), "max_reply")),
        "params": joined(parameters(given.get("param"))),
    }


def several_players(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the models of every role and of single roles, each a list, in the order of the flags."""
    models = _models_by_role(given)
    return {"model": models.pop("", None), "models": models}


def _models_by_role(given: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return all models that are named for a role, or under the empty name for every role, each once."""
    named: dict[str, dict[str, None]] = {}
    for text in _model_texts(given.get("model")):
        for role, model in (texts_by_name([text], "model") or {}).items():
            named.setdefault(role, {}).pop(model, None)
            named[role][model] = None
    return {role: list(models) for role, models in named.items()}


def _model_texts(value: Any) -> list[str]:
    """Return the texts of `_texts`, with one text for each of several models of one role."""
    if not isinstance(value, dict):
        return _texts(value)
    each = [
        (role, model) for role, models in value.items() for model in (models if isinstance(models, list) else [models])
    ]
    return [f"{role}={model}" if role else str(model) for role, model in each]


def _added(name: str, from_file: Any, given: Any) -> list[str]:
    """Merge texts from a file and from flags: a role's models from the flags alone, as a role may have several."""
    if name != "model":
        return _texts(from_file) + _texts(given)
    roles = {role for text in _texts(given) for role in texts_by_name([text], name) or {}}
    kept = [text for text in _model_texts(from_file) if not roles & {*(texts_by_name([text], name) or {})}]
    return kept + _texts(given)


def call_settings(given: Mapping[str, Any], concurrency: int | None = None) -> dict[str, Any]:
    """Return how calls are made, as the API takes it, with a new control; keys are read into the environment.

    Args:
        given: By the names of the flags.
        concurrency: How many scenarios are under way at once.

    Raises:
        RunError, BindingError: Naming the flag and the value that is wrong.
    """
    if (env_file := given.get("env_file")) is not None:
        from dialoom.roles.gateway.provider_keys import load_env_file

        load_env_file(env_file)
    return {
        "budget": _budget(given),
        "prices": _prices(_texts(given.get("price"))),
        "rpm": _rates("rpm", _texts(given.get("rpm"))),
        "tpm": _rates("tpm", _texts(given.get("tpm"))),
        "context": _windows(_texts(given.get("context"))),
        "timeout": timeouts(texts_by_name(_texts(given.get("timeout")), "timeout")),
        "fail_on_error": given.get("fail_on_error"),
        "patience": _seconds("patience", given.get("patience"), DEFAULT_PATIENCE),
        "cache": given.get("cache"),
        "workers": given.get("workers"),
        "ray": given.get("ray"),
        "otel": bool(given.get("otel")),
        "replay_only": bool(given.get("replay_only")),
        "synchronous": given.get("synchronous") or "normal",
        "trust": bool(given.get("trust")),
        "concurrency": DEFAULT_CONCURRENCY if concurrency is None else concurrency,
        "control": Control(),
    }


def texts_by_name(texts: list[str], what: str = "api_base") -> dict[str, str] | None:
    """Parse `NAME=VALUE` texts into a mapping; values for all are under the empty name. `None` for no text."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            name, value = "", text
        if not value.strip():
            raise RunError(f"{what} {text!r} names no {what.replace('_', '-')}", setting=what)
        found[name] = value.strip()
    return found or None


def _seconds(setting: str, given: float | str | None, otherwise: float) -> float:
    """Parse seconds from `90`, `90s`, `10m` or `2h`."""
    if given is None:
        return otherwise
    text = str(given).strip()
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise RunError(f"{setting} {text!r} is no time from 0: give seconds, or 90s, 10m, 2h", setting=setting)
    return seconds


def _config_file(path: Path | None, recipe: Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a YAML file's options: those of every run, and the recipe's."""
    if path is None:
        return {}, {}
    values = read_yaml(path) or {}
    if not isinstance(values, dict):
        raise RunError(f"--config {path} holds {type(values).__name__}; options are 'name: value' lines")
    names = {field.alias or name: name for name, field in recipe.options_type.model_fields.items()}
    common: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, value in values.items():
        plain = str(key).replace("-", "_")
        if plain in common or names.get(plain, plain) in own:
            raise RunError(f"--config {path}: {key!r} is given twice, once in another spelling")
        if plain in _Common.model_fields:
            common[plain] = value
        elif plain in names or plain in names.values():
            own[names.get(plain, plain)] = value
        else:
            known = ", ".join(sorted({*_Common.model_fields, *names}))
            raise RunError(f"--config {path}: unknown option {key!r}; there are {known}")
    try:
        _Common.model_validate(common)
    except ValidationError as error:
        problem = first_problem(error)
        name = problem.place.partition(".")[0].replace("_", "-")
        raise RunError(f"--config {path}: --{name} {problem.value!r}: {problem.message}") from error
    return common, own


def _texts(value: Any) -> list[str]:
    """Return `NAME=VALUE` texts from the value of a flag or a YAML file."""
    if value is None:
        return []
    if isinstance(value, dict):
        return [f"{name}={_text(each)}" if name else _text(each) for name, each in value.items()]
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _budget(given: Mapping[str, Any]) -> Budget | None:
    bounds = {name: given[name] for name in Budget.model_fields if given.get(name) is not None}
    values = {name: None if str(value).lower() == UNBOUNDED else value for name, value in bounds.items()}
    try:
        return Budget.model_validate(values) if values else None
    except ValidationError as error:
        problem = first_problem(error)
        what = "US dollars" if problem.place == "max_cost" else "a whole number"
        raise RunError(
            f"{problem.place} {problem.value!r} is no bound: give {what} from 0, or {UNBOUNDED!r}",
            setting=problem.place,
        ) from error


def _prices(texts: list[str]) -> dict[str, Price] | None:
    """Parse `MODEL=IN,OUT` or `MODEL=IN,OUT,CACHED` texts, in US dollars per million tokens."""
    prices: dict[str, Price] = {}
    for text in texts:
        model, _, figures = text.rpartition("=")
        try:
            first, second, *cached = [float(part) for part in figures.split(",")]
            if not model or len(cached) > 1:
                raise ValueError("a model and two or three figures are needed")
            prices[model] = Price(first, second, *cached)
        except ValueError as error:
            raise RunError(
                f"prices {text!r} is not MODEL=IN,OUT or MODEL=IN,OUT,CACHED in US dollars for a million tokens",
                setting="prices",
            ) from error
    return prices or None


def _windows(texts: list[str]) -> dict[str, int | None] | None:
    """Parse `MODEL=N` texts, in tokens; `none` removes an earlier value."""
    for text in texts:
        if "=" not in text:
            raise RunError(f"context {text!r} names no model; give MODEL=N, in tokens", setting="context")
    return _rates("context", texts)


def _rates(setting: str, texts: list[str]) -> dict[str, int | None] | None:
    """Parse `N` and `MODEL=N` texts, per minute; `none` removes a rate."""
    rates: dict[str, int | None] = {}
    for text in texts:
        model, _, figure = text.rpartition("=")
        if figure.lower() == UNBOUNDED:
            rates[model] = None
        elif figure.isdecimal() and int(figure):
            rates[model] = int(figure)
        else:
            raise RunError(f"{setting} {figure!r} is no whole number from 1; give {_FORMS[setting]}", setting=setting)
    return rates or None
