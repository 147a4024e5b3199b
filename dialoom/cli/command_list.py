"""The list of commands in `--help`: in sections, in the order of use, with full summaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Set up": {
        "doctor": "Check this machine, the keys and the models.",
        "new": "Create a folder with a working recipe and its test.",
        "personas": "Build pools of profiles and personalities, and combine them.",
    },
    "Play": {
        "run": "Make a run: plan it, play every scenario, record every step.",
        "resume": "Continue a run where it stopped.",
        "retry": "Repeat failed scenarios, unparsed judgements, or chosen scenarios.",
        "import": "Make a run from conversations recorded elsewhere.",
        "scorecard": "Run all benchmarks for one assistant or several, on one page.",
    },
    "Look": {
        "status": "Show a run's progress, calls, tokens and cost.",
        "show": "List a run's scenarios, or print one with its judgements.",
        "studio": "Open runs in a browser: watch, read, step through, label, compare.",
        "step": "Step through a conversation: inspect, edit, rewind, fork.",
        "replay": "Replay a saved conversation offline, as a test.",
    },
    "Judge": {
        "judge": "Judge a run's dialogues again, with other models.",
        "review": "Look for faults in a run's dialogues, by rules and with a model.",
        "agree": "Compare people's labels with the judge's scores.",
        "report": "Print scores with their intervals; several runs side by side.",
        "require": "Check a run's scores against requirements: exit code 1 if one is not met.",
    },
    "Export": {
        "describe": "Describe a dataset: a run, a release, or a file of dialogues.",
        "export": "Write a run's scenarios for other programs.",
        "push": "Upload an exported folder to a dataset hub.",
        "compact": "Free the space of checkpoints that are no longer needed.",
    },
}
"""The commands in the order of use, each with its purpose in one line."""


class CommandList(TyperGroup):
    """The commands in their sections; commands without a section come last."""

    sections: Mapping[str, Mapping[str, str]] = SECTIONS
    others = "More commands"
    added: Mapping[str, str] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of use."""
        known = [name for section in self.sections.values() for name in section if name in self.commands]
        return [*known, *(name for name in super().list_commands(ctx) if name not in known)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in columns that have the same width in all sections."""
        width = max(map(len, [*self.commands, *self.added]))
        remaining = {
            name: " ".join((self.commands[name].help or "").split("\n\n")[0].split())
            for name in self.list_commands(ctx)
        }
        for title, section in self.sections.items():
            rows = {name: text for name, text in section.items() if remaining.pop(name, None) is not None}
            _write_section(formatter, title, rows, width)
        _write_section(formatter, self.others, {**remaining, **self.added}, width)


class PanelCommand(TyperCommand):
    """A command whose help lists its options in panels."""

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the help; texts in brackets are not read as markup."""
        from rich.markup import escape
        from typer import rich_utils

        self.help, self.epilog = escape(self.help or ""), escape(self.epilog or "")
        for parameter in self.params:
            parameter.help = escape(getattr(parameter, "help", None) or "")  # type: ignore[attr-defined]
        rich_utils.rich_format_help(obj=self, ctx=ctx, markup_mode="rich")

    def get_help_option(self, ctx: Any) -> Any:
        """Return the help option, placed in the last panel."""
        option: Any = super().get_help_option(ctx)
        if option is not None:
            option.rich_help_panel = "Advanced"
        return option


class RecipeList(CommandList):
    """The recipes with their summaries, and how to specify your own recipe."""

    sections: Mapping[str, Mapping[str, str]] = {}
    others = "Recipes"
    added: Mapping[str, str] = {
        "FILE.py:RECIPE": "Your own recipe, which FILE.py assigns to RECIPE (docs/new-recipe.md)."
    }


def _write_section(formatter: Any, title: str, rows: Mapping[str, str], width: int) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows.items()])
