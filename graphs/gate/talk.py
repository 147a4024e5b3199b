"""The rules' view of a conversation's lines, or of one author's texts; and the recipe's facts about them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dialoom.graphs.outcome import DialogueFault, Line

from .vocabulary import NO_PROMPTS, UNDETERMINED, PromptWords, Vocabulary, language_of, runs_of, vocabulary, words_of

LONGEST = 20_000
"""The most letters of a line that are compared word by word: longer ones are never sound, and would stall a run."""

STRETCH = 14
"""The number of consecutive repeated words that is no coincidence."""

_SHOWN = 120
_LETTERS = 2_000
"""The number of a line's letters from which its language is derived."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(r"“[^“”]*”|«[^«»]*»|„[^„“”]*[“”]|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|(?<!\w)‘[^‘’\n]*’(?!\w)")


@dataclass(frozen=True)
class Said:
    """A line with the features that rules use, each computed once.

    Attributes:
        role: The speaker.
        text: The text.
        message: Its index among the outcome's messages, from 0; `None` if it is not one of them.
        where: A location defined by the recipe.
        is_cut: Whether the provider reported that it was cut off.
    """

    role: str
    text: str
    message: int | None = None
    where: str = ""
    is_cut: bool = False

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words, in lower case."""
        return tuple(words_of(self.text[:LONGEST]))

    @cached_property
    def counted(self) -> Counter[str]:
        """The number of occurrences of each word."""
        return Counter(self.words)

    @cached_property
    def pairs(self) -> Counter[tuple[str, str]]:
        """The number of occurrences of each pair of adjacent words."""
        return Counter(zip(self.words, self.words[1:], strict=False))

    @cached_property
    def stretches(self) -> list[int]:
        """The hashes of every `STRETCH` consecutive words, by their first word's index."""
        return runs_of(self.words, STRETCH)

    @cached_property
    def prose(self) -> str:
        """The beginning of the text without code."""
        return _CODE.sub(" ", self.text[:LONGEST])

    @cached_property
    def own(self) -> str:
        """The beginning of the text without code and quotations: the speaker's own words."""
        return _QUOTED.sub(" “…” ", self.prose)

    def shown(self, start: int = 0, end: int | None = None) -> str:
        """Return an excerpt on one line."""
        text = " ".join(self.text[start : (start + _SHOWN * 2) if end is None else end].split())
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

    def fault(self, kind: str, words: str, sureness: float = 1.0) -> DialogueFault:
        """Return a fault of the speaker in this line."""
        return DialogueFault(
            who=self.role, kind=kind, message=self.message, where=self.where, words=words[:_SHOWN], sureness=sureness
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """A recipe's facts about a scenario's conversation. Rules skip checks whose facts are missing.

    Attributes:
        user: The role that has a task, or talks about itself.
        languages: The languages, as ISO 639 codes; if there is none, it is derived from the words.
        task: The user's task, in words.
        kept_back: Texts that the user must not reveal in the opening, such as their preferences.
        end_markers: The words by which the user ends the conversation, which no message should contain.
        user_ends: The value of `Outcome.ended_by` for an ending by the user.
        limit: The value of `Outcome.ended_by` for an ending by the limit.
    """

    user: str = "user"
    languages: tuple[str, ...] = ()
    task: str = ""
    kept_back: tuple[str, ...] = ()
    end_markers: tuple[str, ...] = ()
    user_ends: str | None = None
    limit: str | None = None


@dataclass(frozen=True)
class Talk:
    """A conversation as the rules read it.

    Attributes:
        lines: The lines in order.
        facts: The recipe's facts.
        ended_by: The reason for which it ended; empty while it goes on.
        since: The first line to check; earlier lines are context only.
        prompts: The prompts' texts, which lines should not repeat.
        author: The author at fault for all lines, for texts that are not spoken.
    """

    lines: Sequence[Said]
    facts: Facts = field(default_factory=Facts)
    ended_by: str = ""
    since: int = 0
    prompts: PromptWords = NO_PROMPTS
    author: str = ""

    @classmethod
    def of_texts(cls, author: str, texts: Mapping[str, str], facts: Facts, since: int = 0) -> Talk:
        """Return the texts that a role wrote but nobody speaks, such as a pool's, by their location in the outcome."""
        return cls(
            [Said(author, text, where=where) for where, text in texts.items()], facts, since=since, author=author
        )

    @classmethod
    def of(cls, lines: Iterable[Line], facts: Facts, ended_by: str = "") -> Talk:
        """Return an outcome's messages without tool results and without messages that only hold tool calls."""
        said = [
            Said(line.role, line.content, message, is_cut=line.finish_reason == "length")
            for message, line in enumerate(lines)
            if line.tool_call_id is None and (line.content or not line.tool_calls)
        ]
        return cls(said, facts, ended_by)

    @property
    def is_spoken(self) -> bool:
        """Return whether it is a conversation, including one written by a single author."""
        return not self.author or any(line.role != self.author for line in self.lines)

    def checked_lines(self) -> Sequence[Said]:
        """Return the lines to check."""
        return self.lines[self.since :]

    @cached_property
    def language(self) -> str:
        """Its language as an ISO 639 code: the only one that its facts declare, else that of most lines.

        If no line's language can be detected, it is the first declared language, or `und` without any.
        """
        declared = self.facts.languages
        if len(declared) == 1:
            return declared[0]
        told = Counter(language_of(line.text[:_LETTERS]) for line in self.lines)
        found = [code for code, _ in told.most_common() if code is not None and (not declared or code in declared)]
        return (*found, *declared, UNDETERMINED)[0]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the conversation's language, or of English if there is none."""
        return vocabulary((self.language, *self.facts.languages))
