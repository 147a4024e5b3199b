"""Scales: which values a metric's scores may have. Kappa needs them all, also those that nobody gave."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dialoom.graphs import Judgement
from dialoom.runs.errors import RunError

_VERDICTS = {"yes": 1, "true": 1, "1": 1, "no": 0, "false": 0, "0": 0}


@dataclass(frozen=True, slots=True)
class Scale:
    """Whole numbers from `low` to `high`; a verdict is 0 or 1."""

    low: int
    high: int
    is_verdict: bool = False

    @property
    def size(self) -> int:
        """How many values there are."""
        return self.high - self.low + 1

    def __str__(self) -> str:
        # Not `1-5`: a spreadsheet would make a date of it.
        return "yes or no" if self.is_verdict else f"{self.low} to {self.high}"

    def parse(self, text: str) -> int:
        """A label as a value.

        Raises:
            ValueError: If it is none of the scale's values; the message says which they are.
        """
        value = _VERDICTS.get(text.lower()) if self.is_verdict else _whole(text)
        if value is None or not self.low <= value <= self.high:
            allowed = "yes or no (or true, false, 1, 0)" if self.is_verdict else f"a whole number from {self}"
            raise ValueError(f"{text!r:.60} is not {allowed}")
        return value


VERDICT = Scale(0, 1, is_verdict=True)


class Scales:
    """The scales of a run's metrics: what the recipe says, and what the user says instead.

    A metric without a scale is a verdict.

    Args:
        known: The lowest and the highest score by metric, as in `WithJudging.scales`.
        given: `METRIC=LOW-HIGH`, which win.

    Raises:
        RunError: If a given scale cannot be read.
    """

    def __init__(self, known: Mapping[str, tuple[int, int]], given: Iterable[str] = ()) -> None:
        self._scales = {metric: Scale(low, high) for metric, (low, high) in known.items()}
        self._scales |= dict(map(_given, given))

    def of(self, metric: str) -> Scale:
        """A metric's scale."""
        return self._scales.get(metric, VERDICT)

    def code(self, judgement: Judgement) -> int | None:
        """The judge's score as a value of its scale; `None` if there is none.

        Raises:
            RunError: If the score is not on it.
        """
        score, scale = judgement.score, self.of(judgement.metric)
        if score is None:
            return None
        if isinstance(score, bool) != scale.is_verdict:
            if scale.is_verdict:
                raise RunError(
                    f"scales: the recipe does not say that of {judgement.metric}, which the judge scored {score}; "
                    f"give {judgement.metric}=LOW-HIGH, such as {judgement.metric}=1-5",
                    setting="scales",
                )
            raise RunError(f"the scale of {judgement.metric} is {scale}, but the judge's score is a verdict, {score}")
        if int(score) != score or not scale.low <= score <= scale.high:
            raise RunError(
                f"scales: the judge's score {score} of {judgement.metric} is not a whole number from {scale}; "
                f"give {judgement.metric}=LOW-HIGH with the scale that the judge was told",
                setting="scales",
            )
        return int(score)


def _whole(text: str) -> int | None:
    """The whole number that a text is; spreadsheets write 4 as `4.0` at times."""
    found = re.fullmatch(r"([+-]?\d{1,9})(?:\.0*)?", text, re.ASCII)
    return int(found[1]) if found else None


def _given(text: str) -> tuple[str, Scale]:
    found = re.fullmatch(r"(.+?)=(-?\d{1,6})-(-?\d{1,6})", text, re.ASCII)
    if found is None or int(found[2]) >= int(found[3]):
        raise RunError(
            f"scales {text!r}: one is METRIC=LOW-HIGH with whole numbers, such as naturalness=1-5", setting="scales"
        )
    return found[1], Scale(int(found[2]), int(found[3]))
