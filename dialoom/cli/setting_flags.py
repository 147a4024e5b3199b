"""Flags, YAML keys and their values, derived from the declarations of settings. Flags override a file's values."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypedDict,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

import typer
from pydantic import Field
from pydantic.fields import FieldInfo

from dialoom.errors import DialoomError, SettingError
from dialoom.inputs import DataError, parse_json, parse_yaml, read_yaml
from dialoom.settings import (
    Budget,
    ByName,
    Flag,
    LimitSettings,
    Players,
    PlayerSettings,
    ProcessSettings,
    RunSettings,
    build_settings_model,
    suggest_name,
    validate_settings,
)

from .option_flags import build_flags, parse_number, with_flags

if TYPE_CHECKING:
    from dialoom.graphs import Recipe

SettingsT = TypeVar("SettingsT", bound=Mapping[str, object])

NO_VALUE = "none"
"""The value that removes a bound."""

_PANELS = ("Models", "Limits", "Output", "Advanced")
_PATH_METAVARS = ("FILE", "DIR", "RUN")
"""Metavars of paths, which a shell completes."""


class SessionSettings(TypedDict, total=False):
    """Settings of a command that makes calls, apart from the API's keyword arguments."""

    env_file: Annotated[
        Path | None,
        Field(description="A file of NAME=VALUE lines with keys, in addition to the environment's."),
        Flag("Models", "FILE"),
    ]
    log_format: Annotated[
        Literal["text", "json"] | None,
        Field(description="The format of lines on standard error: for people, or JSON for programs. [default: text]"),
        Flag("Output", "text|json"),
    ]


class NewRunSettings(SessionSettings, total=False):
    """Settings of a command that makes a run, apart from the API's keyword arguments."""

    out: Annotated[
        Path | None,
        Field(description="The run's file, which must not exist. Required."),
        Flag("Output", "RUN", short="-o"),
    ]
    folder: Annotated[
        Path | None,
        Field(
            description="When all scenarios are done, write the generated data (a source, pairs, people or drafts) to "
            "this folder. For recipes that generate data."
        ),
        Flag("Output", "DIR"),
    ]
    dry_run: Annotated[
        bool,
        Field(default=False, description="Estimate calls, tokens and cost per role; send nothing and write nothing."),
        Flag("Output", is_in_files=False),
    ]
    config: Annotated[
        Path | None,
        Field(description="A YAML file with any of these options; flags take precedence."),
        Flag("Advanced", "FILE", is_in_files=False),
    ]


class CallCommand(ProcessSettings, SessionSettings, total=False):
    """All settings of a command that makes calls for an existing run."""


class JudgeCommand(PlayerSettings, CallCommand, total=False):
    """Settings of a command that makes a set of judgements."""


class DoctorCommand(PlayerSettings, LimitSettings, SessionSettings, total=False):
    """Settings of the command that checks models."""


class RunCommand(RunSettings, ProcessSettings, NewRunSettings, total=False):
    """Settings of a command that makes a run."""


class _SettingFlag(NamedTuple):
    """A setting in its form on the command line."""

    name: str
    field: FieldInfo
    flag: Flag
    by_name: ByName | None
    is_stored: bool

    @property
    def key(self) -> str:
        """The YAML key; the flag consists of two dashes and this key, with hyphens in place of underscores."""
        return self.flag.name or self.name

    @property
    def is_number(self) -> bool:
        """Return whether a value that looks like a number is read as a number."""
        types = get_args(self.field.annotation) or (self.field.annotation,)
        return not self.by_name.is_text if self.by_name else int in types or float in types

    def build_option(self) -> tuple[Any, Any]:
        """Return Typer's annotation of the flag, and the flag's value if it is not given."""
        dashed = "--" + self.key.replace("_", "-")
        names = [self.flag.short, dashed] if self.flag.short else [dashed]
        metavar = self.flag.metavar + (f"|{NO_VALUE}" if self.flag.is_removable else "")
        if self.by_name and "=" not in metavar:
            of = self.by_name.of.upper()
            metavar = f"[{of}=]{metavar}" if self.by_name.is_for_all else f"{of}={metavar}"
        option: Any = typer.Option(
            *names,
            metavar=metavar or None,
            help=self._format_help(),
            show_default=False,
            rich_help_panel=self.flag.panel,
        )
        if not metavar:
            return Annotated[bool, option], False
        if self.by_name or self.flag.is_repeatable:
            return Annotated[list[str] | None, option], None
        return Annotated[Path | None if metavar in _PATH_METAVARS else str | None, option], None

    def _format_help(self) -> str:
        text, bracket, default = (self.field.description or "").partition(" [default")
        default_value = self.field.default
        text += " Repeatable." if self.by_name or self.flag.is_repeatable else ""
        text += " Stored in the run's file, and used by resume." if self.is_stored else ""
        if default_value is not None and default_value is not False and default_value != ():
            default += (
                f" [default: {default_value:g}]" if isinstance(default_value, float) else f" [default: {default_value}]"
            )
        return text + bracket + default

    def parse(self, raw: Any) -> Any:
        """Return a value in the API's form, from a flag's texts or a YAML value."""
        if self.name == "params":
            return _parse_parameters(raw)
        if self.name == "models":
            return _parse_models(raw)
        if self.by_name is None:
            return self._parse_scalar(raw)
        if isinstance(raw, dict):
            return {str(name): self._parse_scalar(each) for name, each in raw.items()}
        return dict(self._parse_named(str(text)) for text in (raw if isinstance(raw, list) else [raw]))

    def _parse_named(self, text: str) -> tuple[str, Any]:
        """Split `NAME=VALUE`; the name is empty for a value that applies to all roles or models."""
        assert self.by_name is not None
        if self.by_name.of == "role":
            name, value = _split_role(text)
        else:
            name, _, value = text.rpartition("=")
            if not name and not self.by_name.is_for_all:
                form = f"MODEL={self.flag.metavar}"
                raise SettingError(f"{self.name} must be {form}, got {text!r}", setting=self.name)
        return name, self._parse_scalar(value.strip())

    def _parse_scalar(self, value: Any) -> Any:
        if value == NO_VALUE and self.flag.is_removable:
            return None
        return parse_number(value) if isinstance(value, str) and self.is_number else value


def _iter_setting_flags(settings_type: Any) -> Iterator[_SettingFlag]:
    """Yield the settings of a kind that the command line can give; for a budget, each of its bounds."""
    limits = build_settings_model(LimitSettings).model_fields
    fields = {**build_settings_model(settings_type).model_fields}
    if "budget" in fields:
        fields = {**Budget.model_fields, **fields}
    for name, field in fields.items():
        metadata = field.metadata
        for flag in metadata:
            if isinstance(flag, Flag):
                by_name = next((each for each in metadata if isinstance(each, ByName)), None)
                yield _SettingFlag(name, field, flag, by_name, name in limits or name in Budget.model_fields)


def with_settings(
    command: Callable[..., None], recipe: Recipe | None = None, without: Collection[str] = ()
) -> Callable[..., None]:
    """Return a command that receives `**settings: Unpack[TYPE]`, with a flag for each of the settings of that type.

    The command receives checked settings with all defaults and, for a recipe, the recipe's options as `options`.

    Args:
        command: The command; `TYPE` is a typed dictionary of this module.
        recipe: The recipe to play, if it is known.
        without: Names of settings that the command does not have.

    Raises:
        SettingError: If an option of the recipe has the name of a setting, by which the command line and YAML files
            would set both or neither.
    """
    (settings_type,) = get_args(get_type_hints(command, localns=globals(), include_extras=True)["settings"])
    if recipe and (
        conflicts := sorted(
            _get_option_names(recipe).keys() & {each.key for each in _iter_setting_flags(settings_type)}
        )
    ):
        raise SettingError(
            f"recipe {recipe.name!r}: the option {conflicts[0]!r} has the name of a setting of every run; rename it"
        )
    flags = build_flags(recipe.options_type, recipe.name) if recipe else {}
    settings = (each for each in _iter_setting_flags(settings_type) if each.name not in without)
    sorted_settings = sorted(settings, key=lambda each: _PANELS.index(each.flag.panel))
    flags |= {each.key: each.build_option() for each in sorted_settings}
    return with_flags(command, flags, lambda values: read_settings(settings_type, values, recipe), globals())


def get_flag_names() -> dict[str, str]:
    """Return the names of flags that differ from the names of their settings, by setting."""
    return {each.name: each.key for each in _iter_setting_flags(RunCommand) if each.flag.name}


def build_settings(
    settings_type: type[SettingsT], flag_values: Mapping[str, Any], file_values: Mapping[str, Any] | None = None
) -> SettingsT:
    """Return checked settings.

    Args:
        settings_type: The typed dictionary that declares them.
        flag_values: The flags' values, by the flags' names; flags that were not given are `None`, `False` or empty.
        file_values: The values of a YAML file, by the flags' names.

    Raises:
        SettingError: If a setting is invalid; the message states its name, its value and what it must be.
    """
    file, flags = (_collect_values(settings_type, each) for each in (file_values or {}, flag_values))
    for name, value in flags.items():
        file_value = file.get(name)
        if name == "params":
            roles = dict.fromkeys([*(file_value or {}), *value])
            value = {role: {**(file_value or {}).get(role, {}), **value.get(role, {})} for role in roles}
        elif isinstance(file_value, dict) and isinstance(value, dict):
            value = {**file_value, **value}
        file[name] = value
    return validate_settings(settings_type, cast(SettingsT, file), is_text=True)


def _collect_values(settings_type: type[Any], raw_values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a kind that the user gave, as arguments of the API."""
    values: dict[str, Any] = {}
    for each in _iter_setting_flags(settings_type):
        if (value := raw_values.get(each.key)) is None or value is False or value == []:
            continue
        if each.name in Budget.model_fields:
            values.setdefault("budget", {})[each.name] = each.parse(value)
        else:
            values[each.name] = each.parse(value)
    return values


@contextlib.contextmanager
def read_settings(
    settings_type: type[SettingsT], values: Mapping[str, Any], recipe: Recipe | None = None
) -> Iterator[SettingsT]:
    """Yield a command's settings, merged from defaults, a YAML file and flags; read keys into the environment.

    If an error in the body is about a setting from the file, the file and the key are added to its message.

    Args:
        settings_type: The typed dictionary that declares them.
        values: The values of the flags, those of the recipe's options included.
        recipe: The recipe, if the command plays one.

    Raises:
        SettingError: If a setting is invalid; the message states its flag or file, its value and what it must be.
    """
    keys = {each.key for each in _iter_setting_flags(settings_type)}
    options = {name: value for name, value in values.items() if name not in keys and value not in (None, [])}
    path = values.get("config")
    file_values, file_options = _read_config(path, recipe) if path and recipe else ({}, {})
    try:
        settings = build_settings(settings_type, values, file_values)
        if recipe is not None:
            command = cast(RunCommand, settings)
            default_models, command["models"] = split_models(command)
            command["model"] = get_single_model(default_models)
            command["options"] = {**file_options, **options}
        if (env_file := cast(SessionSettings, settings)["env_file"]) is not None:
            from dialoom.roles.gateway.model_facts import load_env_file

            load_env_file(env_file)
        yield settings
    except DialoomError as error:
        if error.setting is None or path is None or recipe is None:
            raise
        key = get_flag_names().get(error.setting, error.setting)
        name = _get_option_names(recipe).get(error.setting, error.setting)
        if not ((key in file_values and not values.get(key)) or (name in file_options and name not in options)):
            raise
        text = error.message.replace(error.setting, key.replace("_", "-"), 1)
        raise SettingError(f"{path}: {text}", advice=error.advice) from error


def _get_option_names(recipe: Recipe) -> dict[str, str]:
    """Return the fields of a recipe's options, by the names of their flags."""
    return {field.alias or name: name for name, field in recipe.options_type.model_fields.items()}


def split_models(settings: PlayerSettings) -> tuple[list[str], dict[str, Players]]:
    """Return the models given for every role, and the models given for single roles; a list where there are several."""
    models_by_role = cast("dict[str, list[str]]", dict(settings["models"] or {}))
    default_models = models_by_role.pop("", [])
    return default_models, {
        role: cast(Players, models) if models[1:] else models[0] for role, models in models_by_role.items()
    }


def get_single_model(models: Sequence[str]) -> str | None:
    """Return the model given for every role; `None` if there is none.

    Raises:
        SettingError: If there are several.
    """
    if models[1:]:
        raise SettingError(f"models must name one model for all roles, got {', '.join(models)}", setting="models")
    return models[0] if models else None


def _split_role(text: str) -> tuple[str, str]:
    """Split `[ROLE=]VALUE`; a value may contain equals signs."""
    role, equals, value = text.partition("=")
    return (role, value) if equals and role.isidentifier() else ("", text)


def _parse_models(raw: Any) -> dict[str, list[str]]:
    """Return the models by role from `[ROLE=]MODEL` texts or a mapping; a role may have several different models."""
    if isinstance(raw, dict):
        return {
            str(role): list(map(str, each)) if isinstance(each, list) else [str(each)] for role, each in raw.items()
        }
    models_by_role: dict[str, dict[str, None]] = {}
    for text in raw if isinstance(raw, list) else [raw]:
        role, model = _split_role(str(text))
        if not model.strip():
            raise SettingError(f"models must be [ROLE=]MODEL, got {text!r}", setting="models")
        models_by_role.setdefault(role, {}).pop(model.strip(), None)
        models_by_role[role][model.strip()] = None
    return {role: list(models) for role, models in models_by_role.items()}


def _parse_parameters(raw: Any) -> dict[str, dict[str, Any]]:
    """Return sampling parameters by role and name; the role of parameters for every role is the empty name.

    Args:
        raw: `[ROLE.]KEY=VALUE` texts with YAML or JSON values; or a YAML file's mapping, with parameters for every
            role by name, and for single roles by role.

    Raises:
        SettingError: If a text has another form, or a parameter is given twice.
    """
    parameters: dict[str, dict[str, Any]] = {}
    texts = map(str, raw if isinstance(raw, list) else [raw])
    for role, name, value in _iter_parameters(raw) if isinstance(raw, Mapping) else map(_parse_parameter, texts):
        if name in parameters.setdefault(role, {}):
            full_name = f"{role}.{name}" if role else name
            raise SettingError(
                f"params: {full_name} is given twice, as {parameters[role][name]!r} and {value!r}", setting="params"
            )
        parameters[role][name] = value
    return parameters


def _parse_parameter(text: str) -> tuple[str, str, Any]:
    """Return role, name and value of `[ROLE.]KEY=VALUE`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise SettingError(f"params must be [ROLE.]KEY=VALUE, got {text!r}", setting="params")
    role, _, name = key.strip().rpartition(".") if key.count(".") == 1 else ("", "", key.strip())
    for parse in (parse_json, parse_yaml):  # YAML parses 1e-3 as text
        try:
            return role, name, parse(value, "params")
        except DataError as error:
            problem = error
    raise SettingError(f"params must have a value in JSON or YAML, got {text!r:.100} ({problem})", setting="params")


def _iter_parameters(mapping: Mapping[Any, Any]) -> Iterator[tuple[str, str, Any]]:
    for key, each in mapping.items():
        role, dot, name = str(key).partition(".")
        if dot or not isinstance(each, Mapping):
            yield (role, name, each) if dot else ("", role, each)
        else:
            yield from ((role, str(name), value) for name, value in each.items())


def _read_config(path: Path, recipe: Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a YAML file's options: those of every run by the flags' names, and those of the recipe by field."""
    values = read_yaml(path) or {}
    if not isinstance(values, dict):
        raise SettingError(f"{path} must hold 'name: value' lines, got {type(values).__name__}")
    setting_keys = {each.key for each in _iter_setting_flags(RunCommand) if each.flag.is_in_files}
    names = _get_option_names(recipe)
    settings: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for key, value in values.items():
        plain_key = str(key).replace("-", "_")
        if plain_key in settings or names.get(plain_key, plain_key) in options:
            raise SettingError(f"{path}: {key} is given twice, in different spellings")
        if plain_key in setting_keys:
            settings[plain_key] = value
        elif plain_key in names or plain_key in names.values():
            options[names.get(plain_key, plain_key)] = value
        else:
            known = sorted(name.replace("_", "-") for name in {*setting_keys, *names})
            raise SettingError(
                f"{path}: {key} is not an option; {suggest_name(plain_key.replace('_', '-'), known, 'options')}"
            )
    return settings, options
