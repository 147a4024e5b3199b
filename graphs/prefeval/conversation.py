"""The conversation before the question: the preference in its form, other preferences, and unrelated turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from dialoom.graphs.outcome import Line
from dialoom.personas.preferences import PreferencePair
from dialoom.prompts import Utterance

from .scenario import PrefEvalScenario

LINES_PER_TURN = 2
FOLDED = "distractors"
"""The role of the line that stands for a stretch of unrelated turns."""

Replies = Mapping[str, str]
"""The model's own replies to explicit preferences, by the preference's sentence."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


def preceding(scenario: PrefEvalScenario, replies: Replies, position: float) -> list[Line]:
    """Return the conversation before the question.

    Args:
        scenario: The item.
        replies: The model's own replies to explicit preferences.
        position: The share of the distractors that stands before the preference's block.
    """
    return [line for part in _parts(scenario, position) for line in _lines(scenario, part, replies)]


def own_places(scenario: PrefEvalScenario, replies: Replies, position: float) -> range:
    """Return the range of lines in `preceding` that state the item's own preference."""
    start = 0
    for part in _parts(scenario, position):
        end = start + len(_lines(scenario, part, replies))
        if part is scenario.pair:
            return range(start, end)
        start = end
    raise AssertionError("an item tells its own preference")


def folded(
    scenario: PrefEvalScenario, replies: Replies, position: float, broken_off: Mapping[str, str] = _NOTHING
) -> Iterator[Line]:
    """Yield the conversation with one line per stretch of unrelated turns, and own replies' finish reasons."""
    for part in _parts(scenario, position):
        if isinstance(part, range):
            turns = f"{len(part):,} turn{'' if len(part) == 1 else 's'} of unrelated talk"
            yield Line(role=FOLDED, content=turns)
        else:
            yield from told(part, replies, broken_off)


def told(pair: PreferencePair, replies: Replies, broken_off: Mapping[str, str] = _NOTHING) -> list[Line]:
    """Return a preference in its form: its fixed talk, or the sentence and the model's own reply, if it exists yet."""
    if pair.talk:
        return [Line(role=line.speaker, content=line.content) for line in pair.talk]
    said = [Line(role="user", content=pair.preference)]
    if (reply := replies.get(pair.preference)) is not None:
        said.append(Line(role="assistant", content=reply, finish_reason=broken_off.get(pair.preference)))
    return said


def explicit_preferences(scenario: PrefEvalScenario) -> list[str]:
    """Return the sentences that the model itself replies to."""
    return list(dict.fromkeys(pair.preference for pair in (scenario.pair, *scenario.extras) if not pair.talk))


def utterances(lines: list[Line]) -> list[Utterance]:
    """Return the lines as prompts take them."""
    return [{"speaker": line.role, "content": line.content} for line in lines]


def _parts(scenario: PrefEvalScenario, position: float) -> Iterator[PreferencePair | range]:
    """Yield preferences and stretches of unrelated turns in order; at equal positions, the own preference comes first.

    Number j of m further ones stands after round(j n / (m + 1)) turns. In the conflict setting the other one stands at
    the start and comes first, so that the item's own is the later, valid one.
    """
    n, extras = scenario.turns, scenario.extras
    own = (round(position * n), scenario.pair)
    others = [(0 if scenario.arm else round(j * n / (len(extras) + 1)), each) for j, each in enumerate(extras, start=1)]
    done = 0
    placed = [*others, own] if scenario.arm else [own, *others]
    for turn, pair in sorted(placed, key=lambda block: block[0]):
        if turn > done:
            yield range(done, turn)
        yield pair
        done = turn
    if done < scenario.turns:
        yield range(done, scenario.turns)


def _lines(scenario: PrefEvalScenario, part: PreferencePair | range, replies: Replies) -> list[Line]:
    if isinstance(part, PreferencePair):
        return told(part, replies)
    return list(scenario.distractors.value[part.start * LINES_PER_TURN : part.stop * LINES_PER_TURN])
