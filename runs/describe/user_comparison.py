"""Distances between simulated and real users in writing, disclosing, objecting and ending, with intervals."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dialoom.graphs import Chart, Estimate, Series, Table
from dialoom.graphs.gate.talk import UNSPLIT_SCRIPTS, is_written_in, may_be_english, normalize, split_units, split_words
from dialoom.graphs.outcome import USER
from dialoom.graphs.tables.statistics import MIN_UNITS, percentile_interval
from dialoom.graphs.traits import compute_percentage, measure_corrections, measure_directness, measure_length
from dialoom.runs.errors import RunError

from .dataset import Dataset, DescribedDialogue

MAX_DIALOGUES = 2_000
"""Maximum number of dialogues measured in each set; from more dialogues, that number is drawn."""

_RESAMPLES, _DRAWS, _WINDOW = 400, 100, 20
_POLITE = re.compile(
    r"\b(?:please|thank(?:s| you)|sorry|excuse me|pardon|i appreciate|would you mind|could you|would you|kindly)\b"
)
_MISTYPED = re.compile(
    r"\b(?:i|im|ive|dont|didnt|doesnt|cant|wont|isnt|wasnt|wouldnt|couldnt|shouldnt|thats|whats|youre|theyre|teh|"
    r"adn|recieve|definately|seperate|tommorow|tomorow|wierd|alot|thx|pls|plz|ur|u|r|becuase|becasue|thier|wich|untill|"
    r"adress|accomodation|restaraunt|occured|beleive|freind)\b"
    r"|(?<![.!?…\s])\s+[,.;!?](?=\s|$)|\b([A-Za-z]+) \1\b|([b-df-hj-np-tvx-z])\2\2"
)
"""Signs of hasty typing in English: small i, missing apostrophes, common misspellings and abbreviations, spaces before
punctuation marks, repeated words, and tripled letters.
"""
_QUESTION = re.compile(r"[?¿？؟\u037e՞፧⸮﹖︖⁇⁈⁉‽᥅꘏❓❔]|[\u0370-\u037d\u0386-\u03ff\u1f00-\u1fff]{2}[^;\n]*;")
"""The question marks of all scripts. In Greek, most keyboards write the question mark as a semicolon."""

_UNMARKED = UNSPLIT_SCRIPTS | {"HIRAGANA", "KATAKANA", "TIBETAN"}
"""The scripts whose questions mostly have no question mark."""

_DISTANCE = (
    "Distance: how far the values of simulated and real dialogues differ (Wasserstein-1), in standard deviations of "
    "the real ones; 0 means equal distributions; users who are all alike are far from varied users even if the means "
    "agree. n: the dialogues with a value in the set that has fewer. In brackets: 95 % intervals, bootstrapped over "
    "dialogues, which count as independent, also trials of one scenario (none for fewer than "
    f"{MIN_UNITS}). By chance: the mean distance between two samples of the real dialogues, drawn with "
    "replacement, one "
    "as large as the simulated set and one as large as the real set; simulated users with the same distribution as "
    "real ones would be about that far away."
)
_MEASURED = (
    "All measures are of the user's lines in each dialogue. Characters of Chinese and Japanese count as words. "
    f"Different words: in windows of {_WINDOW} words; shorter dialogues have no value. Disclosed in the opening: the "
    "share of the user's distinct content words that occur in the first line. Push-back: lines that object to what the "
    "assistant has said. "
    "Politeness, typing errors and push-back are found by English phrases, and questions by question marks, which some "
    "languages hardly use (Burmese, Japanese, Khmer, Lao, Thai, Tibetan). Words and disclosure are not counted in "
    "Burmese, Khmer, Lao and Thai, whose words nothing separates. A measure has no value for dialogues in a language "
    "to which it does not apply, and none for sets that mostly consist of them."
)


_OMITTED = (
    "Not in the mean distance: {measures}. A measure has no distance if all real dialogues have the same value (there "
    "is then no standard deviation), or if a set has fewer than two values. It is also left out of the mean if so few "
    "dialogues have a value that some resamples have none."
)


@dataclass(frozen=True, slots=True)
class _Measure:
    """A measure of a dialogue's user.

    Attributes:
        of: Returns the value from the user's lines; `None` if there are too few lines.
        covers: Returns whether the measure applies to the language of a text.
    """

    of: Callable[[Sequence[str]], float | None]
    covers: Callable[[str], bool] = lambda _text: True


def _has_words(text: str) -> bool:
    return not is_written_in(UNSPLIT_SCRIPTS, text)


def _different_words(lines: Sequence[str]) -> float | None:
    words = [word for line in lines for word in split_units(line)]
    windows = [words[at : at + _WINDOW] for at in range(0, len(words) - _WINDOW + 1, _WINDOW)]
    return sum(len(set(window)) for window in windows) / (_WINDOW * len(windows)) if windows else None


def _mistyped(lines: Sequence[str]) -> float | None:
    count = sum(len(split_words(line)) for line in lines)
    found = sum(len(list(_MISTYPED.finditer(line.replace("’", "'")))) for line in lines)
    return 100 * found / count if count else None


MEASURES: Mapping[str, _Measure] = {
    "words per turn": _Measure(measure_length, _has_words),
    "different words (type-token ratio)": _Measure(_different_words, _has_words),
    "questions, % of turns": _Measure(
        lambda lines: compute_percentage(lines, _QUESTION.search), lambda text: not is_written_in(_UNMARKED, text)
    ),
    "politeness, % of turns": _Measure(
        lambda lines: compute_percentage(lines, lambda line: _POLITE.search(normalize(line))), may_be_english
    ),
    "typing errors, per 100 words": _Measure(_mistyped, may_be_english),
    "disclosed in the opening, %": _Measure(measure_directness, _has_words),
    "push-back, % of later turns": _Measure(measure_corrections, may_be_english),
    "turns until the end": _Measure(lambda lines: float(len(lines))),
}


def compare_users(simulated: Dataset, real: Dataset) -> tuple[Table, Chart]:
    """Return the distances between simulated and real users, as a table and as a chart.

    Args:
        simulated: The dialogues of simulated users.
        real: The dialogues of real users.

    Raises:
        RunError: If a set has fewer than two dialogues in which a user speaks.
    """
    sets = [_measure_dialogues(each) for each in (simulated, real)]
    draw = np.random.default_rng(0)
    # Resamples of each set's dialogues, the same for all measures.
    resamples = [draw.integers(len(one), size=(_RESAMPLES, len(one))) for one in sets]
    columns = ["of the user", "simulated", "real", "distance", "by chance"]
    table = Table("likeness", f"Distance of the simulated users from those of {real.name}", columns)
    table.notes = [_DISTANCE, _MEASURED]
    found: list[tuple[Estimate, float, NDArray[np.float64]]] = []
    averaged = set[str]()
    for place, name in enumerate(MEASURES):
        of_simulated, of_real = (_drop_nan(one[:, place]) for one in sets)
        if len(of_simulated) < 2 or len(of_real) < 2 or np.std(of_real) < 1e-12:
            table.rows.append([name, _mean(of_simulated), _mean(of_real), None, None])
            continue
        spread = float(np.std(of_real))
        distance = _distance(of_simulated, of_real) / spread
        drawn = zip(*resamples, strict=True)
        pairs = ([_drop_nan(one[at, place]) for one, at in zip(sets, each, strict=True)] for each in drawn)
        resampled = np.array([_distance(one, other) / spread for one, other in pairs if len(one) and len(other)])
        enough = min(len(of_simulated), len(of_real)) >= MIN_UNITS
        estimate = _estimate(min(len(of_simulated), len(of_real)), distance, resampled, enough)
        chance = _chance_distance(of_real, len(of_simulated)) / spread
        table.rows.append([name, _mean(of_simulated), _mean(of_real), estimate, chance])
        if len(resampled) == _RESAMPLES:
            found.append((estimate, chance, resampled))
            averaged.add(name)
    if found:
        count = min(each.n for each, _, _ in found)
        whole = sum(each.mean for each, _, _ in found) / len(found)
        together = np.mean([each for _, _, each in found], axis=0)
        overall = _estimate(count, whole, together, count >= MIN_UNITS)
        table.rows.append(["all: mean distance", None, None, overall, sum(each for _, each, _ in found) / len(found)])
    if omitted := [name for name in MEASURES if name not in averaged]:
        table.notes.append(_OMITTED.format(measures="; ".join(omitted)))
    return table, _chart(table)


def _measure_dialogues(dataset: Dataset) -> NDArray[np.float64]:
    """Return the measures of a set's dialogues (dialogues x measures); NaN where a measure has no value.

    A measure has no value for a dialogue to whose language it does not apply, and none at all if these are the most.
    """
    drawn, measures = _sample_dialogues(dataset.dialogues()), MEASURES.values()
    rows, covered = [], []
    for lines in drawn:
        rows.append([math.nan if (value := each.of(lines)) is None else value for each in measures])
        text = "\n".join(lines)
        covered.append([each.covers(text) for each in measures])
    if len(rows) < 2:
        roles = dict.fromkeys(line.role for each in dataset.dialogues() for line in each.lines)
        problem = f"{dataset.name} has fewer than two dialogues with lines of a user; its roles are"
        raise RunError(f"like: {problem} {', '.join(roles) or 'none'}", setting="like")
    return np.where(np.array(covered) & (np.mean(covered, axis=0) >= 0.5), np.array(rows), np.nan)


def _sample_dialogues(dialogues: Iterable[DescribedDialogue]) -> list[list[str]]:
    """Return the user's lines of at most `MAX_DIALOGUES` dialogues, drawn with a fixed seed."""
    draw, drawn, count = random.Random(0), list[list[str]](), 0
    for dialogue in dialogues:
        lines = [line.content for line in dialogue.lines if line.role == USER and line.content.strip()]
        if not lines:
            continue
        count += 1
        if len(drawn) < MAX_DIALOGUES:
            drawn.append(lines)
        elif (place := draw.randrange(count)) < MAX_DIALOGUES:
            drawn[place] = lines
    return drawn


def _drop_nan(values: NDArray[np.float64]) -> NDArray[np.float64]:
    known: NDArray[np.float64] = values[~np.isnan(values)]
    return known


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None


def _distance(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Return the Wasserstein-1 distance between two samples."""
    one, other = np.sort(one), np.sort(other)
    everything = np.sort(np.concatenate([one, other]))
    shares = [np.searchsorted(each, everything[:-1], side="right") / len(each) for each in (one, other)]
    return float(np.sum(np.abs(shares[0] - shares[1]) * np.diff(everything)))


def _estimate(n: int, distance: float, resampled: NDArray[np.float64], is_enough: bool) -> Estimate:
    """Return a distance with its bootstrap interval.

    Resampling increases a distance, as sampling does. Therefore the interval is as wide as the distribution of the
    resampled distances, and lies around the distance as that distribution lies around its median.
    """
    if not is_enough:
        return Estimate(n, distance, None, None)
    (low, high), middle = percentile_interval(resampled), sorted(resampled)[len(resampled) // 2]
    return Estimate(n, distance, max(0.0, distance + low - middle), distance + high - middle)


def _chance_distance(values: NDArray[np.float64], count: int) -> float:
    """Return the mean distance between two random samples of the values, of the sizes of both compared sets."""
    draw = np.random.default_rng(0)
    pairs = ((draw.choice(values, count), draw.choice(values, len(values))) for _ in range(_DRAWS))
    return sum(_distance(one, other) for one, other in pairs) / _DRAWS


def _chart(table: Table) -> Chart:
    """Return the chart of the distances, beside the distances expected by chance."""
    rows = [
        (str(name), distance, chance) for name, _, _, distance, chance in table.rows if isinstance(distance, Estimate)
    ]
    places, chart = range(len(rows)), Chart(table.name, table.title, "measure", "distance in standard deviations")
    chances = [chance if isinstance(chance, float) else None for _, _, chance in rows]
    chart.series = [Series.of("simulated", places, [row[1] for row in rows]), Series("by chance", places, chances)]
    chart.kind, chart.names, chart.notes = "bars", [row[0] for row in rows], [_DISTANCE]
    return chart
