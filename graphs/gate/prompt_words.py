"""Texts of the prompts themselves (instructions, tags and forms), none of which belongs in a conversation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from dialoom.prompts import Prompt

from .vocabulary import words_of

RUN = 8
"""The number of consecutive words of a prompt that is no coincidence."""

_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_TAG = re.compile(r"<\s*/?\s*([A-Za-z][\w-]*)")
_FORM = re.compile(r"\{\s*\"\w+\"\s*:.*?\}", re.DOTALL)
_VALUE = re.compile(r":\s*\"([^\"]+)\"")


@dataclass(frozen=True, slots=True)
class PromptWords:
    """Texts of some prompts, indexed for look-up.

    Attributes:
        runs: The hashes of every `RUN` consecutive words of an instruction.
        tags: The names of their tags.
        forms: Placeholders of the reply forms, which stand where the answer belongs.
    """

    runs: frozenset[int] = frozenset()
    tags: frozenset[str] = frozenset()
    forms: frozenset[str] = frozenset()

    @classmethod
    def of(cls, prompts: Iterable[Prompt]) -> PromptWords:
        """Return the words of prompts, without their inputs."""
        runs: set[int] = set()
        tags: set[str] = set()
        forms: set[str] = set()
        for prompt in prompts:
            for section in prompt.sections:
                tags.update(name.lower() for name in _TAG.findall(section.text))
                forms.update(normal(value) for form in _FORM.findall(section.text) for value in _VALUE.findall(form))
                for part in _TEMPLATE.sub("\0", section.text).split("\0"):
                    runs.update(runs_of(tuple(words_of(part))))
        return cls(frozenset(runs), frozenset(tags), frozenset(form for form in forms if " " in form))


NO_PROMPTS = PromptWords()


def runs_of(words: tuple[str, ...], length: int = RUN) -> list[int]:
    """Return the hashes of every `length` consecutive words, by their first word's index."""
    return [hash(words[place : place + length]) for place in range(len(words) - length + 1)]


def normal(text: str) -> str:
    """Return a text's words as one normalised text for comparison."""
    return " ".join(words_of(text))
