"""Selection of scenarios by expression, column or text, and lists of them page by page."""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from threading import Lock
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, UndefinedError
from jinja2.utils import missing

from dialoom.graphs import DialogueFault, Episode, Judgement, Outcome, Recipe, WithGate, WithJudging
from dialoom.graphs.outcome import FAULT_KINDS, JUDGE_FAULT, USER, count_dialogue_faults
from dialoom.grouping import group_pairs
from dialoom.runs.errors import RunError
from dialoom.runs.store import Neighbours, RecordedEpisode, RunFile, ScenarioPage, ScenarioQuery
from dialoom.runs.store.connections import Signature, signature
from dialoom.sandbox import Sandbox

from .search_index import OnProgress, SearchIndex, ignore_progress


class NotYetError(UndefinedError):
    """The error for an index beyond the end of a list that may still grow."""


class UndefinedName(StrictUndefined):
    """The error for an unknown name in an expression; the message lists the names that exist."""

    __slots__ = ()

    def __init__(
        self, hint: str | None = None, obj: Any = missing, name: Any = None, exc: type[Exception] = UndefinedError
    ) -> None:
        beyond = isinstance(obj, list) and isinstance(name, int)
        super().__init__(hint, obj, name, NotYetError if beyond else exc)  # type: ignore[arg-type]

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint or self._undefined_obj is missing:
            return super()._undefined_message
        there = self._undefined_obj
        what = f"there is {', '.join(map(str, there)) or 'nothing'}" if isinstance(there, dict) else f"{there!r:.60}"
        return f"there is no {self._undefined_name!r}; {what}"


class MissingValue(Undefined):
    """A missing value, such as an unparsed score. It is false, and so is every comparison with it."""

    __slots__ = ()

    def _false(self, _other: object) -> bool:
        return False

    __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __contains__ = _false  # type: ignore[assignment]
    __hash__ = Undefined.__hash__


class _Environment(Sandbox):
    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return an attribute. A part of a missing value is missing as well."""
        return obj if isinstance(obj, MissingValue) else super().getattr(obj, attribute)


_ENVIRONMENT = _Environment(undefined=UndefinedName)
_MAX_EXPRESSION_CHARACTERS = 1_000
"""The maximum length of an expression in characters, which limits the time to evaluate it."""


def compile_expression(text: str) -> tuple[Callable[[dict[str, Any]], Any], set[str]]:
    """Return a function that evaluates an expression for given values of its names, and the set of these names.

    Raises:
        TemplateError: If it is invalid, or longer than 1,000 characters.
    """
    if len(text) > _MAX_EXPRESSION_CHARACTERS:
        raise TemplateSyntaxError(f"it has {len(text):,} characters; the maximum is {_MAX_EXPRESSION_CHARACTERS:,}", 1)
    return _ENVIRONMENT.expression(text)


_COMMON_NAMES = (
    "number",
    "id",
    "trial",
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
    "scenario",
)
"""The names that expressions can use with every recipe, besides its own facets, counts and metrics."""


_TEXT_NAMES = frozenset({"lines", "messages", "judgements"})


_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def _parse_number(text: str) -> float | None:
    """Return the number that a text represents; `None` if it is not a number."""
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped):
        return None
    return int(stripped) if stripped.lstrip("+-").isdigit() else float(stripped)


def _make_comparison(compare: Callable[[Any, Any], bool]) -> Callable[[str, Any], Any]:
    """Return a function that compares a facet's text with a number or with another string."""

    def compare_with(self: str, other: Any) -> Any:
        own_number, number = _parse_number(self), _parse_number(other) if isinstance(other, str) else other
        is_word = own_number is None and self.strip()
        if isinstance(other, str) and (is_word or number is None):
            return compare(str(self), str(other))
        if not isinstance(number, int | float):
            return NotImplemented
        if is_word:
            raise TypeError(f"{str(self)!r} is not a number, but is compared with {other!r}")
        return own_number is not None and compare(own_number, number)

    return compare_with


class FacetText(str):
    """A facet's text, such as a cell of a CSV file. If the text represents a number, it can be compared with numbers.

    Two texts are equal only if they are identical, so "007" differs from "7". Comparisons of an empty text with a
    number are false.
    """

    __slots__ = ()

    __lt__, __le__, __gt__, __ge__ = map(_make_comparison, (operator.lt, operator.le, operator.gt, operator.ge))

    def __eq__(self, other: object) -> bool:
        """Return whether this is the same text, or represents the same number."""
        return _parse_number(self) == other if isinstance(other, int | float) else str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        """Return whether this is a different text, or a non-empty text that does not represent this number."""
        return not self == other and not (isinstance(other, int | float) and not self.strip())

    __hash__ = str.__hash__


class Score(float):
    """A metric's mean score in a conversation. The mean for each target is an attribute, such as `naturalness.user`."""

    def __new__(cls, judgements: list[Judgement]) -> Score:
        """Create the score as the mean over the judgements that have a score."""
        by_target = group_pairs((each.target, float(each.score)) for each in judgements if each.score is not None)
        values = [value for values in by_target.values() for value in values]
        score = super().__new__(cls, sum(values) / len(values))
        score.__dict__.update({target: sum(each) / len(each) for target, each in by_target.items()})
        return score


def fault_kinds(recipe: Recipe) -> list[str]:
    """Return the kinds of faults: those of the gate's rules, and the recipe's own."""
    return [*FAULT_KINDS, *WithGate.of(recipe).fault_kinds]


class FaultCount(int):
    """The number of faults in a dialogue. The numbers by role and by kind are attributes, such as `faults.user`."""

    def __new__(cls, faults: Sequence[DialogueFault], recipe: Recipe) -> FaultCount:
        """Count the faults. Only roles and kinds that the recipe has become attributes."""
        count = super().__new__(cls, count_dialogue_faults(faults))
        count.__dict__.update(dict.fromkeys((*fault_kinds(recipe), USER, *recipe.roles), 0))
        count.__dict__.update(Counter(name for each in faults for name in (each.role, each.kind)))
        return count

    def __repr__(self) -> str:
        """Return a hint for the error message about an unknown attribute."""
        return f"there are roles and kinds, such as {USER} and {next(iter(FAULT_KINDS))}"


def mean_scores(episode: Episode) -> dict[str, float]:
    """Return the scores by metric and target, such as `naturalness.user`; see `scores_by_metric`."""
    return {
        f"{metric}.{target}": value
        for metric, score in scores_by_metric(episode).items()
        for target, value in vars(score).items()
    }


def scores_by_metric(episode: Episode) -> dict[str, Score]:
    """Return the scores by metric: those of the whole conversation, or of its turns if only turns were judged.

    A metric whose judgements of the whole conversation have no score has none, whatever the scores of the turns.
    """
    judgements = episode.outcome.judgements
    judged_whole = {(each.metric, each.target) for each in judgements if each.turn is None}
    by_metric = group_pairs(
        (each.metric, each)
        for each in judgements
        if each.score is not None and (each.turn is None or (each.metric, each.target) not in judged_whole)
    )
    return {metric: Score(of_metric) for metric, of_metric in by_metric.items()}


@dataclass(frozen=True, slots=True)
class Where:
    """A compiled expression that selects scenarios of a run.

    Attributes:
        text: The expression's source text, such as `personalization >= 3 and ended_by == 'user_terminated'`.
        setting: The name of the setting that contains it, for error messages.
    """

    text: str
    setting: str
    _run: RunFile = field(repr=False, compare=False)
    _function: Callable[[dict[str, Any]], Any] = field(repr=False, compare=False)
    _names: frozenset[str] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str, run: RunFile, setting: str = "where") -> Where:
        """Compile an expression over the scenarios of a run.

        Args:
            text: The expression.
            run: The run.
            setting: The name of the setting that contains it, for error messages.

        Raises:
            RunError: If the expression is invalid, uses a name that does not exist, or uses no name at all.
        """
        try:
            value, names = compile_expression(text)
        except TemplateError as error:
            raise RunError(
                f"{setting} {text!r:.200} is not a valid expression: {error.message}", setting="where"
            ) from error
        known = dict.fromkeys((*_COMMON_NAMES, *WithJudging.of(run.recipe).metrics, *run.named_figures()))
        if not names:
            raise RunError(
                f"{setting} {text!r} does not depend on the scenarios; use at least one of {', '.join(known)}",
                setting=setting,
            )
        if unknown := sorted(names.difference(known)):
            hint = "".join(f"; did you mean {name}?" for name in get_close_matches(unknown[0], known, 1))
            listed = f"{' T' if hint else '; t'}here are {', '.join(known)}"
            raise RunError(f"{setting}: there is no {unknown[0]!r}{hint}{listed}", setting=setting)
        return cls(text, setting, run, value, frozenset(names))

    @property
    def needs_texts(self) -> bool:
        """Return whether the expression uses messages or other texts, which take longer to read than numbers."""
        return not self._names.isdisjoint(_TEXT_NAMES) or JUDGE_FAULT in self.text

    def matches(self, episode: RecordedEpisode) -> bool:
        """Return whether the expression is true for a scenario.

        Raises:
            RunError: If the expression cannot be evaluated, for example because it compares a string with a number.
        """
        return bool(self.evaluate(episode))

    def evaluate(self, episode: RecordedEpisode) -> Any:
        """Return the expression's value; `None` if the value is missing.

        Raises:
            RunError: In the same cases as `matches`.
        """
        values = _build_values(episode, self._run.recipe)
        facets = values["facets"]
        if not self._names.isdisjoint(("number", "scenario")):
            values["number"] = values["scenario"]["number"] = self._run.resolve(episode.id) + 1
        self._check_columns(facets, values, episode)
        values = {**facets, **values}
        missing_values = {name: MissingValue(name=name) for name in self._names if values.get(name) is None}
        try:
            value = self._function({**values, **missing_values})
        except Exception as error:  # any error is caused by the expression
            raise RunError(
                f"{self.setting} {self.text!r} cannot be evaluated for {episode.id}: {error}", setting=self.setting
            ) from error
        if isinstance(value, FacetText):
            value = str(value) if (number := _parse_number(value)) is None else number
        return None if isinstance(value, Undefined) else value

    def _check_columns(self, facets: Mapping[str, Any], values: Mapping[str, Any], episode: RecordedEpisode) -> None:
        """Check that no name in the expression is a facet and something else, unless both have the same value.

        The name `id` always means the scenario's id.

        Raises:
            RunError: If a name is ambiguous. The message states the unambiguous forms.
        """
        for name in sorted(self._names.intersection(facets, values) - {"id"}):
            if facets[name] == values[name]:
                continue
            group = "scenario" if name in _COMMON_NAMES else "scores" if name in values["scores"] else "counts"
            raise RunError(
                f"{self.setting} {self.text!r}: {name!r} is a column with the value {str(facets[name])!r:.60} in "
                f"{episode.id}, and also the scenario's own {name}, {str(values[name])!r:.60}; write facets.{name} or "
                f"{group}.{name}",
                setting=self.setting,
            )


def select_episodes(run: RunFile, judging: str | None, where: str | None) -> Iterator[RecordedEpisode]:
    """Yield the finished scenarios in plan order, with one set of judgements. An expression can select some of them.

    Raises:
        RunError: If the expression is invalid.
        StoreError: If there is no such set.
    """
    episodes = run.episodes(judging)
    return episodes if where is None else filter(Where.parse(where, run).matches, episodes)


def check_selection(runs: Sequence[RunFile], judging: str | None, where: str | None) -> None:
    """Check that an expression matches a finished scenario of at least one run, if there are finished ones.

    Args:
        runs: The runs.
        judging: The set of judgements; by default any set.
        where: The expression; `None` for all scenarios.

    Raises:
        RunError: If no finished scenario matches, or the expression is invalid.
        StoreError: If there is no such set.
    """
    if where is None:
        return
    for run in runs:
        sets = [None, *(each.name for each in run.judgement_sets())] if judging is None else [judging]
        if any(True for each in sets for _ in select_episodes(run, each, where)):
            return
    if any(run.positions("done") or run.positions("failed") for run in runs):
        paths = " and ".join(str(run.path) for run in runs)
        raise RunError(f"where {where!r} matches no finished scenario of {paths}", setting="where")


def iter_scenarios(
    run: RunFile,
    judging: str | None,
    where: str | None,
    sort: str | None = None,
    is_descending: bool = False,
    on_examined: Callable[[int], None] = lambda _position: None,
) -> Iterable[tuple[int, RecordedEpisode]]:
    """Return every scenario's position and data, with texts only if an expression needs them.

    Args:
        run: The run.
        judging: The set of judgements; by default the oldest.
        where: An expression that selects scenarios.
        sort: The expression by which to sort; by default scenarios are in plan order. Sorting reads all scenarios into
            memory.
        is_descending: Whether the order is reversed: highest value first or, in plan order, last scenario first.
        on_examined: Called with the position of each scenario that is examined.

    Raises:
        RunError: If the expression is invalid.
        StoreError: If there is no such set.
    """
    condition = None if where is None else Where.parse(where, run)
    sort_key = None if sort is None else Where.parse(sort, run, "sort")
    needs_texts = any(each is not None and each.needs_texts for each in (condition, sort_key))

    def episodes() -> Iterator[tuple[int, RecordedEpisode]]:
        for position, episode in _iter_with_texts(run, judging) if needs_texts else run.figures(judging):
            on_examined(position)
            if condition is None or condition.matches(episode):
                yield position, episode

    if sort_key is not None:
        return _sort_by(episodes(), sort_key, is_descending)
    return reversed([*episodes()]) if is_descending else episodes()


def _iter_with_texts(run: RunFile, judging: str | None) -> Iterator[tuple[int, RecordedEpisode]]:
    """Yield every scenario as it is exported; a pending one has neither messages nor an ending."""
    finished = run.episodes(judging)
    upcoming = next(finished, None)
    for (position, id_, _, _), facets in zip(run.listing(), run.planned_facets(), strict=True):
        if upcoming is not None and upcoming.id == id_:
            yield position, upcoming
            upcoming = next(finished, None)
        else:
            yield position, RecordedEpisode(id_, facets, "pending", Outcome(messages=(), ended_by=""))


def _sort_by(
    scenarios: Iterable[tuple[int, RecordedEpisode]], sort_key: Where, is_reversed: bool = False
) -> list[tuple[int, RecordedEpisode]]:
    """Sort scenarios by an expression's value, numbers before strings; those without a value come last.

    Raises:
        RunError: If a value is neither a number nor a string.
    """
    valued = [(sort_key.evaluate(episode), position, episode) for position, episode in scenarios]
    for value, _, episode in valued:
        if value is not None and not isinstance(value, int | float | str):
            raise RunError(
                f"{sort_key.setting}: {sort_key.text!r} is {value!r:.60} for {episode.id}; only numbers and strings "
                "can be sorted",
                setting=sort_key.setting,
            )
    known = [each for each in valued if each[0] is not None]
    known.sort(key=lambda each: (isinstance(each[0], str), each[0]), reverse=is_reversed)
    missing_values = [each for each in valued if each[0] is None]
    return [(position, episode) for _, position, episode in (*known, *missing_values)]


def _build_values(episode: RecordedEpisode, recipe: Recipe) -> dict[str, Any]:
    """Return the values of all names except facets. `scenario` holds those that every scenario has."""
    outcome, scores = episode.outcome, scores_by_metric(episode)
    values = {
        "id": episode.id,
        "trial": episode.trial or 1,
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
        "facets": {
            name: FacetText(value) if isinstance(value, str) else value for name, value in episode.facets.items()
        },
        "counts": outcome.counts,
        "scores": scores,
    }
    return {**outcome.counts, **scores, **values, "scenario": values}


_PROGRESS_INTERVAL = 500
"""The number of scenarios between two progress reports."""
_CACHE_SIZE = 4

_cache: dict[tuple[Signature, str, str | None, str], frozenset[int]] = {}
"""The positions that expressions select, cached while the run's file is unchanged: every page of a list needs them."""
_cache_lock = Lock()
"""The lock that guards the cache, because several threads use it."""


def load_page(
    run: RunFile,
    query: ScenarioQuery,
    where: str | None,
    search: str | None,
    offset: int,
    limit: int,
    on_progress: OnProgress = ignore_progress,
) -> ScenarioPage:
    """Return a page of a run's scenarios; see `dialoom.Run.scenarios`."""
    narrowed, matches = _narrow_query(run, query, where, search, on_progress)
    page = run.page(narrowed, offset, limit)
    return replace(
        page, matches=_load_texts(run, {row.position: matches[row.position] for row in page.rows if matches})
    )


def search_messages(run: RunFile, words: str, on_progress: OnProgress = ignore_progress) -> dict[int, str]:
    """Return the first matching message of each scenario, by the scenario's position; see `dialoom.Run.search`."""
    return _load_texts(run, SearchIndex(run).search(words, on_progress))


def _load_texts(run: RunFile, matches: Mapping[int, int]) -> dict[int, str]:
    texts = dict(run.message_texts().contents([*{*matches.values()}]))
    return {position: texts[id_] for position, id_ in matches.items()}


def find_neighbours(
    run: RunFile, scenario: str | int, query: ScenarioQuery, where: str | None, search: str | None
) -> Neighbours | None:
    """Return the scenarios before and after a scenario in a list; see `dialoom.Run.neighbours`."""
    return run.neighbours(run.resolve(str(scenario)), _narrow_query(run, query, where, search, ignore_progress)[0])


def _narrow_query(
    run: RunFile, query: ScenarioQuery, where: str | None, search: str | None, on_progress: OnProgress
) -> tuple[ScenarioQuery, dict[int, int]]:
    """Return the query restricted by an expression and a search, and the id of the matching text of each scenario."""
    positions: Collection[int] | None = query.among
    matches = SearchIndex(run).search(search, on_progress) if search else {}
    if search:
        positions = {*matches} if positions is None else {*positions} & matches.keys()
    if where:
        selected = _find_matching_positions(run, query.judging, where, on_progress)
        positions = selected if positions is None else selected & {*positions}
    return replace(query, among=positions), matches


def _find_matching_positions(run: RunFile, judging: str | None, where: str, on_progress: OnProgress) -> frozenset[int]:
    """Return the positions of the scenarios that an expression selects."""
    key = (signature(run.path), str(run.path.resolve()), judging, where)
    with _cache_lock:
        positions = _cache.get(key)
    if positions is None:
        planned = run.planned

        def report_progress(position: int) -> None:
            if position % _PROGRESS_INTERVAL == 0:
                on_progress("reading scenarios", position, planned)

        positions = frozenset(
            position for position, _ in iter_scenarios(run, judging, where, on_examined=report_progress)
        )
    with _cache_lock:
        _cache.pop(key, None)
        _cache[key] = positions  # moved to the end, to be dropped last
        while len(_cache) > _CACHE_SIZE:
            del _cache[next(iter(_cache))]
    return positions
