"""The reference of commands in docs/commands.md, generated from the command line itself.

        make commands     # regenerates the page with cog
        make check        # fails if the page is not current

The commands are read from the parser, so a new command, option or recipe appears without any change here. A recipe's
options are known only if the command line has its name, so `run` is parsed once for each recipe that comes with
dialoom; other installed recipes are not included.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

import typer

from dialoom.cli.app import build_app
from dialoom.graphs import WithExports
from dialoom.graphs.training_rows import SFT, SHAREGPT, build_exporters
from dialoom.runs.configuration.recipes import ENTRY_POINT_GROUP, load_recipe

PROGRAM = "dialoom"
MANY = 4
"""An option that at least this many commands have, with the same description, is described once for all of them."""

Row = tuple[str, ...]
"""A row of a table; for a parameter its syntax and its description."""


@dataclass(frozen=True, slots=True)
class Section:
    """A command or group of commands on the page.

    Attributes:
        path: The words after `dialoom`.
        command: The parser's command.
        rows: Its parameters as in the help, arguments first.
    """

    path: tuple[str, ...]
    command: Any
    rows: Sequence[Row]


def reference() -> str:
    """Return the page below its introduction, between empty lines that separate it from cog's comments."""
    sections = [section for name in sorted(_parsed([]).commands) for section in _sections((name,))]
    counts = Counter(row for section in sections for row in section.rows if row[0].startswith("-"))
    shared = [row for row, count in counts.items() if count >= MANY]
    lines = [line for section in sections for line in _written(section, shared)]
    lines += ["## Shared options", "", "These mean the same in every command:", "", *_table(PARAMETERS, shared)]
    return "\n".join(["", *lines])


def _parsed(arguments: list[str]) -> Any:
    """Return the parser for the given arguments."""
    return typer.main.get_command(build_app(arguments))


def _sections(path: tuple[str, ...]) -> Iterator[Section]:
    command = _parsed([*path])
    for name in path:  # only the command that is called has all its options
        command = command.commands[name]
    if path == ("run",):
        yield from _run(command)
        return
    yield Section(path, command, _rows(command, path))
    for name in sorted(getattr(command, "commands", {})):
        yield from _sections((*path, name))


def _run(group: Any) -> Iterator[Section]:
    """Yield `run` with the options that all recipes have, and each recipe with its own."""
    commands = {name: _parsed(["run", name]).commands["run"].commands[name] for name in _recipes()}
    rows = {name: _rows(command, ("run", name)) for name, command in commands.items()}
    common = [row for row in next(iter(rows.values())) if all(row in others for others in rows.values())]
    yield Section(("run",), group, common)
    for name, command in commands.items():
        yield Section(("run", name), command, [row for row in rows[name] if row not in common])


def _recipes() -> list[str]:
    """Return the recipes that come with dialoom."""
    return sorted(
        {point.name for point in entry_points(group=ENTRY_POINT_GROUP) if point.dist and point.dist.name == PROGRAM}
    )


def _rows(command: Any, path: Iterable[str]) -> list[Row]:
    context = _context(command, path)
    shown = [parameter for parameter in command.get_params(context) if "--help" not in parameter.opts]
    shown.sort(key=lambda parameter: parameter.param_type_name != "argument")
    return [record for parameter in shown if (record := parameter.get_help_record(context))]


def _context(command: Any, path: Iterable[str]) -> Any:
    return command.make_context(" ".join([PROGRAM, *path]), [], resilient_parsing=True)


PARAMETERS = ("parameter", "what it does")
FORMATS = ("recipe", "format", "what it holds", "options")
_OWNERS = {SHAREGPT: "every recipe", SFT: "dialogues and studies"}


def _written(section: Section, shared: Sequence[Row]) -> Iterator[str]:
    """Yield the name, usage, description, specific exit codes and parameters of a command."""
    path, command = section.path, section.command
    yield from (f"{'#' * (len(path) + 1)} {' '.join(path)}", "")
    pieces = command.collect_usage_pieces(_context(command, path))
    yield from ("```text", " ".join([PROGRAM, *path, *pieces]), "```", "")
    for paragraph in (command.help, command.epilog):
        if paragraph:
            yield from (_prose(paragraph), "")
    if path == ("run",):
        yield from ("Every recipe takes these, and options of its own:", "")
    yield from _table(PARAMETERS, [row for row in section.rows if row not in shared])
    if also := [f"`{row[0].split()[0].rstrip(',')}`" for row in section.rows if row in shared]:
        yield from (f"Besides, the [shared options](#shared-options) {', '.join(also)}.", "")
    if path == ("export",):
        yield from ("Besides `dialogues` there are these formats, and some of them have options:", "")
        yield from _table(FORMATS, _formats())


def _formats() -> list[Row]:
    """Return the formats with their options, first those that many recipes have."""
    rows: dict[Row, None] = {}
    for name in _recipes():
        recipe = load_recipe(name)
        own = WithExports.of(recipe).formats
        for format_, exporter in build_exporters(recipe).items():
            if format_ == SHAREGPT and SFT in own:
                continue  # the same rows as its sft
            owner = f"`{name}`" if format_ in own else _OWNERS[format_]
            flags = "; ".join(_flags(exporter.options))
            rows[owner, f"`{format_}`", _safe(exporter.description), flags] = None
    return sorted(rows, key=lambda row: row[0].startswith("`"))


def _flags(options: Any) -> Iterator[str]:
    for name, field in options.model_fields.items() if options is not None else ():
        yield f"`--{(field.alias or name).replace('_', '-')}`: {_safe(field.description or '').rstrip('.')}"


def _table(heads: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Yield a table, or nothing if there are no rows; parameters are formatted as code."""
    written = [(_code(row[0]), *map(_safe, row[1:])) if heads == PARAMETERS else row for row in rows]
    if written:
        yield from (f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
        yield from (f"| {' | '.join(map(_cell, row))} |" for row in written)
        yield ""


def _code(text: str) -> str:
    """Return a cell with code; as HTML if it contains a bar, which ends a cell even in backquotes."""
    if "|" not in text:
        return f"`{text}`"
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        text = text.replace(sign, name)
    return f"<code>{text}</code>"


def _prose(text: str) -> str:
    """Return paragraphs as Markdown, in lines of at most 120 characters."""
    blocks = (" ".join(block.split()) for block in text.split("\n\n"))
    return "\n\n".join(textwrap.fill(_safe(block), 120, break_on_hyphens=False) for block in blocks)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _safe(text: str) -> str:
    """Return text with Markdown's special characters escaped."""
    for sign in ("\\", "`", "*", "_", "[", "]", "<"):
        text = text.replace(sign, f"\\{sign}")
    return text
