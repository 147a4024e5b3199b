"""What docs/commands.md says of each command, taken from the command line itself.

    make commands     # writes the page anew, by cog
    make check        # fails if the page is not what this would write

The commands are walked as the parser holds them, so a new command, flag or recipe is in the page without any change
here. A recipe's options are only known when the command line is told its name, so `run` is asked once for each recipe
that comes with dialoom; what else is installed on this machine is not a part of the page.
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
from dialoom.graphs.training_rows import SFT, SHAREGPT, exporters
from dialoom.runs.configuration.recipes import GROUP, load_recipe

PROGRAM = "dialoom"
MANY = 4
"""An option that this many commands have, in the same words, is described once for all of them."""

Row = tuple[str, ...]
"""What stands in a table; of a parameter: how it is written, and what it does."""


@dataclass(frozen=True, slots=True)
class Section:
    """A command, or a group of some, as the page describes it.

    Attributes:
        path: What is typed after `dialoom`.
        command: As the parser holds it.
        rows: Its parameters in the command line's own words, arguments first.
    """

    path: tuple[str, ...]
    command: Any
    rows: Sequence[Row]


def reference() -> str:
    """The page below its introduction, with the empty lines that set it apart from the comments around it."""
    sections = [section for name in sorted(_parsed([]).commands) for section in _sections((name,))]
    counts = Counter(row for section in sections for row in section.rows if row[0].startswith("-"))
    shared = [row for row, count in counts.items() if count >= MANY]
    lines = [line for section in sections for line in _written(section, shared)]
    lines += ["## Shared options", "", "These mean the same wherever they stand:", "", *_table(PARAMETERS, shared)]
    return "\n".join(["", *lines])


def _parsed(arguments: list[str]) -> Any:
    """The command line as it is for these arguments."""
    return typer.main.get_command(build_app(arguments))


def _sections(path: tuple[str, ...]) -> Iterator[Section]:
    command = _parsed([*path])
    for name in path:  # a command has all its options only if it is the one that is called
        command = command.commands[name]
    if path == ("run",):
        yield from _run(command)
        return
    yield Section(path, command, _rows(command, path))
    for name in sorted(getattr(command, "commands", {})):
        yield from _sections((*path, name))


def _run(group: Any) -> Iterator[Section]:
    """`run` with what every recipe takes, and each recipe with what it takes besides."""
    commands = {name: _parsed(["run", name]).commands["run"].commands[name] for name in _recipes()}
    rows = {name: _rows(command, ("run", name)) for name, command in commands.items()}
    common = [row for row in next(iter(rows.values())) if all(row in others for others in rows.values())]
    yield Section(("run",), group, common)
    for name, command in commands.items():
        yield Section(("run", name), command, [row for row in rows[name] if row not in common])


def _recipes() -> list[str]:
    """The recipes that come with dialoom."""
    return sorted({point.name for point in entry_points(group=GROUP) if point.dist and point.dist.name == PROGRAM})


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
    """Name, usage, what it does, exit codes where it has some of its own, parameters."""
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
    """What the formats hold, and the flags that they have: first those that many recipes have."""
    rows: dict[Row, None] = {}
    for name in _recipes():
        recipe = load_recipe(name)
        own = WithExports.of(recipe).formats
        for format_, exporter in exporters(recipe).items():
            if format_ == SHAREGPT and SFT in own:
                continue  # its sft in another form
            owner = f"`{name}`" if format_ in own else _OWNERS[format_]
            flags = "; ".join(_flags(exporter.options))
            rows[owner, f"`{format_}`", _safe(exporter.description), flags] = None
    return sorted(rows, key=lambda row: row[0].startswith("`"))


def _flags(options: Any) -> Iterator[str]:
    for name, field in options.model_fields.items() if options is not None else ():
        yield f"`--{(field.alias or name).replace('_', '-')}`: {_safe(field.description or '').rstrip('.')}"


def _table(heads: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
    """Nothing if there are no rows. A parameter is code, and what it does is text."""
    written = [(_code(row[0]), *map(_safe, row[1:])) if heads == PARAMETERS else row for row in rows]
    if written:
        yield from (f"| {' | '.join(heads)} |", "|---" * len(heads) + "|")
        yield from (f"| {' | '.join(map(_cell, row))} |" for row in written)
        yield ""


def _code(text: str) -> str:
    """Code in a cell; where it has a bar, which ends a cell even in backquotes, by its HTML."""
    if "|" not in text:
        return f"`{text}`"
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "&#124;")):
        text = text.replace(sign, name)
    return f"<code>{text}</code>"


def _prose(text: str) -> str:
    """Paragraphs as Markdown, in lines of a length that can be read."""
    blocks = (" ".join(block.split()) for block in text.split("\n\n"))
    return "\n\n".join(textwrap.fill(_safe(block), 120, break_on_hyphens=False) for block in blocks)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _safe(text: str) -> str:
    """Text whose signs mean nothing to Markdown."""
    for sign in ("\\", "`", "*", "_", "[", "]", "<"):
        text = text.replace(sign, f"\\{sign}")
    return text
