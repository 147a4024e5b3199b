"""Flags, YAML keys and their values, derived from the settings' declarations: flags take precedence over a file."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar, cast, get_args

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
    checked,
    model_of,
)

from .flags import Flags, number

if TYPE_CHECKING:
    from dialoom.api.settings import CallSettings, JudgeSettings, PlaySettings
    from dialoom.graphs import Recipe

Kind = TypeVar("Kind", bound=Mapping[str, object])

UNBOUNDED = "none"
"""The value that removes a bound."""

_PANELS = ("Models", "Limits", "Output", "Advanced")
_PATHS = ("FILE", "DIR", "RUN")
"""Metavars of paths, which a shell completes."""


class SessionSettings(TypedDict, total=False):
    """Settings of a command that makes calls, which have no keyword argument."""

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
    """Settings of a command that makes a run, which have no keyword argument of their own."""

    out: Annotated[
        Path | None,
        Field(description="The run's file, which must not exist. Required."),
        Flag("Output", "RUN", short="-o"),
    ]
    folder: Annotated[
        Path | None,
        Field(
            description="Write the folder that the run is made for (a source, pairs, people or drafts) when all is "
            "done. For recipes that make one."
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


class _Declared(NamedTuple):
    """A setting as the command line has it."""

    name: str
    field: FieldInfo
    flag: Flag
    by_name: ByName | None
    is_kept: bool

    @property
    def key(self) -> str:
        """The YAML key, with underscores, and the flag without its dashes."""
        return self.flag.name or self.name

    @property
    def is_number(self) -> bool:
        """Return whether a text that looks like a number is one."""
        types = get_args(self.field.annotation) or (self.field.annotation,)
        return not self.by_name.is_text if self.by_name else int in types or float in types

    def option(self) -> tuple[Any, Any]:
        """Return Typer's annotation and the value of a flag that is not given."""
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
        if self.by_name:
            return Annotated[list[str] | None, option], None
        return Annotated[Path | None if metavar in _PATHS else str | None, option], None

    def _help(self) -> str:
        text, bracket, default = (self.field.description or "").partition(" [default")
        usual = self.field.default
        more = (" Repeatable." if self.by_name else "") + (" Kept for resume." if self.is_kept else "")
        parts = [text, more, bracket, default]
        if usual is not None and usual is not False:
            parts.append(f" [default: {usual:g}]" if isinstance(usual, float) else f" [default: {usual}]")
        return "".join(parts)

    def value(self, given: Any) -> Any:
        """Return the value in the API's form, from a flag's texts or a YAML value."""
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
        """Split `NAME=VALUE`; a value for all of them has the empty name."""
        assert self.by_name is not None
        if self.by_name.of == "role":
            name, equals, value = text.partition("=")
            if not equals or not name.isidentifier():
                name, value = "", text
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
    """Yield the settings of a kind that the command line has; of a budget each bound."""
    kept = model_of(LimitSettings).model_fields
    fields = {**model_of(kind).model_fields}
    if "budget" in fields:
        fields = {**Budget.model_fields, **fields}
    for name, field in fields.items():
        metadata = field.metadata
        for flag in metadata:
            if isinstance(flag, Flag):
                by_name = next((each for each in metadata if isinstance(each, ByName)), None)
                yield _Declared(name, field, flag, by_name, name in kept or name in Budget.model_fields)


def flags_for(*kinds: type[Any], without: Collection[str] = ()) -> Flags:
    """Return Typer's options of settings, in the order of the help's panels.

    Args:
        *kinds: Typed dictionaries that declare the settings.
        without: Names of settings that the command does not have.
    """
    found = {each.key: each for kind in kinds for each in _declared(kind) if each.name not in without}
    ordered = sorted(found.values(), key=lambda each: _PANELS.index(each.flag.panel))
    return {each.key: each.option() for each in ordered}


def flag_names() -> dict[str, str]:
    """Return the flags whose names differ from those of their settings, by setting."""
    return {
        each.name: each.key for kind in (RunSettings, ProcessSettings) for each in _declared(kind) if each.flag.name
    }


def settings_of(kind: type[Kind], given: Mapping[str, Any], in_file: Mapping[str, Any] | None = None) -> Kind:
    """Return checked settings.

    Args:
        kind: The typed dictionary that declares them.
        given: The flags' values, by the flags' names; what was not given is `None`, `False` or empty.
        in_file: The values of a YAML file, likewise.

    Raises:
        SettingError: Naming the setting, its value and what it must be.
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
    return checked(kind, cast(Kind, file), is_text=True)


def _values(kind: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a kind that are given, in the API's form."""
    values: dict[str, Any] = {}
    for each in _declared(kind):
        if (value := given.get(each.key)) is None or value is False or value == []:
            continue
        if each.name in Budget.model_fields:
            values.setdefault("budget", {})[each.name] = each.value(value)
        else:
            values[each.name] = each.value(value)
    return values


def play_settings(
    recipe: Recipe, options: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[PlaySettings, NewRunSettings]:
    """Return the settings of a new run, merged from defaults, a YAML file and flags.

    Args:
        recipe: The recipe.
        options: Its own options, by the names of their fields.
        given: The flags' values.

    Raises:
        SettingError: Naming the flag or the file, its value and what it must be.
    """
    from dialoom.api.settings import PlaySettings
    from dialoom.graphs.capabilities import WithJudging

    in_file, own = _config_file(given.get("config"), recipe)
    command = settings_of(NewRunSettings, given, in_file)
    settings = settings_of(PlaySettings, given, in_file)
    judging = WithJudging.of(recipe)
    every, by_role = named_models(settings, judging.judging_roles() if judging.judging() is not None else ())
    settings["model"], settings["models"] = every[-1] if every else None, by_role
    settings["options"] = {**own, **options}
    load_keys(command)
    return settings, command


@contextlib.contextmanager
def naming_the_file(recipe: Recipe, options: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[None]:
    """Name the YAML file and the key in errors about settings that no flag gives; the arguments are as before."""
    try:
        yield
    except DialoomError as error:
        if error.setting is None or (path := given.get("config")) is None:
            raise
        in_file, own = _config_file(path, recipe)
        names = {field.alias or name: name for name, field in recipe.options_type.model_fields.items()}
        key, name = flag_names().get(error.setting, error.setting), names.get(error.setting, error.setting)
        if not ((key in in_file and not given.get(key)) or (name in own and name not in options)):
            raise
        text = error.message.replace(error.setting, key.replace("_", "-"), 1)
        raise SettingError(f"{path}: {text}", advice=error.advice) from error


def call_settings(given: Mapping[str, Any]) -> CallSettings:
    """Return how calls are made; keys are read into the environment."""
    from dialoom.api.settings import CallSettings

    load_keys(settings_of(SessionSettings, given))
    return settings_of(CallSettings, given)


def judge_settings(given: Mapping[str, Any]) -> JudgeSettings:
    """Return who judges and how calls are made; keys are read into the environment."""
    from dialoom.api.settings import JudgeSettings

    load_keys(settings_of(SessionSettings, given))
    return settings_of(JudgeSettings, given)


def load_keys(command: SessionSettings) -> None:
    """Read the keys of a file into the environment."""
    if (env_file := command["env_file"]) is not None:
        from dialoom.roles.gateway.provider_keys import load_env_file

        load_env_file(env_file)


def named_models(
    settings: PlayerSettings, several: Collection[str] | None = None
) -> tuple[list[str], dict[str, Players]]:
    """Return the models that are named for every role, and those for each role.

    Args:
        settings: The settings as flags and a file give them.
        several: The roles that several models may play; for another the last one is taken. By default all roles.
    """
    named = cast("dict[str, list[str]]", dict(settings["models"] or {}))
    every = named.pop("", [])
    return every, {
        role: cast(Players, models) if (several is None or role in several) and models[1:] else models[-1]
        for role, models in named.items()
    }


def _models(given: Any) -> dict[str, list[str]]:
    """Return the models by role, each once, from `[ROLE=]MODEL` texts or a mapping; a role may have several."""
    if isinstance(given, dict):
        return {
            str(role): list(map(str, each)) if isinstance(each, list) else [str(each)] for role, each in given.items()
        }
    named: dict[str, dict[str, None]] = {}
    for text in given if isinstance(given, list) else [given]:
        role, equals, model = str(text).partition("=")
        if not equals or not role.isidentifier():
            role, model = "", str(text)
        if not model.strip():
            raise SettingError(f"models must be [ROLE=]MODEL, got {text!r}", setting="models")
        named.setdefault(role, {}).pop(model.strip(), None)
        named[role][model.strip()] = None
    return {role: list(models) for role, models in named.items()}


def _parameters(given: Any) -> dict[str, dict[str, Any]]:
    """Return sampling parameters by role and name; those of every role are under the empty name.

    Args:
        given: `[ROLE.]KEY=VALUE` texts with YAML or JSON as values; or a YAML file's mapping: by role, and of every
            role by name.

    Raises:
        SettingError: If a text is none of these, or a parameter is given twice.
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
    for parse in (parse_json, parse_yaml):  # YAML takes 1e-3 for a text
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


def _config_file(path: Path | None, recipe: Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a YAML file's options: those of every run, by the flags' names, and the recipe's, by their fields."""
    if path is None:
        return {}, {}
    values = read_yaml(path) or {}
    if not isinstance(values, dict):
        raise SettingError(f"{path} must hold 'name: value' lines, got {type(values).__name__}")
    kinds = (NewRunSettings, RunSettings, ProcessSettings)
    common = {each.key for kind in kinds for each in _declared(kind) if each.flag.is_in_files}
    names = {field.alias or name: name for name, field in recipe.options_type.model_fields.items()}
    found: dict[str, Any] = {}
    own: dict[str, Any] = {}
    for key, value in values.items():
        plain = str(key).replace("-", "_")
        if plain in found or names.get(plain, plain) in own:
            raise SettingError(f"{path}: {key} is given twice, once in another spelling")
        if plain in common:
            found[plain] = value
        elif plain in names or plain in names.values():
            own[names.get(plain, plain)] = value
        else:
            known = ", ".join(sorted({*common, *names})).replace("_", "-")
            raise SettingError(f"{path}: {key} is not an option; there are {known}")
    return found, own
