"""Preference trees: their options and scenarios, the rounds and the conversation before each, and the judge of pairs.

A path states which replies were followed before a round: a text of `p` (preferred) and `r` (rejected), empty for the
first round. Rounds are ordered by the length of their path, then by the path itself. `docs/design/aloe.md` describes
the JSON of a round.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pydantic import Field, model_validator

from dialoom.graphs import AbsolutePath, Case, Judge, Judgement, Line, Outcome, RecipeOptions, Scenario
from dialoom.graphs.outcome import index_by_subject
from dialoom.personas.pools import Persona, combine, load_seeds, read_personas
from dialoom.prompts import Utterance

MAX_MESSAGE_TOKENS = 300
"""Maximum number of tokens of a user's or an assistant's message, as in the release.

Structured replies have no limit.
"""
_SAMPLE_PERSONAS = 20


class PersonaOptions(RecipeOptions):
    """Options that choose the personas and the number of rounds."""

    personas: AbsolutePath | None = Field(
        None, description="JSONL of personas with profile and personality; by default the shipped samples."
    )
    rounds: int = Field(10, ge=1, le=100, description="Number of the user's messages in each conversation.")
    limit: int | None = Field(None, ge=1, description="Maximum number of personas, beginning with the first.")

    def people(self) -> Sequence[Persona]:
        """Return the personas in the file's order, or random combinations of the shipped profiles and personalities.

        Raises:
            DataError: If the file is invalid.
        """
        if self.personas is not None:
            return read_personas(self.personas)
        return list(combine(load_seeds("profile"), load_seeds("personality"), _SAMPLE_PERSONAS, seed=0))


class AloeOptions(PersonaOptions):
    """The options of the recipe `aloe`."""

    branching: int = Field(
        0,
        ge=0,
        le=8,
        description="Number of rounds, from the first, in which both replies are followed; D rounds give 2^D "
        "conversations.",
    )
    verify_pairs: bool = Field(False, description="Have a judge compare the two replies of each round in both orders.")

    @model_validator(mode="after")
    def _branching_within_rounds(self) -> AloeOptions:
        if self.branching > self.rounds:
            raise ValueError(f"branching must be at most rounds, {self.rounds}, got {self.branching}")
        return self


class PersonaScenario(Scenario):
    """A conversation with a persona over a number of rounds.

    Attributes:
        person: The persona's id.
        profile: The facts of the person's life, one sentence each.
        personality: The person's traits, one sentence each.
        rounds: The number of messages that the person writes in each conversation.
    """

    person: str
    profile: str
    personality: str
    rounds: int

    @property
    def label(self) -> str:
        """The persona's id."""
        return self.person

    def facets(self) -> dict[str, Any]:
        """Return the persona's id and the rounds."""
        return {"persona": self.person, "rounds": self.rounds}

    def described(self) -> dict[str, Any]:
        """Return the facets and the persona's texts."""
        return {**self.facets(), **self.persona()}

    def persona(self) -> dict[str, str]:
        """Return the persona as prompt inputs."""
        return {"profile": self.profile, "personality": self.personality}


class AloeScenario(PersonaScenario):
    """One persona's tree.

    Attributes:
        branching: The number of rounds, from the first, in which both replies are followed.
    """

    branching: int = 0

    def facets(self) -> dict[str, Any]:
        """Return the persona's id, and the options that decide the tree's size."""
        return {**super().facets(), "branching": self.branching}


PREFERRED, REJECTED = "p", "r"
REPLIES = {PREFERRED: "preferred", REJECTED: "rejected"}
"""The names of the two replies, by their letter in a path."""

Round = dict[str, Any]

PAIR_VERDICTS = {
    "preferred": "the two orders agree on the preferred reply",
    "rejected": "the two orders agree on the rejected reply",
    "first": "the two orders disagree: each names the first reply",
    "second": "the two orders disagree: each names the second reply",
}
"""The possible results of a judge that reads both replies in both orders, each with the text that begins the
judgement's explanation.
"""
_EXPLANATION = re.compile(rf"(?:after [pr]+: )?(?:({'|'.join(PAIR_VERDICTS.values())}):)?")


def build_lines(rounds: Sequence[Round], path: str) -> list[Line]:
    """Return the lines before the round at a path, with their finish reasons."""
    by_path = {done["path"]: done for done in rounds}
    return [
        Line(role=role, content=done[of], finish_reason=done.get("broken_off", {}).get(of))
        for done, reply in ((by_path[path[:depth]], reply) for depth, reply in enumerate(path))
        for role, of in (("user", "user"), ("assistant", REPLIES[reply]))
    ]


def build_history(rounds: Sequence[Round], path: str, speaker: str = "assistant") -> list[Utterance]:
    """Return the lines before a round in the form that prompts take, with `speaker` as the name of the other side."""
    roles = {"user": "user", "assistant": speaker}
    return [{"speaker": roles[line.role], "content": line.content} for line in build_lines(rounds, path)]


def find_first_path(rounds: Iterable[Round]) -> str:
    """Return the path that takes the preferred reply at each fork, up to the last finished round."""
    by_path = {done["path"]: done for done in rounds}
    path = ""
    while path in by_path:
        path += PREFERRED if PREFERRED in by_path[path]["followed"] else by_path[path]["followed"][0]
    return path


def find_leaves(rounds: Sequence[Round]) -> list[str]:
    """Return the paths of all complete conversations, including the last reply.

    At a fork, the preferred branch comes first.
    """
    paths = {done["path"] for done in rounds}
    return sorted({done["path"] + step for done in rounds for step in done["followed"]} - paths)


def _build_cases(scenario: AloeScenario, outcome: Outcome) -> Iterator[Case]:
    """Yield the two replies of each round as cases, with the persona and the lines before them."""
    rounds = outcome.details["rounds"]
    for done in rounds:
        path = done["path"]
        yield Case(
            len(path) + 1,
            lambda done=done: {  # type: ignore[misc]
                **scenario.persona(),
                "history": build_history(rounds, done["path"]),
                "message": done["user"],
                "first": done["preferred"],
                "second": done["rejected"],
            },
            label=f"after {path}" if path else "",
        )


def _combine_verdicts(there: Any, back: Any) -> tuple[bool, str]:
    """Return whether the judge chose the preferred reply in both orders, and an explanation.

    In `there` the preferred reply is shown first; in `back` it is shown second.
    """
    named = there.better if there.better == back.better else ("preferred" if there.better == "first" else "rejected")
    return named == "preferred", f"{PAIR_VERDICTS[named]}: {there.explanation} / {back.explanation}"


def _chose_same_position(judgement: Judgement) -> bool | None:
    """Return whether a judge of pairs chose the same position in both orders; `None` if that is unknown."""
    match = _EXPLANATION.match(judgement.explanation)
    return match[1] in (PAIR_VERDICTS["first"], PAIR_VERDICTS["second"]) if match and match[1] else None


PAIR_JUDGE = Judge(
    "pair",
    prompt="aloe/judge-pair",
    target="preferred",
    node="verify",
    cases=_build_cases,
    both_orders=("first", "second"),
    read=_combine_verdicts,
    placed=_chose_same_position,
)
"""The judge that decides whether the preferred reply is better, regardless of the order."""


def add_verdicts(rounds: Iterable[Round], judgements: Iterable[Judgement]) -> list[Round]:
    """Return rounds with the verdicts of the judge of pairs.

    Args:
        rounds: The rounds.
        judgements: Judgements of `PAIR_JUDGE`; a round without one gets `None`.
    """
    words = {text: name for name, text in PAIR_VERDICTS.items()}
    found, seen, made = index_by_subject(judgements), Counter[int](), list[Round]()
    for done in rounds:  # the judge compares them in this order
        seen[turn := len(done["path"]) + 1] += 1
        each = found.get((PAIR_JUDGE.metric, PAIR_JUDGE.target, turn, seen[turn]))
        match = None if each is None else _EXPLANATION.match(each.explanation)
        named = words.get(match[1]) if match else None
        made.append({**done, "verified": None if each is None else each.score, "named": named})
    return made


def judged_rounds(outcome: Outcome) -> list[Round]:
    """Return the rounds of an outcome, with the verdicts of its judgements."""
    return add_verdicts(outcome.details.get("rounds", []), outcome.judgements)
