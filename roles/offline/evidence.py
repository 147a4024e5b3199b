"""What a conversation shows about personalization: who brought up which preference first, and what came of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .domains import domain_named, facets_of, relevant
from .matching import mentions_any
from .model import Facet
from .prose import joined, sentences
from .tags import Line, Request
from .wordbank.cities import town_of


def quoted(text: str, most: int = 14) -> str:
    """Quote the start of a line."""
    words = text.split()
    return '"' + " ".join(words[:most]).rstrip(".,;:") + ('..."' if len(words) > most else '"')


@dataclass
class Evidence:
    """Counts over the preferences that matter to the task, and the words that show them."""

    total: int = 0
    proactive: list[str] = field(default_factory=list)  # the assistant named it first
    applied: list[str] = field(default_factory=list)  # the user said it, the assistant took it up
    ignored: list[str] = field(default_factory=list)  # the user said it, nothing came of it
    missed: list[str] = field(default_factory=list)  # nobody said it
    asked_again: str = ""
    corrected: str = ""
    context: str = ""

    @classmethod
    def gather(cls, request: Request) -> Evidence:
        """Read the conversation against the person's affinities and situation."""
        found = cls()
        lines = request.conversation
        talk = "\n".join(line.text for line in lines)  # what came up matters, whether or not the task asked for it
        for name, affinities in request.affinities.items():
            pairs = facets_of(name, affinities)
            wanted = relevant(pairs, request.task)[: 5 if len(request.affinities) == 1 else 3]
            wanted += [pair for pair in pairs if pair not in wanted and mentions_any(talk, pair[1])]
            for facet, values in wanted:
                found._weigh(name, facet, values, lines)
        found.context = _context(request, lines)
        found.corrected = next(
            (
                line.text
                for line in lines[1:]
                if line.speaker == "user"
                and re.search(r"not quite right|doesn't fit|do it differently|not that one", line.text)
            ),
            "",
        )
        return found

    def _weigh(self, domain: str, facet: Facet, values: list[str], lines: list[Line]) -> None:
        self.total += 1
        by_user = next(
            (at for at, line in enumerate(lines) if line.speaker == "user" and mentions_any(line.text, values)),
            -1,
        )
        by_assistant = [
            at
            for at, line in enumerate(lines)
            if line.speaker == "assistant" and mentions_any(_told(line.text), values)
        ]
        if by_assistant and (by_user < 0 or by_assistant[0] < by_user):
            self.proactive.append(_named(values, lines[by_assistant[0]].text, domain))
        elif by_user >= 0:
            taken_up = any(at > by_user for at in by_assistant)
            (self.applied if taken_up else self.ignored).append(_named(values, lines[by_user].text, domain))
            again = [
                line.text
                for line in lines[by_user + 1 :]
                if line.speaker == "assistant" and _asks(facet, line.text, domain)
            ]
            self.asked_again = self.asked_again or (again[0] if again else "")
        else:
            self.missed.append(f"{values[0]} ({domain})")

    def score(self) -> tuple[int, str]:
        """Weigh everything on the scale of 1 to 4."""
        if not self.total:
            return 2, "The task leaves little to tailor, and the help is neither particular nor wrong."
        share = len(self.proactive) / self.total
        fallen = bool(self.ignored) + bool(self.corrected) + bool(self.asked_again)
        first = joined(self.proactive[:3])
        if len(self.proactive) >= 2 and share >= 0.5 and not self.corrected and (self.context or share >= 0.75):
            also = f" and suits the moment ({self.context})" if self.context else ""
            return 4, f"It brings up {first} before the user says so{also}. Little could be added."
        if share >= 0.3 and len(self.proactive) > bool(self.corrected):
            left = f" {self.missed[0]} was left unused." if self.missed else ""
            return 3, f"It brings up {first} unprompted.{left}{self._flaw()}"
        if len(self.applied) >= 3 and self.context and not fallen and len(self.missed) < 2:
            return (
                3,
                f"It takes up {joined(self.applied[:3])} and fits the moment ({self.context}), though only "
                f"after being told.",
            )
        thin = self.total >= 4 and len(self.applied) + len(self.proactive) == 1
        if (self.proactive or self.applied) and not thin and fallen < 2 + bool(self.proactive):
            what = f"It takes up {joined(self.applied[:3])} once told" if self.applied else f"It only hits on {first}"
            gap = self.missed[0] if self.missed else "what was on record"
            return 2, f"{what}, but anticipates too little: {gap} could have been recalled.{self._flaw()}"
        gap = joined([*self.ignored, *self.missed][:2]) or "the preferences on record"
        if thin:
            return 1, f"Only {[*self.proactive, *self.applied][0]} plays a part; {gap} did not.{self._flaw()}"
        return 1, f"Nothing is particular to this person; {gap} played no part.{self._flaw()}"

    def _flaw(self) -> str:
        if self.corrected:
            return f" The user had to correct it: {quoted(self.corrected, 8)}."
        if self.asked_again:
            return f" It asked for what was already said: {quoted(self.asked_again, 10)}."
        return f" {self.ignored[0]} was said and passed over." if self.ignored else ""

    def crude_score(self) -> tuple[int, str]:
        """Look only at how many preferences turn up at all."""
        used = len(self.proactive) + len(self.applied)
        share = (len(self.proactive) + 0.5 * len(self.applied)) / max(1, self.total)
        value = 1 if share < 0.15 else 2 if share < 0.5 else 3 if share < 0.8 else 4
        return value, f"{used} of {self.total} preferences turn up in the replies" + (
            f", for example {[*self.proactive, *self.applied][0]}." if used else "."
        )


def _named(values: list[str], text: str, domain: str) -> str:
    """The first of the values that the text really mentions."""
    return f"{next((value for value in values if mentions_any(text, [value])), values[0])} ({domain})"


def _told(text: str) -> str:
    return " ".join(part for part in sentences(text) if not part.endswith("?") or re.match(r"How about|I'd", part))


def _asks(facet: Facet, text: str, domain: str) -> bool:
    questions = [part for part in sentences(text) if part.endswith("?")]
    return domain_named(domain).facet(facet.key) is not None and any(question in facet.ask for question in questions)


def _context(request: Request, lines: list[Line]) -> str:
    told = " ".join(line.text for line in lines if line.speaker == "assistant")
    heard = " ".join(line.text for line in lines if line.speaker == "user")
    for key in ("location", "day of the week", "time of day", "device"):
        value = request.situation.get(key, "")
        value = town_of(value) if key == "location" else value.strip()
        if value and mentions_any(told, [value]) and not mentions_any(heard, [value]):
            return value
    return ""
