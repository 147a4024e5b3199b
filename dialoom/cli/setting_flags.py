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

from .option_flags import flags_of, number, with_flags

if TYPE_CHECKING:
    from dialoom.graphs import Recipe

Kind = TypeVar("Kind", bound=Mapping[str, object])

UNBOUNDED = "none"
"""The value that removes a bound."""

_PANELS = ("Models", "Limits", "Output", "Advanced")
_PATHS = ("FILE", "DIR", "RUN")
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


class _Declared(NamedTuple):
    """A setting in its form on the command line."""

    name: str
    field: FieldInfo
    flag: Flag
    by_name: ByName | None
    is_kept: bool

    @property
    def key(self) -> str:
        """The YAML key; the flag consists of two dashes and this key, with hyphens in place of underscores."""
        return self.flag.name or self.name

    @property
    def is_number(self) -> bool:
        """Return whether a value that looks like a number is read as a number."""
        types = get_args(self.field.annotation) or (self.field.annotation,)
        return not self.by_name.is_text if self.by_name else int in types or float in types

    def option(self) -> tuple[Any, Any]:
        """Return Typer's annotation of the flag, and the flag's value if it is not given."""
        dashed = "--" + self.key.replace("_", "-")
        names = [self.flag.short, dashed] if self.flag.short else [dashed]
        metavar = self.flag.metavar + (f"|{UNBOUNDED}" if self.flag.is_removable else "")
        if self.by_name and "=" not in metavar:
            of = self.by_name.of.upper()
            metavar = f"[{of}=]{metavar}" if self.by_name.is_for_all else f"{of}={metavar}"
        option: Any = typer.Option(
            *names, metavar=metavar or None, help=self._help(), show_default=False, rich_help_panel=self.flag.panel
        )
        if not metavar:
            return Annotated[bool, option], False
        if self.by_name or self.flag.is_repeatable:
            return Annotated[list[str] | None, option], None
        return Annotated[Path | None if metavar in _PATHS else str | None, option], None

    def _help(self) -> str:
        text, bracket, default = (self.field.description or "").partition(" [default")
        usual = self.field.default
        text += " Repeatable." if self.by_name or self.flag.is_repeatable else ""
        text += " Stored in the run's file, and used by resume." if self.is_kept else ""
        if usual is not None and usual is not False and usual != ():
            default += f" [default: {usual:g}]" if isinstance(usual, float) else f" [default: {usual}]"
        return text + bracket + default

    def value(self, given: Any) -> Any:
        """Return a value in the API's form, from a flag's texts or a YAML value."""
        if self.name == "params":
            return _parameters(given)
        if self.name == "models":
            return _models(given)
        if self.by_name is None:
            return self._scalar(given)
        if isinstance(given, dict):
            return {str(name): self._scalar(each) for name, each in given.items()}
        return dict(self._named(str(text)) for text in (given if isinstance(given, list) else [given]))

    def _named(self, text: str) -> tuple[str, Any]:
        """Split `NAME=VALUE`; the name is empty for a value that applies to all roles or models."""
        assert self.by_name is not None
        if self.by_name.of == "role":
            name, value = _role_and_value(text)
        else:
            name, _, value = text.rpartition("=")
            if not name and not self.by_name.is_for_all:
                form = f"MODEL={self.flag.metavar}"
                raise SettingError(f"{self.name} must be {form}, got {text!r}", setting=self.name)
        return name, self._scalar(value.strip())

    def _scalar(self, value: Any) -> Any:
        if value == UNBOUNDED and self.flag.is_removable:
            return None
        return number(value) if isinstance(value, str) and self.is_number else value


def _declared(kind: Any) -> Iterator[_Declared]:
    """Yield the settings of a kind that the command line can give; for a budget, each of its bounds."""
    limits = build_settings_model(LimitSettings).model_fields
    fields = {**build_settings_model(kind).model_fields}
    if "budget" in fields:
        fields = {**Budget.model_fields, **fields}
    for name, field in fields.items():
        metadata = field.metadata
        for flag in metadata:
            if isinstance(flag, Flag):
                by_name = next((each for each in metadata if isinstance(each, ByName)), None)
                yield _Declared(name, field, flag, by_name, name in limits or name in Budget.model_fields)


def with_settings(
    command: Callable[..., None], recipe: Recipe | None = None, without: Collection[str] = ()
) -> Callable[..., None]:
    """Return a command that receives `**given: Unpack[KIND]`, with a flag for each of the kind's settings.

    The command receives checked settings with all defaults and, for a recipe, the recipe's options as `options`.

    Args:
        command: The command; `KIND` is a typed dictionary of this module.
        recipe: The recipe to play, if it is known.
        without: Names of settings that the command does not have.

    Raises:
        SettingError: If an option of the recipe has the name of a setting, by which the command line and YAML files
            would set both or neither.
    """
    (kind,) = get_args(get_type_hints(command, localns=globals(), include_extras=True)["given"])
    if recipe and (taken := sorted(_option_names(recipe).keys() & {each.key for each in _declared(kind)})):
        raise SettingError(
            f"recipe {recipe.name!r}: the option {taken[0]!r} has the name of a setting of every run; rename it"
        )
    flags = flags_of(recipe.options_type, recipe.name) if recipe else {}
    settings = (each for each in _declared(kind) if each.name not in without)
    in_panels = sorted(settings, key=lambda each: _PANELS.index(each.flag.panel))
    flags |= {each.key: each.option() for each in in_panels}
    return with_flags(command, flags, lambda values: read_settings(kind, values, recipe), globals())


def flag_names() -> dict[str, str]:
    """Return the names of flags that differ from the names of their settings, by setting."""
    return {each.name: each.key for each in _declared(RunCommand) if each.flag.name}


def settings_of(kind: type[Kind], given: Mapping[str, Any], in_file: Mapping[str, Any] | None = None) -> Kind:
    """Return checked settings.

    Args:
        kind: The typed dictionary that declares them.
        given: The flags' values, by the flags' names; flags that were not given are `None`, `False` or empty.
        in_file: The values of a YAML file, by the flags' names.

    Raises:
        SettingError: If a setting is invalid; the message states its name, its value and what it must be.
    """
    file, flags = (_values(kind, each) for each in (in_file or {}, given))
    for name, value in flags.items():
        before = file.get(name)
        if name == "params":
            roles = dict.fromkeys([*(before or {}), *value])
            value = {role: {**(before or {}).get(role, {}), **value.get(role, {})} for role in roles}
        elif isinstance(before, dict) and isinstance(value, dict):
            value = {**before, **value}
        file[name] = value
    return validate_settings(kind, cast(Kind, file), is_text=True)


def _values(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings of a kind that the user gave, as arguments of the API."""
    values: dict[str, Any] = {}
    for each in _declared(kind):
        if (value := given.get(each.key)) is None or value is False or value == []:
            continue
        if each.name in Budget.model_fields:
            values.setdefault("budget", {})[each.name] = each.value(value)
        else:
            values[each.name] = each.value(value)
    return values


@contextlib.contextmanager
def read_settings(kind: type[Kind], values: Mapping[str, Any], recipe: Recipe | None = None) -> Iterator[Kind]:
    """Yield a command's settings, merged from defaults, a YAML file and flags; read keys into the environment.

    If an error in the body is about a setting from the file, the file and the key are added to its message.

    Args:
        kind: The typed dictionary that declares them.
        values: The values of the flags, those of the recipe's options included.
        recipe: The recipe, if the command plays one.

    Raises:
        SettingError: If a setting is invalid; the message states its flag or file, its value and what it must be.
    """
    keys = {each.key for each in _declared(kind)}
    options = {name: value for name, value in values.items() if name not in keys and value not in (None, [])}
    path = values.get("config")
    in_file, own = _config_file(path, recipe) if path and recipe else ({}, {})
    try:
        settings = settings_of(kind, values, in_file)
        if recipe is not None:
            command = cast(RunCommand, settings)
            every, command["models"] = named_models(command)
            command["model"] = only_model(every)
            command["options"] = {**own, **options}
        if (env_file := cast(SessionSettings, settings)["env_file"]) is not None:
            from dialoom.roles.gateway.model_facts import load_env_file

            load_env_file(env_file)
        yield settings
    except DialoomError as error:
        if error.setting is None or path is None or recipe is None:
            raise
        key = flag_names().get(error.setting, error.setting)
        name = _option_names(recipe).get(error.setting, error.setting)
        if not ((key in in_file and not values.get(key)) or (name in own and name not in options)):
            raise
        text = error.message.replace(error.setting, key.replace("_", "-"), 1)
        raise SettingError(f"{path}: {text}", advice=error.advice) from error


def _option_names(recipe: Recipe) -> dict[str, str]:
    """Return the fields of a recipe's options, by the names of their flags."""
    return {field.alias or name: name for name, field in recipe.options_type.model_fields.items()}


def named_models(settings: PlayerSettings) -> tuple[list[str], dict[str, Players]]:
    """Return the models given for every role, and the models given for single roles; a list where there are several."""
    named = cast("dict[str, list[str]]", dict(settings["models"] or {}))
    every = named.pop("", [])
    return every, {role: cast(Players, models) if models[1:] else models[0] for role, models in named.items()}


def only_model(every: Sequence[str]) -> str | None:
    """Return the model given for every role; `None` if there is none.

    Raises:
        SettingError: If there are several.
    """
    if every[1:]:
        raise SettingError(f"models must name one model for all roles, got {', '.join(every)}", setting="models")
    return every[0] if every else None


def _role_and_value(text: str) -> tuple[str, str]:
    """Split `[ROLE=]VALUE`; a value may contain equals signs."""
    role, equals, value = text.partition("=")
    return (role, value) if equals and role.isidentifier() else ("", text)


def _models(given: Any) -> dict[str, list[str]]:
    """Return the models by role from `[ROLE=]MODEL` texts or a mapping; a role may have several different models."""
    if isinstance(given, dict):
        return {
            str(role): list(map(str, each)) if isinstance(each, list) else [str(each)] for role, each in given.items()
        }
    named: dict[str, dict[str, None]] = {}
    for text in given if isinstance(given, list) else [given]:
        role, model = _role_and_value(str(text))
        if not model.strip():
            raise SettingError(f"models must be [ROLE=]MODEL, got {text!r}", setting="models")
        named.setdefault(role, {}).pop(model.strip(), None)
        named[role][model.strip()] = None
    return {role: list(models) for role, models in named.items()}


def _parameters(given: Any) -> dict[str, dict[str, Any]]:
    """Return sampling parameters by role and name; the role of parameters for every role is the empty name.

    Args:
        given: `[ROLE.]KEY=VALUE` texts with YAML or JSON values; or a YAML file's mapping, with parameters for every
            role by name, and for single roles by role.

    Raises:
        SettingError: If a text has another form, or a parameter is given twice.
    """
    found: dict[str, dict[str, Any]] = {}
    texts = given if isinstance(given, list) else [given]
    for role, name, value in _of_mapping(given) if isinstance(given, Mapping) else map(_of_text, map(str, texts)):
        if name in found.setdefault(role, {}):
            whole = f"{role}.{name}" if role else name
            raise SettingError(
                f"params: {whole} is given twice, as {found[role][name]!r} and {value!r}", setting="params"
            )
        found[role][name] = value
    return found


def _of_text(text: str) -> tuple[str, str, Any]:
    """Return role, name and value of `[ROLE.]KEY=VALUE`."""
    named, equals, written = text.partition("=")
    if not equals or not named.strip() or not written.strip():
        raise SettingError(f"params must be [ROLE.]KEY=VALUE, got {text!r}", setting="params")
    role, _, name = named.strip().rpartition(".") if named.count(".") == 1 else ("", "", named.strip())
    for parse in (parse_json, parse_yaml):  # YAML parses 1e-3 as text
        try:
            return role, name, parse(written, "params")
        except DataError as error:
            problem = error
    raise SettingError(f"params must have a value in JSON or YAML, got {text!r:.100} ({problem})", setting="params")


def _of_mapping(given: Mapping[Any, Any]) -> Iterator[tuple[str, str, Any]]:
    for key, each in given.items():
        role, dot, name = str(key).partition(".")
        if dot or not isinstance(each, Mapping):
            yield (role, name, each) if dot else ("", role, each)
        else:
            yield from ((role, str(name), value) for name, value in each.items())


def _config_file(path: Path, recipe: Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a YAML file's options: those of every run by the flags' names, and those of the recipe by field."""
    values = read_yaml(path) or {}
    if not isinstance(values, dict):
        raise SettingError(f"{path} must hold 'name: value' lines, got {type(values).__name__}")
    common = {each.key for each in _declared(RunCommand) if each.flag.is_in_files}
    names = _option_names(recipe)
    found: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, value in values.items():
        plain = str(key).replace("-", "_")
        if plain in found or names.get(plain, plain) in own:
            raise SettingError(f"{path}: {key} is given twice, in different spellings")
        if plain in common:
            found[plain] = value
        elif plain in names or plain in names.values():
            own[names.get(plain, plain)] = value
        else:
            known = sorted(name.replace("_", "-") for name in {*common, *names})
            raise SettingError(
                f"{path}: {key} is not an option; {suggest_name(plain.replace('_', '-'), known, 'options')}"
            )
    return found, own
