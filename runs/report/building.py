"""Building a report of a run or a comparison of several; tables of faults."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from dialoom.graphs import Chart, Episode, Estimate, Recipe, Table, Tally, WithFacets, WithReport
from dialoom.graphs.gate import format_reduced_coverage
from dialoom.graphs.outcome import USER, USER_MODEL
from dialoom.graphs.recipe import REVIEWED_FAULTS
from dialoom.runs.errors import RunError
from dialoom.runs.reading.scenarios import select_episodes
from dialoom.runs.store import JudgementSet, RunFile, judges_of, panel_of

from .differences import difference_tables, length_table
from .health import COVERS_ALL, Health, assess_health, health_table, mark_doubtful
from .judges import comparison_table, file_safe_name, judges_tables
from .labelled_runs import (
    ReportedRun,
    add_offline_column,
    collect_content_notes,
    collect_notes,
    difference_note,
    label_runs,
)
from .trials import trials_tables, warn_about_narrow_intervals
from .users import user_tables

FAULTS = "faults"
"""The name of the table of faults, whose columns `role` and `fault` state the role and the kind of fault."""
_SOUND_USER = f"faults.{USER} == 0"


@dataclass(slots=True)
class RunFaults:
    """The faults in the dialogues of one run.

    Attributes:
        reported: The run with a set of judgements.
        failed: Number of failed scenarios.
        scenarios: Number of all finished scenarios.
        faults: Number of faults, by role, kind and the role's model.
        dialogues: Number of dialogues with such a fault, by role, kind and the role's model.
        gated_by_user: Number of dialogues that the gate has checked, by the model of the simulated user.
        checked: Number of dialogues that the gate has checked, by the roles with faults, the person and, if it has
            trials, the scenario.
        languages: Number of dialogues that the gate has checked, by language as an ISO 639 code.
    """

    reported: ReportedRun
    failed: int = 0
    scenarios: int = 0
    faults: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    dialogues: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    gated_by_user: Counter[str] = field(default_factory=Counter)
    checked: Counter[tuple[frozenset[str], Hashable, str | None]] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, reported: ReportedRun, where: str | None) -> RunFaults:
        """Count the faults of the dialogues matching an expression."""
        counted, unit = cls(reported), WithFacets.of(reported.run.recipe).unit_facet
        for episode in select_episodes(reported.run, reported.set_name, where):
            faults = episode.outcome.faults or ()
            found = [(fault.role, fault.kind, counted._find_model(fault.role, episode)) for fault in faults]
            counted.failed += episode.state == "failed"
            counted.scenarios += 1
            counted.languages.update(episode.outcome.languages)
            counted.faults.update(found)
            counted.dialogues.update(set(found))
            if episode.outcome.faults is not None:
                roles = frozenset(fault.role for fault in faults)
                counted.checked[roles, episode.unit(unit), episode.repeated] += 1
                counted.gated_by_user[counted._find_model(USER, episode)] += 1
        return counted

    @property
    def checked_count(self) -> int:
        """The number of dialogues that the gate has checked."""
        return self.checked.total()

    @property
    def faulty_dialogues(self) -> Counter[str]:
        """The number of dialogues with at least one fault of a role, by role."""
        return Counter(role for roles, _, _ in self.checked.elements() for role in roles)

    def faulty_share(self, role: str) -> Estimate | None:
        """Return the share of checked dialogues with a fault of a role; `None` if no dialogue was checked."""
        tally = Tally()
        for roles, person, scenario in self.checked.elements():
            tally.add(role in roles, person, scenario)
        return tally.estimate()

    def rows(self, where: str | None) -> Iterator[list[Any]]:
        """Yield rows of role, kind, model, faults, dialogues and their share; faults found by reviewers come last.

        A share is one of all dialogues, or, for a simulated user, of the dialogues with this model.
        """
        for (who, kind, model), count in sorted(self.faults.items()):
            dialogues = self.dialogues[who, kind, model]
            yield [
                who,
                kind,
                model,
                count,
                dialogues,
                dialogues / (self.gated_by_user[model] if who == USER else self.checked_count),
            ]
        for review in self._find_reviews():
            fault_count, judged_count = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
            for episode in select_episodes(self.reported.run, review.name, where):
                for each in episode.outcome.judgements:
                    key = each.target, each.metric, self._find_model(each.target, episode)
                    fault_count[key] += each.score is True
                    judged_count[key] += each.score is not None
            for key, count in sorted(fault_count.items()):
                if count:
                    yield [*key, count, count, count / judged_count[key]]

    def notes(self, label: str) -> Iterator[str]:
        """Yield notes on how many dialogues were checked, by which reviewers, and how many lines were rejected."""
        faults = [f"{count:,} with faults of the {who}" for who, count in sorted(self.faulty_dialogues.items())] or [
            "none with faults"
        ]
        rejected = self.reported.run.rejected_lines()
        again = f"; lines of the {USER} that were rejected and requested again: {rejected:,}" if rejected else ""
        covered = format_reduced_coverage(self.languages, self.checked_count)
        checked = f"{label}Dialogues checked by the gate: {self.checked_count:,}"
        yield f"{checked}, of which {', '.join(faults)}{again}. {covered}"
        for review in self._find_reviews():
            models = ", ".join(review.model_names.values())
            stand_in = " (a scripted stand-in, whose reviews are not evidence)" if "offline/" in models else ""
            yield f"{label}{models}{stand_in} reviewed: {', '.join(REVIEWED_FAULTS)}."

    def _find_reviews(self) -> list[JudgementSet]:
        return [each for each in self.reported.run.judgement_sets() if each.is_review]

    def _find_model(self, role: str, episode: Episode) -> str:
        if role == USER and USER_MODEL in episode.facets:
            return str(episode.facets[USER_MODEL])
        models = self.reported.models
        return models[role].model if role in models else ""


def faults_table(found: Sequence[RunFaults], where: str | None) -> list[Table]:
    """Return the table of faults by role and kind, or an empty list if the gate has checked no dialogue."""
    several = len(found) > 1
    columns = [*(["run"] if several else []), "role", "fault", "model", "faults", "dialogues", "of all %"]
    table = Table(FAULTS, "Faults by role and rule", columns)
    for each in found:
        label = each.reported.label
        table.rows += [[label, *row] if several else row for row in each.rows(where)]
        table.notes += each.notes(f"{label}: " if several else "")
    return [table] if any(each.checked_count for each in found) else []


def add_failed_note(tables: Sequence[Table], found: Sequence[RunFaults]) -> None:
    """Add a note on the numbers of failed scenarios, which have no scores, to the first table of estimates.

    If no table has estimates, for example because all scenarios failed, the note is added to the first table.
    """
    counts = [
        f"{f'{each.reported.label}: ' if len(found) > 1 else ''}{each.failed:,} of {each.scenarios:,} "
        f"{each.reported.run.config.units}"
        for each in found
        if each.failed
    ]
    has_scores = (each for each in tables if any(isinstance(cell, Estimate) for row in each.rows for cell in row))
    if counts and (table := next(has_scores, next(iter(tables), None))) is not None:
        table.notes.insert(0, f"Failed: {'; '.join(counts)}, which are excluded from all means and shares.")


_COVERS_FILTERED = "Covers the judged conversations that match the filter."
_TABLES_OF_DIALOGUES = ("dialogues", "faults", "variety")

TableOrChart = TypeVar("TableOrChart", Table, Chart)


def build_tables(sets: Sequence[ReportedRun], recipe: Recipe, where: str | None, *, has_agreement: bool) -> list[Table]:
    """Return all tables of a run.

    Args:
        sets: The run with each set of judgements to report; several sets are compared.
        recipe: Its recipe.
        where: Only scenarios matching this expression.
        has_agreement: Whether there are tables of the agreement between all judges of the run.
    """
    run = sets[0].run
    tables: list[Table] = []
    health = {each.set_name: assess_health(each, where) for each in sets}
    notes = {each.set_name: collect_content_notes([each], where) for each in sets}
    for number, reported in enumerate(sets):
        for table in _build_recipe_tables([reported], recipe, where, health[reported.set_name]):
            if number and table.name in _TABLES_OF_DIALOGUES:
                continue  # these tables describe the dialogues, which are the same for all sets
            if len(sets) > 1 and table.name not in _TABLES_OF_DIALOGUES:
                table.title += f" (judgements {reported.set_name!r})"
                table.name += f"-{file_safe_name(reported.set_name or '')}"
            tables += _add_notes(add_offline_column([table], [reported]), *notes[reported.set_name])
    members = [each.judging for each in sets if each.judging and not each.judging.members]
    for left, right in itertools.combinations(members, 2):
        both = [each for each in sets if each.judging in (left, right)]
        compared = [comparison_table(run, left, right, where)]
        for name in (left.name, right.name):
            named = [replace(each, label=name) for each in health[name]]
            mark_doubtful(compared, named, several=True, only=[f"mean {name}"])
        add_offline_column(compared, both)
        tables += _add_notes(compared, *(note for each in both for note in notes[each.set_name]))
    judge_tables = judges_tables(run, where) if has_agreement else []
    length_tables = length_table(sets, [each.set_name or "" for each in sets], where)
    warn_about_narrow_intervals(length_tables, sets)
    judge_tables += length_tables
    return tables + _add_notes(add_offline_column(judge_tables, sets), *itertools.chain(*notes.values()))


def compare_runs(
    reported: Sequence[ReportedRun], recipe: Recipe, where: str | None, allow_different_users: bool
) -> list[Table]:
    """Return the tables of several runs side by side.

    Args:
        reported: The runs.
        recipe: Their recipe.
        where: Only scenarios matching this expression.
        allow_different_users: Whether differences are computed between runs whose simulated users differ.
    """
    health = [one for each in reported for one in assess_health(each, where)]
    tables = add_offline_column(_build_recipe_tables(reported, recipe, where, health), reported)
    differences = difference_tables(reported, recipe, where, allow_different_users)
    first_health = [one for one in health if one.label == reported[0].label]
    mark_doubtful(differences, [one for one in health if one not in first_health], several=True)
    mark_doubtful(differences, first_health, several=True)  # each row compares a run with the first
    add_offline_column(differences, reported, with_first=True)
    warned = dict.fromkeys(warning for table in tables for warning in table.warnings)
    for table in differences:
        table.warnings += warned
    length_tables = length_table(reported, [each.label for each in reported], where)
    warn_about_narrow_intervals(length_tables, reported)
    tables += [*differences, *add_offline_column(length_tables, reported)]
    return _add_notes(tables, difference_note(reported, recipe), *collect_content_notes(reported, where))


def build_charts(reported: Sequence[ReportedRun], recipe: Recipe, where: str | None, several: bool) -> list[Chart]:
    """Return the charts of several runs, or of one run with one or several sets of judgements."""
    if not several and len(reported) > 1:
        reported = [replace(each, label=f"{each.label}, judgements {each.set_name!r}") for each in reported]
    difference = difference_note(reported, recipe) if several else None
    return _add_notes(
        WithReport.of(recipe).charts(_episodes_by_label(reported, where)), difference, *collect_notes(reported, where)
    )


def _build_recipe_tables(
    reported: Sequence[ReportedRun], recipe: Recipe, where: str | None, health: Sequence[Health]
) -> list[Table]:
    """Return the recipe's tables, the table of faults, and the recipe's tables of dialogues without user faults."""
    faults = [RunFaults.read(each, where) for each in reported]
    tables = WithReport.of(recipe).report_tables(_episodes_by_label(reported, where))
    add_failed_note(tables, faults)
    sound_tables: list[Table] = []
    if 0 < sum(each.faulty_dialogues[USER] for each in faults) < sum(each.checked_count for each in faults):
        sound = _SOUND_USER if where is None else f"({where}) and {_SOUND_USER}"
        episodes = _episodes_by_label(reported, sound)
        sound_tables = [each for each in WithReport.of(recipe).report_tables(episodes) if each.name != "dialogues"]
    for table in sound_tables:
        table.where = f"({table.where}) and {_SOUND_USER}" if table.where else _SOUND_USER
        table.name, table.title = f"{table.name}-sound", f"{table.title} (only dialogues without faults of the user)"
    warn_about_narrow_intervals([*tables, *sound_tables], reported)
    user_model_tables, trial_tables = user_tables(reported, recipe, where), trials_tables(reported, where)
    several = len(reported) > 1
    mark_doubtful([*tables, *user_model_tables, *trial_tables, *sound_tables], health, several)
    judge_tables = health_table(health, several, COVERS_ALL if where is None else _COVERS_FILTERED)
    return [*tables, *user_model_tables, *judge_tables, *trial_tables, *faults_table(faults, where), *sound_tables]


def select_judgement_sets(run: RunFile, recipe: Recipe, judging: str | None) -> list[ReportedRun]:
    """Return the given set of a run, or one set per judge, followed by the panel if there are several judges.

    Raises:
        StoreError: If there is no such set.
    """
    known = run.judgement_sets() if judging is None else []
    sets = [*(group[0] for group in judges_of(known)), *filter(None, [panel_of(known)])]
    names: list[str | None] = [each.name for each in sets] or [judging]
    return [each for name in names for each in label_runs([run], recipe, name)]


def common_recipe(runs: Sequence[RunFile]) -> Recipe:
    """Return the recipe of several runs.

    Raises:
        RunError: If the runs are not of the same recipe, or a run is given twice.
    """
    paths = [run.path.resolve() for run in runs]
    if duplicates := [run.path for run, path in zip(runs, paths, strict=True) if paths.count(path) > 1]:
        raise RunError(f"{duplicates[0]} is given twice; a report compares different runs")
    recipes = [run.recipe for run in runs]
    if len({recipe.name for recipe in recipes}) > 1:
        found = ", ".join(f"{run.path} of {recipe.name!r}" for run, recipe in zip(runs, recipes, strict=True))
        raise RunError(f"a report compares runs of the same recipe, but these have different ones: {found}")
    return recipes[0]


def _episodes_by_label(reported: Sequence[ReportedRun], where: str | None) -> list[tuple[str, Iterable[Episode]]]:
    return [(each.label, select_episodes(each.run, each.set_name, where)) for each in reported]


def _add_notes(displays: list[TableOrChart], *notes: str | None) -> list[TableOrChart]:
    """Add to each table or chart the notes that it does not have yet."""
    for each in displays:
        each.notes += [note for note in dict.fromkeys(notes) if note and note not in each.notes]
    return displays
