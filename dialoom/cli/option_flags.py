"""Flags: options of commands made from the fields of a recipe's options, and flags that several commands share."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from .completion import complete_judgings
from .terminal import echo

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from dialoom.runs.configuration.trust import Trust

Flags = dict[str, tuple[Any, Any]]
"""Typer's description of each parameter: its annotation, and its value if the flag is not given."""

WhereFlag = Annotated[
    str | None,
    typer.Option(
        metavar="EXPR",
        help='Only scenarios that match this expression, e.g. "personalization >= 3 and ended_by == '
        "'user_terminated'\"; 'not changed' excludes those that a person changed.",
        show_default=False,
    ),
]

RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The run's file.", show_default=False)]

JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

JudgingFlag = Annotated[
    str | None,
    typer.Option(
        "--judging",
        metavar="NAME",
        help="The set of judgements to use; by default the run's own.",
        autocompletion=complete_judgings,
    ),
]

TrustFlag = Annotated[
    bool,
    typer.Option(
        "--trust",
        help="Trust the code and addresses that the file refers to, even if they were not specified on this machine.",
    ),
]

DifferentUsersFlag = Annotated[
    bool,
    typer.Option(
        "--allow-different-users",
        help="Compute differences even between runs whose user model, user prompt or source of personas differs; the "
        "table's title then states it.",
    ),
]


def build_trust(is_given: bool) -> Trust:
    """Return the trust in the code and addresses of a file; those trusted only by the flag are reported before use."""
    from dialoom.runs.configuration.trust import Trust

    return Trust(is_given, lambda line: echo(line, err=True))


def find_recipe_argument(arguments: list[str], command: str) -> str | None:
    """Return the argument that may name a recipe: the first one after the command that is no flag."""
    return next((each for each in arguments[1:] if arguments[0] == command and not each.startswith("-")), None)


def placeholder_command() -> None:
    """Do nothing; this replaces a command that the arguments do not use."""


def with_flags(
    command: Callable[..., None],
    flags: Flags,
    read: Callable[[dict[str, Any]], AbstractContextManager[Mapping[str, Any]]] = contextlib.nullcontext,
    names: dict[str, Any] | None = None,
) -> Callable[..., None]:
    """Return a command with flags in addition to its own parameters; it receives their values as `**settings`.

    Args:
        command: The command.
        flags: The flags; flags with the name of a parameter are left out.
        read: Makes `settings` from the flags' values, as a context manager around the command.
        names: The names that the command's annotations use and its module does not import.
    """
    hints = get_type_hints(command, localns=names, include_extras=True)
    parameters = inspect.signature(command).parameters.values()
    own = [each.replace(annotation=hints[each.name]) for each in parameters if each.kind is not each.VAR_KEYWORD]
    own_names = {each.name for each in own}
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in flags.items()
        if name not in own_names
    ]

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        arguments = {name: values.pop(name) for name in own_names}
        with read(values) as given:
            command(**arguments, **given)

    wrapper.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
    return wrapper


def build_flags(options: type[BaseModel], panel: str | None = None) -> Flags:
    """Return a flag for each field. A flag that is not given has no value, so that the field's default applies.

    Args:
        options: The options' type.
        panel: The panel of the help that lists the flags.
    """
    return {name: (_build_option(name, field, panel), None) for name, field in options.model_fields.items()}


def _build_option(name: str, field: FieldInfo, panel: str | None) -> Any:
    flag = "--" + (field.alias or name).replace("_", "-")
    type_, is_repeated = _get_flag_type(field.annotation)
    default = field.get_default()
    default_text = ", ".join(map(str, default)) if isinstance(default, tuple) else default
    help_ = (field.description or "") + (
        f" [default: {default_text}]" if type_ is not bool and default_text not in (None, "") else ""
    )
    if type_ is bool:
        names, help_ = f"{flag}/--no-{flag[2:]}", f"{help_} [default: {'on' if default else 'off'}]"
        return Annotated[bool | None, typer.Option(names, help=help_, show_default=False, rich_help_panel=panel)]
    is_number = type_ in (int, float) and not is_repeated
    option = typer.Option(
        flag,
        help=help_,
        show_default=False,
        rich_help_panel=panel,
        parser=parse_number if is_number else None,
        metavar=("N" if type_ is int else "NUMBER") if is_number else None,
    )
    return Annotated[list[type_] | None, option] if is_repeated else Annotated[type_ | None, option]  # type: ignore[valid-type]


def parse_role_models(texts: Iterable[str]) -> dict[str, str]:
    """Return the models by role, from values such as `assistant=openai/gpt-5`.

    Raises:
        BadParameter: If a value has no role.
    """
    models = {}
    for each in texts:
        role, is_named, models[role] = each.partition("=")
        if not is_named:
            raise typer.BadParameter(f"--model must have the form ROLE=MODEL, got {each!r}")
    return models


def parse_number(text: str) -> Any:
    """Return the number in a text, or the text if it is not a number, which the setting's own check then rejects."""
    for type_ in (int, float):
        with contextlib.suppress(ValueError):
            return type_(text)
    return text


def _get_flag_type(annotation: Any) -> tuple[type, bool]:
    """Return the type of a flag's value, and whether the flag can be repeated; pydantic checks the value strictly."""
    arguments = [argument for argument in get_args(annotation) if argument not in (type(None), Ellipsis)]
    if get_origin(annotation) is tuple:
        return _get_flag_type(arguments[0])[0], True
    if get_origin(annotation) is Annotated or (get_origin(annotation) is not None and len(arguments) == 1):
        return _get_flag_type(arguments[0])
    return annotation if annotation in (bool, int, float, Path) else str, False
