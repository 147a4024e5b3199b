"""The gate of a run: applies every rule to every conversation of an outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.outcome import Line, Outcome
from dialoom.prompts import Prompt

from .prompt_words import PromptWords
from .rules import RULES, TEXT_RULES
from .talk import Talk

if TYPE_CHECKING:
    from dialoom.graphs.capabilities import WithGate


class Gate:
    """Detects faults in the conversations of a recipe.

    Args:
        recipe: Extracts the conversations of an outcome.
        prompts: The prompts of the models.
    """

    def __init__(self, recipe: WithGate, prompts: Iterable[Prompt]) -> None:
        self._recipe = recipe
        self._prompts = prompts

    @cached_property
    def _words(self) -> PromptWords:
        return PromptWords.of(self._prompts)

    def faults(self, scenario: Any, outcome: Outcome) -> tuple[DialogueFault, ...] | None:
        """Return the faults of all roles in an outcome, in the order of the messages; `None` without conversation."""
        return self.passed(scenario, outcome).faults

    def passed(self, scenario: Any, outcome: Outcome) -> Outcome:
        """Return an outcome with its faults and the languages of its conversations."""
        found: dict[DialogueFault, None] = {}
        talks = list(self._recipe.talks(scenario, outcome))
        if not talks:
            return outcome.model_copy(update={"faults": None, "languages": ()})
        for talk in talks:
            found.update(dict.fromkeys(self._of_talk(talk)))
        found.update(dict.fromkeys(self._recipe.noticed(scenario, outcome)))
        languages = tuple(sorted({talk.language for talk in talks}))
        return outcome.model_copy(update={"faults": tuple(sorted(found, key=_place)), "languages": languages})

    def faults_of_line(self, scenario: Any, history: Sequence[Line], line: Line) -> list[DialogueFault]:
        """Return the faults of a line before it is added to the conversation."""
        talk = Talk.of([*history, line], self._recipe.facts(scenario))
        return [each for each in self._of_talk(replace(talk, since=len(history))) if each.who == line.role]

    def _of_talk(self, talk: Talk) -> Iterator[DialogueFault]:
        known = replace(talk, prompts=self._words)
        for rule in RULES if talk.is_spoken else TEXT_RULES:
            for fault in rule(known):
                yield fault.model_copy(update={"who": talk.author or fault.who})


def _place(fault: DialogueFault) -> tuple[bool, int, str]:
    return (fault.message is None, fault.message or 0, fault.where)
