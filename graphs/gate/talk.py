"""What the rules read: a conversation's lines, or texts of one author; and what the recipe knows beside the words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from dialoom.graphs.fault import DialogueFault
from dialoom.graphs.outcome import Line

from .prompt_words import NO_PROMPTS, PromptWords, runs_of
from .vocabulary import UNDETERMINED, Vocabulary, language_of, vocabulary, words_of

LONGEST = 20_000
"""Letters of a line that are compared word by word: no sound line is longer, and a huge one must not hold up a run."""

STRETCH = 14
"""So many words in a row, said again, are no coincidence."""

_SHOWN = 120
_LETTERS = 2_000
"""So many letters of a line tell its language."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_QUOTED = re.compile(r"“[^“”]*”|«[^«»]*»|„[^„“”]*[“”]|\"[^\"\n]*\"|(?<!\w)'[^'\n]*'(?!\w)|(?<!\w)‘[^‘’\n]*’(?!\w)")


@dataclass(frozen=True)
class Said:
    """A line and what rules ask about it, told once however many rules ask.

    Attributes:
        role: Who said it.
        text: What was said.
        message: Its place among the outcome's messages, from 0; `None` if it is none of them.
        where: A place of the recipe's own.
        is_cut: Whether its provider said that it was cut off.
    """

    role: str
    text: str
    message: int | None = None
    where: str = ""
    is_cut: bool = False

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Its words, in lower case."""
        return tuple(words_of(self.text[:LONGEST]))

    @cached_property
    def counted(self) -> Counter[str]:
        """How often each word is there."""
        return Counter(self.words)

    @cached_property
    def pairs(self) -> Counter[tuple[str, str]]:
        """How often each two words stand side by side."""
        return Counter(zip(self.words, self.words[1:], strict=False))

    @cached_property
    def stretches(self) -> list[int]:
        """The hashes of every `STRETCH` words in a row, by where they begin."""
        return runs_of(self.words, STRETCH)

    @cached_property
    def prose(self) -> str:
        """Its beginning without code."""
        return _CODE.sub(" ", self.text[:LONGEST])

    @cached_property
    def own(self) -> str:
        """Its beginning without code and without what is quoted: what the speaker says in words of their own."""
        return _QUOTED.sub(" “…” ", self.prose)

    def shown(self, start: int = 0, end: int | None = None) -> str:
        """Some words of it, on one line."""
        text = " ".join(self.text[start : (start + _SHOWN * 2) if end is None else end].split())
        return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"

    def fault(self, kind: str, words: str, sureness: float = 1.0) -> DialogueFault:
        """A fault of its speaker's that stands in this line."""
        return DialogueFault(
            who=self.role, kind=kind, message=self.message, where=self.where, words=words[:_SHOWN], sureness=sureness
        )


@dataclass(frozen=True, slots=True)
class Facts:
    """What a recipe knows of a scenario's conversation. What it leaves out, no rule asks about.

    Attributes:
        user: Who wants something, or tells of themselves.
        languages: What is spoken, as ISO 639 codes; if there is none, it is told by the words.
        task: What the user is after, in words.
        kept_back: What the user must not say in the opening, text by text, such as their preferences.
        end_marker: The word by which the user ends it, which nobody should see.
        user_ends: The ending that is the user's doing, as `Outcome.ended_by` has it.
        limit: The ending that comes when the user makes none.
    """

    user: str = "user"
    languages: tuple[str, ...] = ()
    task: str = ""
    kept_back: tuple[str, ...] = ()
    end_marker: str | None = None
    user_ends: str | None = None
    limit: str | None = None


@dataclass(frozen=True)
class Talk:
    """A conversation for the rules.

    Attributes:
        lines: In the order in which they were said.
        facts: What the recipe knows.
        ended_by: Why it ended; empty while it goes on.
        since: Lines before this one are context only: no fault of theirs is looked for.
        prompts: What was said to the models, of which nothing should be said again.
        author: Who wrote it all, and whose every fault is, where nobody speaks.
    """

    lines: Sequence[Said]
    facts: Facts = field(default_factory=Facts)
    ended_by: str = ""
    since: int = 0
    prompts: PromptWords = NO_PROMPTS
    author: str = ""

    @classmethod
    def of_texts(cls, author: str, texts: Mapping[str, str], facts: Facts, since: int = 0) -> Talk:
        """Texts that a role wrote and nobody says, such as a person's or a pool's, by their places in the outcome."""
        return cls(
            [Said(author, text, where=where) for where, text in texts.items()], facts, since=since, author=author
        )

    @classmethod
    def of(cls, lines: Iterable[Line], facts: Facts, ended_by: str = "") -> Talk:
        """An outcome's messages: what people and models have said. What tools said and what only calls is no speech."""
        said = [
            Said(line.role, line.content, message, is_cut=line.finish_reason == "length")
            for message, line in enumerate(lines)
            if line.tool_call_id is None and (line.content or not line.tool_calls)
        ]
        return cls(said, facts, ended_by)

    @property
    def is_spoken(self) -> bool:
        """Whether it is a conversation, be it one that somebody made up."""
        return not self.author or any(line.role != self.author for line in self.lines)

    def looked_at(self) -> Sequence[Said]:
        """The lines whose faults are looked for."""
        return self.lines[self.since :]

    @cached_property
    def language(self) -> str:
        """Its language as an ISO 639 code: the only one that its facts declare, else the one in which most lines are.

        Of several declared languages it is the first if no line tells; of none, it is `und`.
        """
        declared = self.facts.languages
        if len(declared) == 1:
            return declared[0]
        told = Counter(language_of(line.text[:_LETTERS]) for line in self.lines)
        found = [code for code, _ in told.most_common() if code is not None and (not declared or code in declared)]
        return (*found, *declared, UNDETERMINED)[0]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words of the conversation's language; of English if there are none."""
        return vocabulary((self.language, *self.facts.languages))
