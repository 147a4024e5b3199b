"""The data of reports: right answers and errors by setting and topic, read from finished items one at a time."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting import FEWEST, Estimate, Runs, mean_of_shares, share_of
from dialoom.personas.preferences import FORMS

from .checkers import ERROR_TYPES, RIGHT, UNJUDGED, error_of
from .scenario import ARMS, METHODS, TASKS

OWN_TURNS = 2
"""The turns of the preference and of the question, which PrefEval counts in a conversation's length."""
_TOO_LONG = "context"
"""The value of `at_fault` for an item whose request exceeded the model's context window."""
_FEWEST_CELLS = 3
"""The fewest cells of a correlation: two points always lie on a line."""


class Length(NamedTuple):
    """The length of a conversation: in turns, or as a limit in tokens."""

    unit: str
    amount: int

    def __str__(self) -> str:
        return f"{self.amount:,} {self.unit}"


class Setting(NamedTuple):
    """The variables of an item other than the topic; each setting is a cell of the tables.

    `retrieved` is 0 without retrieval. In the conflict setting, `arm` gives the other preference, and `preferences` is
    1.
    """

    model: str
    task: str
    form: str
    method: str
    retrieved: int
    length: Length
    position: float
    preferences: int
    arm: str

    @classmethod
    def of(cls, model: str, facets: Mapping[str, Any]) -> Setting:
        """Return the setting of an item with these facets."""
        limit, arm = int(facets["token_limit"]), str(facets["arm"])
        return cls(
            model=model,
            task=str(facets["task"]),
            form=str(facets["form"]),
            method=str(facets["method"]),
            retrieved=int(facets["retrieved"]),
            length=Length("tokens", limit) if limit else Length("turns", int(facets["turns"]) + OWN_TURNS),
            position=float(facets["position"]),
            preferences=1 if arm else int(facets["preferences"]),
            arm=arm,
        )

    @property
    def is_plain(self) -> bool:
        """Return whether a single preference stands at the start, as in the tables by topic and length."""
        return not self.position and self.preferences == 1 and not self.arm

    def told(self, axis: str) -> str:
        """Return an axis' value in words; empty if it does not apply."""
        if axis == "retrieved":
            return f"k={self.retrieved}" if self.retrieved else ""
        if axis == "position":
            return f"at {self.position:g}"
        if axis == "preferences":
            return "1 preference" if self.preferences == 1 else f"{self.preferences} preferences"
        return str(getattr(self, axis))

    def facet(self, axis: str) -> tuple[str, str] | None:
        """Return the facet of items that an axis corresponds to, and its value; `None` for the model."""
        if axis == "length":
            unit, amount = self.length
            return ("token_limit", str(amount)) if unit == "tokens" else ("turns", str(amount - OWN_TURNS))
        return None if axis == "model" else (axis, str(getattr(self, axis)))


def varying(settings: Sequence[Setting], but: Iterable[str] = (), always: Iterable[str] = ()) -> list[str]:
    """Return the axes in which settings differ, without those of `but`, and always those of `always`."""
    out, named = set(but), set(always)
    axes = [axis for axis in Setting._fields if axis not in out]
    return [axis for axis in axes if axis in named or len({getattr(setting, axis) for setting in settings}) > 1]


def along(settings: Sequence[Setting], axis: str) -> list[Setting]:
    """Return the settings that differ from another one only in an axis."""
    return [setting for group in grouped(settings, but=(axis,)) if len(group) > 1 for setting in group]


def grouped(settings: Iterable[Setting], by: Iterable[str] = (), but: Iterable[str] = ()) -> list[list[Setting]]:
    """Group settings with equal values of the axes in `by`, or of all axes except `but`; the order is kept."""
    axes = list(by) or [axis for axis in Setting._fields if axis not in set(but)]
    groups: dict[tuple[object, ...], list[Setting]] = {}
    for setting in settings:
        groups.setdefault(tuple(getattr(setting, axis) for axis in axes), []).append(setting)
    return list(groups.values())


class Count(Counter[str]):
    """Counts of a setting: `items`, their `tokens`, `failed` (of these `too_long`), `done`, and of these `right`.

    Also each kind of error, `empty` answers, choices with `no_letter`, items that `looked` for messages, and `hits`.
    """

    @property
    def n(self) -> int:
        """The items that count: judged ones, including those with an unparsed verdict."""
        return self["done"] - self[UNJUDGED]

    def add(self, episode: Episode) -> None:
        """Add one item."""
        details, is_done = episode.outcome.details, episode.state == "done"
        self.update(items=1, tokens=int(episode.facets["tokens"]), done=is_done, failed=not is_done)
        if not is_done:
            self["too_long"] += episode.at_fault == _TOO_LONG
            return
        self[error_of(episode.outcome.judgements) or RIGHT] += 1
        self["empty"] += not details.get("answer")
        self["no_letter"] += "choice" in details and details["choice"] is None
        self.update(looked="hit" in details, hits=bool(details.get("hit")))


class BothTasks(NamedTuple):
    """A setting's accuracy in both tasks, each a mean over topics."""

    setting: Setting
    generation: float
    classification: float


class ItemResults:
    """The data of all tables and charts, from one pass over the items of each run."""

    def __init__(self, runs: Runs) -> None:
        self._counts: dict[Setting, dict[str, Count]] = defaultdict(lambda: defaultdict(Count))
        self._averages: dict[Setting, Estimate | None] = {}
        self._orders: Mapping[str, Sequence[str]] = {
            "model": [label for label, _ in runs],
            "task": TASKS,
            "form": FORMS,
            "method": METHODS,
            "arm": ("", *ARMS),
        }
        for label, episodes in runs:
            for episode in episodes:
                setting = Setting.of(label, episode.facets)
                self._counts[setting][str(episode.facets["topic"])].add(episode)
        self.topics = sorted({topic for by_topic in self._counts.values() for topic in by_topic})
        self.settings = sorted(
            self._counts, key=lambda each: [self._rank(*pair) for pair in zip(Setting._fields, each, strict=True)]
        )

    def share(self, setting: Setting, topic: str) -> Estimate | None:
        """Return a topic's accuracy; `None` without items."""
        count = self._of(setting, topic)
        return _judged(setting, count, share_of(count[RIGHT], count.n))

    def average(self, setting: Setting) -> Estimate | None:
        """Return the unweighted mean of all topics' accuracy; `None` if a topic has none."""
        if setting not in self._averages:
            counts = [self._of(setting, topic) for topic in self.topics]
            average = mean_of_shares([(count[RIGHT], count.n) for count in counts])
            self._averages[setting] = _judged(setting, self.total(setting), average)
        return self._averages[setting]

    def hit_rate(self, setting: Setting) -> Estimate | None:
        """Return the rate at which retrieval found the preference: the unweighted mean over topics."""
        counts = (self._of(setting, topic) for topic in self.topics)
        return mean_of_shares([(count["hits"], count["looked"]) for count in counts])

    def total(self, *settings: Setting) -> Count:
        """Return the counts over all topics of these settings."""
        total = Count()
        for setting in settings:
            for count in self._counts.get(setting, {}).values():
                total.update(count)
        return total

    def tokens(self, *settings: Setting) -> float:
        """Return the mean number of tokens before the question."""
        total = self.total(*settings)
        return total["tokens"] / total["items"]

    def some(self, wanted: Callable[[Setting], bool]) -> list[Setting]:
        """Return the settings that match; none if none of them has an accuracy."""
        settings = [setting for setting in self.settings if wanted(setting)]
        return settings if self.total(*settings).n else []

    def values(self, axis: str, settings: Iterable[Setting]) -> list[Any]:
        """Return the settings' values of an axis, in order."""
        return sorted({getattr(setting, axis) for setting in settings}, key=lambda value: self._rank(axis, value))

    def both_tasks(self) -> list[list[BothTasks]]:
        """Return the settings that have both tasks, grouped by form."""
        found = {}
        for setting in self.settings:
            if setting.task == "generation":
                choice = self.average(setting._replace(task="classification"))
                if (free := self.average(setting)) and choice:
                    found[setting] = BothTasks(setting, free.mean, choice.mean)
        return [[found[setting] for setting in group] for group in grouped(found, by=("form",))]

    def _of(self, setting: Setting, topic: str) -> Count:
        return self._counts.get(setting, {}).get(topic, Count())

    def _rank(self, axis: str, value: Any) -> Any:
        """Return the sort key of a value: models as the runs, names as the options, numbers as they are."""
        return self._orders[axis].index(value) if axis in self._orders else value


def pearson(cells: Sequence[BothTasks]) -> float | None:
    """Return Pearson's correlation of the accuracies of choices and of free answers (PrefEval, 3.4).

    Return `None` for fewer than three cells, or if one task's accuracy is constant.
    """
    if len(cells) < _FEWEST_CELLS:
        return None
    try:
        return statistics.correlation([cell.generation for cell in cells], [cell.classification for cell in cells])
    except statistics.StatisticsError:
        return None


def _judged(setting: Setting, count: Count, share: Estimate | None) -> Estimate | None:
    """Return a share of right answers, marked if the checkers found the same in all of them.

    Choices among options are compared with the right one, without a judge.
    """
    if share is None or setting.task != "generation":
        return share
    is_constant = any(count[kind] == count.n for kind in (RIGHT, *ERROR_TYPES)) and count.n >= FEWEST
    return replace(share, is_constant=is_constant)
