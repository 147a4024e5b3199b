"""Health of judges: signs in their scores and explanations that the scores are unreliable."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import resources
from itertools import islice
from statistics import stdev
from typing import Any

import yaml

from dialoom.graphs import Episode, Estimate, Judge, Judgement, Table, WithFacets, WithJudging, WithLabels, WithRoles
from dialoom.graphs.gate.talk import PromptWords, hash_runs, split_words
from dialoom.graphs.outcome import Subject, index_by_subject
from dialoom.graphs.tables.statistics import MIN_UNITS, Tally
from dialoom.graphs.tables.table import CONSTANT_MARK, DOUBTFUL_MARK
from dialoom.grouping import group_pairs
from dialoom.runs.reading.scenarios import select_episodes
from dialoom.runs.store import judges_of

from .differences import format_subject
from .labelled_runs import ReportedRun, is_offline

COVERS_ALL = "Covers all judged conversations."
HEALTH_TABLE = "judge-health"
"""The name of the table of judges' health."""
_MAX_COPIED_SHARE, _MAX_CONTRADICTORY_SHARE, _MAX_UNPARSED_SHARE, _MIN_REPEATED_SHARE, _MAX_PLACED_SHARE = (
    0.1,
    0.05,
    0.1,
    0.8,
    0.2,
)
_CONSTANT_SCORES = "the same score every time"
_MIN_WORDS, _PASSAGE_WORDS, _MIN_COVERED_SHARE = 4, 5, 0.7
"""Criteria for a copied explanation: its minimum number of words, the minimum number of words of a copied passage, and
the minimum share of the explanation that copied passages cover.
"""

_MAX_SCENARIO_CHARACTERS = 10_000
"""Maximum number of characters of a scenario that explanations are compared with, as some have long documents."""


@dataclass(slots=True)
class Health:
    """The health of a judge in one metric of one target.

    Attributes:
        label: The label of the run.
        subject: The subject that is judged, as returned by `format_subject`.
        scored: The number of judgements by score, person and scenario.
        unparsed: Whether judgements could not be parsed.
        copied: Whether explanations are copied from the prompt or the scenario.
        contradictory: Whether explanations state another verdict or score.
        repeat_agreement: Whether items that the judge judged several times got equal scores.
        same_position: Whether comparisons judged in both orders got the same position both times.
        judges_itself: Whether the judge's model wrote the judged text.
        is_label: Whether the metric is one of several labels that the judge chooses from, and thus may never apply.
        member: The judge's set of judgements, if it is one of a panel.
    """

    label: str
    subject: str
    scored: Counter[tuple[float, Hashable, str]] = field(default_factory=Counter)
    unparsed: Tally = field(default_factory=Tally)
    copied: Tally = field(default_factory=Tally)
    contradictory: Tally = field(default_factory=Tally)
    repeat_agreement: Tally = field(default_factory=Tally)
    same_position: Tally = field(default_factory=Tally)
    judges_itself: bool = False
    is_label: bool = False
    member: str = ""

    @property
    def display_name(self) -> str:
        """The subject and, for a panel, the judge."""
        return f"{self.subject}, {self.member}" if self.member else self.subject

    @property
    def n(self) -> int:
        """The number of judgements with a score."""
        return self.scored.total()

    @property
    def most_frequent(self) -> tuple[float | None, Estimate | None]:
        """The score that the judge gives most often, the highest of several, and its share."""
        counts = Counter(score for score, _, _ in self.scored.elements())
        most, _ = max(counts.items(), key=lambda pair: (pair[1], pair[0]), default=(None, 0))
        tally = Tally()
        for score, person, scenario in self.scored.elements():
            tally.add(score == most, person, scenario)
        return most, tally.estimate()

    @property
    def spread(self) -> float | None:
        """The standard deviation of the scores."""
        return stdev(score for score, _, _ in self.scored.elements()) if self.n > 1 else None

    @property
    def marks(self) -> str:
        """The marks for its figures: one if its scores are constant, one if it fails any other check."""
        return f"{CONSTANT_MARK if _CONSTANT_SCORES in self.failures() else ''}{DOUBTFUL_MARK if self.doubts else ''}"

    @property
    def doubts(self) -> list[str]:
        """The failed checks, except constant scores, which may be correct."""
        return [failure for failure in self.failures() if failure != _CONSTANT_SCORES]

    def failures(self) -> list[str]:
        """Return the failed checks as texts; no checks are made for fewer than five judgements."""
        if self.unparsed.n < MIN_UNITS:
            return []
        shares = (
            (self.unparsed, _MAX_UNPARSED_SHARE, "unparsed"),
            (self.copied, _MAX_COPIED_SHARE, "explanations copied from the prompt or the scenario"),
            (self.contradictory, _MAX_CONTRADICTORY_SHARE, "explanations that contradict the score"),
        )
        scores = {score for score, _, _ in self.scored}
        is_constant = self.n >= MIN_UNITS and len(scores) == 1 and not (self.is_label and 0.0 in scores)
        agreed, placed = _mean(self.repeat_agreement), _mean(self.same_position)
        checks = (
            (is_constant, _CONSTANT_SCORES),
            *(((share := _mean(tally)) > maximum, f"{100 * share:.3g} % {what}") for tally, maximum, what in shares),
            (
                self.repeat_agreement.n >= MIN_UNITS and agreed < _MIN_REPEATED_SHARE,
                f"only {100 * agreed:.3g} % of repeated judgements agree",
            ),
            (
                self.same_position.n >= MIN_UNITS and placed > _MAX_PLACED_SHARE,
                f"{100 * placed:.3g} % of comparisons depend on the order",
            ),
            (self.judges_itself, "judges text that it wrote itself"),
        )
        return [text for is_failed, text in checks if is_failed]


def health_by_subject(health: Iterable[Health]) -> dict[str, Health]:
    """Return the health of each subject's judge; of a panel, that of the judge that fails the most checks."""
    ordered = sorted(health, key=lambda each: (len(each.doubts), len(each.failures())))
    return {each.subject: each for each in ordered}


def _mean(tally: Tally) -> float:
    """Return the mean of a tally; 0 if it is empty."""
    estimate = tally.estimate()
    return estimate.mean if estimate else 0.0


def assess_health(reported: ReportedRun, where: str | None, limit: int | None = None) -> list[Health]:
    """Return the health of the judge of a run's set of judgements by subject, without metrics computed by code.

    For a panel, it is that of each of its judges.

    Args:
        reported: The run, with the set.
        where: Only scenarios that match this expression.
        limit: The maximum number of scenarios to read, beginning with the first.
    """
    run, found = reported.run, dict[str, Health]()
    members = reported.judging.members if reported.judging else ()
    judges_alone = [replace(reported, judging=run.judgement_set(name)) for name in members]
    if judges_alone:
        by_member = zip(members, (assess_health(each, where, limit) for each in judges_alone), strict=True)
        return [replace(each, member=name) for name, health in by_member for each in health]
    checks = WithJudging.of(run.recipe).check_metrics
    judges = {metric: judge for judge in run.recipe.judges for metric in judge.metrics}
    prompts = PromptWords.of(run.prompts.values())
    instructions = frozenset(
        word
        for prompt in run.prompts.values()
        for each in prompt.sections
        for word in hash_runs(tuple(split_words(each.text)), _PASSAGE_WORDS)
    )
    for episode in islice(select_episodes(run, reported.set_name, where), limit):
        unit = _get_unit(episode, reported)
        scenario: Any = run.scenario(run.recipe, run.resolve(episode.id)) if episode.outcome.judgements else None
        for judgement in episode.outcome.judgements:
            if judgement.metric in checks:
                continue
            what, judge = format_subject(judgement), judges.get(judgement.metric)
            if what not in found:
                is_own, is_label = _is_own(reported, judge, judgement.target), judge is not None and bool(judge.labels)
                found[what] = Health(reported.label, what, judges_itself=is_own, is_label=is_label)
            health = found[what]
            is_unparsed = judgement.status == "unparsed"
            if is_unparsed and judge is not None and judge.lacks_case(scenario, episode.outcome, judgement):
                continue
            if judgement.score is not None or is_unparsed:
                health.unparsed.add(is_unparsed, *unit)
            if judgement.score is None:
                continue
            health.scored[(float(judgement.score), *unit)] += 1
            if judge is not None and judge.placed is not None and (is_placed := judge.placed(judgement)) is not None:
                health.same_position.add(is_placed, *unit)
            if judgement.explanation:
                # The part of the scenario that annotators see or, if that is empty, all of it.
                shown = WithLabels.of(run.recipe).judged_about(scenario, judgement) or scenario.described()
                about = " ".join(_iter_texts(shown))[:_MAX_SCENARIO_CHARACTERS]
                spoken = " ".join(line.content for line in episode.outcome.messages if line.role == judgement.target)
                health.copied.add(_is_copied(judgement, about, spoken, instructions, prompts), *unit)
                health.contradictory.add(contradicts(judgement), *unit)
    for what, unit, is_equal in _iter_repeated(reported, where, limit):
        if what in found:
            found[what].repeat_agreement.add(is_equal, *unit)
    return list(found.values())


def _is_own(reported: ReportedRun, judge: Judge | None, target: str) -> bool:
    """Return whether a model judges text that it wrote itself; understudies are ignored."""
    roles = WithJudging.of(reported.run.recipe).judging_roles() if judge is None else (judge.role,)
    models = reported.models
    written = target if target in models else WithRoles.of(reported.run.recipe).evaluated
    judging = {models[role].model for role in roles if role in models and not is_offline(models[role].model)}
    return any(role == written and each.model in judging for role, each in reported.role_bindings)


@lru_cache(maxsize=16)  # judgements of the same conversation are consecutive
def _normalize(text: str) -> tuple[str, frozenset[int]]:
    """Return a text in normal form, and the hashes of its sequences of words."""
    words = split_words(text)
    return " ".join(words), frozenset(hash_runs(tuple(words), _PASSAGE_WORDS))


def _iter_texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, str):
        yield value
    elif isinstance(value, Iterable):
        for each in value:
            yield from _iter_texts(each)


def _is_copied(
    judgement: Judgement, about: str, conversation: str, instructions: frozenset[int], prompts: PromptWords
) -> bool:
    """Return whether an explanation only repeats the prompt, the requested format or the scenario.

    A quotation of the judged text is not a copy, even if that text repeats the scenario.
    """
    words = tuple(split_words(judgement.explanation))
    text = " ".join(words)
    if len(words) < _MIN_WORDS or text in (quoted := _normalize(conversation))[0]:
        return False
    description = _normalize(about)
    if text in description[0] or any(form in text and len(words) - len(form.split()) < 2 for form in prompts.forms):
        return True
    covered: set[int] = set()
    for place, passage in enumerate(hash_runs(words, _PASSAGE_WORDS)):
        if (passage in instructions or passage in description[1]) and passage not in quoted[1]:
            covered |= {*range(place, place + _PASSAGE_WORDS)}
    return len(covered) / len(words) >= _MIN_COVERED_SHARE


@cache
def _load_statement_patterns() -> Mapping[str, Sequence[re.Pattern[str]]]:
    """Return the patterns, for all languages, by which explanations state a verdict or a score."""
    text = resources.files(__package__).joinpath("statements.yaml").read_text(encoding="utf-8")
    patterns = ((kind, each) for by_kind in yaml.safe_load(text).values() for kind in by_kind for each in by_kind[kind])
    return group_pairs((kind, re.compile(rf"(?<!\w)(?:{pattern})(?!\w)")) for kind, pattern in patterns)


def contradicts(judgement: Judgement) -> bool:
    """Return whether an explanation states verdicts or scores that all differ from the judge's own."""
    text = " ".join(judgement.explanation.lower().replace("’", "'").split())
    patterns = _load_statement_patterns()
    if isinstance(judgement.score, bool):
        says_no = any(pattern.search(text) for pattern in patterns["false"])
        says_yes = any(pattern.search(text) for pattern in patterns["true"])
        return says_no != says_yes and says_yes != judgement.score
    stated = {float(found[1]) for pattern in patterns["score"] for found in pattern.finditer(text)}
    return bool(stated) and judgement.score not in stated


def _get_unit(episode: Episode, reported: ReportedRun) -> tuple[Hashable, str]:
    """Return the person and the scenario of an episode, as `Tally.add` expects them."""
    unit = WithFacets.of(reported.run.recipe).unit_facet
    return episode.cluster(unit), episode.repeated or episode.scenario


def _iter_repeated(
    reported: ReportedRun, where: str | None, limit: int | None
) -> Iterator[tuple[str, tuple[Hashable, str], bool]]:
    """Yield, for each item that the judge scored several times, its subject, its unit, and whether scores are equal."""
    groups = judges_of(reported.run.judgement_sets())
    sets = next((group for group in groups if reported.judging in group), [])
    scores: dict[tuple[str, str, Subject], list[float]] = defaultdict(list)
    units: dict[str, tuple[Hashable, str]] = {}
    for each in sets if len(sets) > 1 else ():
        for episode in islice(select_episodes(reported.run, each.name, where), limit):
            units[episode.id] = _get_unit(episode, reported)
            for subject, judgement in index_by_subject(episode.outcome.judgements).items():
                if judgement.score is not None:
                    scores[episode.id, format_subject(judgement), subject].append(float(judgement.score))
    for (id_, what, _), values in scores.items():
        if len(values) > 1:
            yield what, units[id_], len({*values}) == 1


_COLUMNS = ("metric", "n", "most frequent", "most frequent %", "spread", "unparsed %", "copied %", "contradictory %")
_ORDER_COLUMN = "by order %"
_ORDER_NOTE = (
    "By order: comparisons in which the judge, reading both orders, chose the same position rather than the same reply."
)
_HEALTH_NOTE = (
    "Most frequent: the score that the judge gives most often, and its share. Spread: the standard deviation. Copied: "
    "explanations that only repeat the prompt or the scenario's text. Contradictory: explanations that state "
    "another verdict or score; found by phrases, so there may be more. Repeated: items judged several times that "
    "got equal scores. Itself: whether the judge's model wrote what it judges. The figures of a judge that fails a "
    "check are marked."
)
JUDGEMENT_INTERVALS_NOTE = (
    "In brackets: 95 % intervals by Wilson; judgements of one scenario (turns, trials) count as one, and n is divided "
    "by the design effect of the people or other units of the recipe, because they are not independent."
)


def health_table(health: Sequence[Health], several: bool, covers: str = COVERS_ALL) -> list[Table]:
    """Return the table of the judges' health; an empty list without judgements.

    Args:
        health: The health of each judge.
        several: Whether the judges are those of several runs.
        covers: A note on the conversations that the figures cover.
    """
    has_order = any(each.same_position.n for each in health)
    columns = [*(["run"] if several else []), *_COLUMNS, "repeated %", *([_ORDER_COLUMN] if has_order else [])]
    columns += ["itself", "failed"]
    table = Table(HEALTH_TABLE, "Health of the judges", columns)
    table.facets = {"metric": None, "failed": None, "itself": None}
    for each in health:
        tallies = [
            each.unparsed,
            each.copied,
            each.contradictory,
            each.repeat_agreement,
            *([each.same_position] if has_order else []),
        ]
        figures = [each.n, *each.most_frequent, each.spread, *(tally.estimate() for tally in tallies)]
        row = [each.display_name, *figures, "yes" if each.judges_itself else "no", "; ".join(each.failures()) or "none"]
        table.rows.append([each.label, *row] if several else row)
    table.notes = [covers, _HEALTH_NOTE, *([_ORDER_NOTE] if has_order else []), JUDGEMENT_INTERVALS_NOTE]
    return [table] if table.rows else []


def mark_doubtful(
    tables: Sequence[Table], health: Sequence[Health], several: bool, only: Collection[str] | None = None
) -> None:
    """Mark the figures of judges that fail a check, and add the reasons to their tables.

    A figure belongs to a judge if it is an estimate whose `is_constant` is not `None`, and its column or row names
    what the judge scores.

    Args:
        tables: The tables, which are modified.
        health: The health of the judges.
        several: Whether the tables are about several runs, so that a row that begins with a label belongs to that run.
        only: Only figures in these columns.
    """
    labels = {each.label for each in health} if several else set()
    for table in tables:
        reasons: dict[str, list[str]] = defaultdict(list)
        for each in health:
            failed = each.failures()
            why = "; ".join(each.doubts)
            marked = False
            for number, row in enumerate(table.rows if failed else ()):
                if row[0] in labels - {each.label}:
                    continue
                cells = [*row]
                for place, (column, cell) in enumerate(zip(table.columns, row, strict=True)):
                    if not isinstance(cell, Estimate) and isinstance(cell, int | float):  # no room for a mark
                        marked |= bool(why) and each.subject in table.judged.get(column, ())
                    if not isinstance(cell, Estimate) or cell.is_constant is None or column not in (only or [column]):
                        continue
                    is_alone = each.subject in row or table.judged.get(column) == [each.subject]
                    is_named = each.subject in table.judged.get(column, ())
                    if not table.judged:  # a column's name begins with the metric whose means it contains
                        is_named = column.replace("_", " ").startswith(
                            each.subject.partition(" (")[0].replace("_", " ")
                        )
                    if is_alone or is_named:
                        # A panel's score is not constant because one of its judges always gives the same score.
                        is_constant = cell.is_constant or (is_alone and _CONSTANT_SCORES in failed and not each.member)
                        cells[place] = replace(cell, is_constant=is_constant, is_doubtful=cell.is_doubtful or bool(why))
                        marked |= bool(why)
                table.rows[number] = cells
            if marked:
                reasons[why].append(f"{each.display_name}{f', {each.label}' if several else ''}")
        for why, whose in reasons.items():
            table.notes.append(f"{DOUBTFUL_MARK} The judge of {'; '.join(whose)} fails a check: {why}.")
