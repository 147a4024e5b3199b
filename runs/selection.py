"""Which scenarios are wanted, told by an expression over what each of them is and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from jinja2 import TemplateError, Undefined

from dialoom.graphs import DialogueFault, Episode, Judgement, Outcome, Recipe
from dialoom.graphs.capabilities import WithGate, WithJudging
from dialoom.graphs.fault import BY_JUDGES, KINDS, USER, dialogue_faults
from dialoom.runs.branch_taken import RecordedEpisode
from dialoom.runs.errors import RunError
from dialoom.runs.expressions import Absent, compiled
from dialoom.runs.store import RunFile

OF_EACH = (
    "number",
    "id",
    "state",
    "ended_by",
    "error",
    "changed",
    "branch",
    "unparsed",
    "lines",
    "messages",
    "judgements",
    "faults",
    "facets",
    "counts",
    "scores",
)
"""What every recipe's scenarios have; beside these stand its own facets, counts and metrics, by their names."""


_OF_WORDS = frozenset({"lines", "messages", "judgements"})


class Score(float):
    """A metric's mean score of a whole conversation, with that of each target as an attribute: `naturalness.user`."""

    def __new__(cls, judgements: list[Judgement]) -> Score:
        """The mean of what has a score."""
        by_target: dict[str, list[float]] = {}
        for each in judgements:
            if each.score is not None:
                by_target.setdefault(each.target, []).append(float(each.score))
        values = [value for values in by_target.values() for value in values]
        made = super().__new__(cls, sum(values) / len(values))
        made.__dict__.update({target: sum(each) / len(each) for target, each in by_target.items()})
        return made


def known_kinds(recipe: Recipe) -> list[str]:
    """The kinds of faults that there are: those of the rules, and the recipe's own."""
    return [*KINDS, *WithGate.of(recipe).fault_kinds]


class FaultCount(int):
    """How many faults a dialogue has; those of a role or kind, also judges', are attributes: `faults.user`."""

    def __new__(cls, faults: Sequence[DialogueFault], recipe: Recipe) -> FaultCount:
        """Count them; a role or kind that the recipe does not have is no attribute."""
        made = super().__new__(cls, dialogue_faults(faults))
        made.__dict__.update(dict.fromkeys((*known_kinds(recipe), USER, *recipe.roles), 0))
        made.__dict__.update(Counter(name for each in faults for name in (each.who, each.kind)))
        return made

    def __repr__(self) -> str:
        """For whoever asks for a part that there is not."""
        return f"there are roles and kinds, such as {USER} and {next(iter(KINDS))}"


def means_of(episode: Episode) -> dict[str, float]:
    """The mean score of each metric and target, such as `naturalness.user`, over all that has a score."""
    found: dict[str, list[float]] = {}
    for each in episode.outcome.judgements:
        if each.score is not None:
            found.setdefault(f"{each.metric}.{each.target}", []).append(float(each.score))
    return {name: sum(values) / len(values) for name, values in found.items()}


def scores_of(episode: Episode) -> dict[str, Score]:
    """The scores of whole conversations by metric; by turn where there is none of the whole. Unparsed ones are none."""
    found: dict[str, list[Judgement]] = {}
    scored = [each for each in episode.outcome.judgements if each.score is not None]
    whole = {each.metric for each in scored if each.turn is None}
    for judgement in scored:
        if judgement.turn is None or judgement.metric not in whole:
            found.setdefault(judgement.metric, []).append(judgement)
    return {metric: Score(judgements) for metric, judgements in found.items()}


@dataclass(frozen=True, slots=True)
class Where:
    """An expression that was understood, and tells of each scenario of a run whether it is wanted.

    Attributes:
        text: As it was written, such as `personalization >= 3 and ended_by == 'user_terminated'`.
        setting: The option that it was given as, for messages.
    """

    text: str
    setting: str
    _run: RunFile = field(repr=False, compare=False)
    _value: Callable[[dict[str, Any]], Any] = field(repr=False, compare=False)
    _names: frozenset[str] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, run: RunFile, setting: str = "where") -> Where:
        """An expression over a run's scenarios.

        Args:
            text: The expression.
            run: The run.
            setting: The option that it is given as.

        Raises:
            RunError: If it is none, names what they do not have, or says nothing of them.
        """
        try:
            value, names = compiled(text)
        except TemplateError as error:
            raise RunError(f"{setting} {text!r:.200} is no expression: {error.message}", setting="where") from error
        known = dict.fromkeys((*OF_EACH, *WithJudging.of(run.recipe).metrics, *run.named_figures()))
        if not names:
            raise RunError(f"{setting} {text!r} names nothing; there are {', '.join(known)}", setting=setting)
        if unknown := sorted(names.difference(known)):
            meant = "".join(f"; did you mean {name}?" for name in get_close_matches(unknown[0], known, 1))
            there = f"{'; T' if not meant else ' T'}here are {', '.join(known)}"
            raise RunError(f"{setting}: there is no {unknown[0]!r}{meant}{there}", setting=setting)
        return cls(text, setting, run, value, frozenset(names))

    @property
    def needs_words(self) -> bool:
        """Whether it asks for what was said, and not only for figures."""
        return not self._names.isdisjoint(_OF_WORDS) or BY_JUDGES in self.text

    def keeps(self, episode: RecordedEpisode) -> bool:
        """Whether what came of a scenario is wanted.

        Raises:
            RunError: If the expression cannot be told, as when it compares a text with a number.
        """
        return bool(self.value(episode))

    def value(self, episode: RecordedEpisode) -> Any:
        """What the expression comes to; `None` if that was not had.

        Raises:
            RunError: As `keeps`.
        """
        values = _values(episode, self._run.recipe)
        if "number" in self._names:
            values["number"] = self._run.resolve(episode.id) + 1
        absent = {name: Absent(name=name) for name in self._names if values.get(name) is None}
        try:
            value = self._value({**values, **absent})
        except Exception as error:  # whatever an expression raises is about the expression
            text = f"{self.setting} {self.text!r} cannot be told of {episode.id}: {error}"
            raise RunError(text, setting=self.setting) from error
        return None if isinstance(value, Undefined) else value


def selected(run: RunFile, judging: str | None, where: str | None) -> Iterator[RecordedEpisode]:
    """Finished scenarios in plan order, with one set of judgements: all, or those that an expression holds of.

    Raises:
        RunError: If the expression is wrong.
        StoreError: If there is no such set.
    """
    episodes = run.episodes(judging)
    return episodes if where is None else filter(Where.parse(where, run).keeps, episodes)


def every(
    run: RunFile,
    judging: str | None,
    where: str | None,
    sort: Where | None = None,
    on_look: Callable[[int], None] = lambda _position: None,
) -> Iterator[tuple[int, RecordedEpisode]]:
    """Every scenario's position and the figures of it, in plan order; words are there only if an expression needs them.

    Args:
        run: The run.
        judging: The set of judgements; by default the oldest.
        where: Only those that this expression holds of.
        sort: What they will be sorted by.
        on_look: Is told the position of each that is looked at.

    Raises:
        RunError: If the expression is wrong.
        StoreError: If there is no such set.
    """
    wanted = None if where is None else Where.parse(where, run)
    needs_words = any(each is not None and each.needs_words for each in (wanted, sort))
    for position, episode in _whole(run, judging) if needs_words else run.figures(judging):
        on_look(position)
        if wanted is None or wanted.keeps(episode):
            yield position, episode


def _whole(run: RunFile, judging: str | None) -> Iterator[tuple[int, RecordedEpisode]]:
    """Every scenario as exports have it; a pending one has neither messages nor ending."""
    finished = run.episodes(judging)
    ahead = next(finished, None)
    for (position, id_, _, _), facets in zip(run.listing(), run.planned_facets(), strict=True):
        if ahead is not None and ahead.id == id_:
            yield position, ahead
            ahead = next(finished, None)
        else:
            yield position, RecordedEpisode(id_, facets, "pending", Outcome(messages=(), ended_by=""))


def in_order(
    found: Iterable[tuple[int, RecordedEpisode]], by: Where, is_reversed: bool = False
) -> list[tuple[int, RecordedEpisode]]:
    """Scenarios by what an expression comes to, numbers before texts; those that have no value come last.

    Raises:
        RunError: If it comes to something that has no order.
    """
    valued = [(by.value(episode), position, episode) for position, episode in found]
    for value, _, episode in valued:
        if value is not None and not isinstance(value, int | float | str):
            raise RunError(f"{by.setting}: {by.text!r} is {value!r:.60} of {episode.id}", setting=by.setting)
    known = [each for each in valued if each[0] is not None]
    known.sort(key=lambda each: (isinstance(each[0], str), each[0]), reverse=is_reversed)
    unknown = [each for each in valued if each[0] is None]
    return [(position, episode) for _, position, episode in (*known, *unknown)]


def _values(episode: RecordedEpisode, recipe: Recipe) -> dict[str, Any]:
    outcome, scores = episode.outcome, scores_of(episode)
    return {
        **episode.facets,
        **outcome.counts,
        **scores,
        "id": episode.id,
        "state": episode.state,
        "ended_by": outcome.ended_by,
        "error": episode.error or "",
        "changed": episode.branch is not None,
        "branch": "main" if episode.branch is None else episode.branch.name,
        "unparsed": sum(each.score is None for each in outcome.judgements),
        "lines": len(outcome.messages),
        "messages": [line.model_dump() for line in outcome.messages],
        "judgements": [each.model_dump() for each in outcome.judgements],
        "faults": None if outcome.faults is None else FaultCount(outcome.faults, recipe),
        "facets": episode.facets,
        "counts": outcome.counts,
        "scores": scores,
    }
