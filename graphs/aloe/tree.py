"""Preference trees as in `Outcome.details`: rounds by their paths, and the conversation that leads to each.

A path consists of the replies followed before a round: a text of `p` (preferred) and `r` (rejected), empty for the
first round. Rounds are ordered by length of path, then path. `docs/design/aloe.md` describes the JSON of a round.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dialoom.graphs.judge import Case, Judge
from dialoom.graphs.outcome import Judgement, Line, Outcome
from dialoom.prompts import Utterance

from .scenario import AloeScenario

PREFERRED, REJECTED = "p", "r"
REPLIES = {PREFERRED: "preferred", REJECTED: "rejected"}
"""The names of the replies, by the letters of paths."""

Round = dict[str, Any]

NAMED = {
    "preferred": "the two orders agree on the preferred reply",
    "rejected": "the two orders agree on the rejected reply",
    "first": "the two orders disagree: each names the first reply",
    "second": "the two orders disagree: each names the second reply",
}
"""The results of a judge that read a round's replies in both orders, and the beginnings of its explanations."""
_EXPLANATION = re.compile(rf"(?:after ([pr]+): )?(?:({'|'.join(NAMED.values())}):)?")


def lines_along(rounds: Sequence[Round], path: str) -> list[Line]:
    """Return the lines before the round at a path, with their finish reasons."""
    by_path = {done["path"]: done for done in rounds}
    lines: list[Line] = []
    for depth, reply in enumerate(path):
        done = by_path[path[:depth]]
        for role, of in (("user", "user"), ("assistant", REPLIES[reply])):
            lines.append(Line(role=role, content=done[of], finish_reason=done.get("broken_off", {}).get(of)))
    return lines


def conversation(rounds: Sequence[Round], path: str, speaker: str = "assistant") -> list[Utterance]:
    """Return the lines before a round as prompts take them, with `speaker` as the name of the other side."""
    roles = {"user": "user", "assistant": speaker}
    return [{"speaker": roles[line.role], "content": line.content} for line in lines_along(rounds, path)]


def first_path(rounds: Iterable[Round]) -> str:
    """Return the path that takes the preferred reply at each fork, as far as rounds are finished."""
    by_path = {done["path"]: done for done in rounds}
    path = ""
    while path in by_path:
        path += PREFERRED if PREFERRED in by_path[path]["followed"] else by_path[path]["followed"][0]
    return path


def leaves(rounds: Sequence[Round]) -> list[str]:
    """Return the paths of whole conversations, their last reply included; preferred before rejected at a fork."""
    paths = {done["path"] for done in rounds}
    return sorted({done["path"] + step for done in rounds for step in done["followed"]} - paths)


def _pairs(scenario: AloeScenario, outcome: Outcome) -> Iterator[Case]:
    """Yield the two replies of each round as cases, with the persona and the lines before them."""
    rounds = outcome.details["rounds"]
    for done in rounds:
        path = done["path"]
        yield Case(
            len(path) + 1,
            lambda done=done: {  # type: ignore[misc]
                **scenario.persona(),
                "history": conversation(rounds, done["path"]),
                "message": done["user"],
                "first": done["preferred"],
                "second": done["rejected"],
            },
            label=f"after {path}" if path else "",
        )


def _better(there: Any, back: Any) -> tuple[bool, str]:
    """Return whether the preferred reply was named in both orders (it is second in `back`), and the explanation."""
    swapped = "preferred" if there.better == "first" else "rejected"
    named = there.better if there.better == back.better else swapped
    return named == "preferred", f"{NAMED[named]}: {there.explanation} / {back.explanation}"


PAIR = Judge(
    "pair",
    prompt="aloe/judge-pair",
    target="preferred",
    node="verify",
    cases=_pairs,
    both_orders=("first", "second"),
    read=_better,
)
"""The judge that decides whether the preferred reply is better, regardless of the order."""


def with_verdicts(rounds: Iterable[Round], judgements: Iterable[Judgement]) -> list[Round]:
    """Return rounds with the verdicts of a judge of their replies.

    Args:
        rounds: The rounds.
        judgements: Judgements of `PAIR`; a round without one gets `None`.
    """
    words = {text: name for name, text in NAMED.items()}
    found: dict[tuple[int | None, str], tuple[Any, str | None]] = {}
    for each in judgements:
        if each.metric == PAIR.metric and (match := _EXPLANATION.match(each.explanation)):
            found[each.turn, match[1] or ""] = each.score, words.get(match[2])
    verdicts = ((done, found.get((len(done["path"]) + 1, done["path"]), (None, None))) for done in rounds)
    return [{**done, "verified": score, "named": named} for done, (score, named) in verdicts]


def rounds_of(outcome: Outcome) -> list[Round]:
    """Return the rounds of an outcome, with the verdicts of its judgements."""
    return with_verdicts(outcome.details.get("rounds", []), outcome.judgements)
