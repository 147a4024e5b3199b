"""What precedes the question: the preference in its form, other preferences, and unrelated turns around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dialoom.graphs.outcome import Line
from dialoom.personas.preferences import PreferencePair

from .scenario import PrefEvalScenario

_LINES_PER_TURN = 2


def preceding(scenario: PrefEvalScenario, replies: Mapping[str, str], position: float) -> list[Line]:
    """The conversation before the question.

    Args:
        scenario: The item.
        replies: The model's own replies to explicit preferences, by the preference's sentence.
        position: The share of the distractors that stands before the preference's block.
    """
    blocks = sorted(placed(scenario, position), key=lambda block: block[0])
    middle = scenario.distractors.value
    lines: list[Line] = []
    done = 0
    for turn, pair in blocks:
        lines += middle[done * _LINES_PER_TURN : turn * _LINES_PER_TURN]
        lines += told(pair, replies)
        done = turn
    return [*lines, *middle[done * _LINES_PER_TURN :]]


def placed(scenario: PrefEvalScenario, position: float) -> list[tuple[int, PreferencePair]]:
    """The preferences, and after how many distractor turns each stands; of equal places the first named comes first.

    The j-th of m extra ones stands after round(j n / (m + 1)) turns; in the conflict setting the other one stands at
    the start, so that the item's own is the later and valid one.
    """
    n, extras = scenario.turns, scenario.extras
    own = (round(position * n), scenario.pair)
    if scenario.arm:
        return [*((0, extra) for extra in extras), own]
    return [own, *((round(j * n / (len(extras) + 1)), extra) for j, extra in enumerate(extras, start=1))]


def told(pair: PreferencePair, replies: Mapping[str, str]) -> Sequence[Line]:
    """A preference in its form: its fixed talk, or the sentence and the model's own reply to it."""
    if pair.talk:
        return [Line(role=line.speaker, content=line.content) for line in pair.talk]
    return [Line(role="user", content=pair.preference), Line(role="assistant", content=replies[pair.preference])]


def explicit_preferences(scenario: PrefEvalScenario) -> list[str]:
    """The sentences to which the model gives a reply of its own."""
    return [pair.preference for pair in (scenario.pair, *scenario.extras) if not pair.talk]
