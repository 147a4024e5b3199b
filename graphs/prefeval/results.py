"""What a report counts: right answers and errors by setting and topic, read from finished items one at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from dialoom.graphs.outcome import Episode
from dialoom.graphs.reporting.statistics import FEWEST, Estimate, mean_of_shares, share_of
from dialoom.personas.preferences import FORMS

from .options import ARMS, METHODS, TASKS
from .setting import OWN_TURNS, Length, Setting
from .verdicts import UNJUDGED, UNPARSED, error_of

"""The preference's and the question's: PrefEval counts them to a conversation's length."""
TOO_LONG = "context"
"""The fault of an item whose request was longer than its model reads."""

Runs: TypeAlias = Sequence[tuple[str, Iterable[Episode]]]
"""Each run's label, e.g. its model, and its finished items; these are read once, one at a time."""


@dataclass(slots=True)
class Count:
    """The items of a setting and a topic.

    Attributes:
        errors: How many of each error; `None` counts the right ones.
        failed: How many came to no answer.
        too_long: How many of these were longer than the model reads.
        empty: How many answers were empty.
        no_letter: How many choices named no option.
        looked: How many retrieved messages.
        hits: How many of these found the preference.
    """

    errors: Counter[str | None] = field(default_factory=Counter)
    failed: int = 0
    too_long: int = 0
    empty: int = 0
    no_letter: int = 0
    looked: int = 0
    hits: int = 0

    @property
    def n(self) -> int:
        """The items that count: judged, or with a checker's word that could not be had."""
        return self.errors.total() - self.errors[UNJUDGED]

    @property
    def right(self) -> int:
        """Those without an error."""
        return self.errors[None]

    def add(self, episode: Episode) -> None:
        """Count one item."""
        if episode.state != "done":
            self.failed += 1
            self.too_long += episode.at_fault == TOO_LONG
            return
        details = episode.outcome.details
        self.errors[error_of(episode.outcome.judgements)] += 1
        self.empty += not details.get("answer")
        self.no_letter += "choice" in details and details["choice"] is None
        if "hit" in details:
            self.looked += 1
            self.hits += bool(details["hit"])

    def plus(self, other: Count) -> Count:
        """Both together."""
        return Count(
            self.errors + other.errors,
            *(
                getattr(self, name) + getattr(other, name)
                for name in ("failed", "too_long", "empty", "no_letter", "looked", "hits")
            ),
        )


class ItemResults:
    """Everything that tables and charts show, in one pass over the items of each run."""

    def __init__(self, runs: Runs) -> None:
        self.models = [label for label, _ in runs]
        self._counts: dict[Setting, dict[str, Count]] = defaultdict(lambda: defaultdict(Count))
        self._tokens: Counter[Setting] = Counter()
        self._averages: dict[Setting, Estimate | None] = {}
        for label, episodes in runs:
            for episode in episodes:
                setting = _setting(label, episode)
                self._counts[setting][str(episode.facets["topic"])].add(episode)
                self._tokens[setting] += int(episode.facets["tokens"])
        self.topics = sorted({topic for by_topic in self._counts.values() for topic in by_topic})
        self.settings = sorted(self._counts, key=self._place)

    def share(self, setting: Setting, topic: str) -> Estimate | None:
        """A topic's accuracy; `None` if there is none."""
        count = self._of(setting).get(topic, Count())
        return _judged(setting, count, share_of(count.right, count.n))

    def average(self, setting: Setting) -> Estimate | None:
        """The unweighted mean of all topics' accuracy; `None` if one of them has none."""
        if setting not in self._averages:
            counts = self._by_topic(setting)
            average = mean_of_shares([(count.right, count.n) for count in counts])
            self._averages[setting] = _judged(setting, self.total(setting), average)
        return self._averages[setting]

    def hit_rate(self, setting: Setting) -> Estimate | None:
        """How often retrieval found the preference: the unweighted mean over topics."""
        return mean_of_shares([(count.hits, count.looked) for count in self._by_topic(setting)])

    def some(self, wanted: Callable[[Setting], bool]) -> list[Setting]:
        """The settings that are wanted; none if none of them has an accuracy."""
        settings = [setting for setting in self.settings if wanted(setting)]
        return settings if any(self.total(setting).n for setting in settings) else []

    def total(self, setting: Setting) -> Count:
        """The items of all topics."""
        total = Count()
        for count in self._of(setting).values():
            total = total.plus(count)
        return total

    def tokens(self, setting: Setting) -> float:
        """The mean number of tokens before the question."""
        counts = self._of(setting).values()
        return self._tokens[setting] / sum(count.errors.total() + count.failed for count in counts)

    def _of(self, setting: Setting) -> Mapping[str, Count]:
        return self._counts.get(setting, {})

    def _by_topic(self, setting: Setting) -> list[Count]:
        return [self._of(setting).get(topic, Count()) for topic in self.topics]

    def values(self, axis: str, settings: Iterable[Setting]) -> list[Any]:
        """What settings have on an axis, in its order."""
        return sorted({getattr(setting, axis) for setting in settings}, key=lambda value: self._rank(axis, value))

    def _place(self, setting: Setting) -> tuple[Any, ...]:
        return tuple(self._rank(axis, value) for axis, value in zip(Setting._fields, setting, strict=True))

    def _rank(self, axis: str, value: Any) -> Any:
        """Models stand as the runs were named, words as the options name them, numbers as they are."""
        orders = {"model": self.models, "task": TASKS, "form": FORMS, "method": METHODS, "arm": ("", *ARMS)}
        return orders[axis].index(value) if axis in orders else value


def _judged(setting: Setting, count: Count, share: Estimate | None) -> Estimate | None:
    """Return a share of right answers that knows whether the checkers found the same of all of them.

    Choices among options are compared with the right one; nobody judges them.
    """
    if share is None or setting.task != "generation":
        return share
    found = {error for error, number in count.errors.items() if number and error not in (UNJUDGED, UNPARSED)}
    return replace(share, is_constant=len(found) == 1 and not count.errors[UNPARSED] and count.n >= FEWEST)


def _setting(label: str, episode: Episode) -> Setting:
    facets = episode.facets
    limit = int(facets["token_limit"])
    length = Length("tokens", limit) if limit else Length("turns", int(facets["turns"]) + OWN_TURNS)
    return Setting(
        model=label,
        task=str(facets["task"]),
        form=str(facets["form"]),
        method=str(facets["method"]),
        retrieved=int(facets["retrieved"]),
        length=length,
        position=float(facets["position"]),
        preferences=1 if facets["arm"] else int(facets["preferences"]),
        arm=str(facets["arm"]),
    )
