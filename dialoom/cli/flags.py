"""Flags: the options of commands generated from the fields of a recipe's options, and the flags of several commands."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin, get_type_hints

import typer

from .terminal import say

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic.fields import FieldInfo

    from dialoom.runs.configuration.trust import Trust

Flags = dict[str, tuple[Any, Any]]
"""Typer's description of each parameter: its annotation, and its value when the flag is not given."""

WHERE = typer.Option(
    metavar="EXPR",
    help="Only scenarios that match this expression, e.g. \"personalization >= 3 and ended_by == 'user_terminated'\"; "
    "'not changed' excludes those that a person changed.",
    show_default=False,
)

_TRUST: Any = typer.Option(
    "--trust", help="Use the code and addresses that the file names, even if not given on this machine."
)
TrustFlag = Annotated[bool, _TRUST]
TRUSTING: Flags = {"trust": (TrustFlag, False)}


def trust(is_given: bool) -> Trust:
    """Return the trust in what a file names; what is used on its word alone is reported before use."""
    from dialoom.runs.configuration.trust import Trust

    return Trust(is_given, lambda line: say(line, err=True))


def with_options(command: Callable[..., None], flags: Mapping[str, tuple[Any, Any]]) -> Callable[..., None]:
    """Return the command with a signature from which Typer makes options."""
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in flags.items()
    ]
    return _signed(command, parameters)


def with_more(command: Callable[..., None], flags: Flags) -> Callable[..., None]:
    """Return a command that takes `**given`, with these flags besides its own: their values are passed in `given`."""
    hints = get_type_hints(command, include_extras=True)
    own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.kind is not _GIVEN]
    more = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in flags.items()
    ]
    parameters = [*(parameter.replace(annotation=hints[parameter.name]) for parameter in own), *more]

    @functools.wraps(command)
    def taking_more(**values: Any) -> None:
        command(**values)

    return _signed(taking_more, parameters)


def _signed(command: Callable[..., None], parameters: Sequence[inspect.Parameter]) -> Callable[..., None]:
    """Set the command's signature to the given parameters."""
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


_GIVEN = inspect.Parameter.VAR_KEYWORD


def flags_of(options: type[BaseModel], panel: str | None = None) -> Flags:
    """Return each field as a flag that is absent by default: then the field's own default applies.

    Args:
        options: The options' type.
        panel: The panel of the help that lists them.
    """
    return {name: (_option(name, field, panel), None) for name, field in options.model_fields.items()}


def _option(name: str, field: FieldInfo, panel: str | None) -> Any:
    flag = "--" + (field.alias or name).replace("_", "-")
    type_, repeated = _flag_type(field.annotation)
    default = field.get_default()
    shown = ", ".join(map(str, default)) if isinstance(default, tuple) else default
    help_ = (field.description or "") + (
        f" [default: {shown}]" if type_ is not bool and shown not in (None, "") else ""
    )
    if type_ is bool:
        both = f"{flag}/--no-{flag[2:]}"
        word = "on" if default else "off"
        option = typer.Option(both, help=f"{help_} [default: {word}]", show_default=False, rich_help_panel=panel)
        return Annotated[bool | None, option]
    is_number = type_ in (int, float) and not repeated
    option = typer.Option(
        flag,
        help=help_,
        show_default=False,
        rich_help_panel=panel,
        parser=number if is_number else None,
        metavar=("N" if type_ is int else "NUMBER") if is_number else None,
    )
    return Annotated[list[type_] | None, option] if repeated else Annotated[type_ | None, option]  # type: ignore[valid-type]


def number(text: str) -> Any:
    """Return the number that a text is, or the text; the setting's own check refuses it."""
    for type_ in (int, float):
        try:
            return type_(text)
        except ValueError:
            continue
    return text


def _flag_type(annotation: Any) -> tuple[type, bool]:
    """Return the type of a flag's value, and whether the flag can be repeated. Pydantic does the strict checking."""
    arguments = [argument for argument in get_args(annotation) if argument not in (type(None), Ellipsis)]
    if get_origin(annotation) is Annotated:
        return _flag_type(arguments[0])
    if get_origin(annotation) is tuple:
        return _flag_type(arguments[0])[0], True
    if annotation in (bool, int, float, Path):
        return annotation, False
    if len(arguments) == 1 and get_origin(annotation) is not None:
        return _flag_type(arguments[0])
    return str, False
