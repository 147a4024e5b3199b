"""The list of commands in `--help`: in the order of use, in sections, with full summaries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup

SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Get ready": {
        "doctor": "Whether this machine, the keys and the models are ready.",
        "new": "A folder with a recipe that works, to be changed into your own.",
        "personas": "Pools of profiles and personalities, and the personas made of them.",
    },
    "Play": {
        "run": "Make a run: plan it, play every scenario, keep every step.",
        "resume": "Go on with a run where it stopped.",
        "retry": "Try again what failed or was unparsed, or a scenario anew.",
        "scorecard": "How personal an assistant is: all systems, on one page.",
    },
    "Look": {
        "status": "How far a run is, and what it has taken so far.",
        "show": "The list of scenarios, or one of them with its judgements.",
        "studio": "All of that in a browser: watch, read, step, label, compare.",
        "step": "One conversation step by step: look, edit, rewind, fork, compare.",
        "replay": "Play a saved conversation again, offline, as a test.",
    },
    "Judge": {
        "judge": "Judge a run's dialogues once more, beside its own judgements.",
        "review": "Look for faults in a run's dialogues, by rules and with a model.",
        "agree": "How far people agree with the judge.",
        "report": "Scores with their intervals; several runs side by side.",
    },
    "Take away": {
        "describe": "What is in a dataset: a run, a release, or a file of dialogues.",
        "export": "Write a run's scenarios for other programs.",
        "push": "Hand an exported folder to a dataset hub.",
        "compact": "Give back the room of checkpoints that nothing refers to.",
    },
}
"""The commands in the order of use, each with its purpose in one line."""


class CommandList(TyperGroup):
    """The commands in their sections; a command without a section comes after them."""

    sections: Mapping[str, Mapping[str, str]] = SECTIONS
    others = "More commands"
    added: Mapping[str, str] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of use."""
        known = [name for section in self.sections.values() for name in section if name in self.commands]
        return [*known, *(name for name in super().list_commands(ctx) if name not in known)]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, in columns of the same width in all sections."""
        width = max(map(len, [*self.commands, *self.added]))
        left = {name: self._said(name) for name in self.list_commands(ctx)}
        for title, section in self.sections.items():
            listed = {name: text for name, text in section.items() if left.pop(name, None) is not None}
            _write(formatter, title, listed, width)
        _write(formatter, self.others, {**left, **self.added}, width)

    def _said(self, name: str) -> str:
        """Return the whole summary of a command."""
        command = self.commands[name]
        return " ".join((command.help or "").split("\n\n")[0].split())


class RecipeList(CommandList):
    """The recipes with their summaries, and how to name one's own."""

    sections: Mapping[str, Mapping[str, str]] = {}
    others = "Recipes"
    added: Mapping[str, str] = {"FILE.py:RECIPE": "One of your own: RECIPE in a file (docs/new-recipe.md)."}


def _write(formatter: Any, title: str, rows: Mapping[str, str], width: int) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl([(name.ljust(width), text) for name, text in rows.items()])
