"""The checkers, and the data of reports: right answers and errors by setting and topic, read one item at a time."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, BeforeValidator, model_validator

from dialoom.graphs import Case, Check, Conversation, Episode, Estimate, Judge, Judgement, Line, Outcome, Runs
from dialoom.graphs.tables import MIN_UNITS, mean_of_shares, share_of
from dialoom.graphs.tables.table import ScenarioFilter, find_verdict_combinations
from dialoom.inputs import Frozen
from dialoom.personas.preferences import FORMS

from .scenario import ARMS, METHODS, TASKS, PrefEvalScenario

CHECKERS = ("violates", "acknowledges", "hallucinates", "helpful")
CORRECT = "correct"
RIGHT = "right"
"""The metric that is derived from the checkers' verdicts: whether an answer has no error."""
ASSISTANT = "assistant"

UNAWARE, HALLUCINATION, INCONSISTENCY, UNHELPFUL = "unaware", "hallucination", "inconsistency", "unhelpful"
ERROR_TYPES = (UNAWARE, HALLUCINATION, INCONSISTENCY, UNHELPFUL)
WRONG = "wrong"
"""The error of a wrong choice among options."""
UNPARSED = "unparsed"
"""The error if a checker's verdict is missing. The answer then counts as wrong, but its error type is unknown."""
UNJUDGED = "unjudged"
"""The error if no checker was asked."""

CHECKER_INPUTS: Mapping[str, tuple[str, ...]] = {
    "violates": ("preference", "question", "answer"),
    "acknowledges": ("question", "answer"),
    "hallucinates": ("preference", "quote"),
    "helpful": ("question", "answer"),
    RIGHT: ("preference", "question", "answer"),
}
"""The inputs that each checker sees, and those seen by annotators who decide whether an answer is right."""


def _normalize_answer(value: Any) -> Any:
    """Return an answer in lower case without spaces, dots and exclamation marks."""
    return re.sub(r"[\s.!]+", "", value).lower() if isinstance(value, str) else value


Answer: TypeAlias = Annotated[Literal["yes", "no"], BeforeValidator(_normalize_answer)]


class YesNo(Frozen):
    """A reason, and exactly yes or no."""

    explanation: str = ""
    answer: Answer

    @property
    def why(self) -> str:
        """The reason given for the result."""
        return self.explanation


class YesNoQuote(Frozen):
    """Yes with a sentence of the answer, or no."""

    quote: str = ""
    answer: Answer

    @model_validator(mode="after")
    def _quoted(self) -> YesNoQuote:
        if self.answer == "yes" and not self.quote.strip():
            raise ValueError("'yes' needs a quote; without anything to quote, the answer is 'no'")
        return self

    @property
    def why(self) -> str:
        """The passage quoted as the reason for the result."""
        return self.quote.strip()


REPLY_TYPES: Mapping[str, type[BaseModel]] = {"yes-no": YesNo, "yes-no-quote": YesNoQuote}


def find_quote(judgements: Iterable[Judgement]) -> str:
    """Return the passage quoted in a positive judgement of `acknowledges`; empty if there is none."""
    return next((each.explanation for each in judgements if each.metric == "acknowledges" and each.score is True), "")


def build_checker_inputs(metric: str, outcome: Outcome) -> dict[str, str]:
    """Return a checker's inputs about an item, by name."""
    shown = {name: outcome.details[name] for name in ("preference", "question", "answer")}
    shown["quote"] = find_quote(outcome.judgements)
    return {name: shown[name] for name in CHECKER_INPUTS.get(metric, tuple(shown))}


def build_checker_lines(metric: str, outcome: Outcome) -> list[Line]:
    """Return a checker's inputs as lines, for annotators of the same item."""
    return [Line(role=name, content=text) for name, text in build_checker_inputs(metric, outcome).items()]


def classify_error(
    violates: bool | None, acknowledges: bool | None, hallucinates: bool | None, helpful: bool | None
) -> str | None:
    """Return the error type of an answer; `None` if it is right.

    An answer that does not help is always `unhelpful`, as in the released scripts. By the paper's table, an unhelpful
    answer that also violates the preference would have no error type.

    Args:
        violates: Whether the answer contradicts the preference. For this and the other arguments, `None` is a missing
            verdict.
        acknowledges: Whether the answer mentions a preference.
        hallucinates: Whether the mentioned preference is not the user's; used only if a preference is mentioned.
        helpful: Whether the answer helps.
    """
    if violates is None or acknowledges is None or helpful is None or (acknowledges and hallucinates is None):
        return UNPARSED
    if not helpful:
        return UNHELPFUL
    if not violates:
        return None
    if not acknowledges:
        return UNAWARE
    return HALLUCINATION if hallucinates else INCONSISTENCY


@cache
def build_error_filters() -> Mapping[str, ScenarioFilter]:
    """Return selections of items by result: those whose free answers count as right, and those with each error type."""

    def has(found: str, verdicts: Mapping[str, bool | None]) -> bool:
        return (classify_error(**verdicts) or RIGHT) == found

    kinds = (RIGHT, *ERROR_TYPES, UNPARSED)
    return {
        kind: ScenarioFilter(is_judged=True, verdicts=find_verdict_combinations(CHECKERS, partial(has, kind)))
        for kind in kinds
    }


def find_error(judgements: Iterable[Judgement]) -> str | None:
    """Return an item's error: the result of `classify_error`, or `wrong` for a wrong choice; `None` if it is right."""
    found = {each.metric: None if each.score is None else bool(each.score) for each in judgements}
    if CORRECT in found:
        is_correct = found[CORRECT]
        return UNPARSED if is_correct is None else None if is_correct else WRONG
    if not found.keys() & set(CHECKERS):
        return UNJUDGED
    return classify_error(*(found.get(checker) for checker in CHECKERS))


def _build_cases(_: PrefEvalScenario, outcome: Outcome, metric: str) -> Iterator[Case]:
    """Yield a case with a checker's inputs about a free answer. If the answer is empty, there is nothing to judge."""
    seen = build_checker_inputs(metric, outcome)
    yield Case(None, seen, missing="" if seen.get("answer", "-") else "the assistant gave no answer")


def _check_choice(item: Conversation) -> tuple[bool, str] | None:
    """Return whether the right option was chosen, with an explanation; `None` for a free answer."""
    if item.scenario.task != "classification":
        return None
    letter, right = item.outcome.details["choice"], item.outcome.details["correct"]
    correction = "" if letter == right else f"; {right} is right"
    return letter == right, f"{letter or 'no letter'} was chosen{correction}"


def _is_asked(scenario: PrefEvalScenario, outcome: Outcome, metric: str) -> bool:
    """Return whether a checker is asked: there is a free answer and, for `hallucinates`, it mentions a preference."""
    return bool(find_quote(outcome.judgements)) if metric == "hallucinates" else scenario.task == "generation"


JUDGES = tuple(
    Judge(
        metric,
        prompt=f"prefeval/judge-{metric}",
        node=metric,
        cases=partial(_build_cases, metric=metric),
        when=partial(_is_asked, metric=metric),
        after="acknowledges" if metric == "hallucinates" else "",
        read=lambda reply: (reply.answer == "yes", reply.why),
        lower_is_better=metric in ("violates", "hallucinates"),
    )
    for metric in CHECKERS
)
CHECKS = (Check(CORRECT, _check_choice),)


OWN_TURNS = 2
"""The number of turns for the preference and the question, which PrefEval includes in a conversation's length."""
_TOO_LONG = "context"
"""The value of `at_fault` for an item whose request exceeded the model's context window."""
_MIN_CORRELATED_CELLS = 3
"""Minimum number of settings for a correlation, because two points always lie on a line."""


class Length(NamedTuple):
    """The length of a conversation, in turns or as a limit in tokens."""

    unit: str
    amount: int

    def __str__(self) -> str:
        return f"{self.amount:,} {self.unit}"


class Setting(NamedTuple):
    """The variables of an item except the topic. Each setting is a cell of the tables.

    `retrieved` is 0 without retrieval. In the conflict setting, `arm` states which other preference comes first, if
    any, and `preferences` is 1.
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
        """Return whether the only preference is at the start of the conversation, as in tables by topic and length."""
        return not self.position and self.preferences == 1 and not self.arm

    def text_of(self, axis: str) -> str:
        """Return the value of an axis as text; empty if the axis does not apply."""
        texts = {
            "retrieved": f"k={self.retrieved}" if self.retrieved else "",
            "position": f"at {self.position:g}",
            "preferences": f"{self.preferences} preference{'s' if self.preferences != 1 else ''}",
        }
        return texts[axis] if axis in texts else str(getattr(self, axis))

    def facet(self, axis: str) -> tuple[str, str] | None:
        """Return the facet of items that an axis corresponds to, and its value; `None` for the model."""
        if axis == "length":
            unit, amount = self.length
            return ("token_limit", str(amount)) if unit == "tokens" else ("turns", str(amount - OWN_TURNS))
        return None if axis == "model" else (axis, str(getattr(self, axis)))


def find_varying_axes(settings: Sequence[Setting], but: Iterable[str] = (), always: Iterable[str] = ()) -> list[str]:
    """Return the axes on which settings differ.

    Axes in `but` are left out, and axes in `always` are always included.
    """
    out, named = set(but), set(always)
    axes = [axis for axis in Setting._fields if axis not in out]
    return [axis for axis in axes if axis in named or len({getattr(setting, axis) for setting in settings}) > 1]


def select_varying(settings: Sequence[Setting], axis: str) -> list[Setting]:
    """Return each setting for which there is another setting that differs only in this axis."""
    return [setting for group in group_settings(settings, but=(axis,)) if len(group) > 1 for setting in group]


def group_settings(settings: Iterable[Setting], by: Iterable[str] = (), but: Iterable[str] = ()) -> list[list[Setting]]:
    """Group settings with equal values of the axes in `by`, or of all axes except `but`; the order is kept."""
    axes = list(by) or [axis for axis in Setting._fields if axis not in set(but)]
    groups: dict[tuple[object, ...], list[Setting]] = {}
    for setting in settings:
        groups.setdefault(tuple(getattr(setting, axis) for axis in axes), []).append(setting)
    return list(groups.values())


class ItemCounts(Counter[str]):
    """Counts for a setting: `items`, their `tokens`, `failed` (of which `too_long`), and `done` (of which `right`).

    It also counts each kind of error, `empty` answers, choices with `no_letter`, items that retrieve messages
    (`looked`), those that find the preference (`hits`), and `repeated` items, i.e. further trials of a counted item.
    """

    @property
    def n(self) -> int:
        """The number of judged items, including those with an unparsed verdict."""
        return self["done"] - self[UNJUDGED]

    def units(self, n: int) -> int:
        """Return the number of independent items among n of these items."""
        return max(1, n - self["repeated"])

    def add(self, episode: Episode) -> None:
        """Add one item."""
        details, is_done = episode.outcome.details, episode.state == "done"
        self.update(items=1, tokens=int(episode.facets["tokens"]), done=is_done, failed=not is_done)
        if not is_done:
            self["too_long"] += episode.at_fault == _TOO_LONG
            return
        self[find_error(episode.outcome.judgements) or RIGHT] += 1
        self["empty"] += not details.get("answer")
        self["no_letter"] += "choice" in details and details["choice"] is None
        self.update(looked="hit" in details, hits=bool(details.get("hit")))


class BothTasks(NamedTuple):
    """A setting's accuracy in both tasks. Each accuracy is a mean over topics."""

    setting: Setting
    generation: float
    classification: float


class ItemResults:
    """The data of all tables and charts, from one pass over the items of each run."""

    def __init__(self, runs: Runs) -> None:
        self._counts: dict[Setting, dict[str, ItemCounts]] = defaultdict(lambda: defaultdict(ItemCounts))
        self._averages: dict[Setting, Estimate | None] = {}
        self._orders: Mapping[str, Sequence[str]] = {
            "model": [label for label, _ in runs],
            "task": TASKS,
            "form": FORMS,
            "method": METHODS,
            "arm": ("", *ARMS),
        }
        seen = set[tuple[Setting, str]]()
        for label, episodes in runs:
            for episode in episodes:
                setting = Setting.of(label, episode.facets)
                count = self._counts[setting][str(episode.facets["topic"])]
                count.add(episode)
                if episode.repeated is not None and episode.state == "done":
                    count["repeated"] += (setting, episode.repeated) in seen
                    seen.add((setting, episode.repeated))
        self.has_trials = bool(seen)
        self.topics = sorted({topic for by_topic in self._counts.values() for topic in by_topic})
        self.settings = sorted(
            self._counts, key=lambda each: [self._rank(*pair) for pair in zip(Setting._fields, each, strict=True)]
        )

    def share(self, setting: Setting, topic: str) -> Estimate | None:
        """Return a topic's accuracy; `None` without items."""
        count = self._of(setting, topic)
        return _mark_constant(setting, count, share_of(count[RIGHT], count.n, count.units(count.n)))

    def average(self, setting: Setting) -> Estimate | None:
        """Return the unweighted mean of all topics' accuracies; `None` if a topic has no accuracy."""
        if setting not in self._averages:
            counts = [self._of(setting, topic) for topic in self.topics]
            average = mean_of_shares(
                [(each[RIGHT], each.n) for each in counts], [each.units(each.n) for each in counts]
            )
            self._averages[setting] = _mark_constant(setting, self.total(setting), average)
        return self._averages[setting]

    def hit_rate(self, setting: Setting) -> Estimate | None:
        """Return the rate at which retrieval found the preference, as the unweighted mean over topics."""
        counts = [self._of(setting, topic) for topic in self.topics]
        return mean_of_shares(
            [(each["hits"], each["looked"]) for each in counts], [each.units(each["looked"]) for each in counts]
        )

    def total(self, *settings: Setting) -> ItemCounts:
        """Return the counts of these settings over all topics."""
        total = ItemCounts()
        for count in chain.from_iterable(self._counts[each].values() for each in settings if each in self._counts):
            total.update(count)
        return total

    def tokens(self, *settings: Setting) -> float:
        """Return the mean number of tokens before the question."""
        total = self.total(*settings)
        return total["tokens"] / total["items"]

    def some(self, matches: Callable[[Setting], bool]) -> list[Setting]:
        """Return the settings that match, or no settings if none of them has an accuracy."""
        settings = [setting for setting in self.settings if matches(setting)]
        return settings if self.total(*settings).n else []

    def values(self, axis: str, settings: Iterable[Setting]) -> list[Any]:
        """Return the settings' values of an axis, in order."""
        return sorted({getattr(setting, axis) for setting in settings}, key=lambda value: self._rank(axis, value))

    def both_tasks(self) -> list[list[BothTasks]]:
        """Return the accuracies of the settings with both tasks, grouped by form."""
        found = {}
        for setting in self.settings:
            if setting.task == "generation":
                choice = self.average(setting._replace(task="classification"))
                if (free := self.average(setting)) and choice:
                    found[setting] = BothTasks(setting, free.mean, choice.mean)
        return [[found[setting] for setting in group] for group in group_settings(found, by=("form",))]

    def _of(self, setting: Setting, topic: str) -> ItemCounts:
        return self._counts.get(setting, {}).get(topic, ItemCounts())

    def _rank(self, axis: str, value: Any) -> Any:
        """Return the sort key of a value: models are in the order of the runs, and names in that of the options."""
        return self._orders[axis].index(value) if axis in self._orders else value


def pearson(cells: Sequence[BothTasks]) -> float | None:
    """Return Pearson's correlation of the accuracies of choices and of free answers (PrefEval, 3.4).

    Return `None` for fewer than three cells, or if one task's accuracy is constant.
    """
    with suppress(statistics.StatisticsError):
        if len(cells) >= _MIN_CORRELATED_CELLS:
            return statistics.correlation([cell.generation for cell in cells], [cell.classification for cell in cells])
    return None


def _mark_constant(setting: Setting, count: ItemCounts, share: Estimate | None) -> Estimate | None:
    """Return the share of right answers, which is marked if a judge gave all answers the same verdict.

    The share of right choices is never marked, because no judge decides them.
    """
    if share is None or setting.task != "generation":
        return share
    is_constant = any(count[kind] == count.n for kind in (RIGHT, *ERROR_TYPES)) and count.n >= MIN_UNITS
    return replace(share, is_constant=is_constant)
