"""The runs of a report with their labels, the notes on what limits their figures, and what differs between them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialoom.graphs import Estimate, Recipe, Table, WithJudging, WithRoles
from dialoom.graphs.outcome import USER, index_by_subject
from dialoom.graphs.recipe import Review
from dialoom.roles import ModelBinding
from dialoom.runs.configuration.trust import file_references
from dialoom.runs.reading.scenarios import Where, select_episodes
from dialoom.runs.store import JudgementSet, RunFile

OFFLINE_NOTE = "Made with an offline model ({roles}), a scripted stand-in: not evidence about any model."
"""The note on figures of roles that are played by an offline model."""
OFFLINE_COLUMN = "offline"
"""The column of tables and data frames with the roles played by an offline model."""

_MAX_LISTED = 10
"""Maximum number of changed outcomes that are listed; the others are only counted."""


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run and a set of its judgements (`None` if it has none).

    Attributes:
        label: The model under evaluation if it distinguishes the runs; otherwise the models that differ, with their
            roles; otherwise the file.
    """

    label: str
    run: RunFile
    judging: JudgementSet | None

    @property
    def models(self) -> dict[str, ModelBinding]:
        """The models by role, including the judge of the set."""
        return {**self.run.config.speaking_models, **(self.judging.models if self.judging else {})}

    @property
    def role_bindings(self) -> list[tuple[str, ModelBinding]]:
        """Each role with its model, including the additional models of the user."""
        return self.run.config.role_bindings(self.judging.models if self.judging else None)

    @property
    def set_name(self) -> str | None:
        """The set's name, in the form that the store's readers expect."""
        return self.judging.name if self.judging else None

    def count_unjudged(self, where: str | None) -> tuple[int, int]:
        """Return how many of the finished scenarios that match an expression the set lacks, and how many match.

        If the set lacks none, both numbers are 0.
        """
        lacking = frozenset[str]() if self.judging is None else self.run.unjudged(self.judging)
        if not lacking:
            return 0, 0
        if where is None:
            return len(lacking), len(self.run.positions("done"))
        found = [each.id in lacking for each in select_episodes(self.run, self.set_name, where) if each.state == "done"]
        return sum(found), len(found)

    def lower_is_better(self, recipe: Recipe) -> Set[str]:
        """Return the metrics of the set of which low scores are good, given the run's recipe."""
        is_review = self.judging is not None and self.judging.is_review
        return WithJudging.of(Review(recipe) if is_review else recipe).lower_is_better


def label_runs(runs: Sequence[RunFile], recipe: Recipe, judging: str | None = None) -> list[ReportedRun]:
    """Return the runs with their labels, each with its judgement set of the given name, by default its oldest set.

    Raises:
        StoreError: If a run has no such set.
    """
    sets = [run.judgement_set(judging) for run in runs]
    models = [
        {**run.config.model_names, **(set_.model_names if set_ else {})} for run, set_ in zip(runs, sets, strict=True)
    ]
    candidates = [
        [played.get(WithRoles.of(recipe).evaluated or "", "") for played in models],
        _differing_models(models),
        [run.path.name for run in runs],
        [str(run.path) for run in runs],
    ]
    labels = next(labels for labels in candidates if all(labels) and len(set(labels)) == len(runs))
    return [ReportedRun(*each) for each in zip(labels, runs, sets, strict=True)]


def collect_notes(reported: Sequence[ReportedRun], where: str | None) -> list[str | None]:
    """Return the notes below all tables and charts: the filter, changes made by people, offline models.

    Notes on the runs as a whole appear once in a report (see `collect_run_notes`).
    """
    return [*collect_content_notes(reported, where), offline_note(reported)]


def collect_content_notes(reported: Sequence[ReportedRun], where: str | None) -> list[str | None]:
    """Return the notes of `collect_notes` without that on offline models, for tables with a column of offline roles."""
    only = None if where is None else f"Only scenarios that match: {where}"
    return [
        only,
        *(unjudged_note(each, where, len(reported) > 1) for each in reported),
        *(panel_note(each, where, len(reported) > 1) for each in reported),
        changed_note(reported, where),
        self_judging_note(reported),
    ]


def collect_run_notes(reported: Sequence[ReportedRun]) -> list[str]:
    """Return the notes on the runs as a whole: prompts, changed code, incomplete replies, parameters, replays."""
    runs = {each.run.path: each.run for each in reported}
    several = len(runs) > 1

    def joined(texts: Mapping[Path, str]) -> str:
        return "; ".join(f"{text}{f' ({path})' if several else ''}" for path, text in texts.items() if text)

    notes = [prompts_note(reported)]
    if changed := joined({path: ", ".join(run.changed_code) for path, run in runs.items()}):
        notes.append(
            f"Code had changed when the run was continued: {changed}. Figures here combine conversations played with "
            "different versions. For figures of a single version, start a new run."
        )
    if forgotten := joined({path: _truncate_list(run.forgotten, ", ", " and") for path, run in runs.items()}):
        notes.append(
            "The run stopped before these conversations, so a stateful player without snapshots may have lost what it "
            f"knew of the person's earlier ones: {forgotten}."
        )
    broken_off, changes = dict[str, str](), dict[str, str]()
    for each in reported:
        broken_off[each.label] = "; ".join(
            f"{role} " + ", ".join(f"{count:,} {what}" for what, count in usage.broken_off.items())
            for role, usage in each.run.status().by_role.items()
            if usage.broken_off
        )
        changes[each.label] = "; ".join(
            f"{role}: " + "; ".join(f"{text} in {count:,} call{'s' if count > 1 else ''}" for text, count in of.items())
            for role, of in each.run.changes().items()
        )
    for what, by_label in (("Incomplete replies", broken_off), ("Not sent as configured", changes)):
        if texts := [f"{label}: {text}" if several else text for label, text in by_label.items() if text]:
            notes.append(f"{what}: {'. '.join(texts)}")
    for path, run in runs.items():
        if again := played_again_note(run):
            notes.append(f"{f'{path.name}: ' if several else ''}{again}.")
    return [*filter(None, notes)]


def played_again_note(run: RunFile) -> str:
    """Return a note on how many of a run's conversations were played again with new replies; empty if none were."""
    times = [*run.samples().values()]
    text = f"Played again, with a new opening or in a retry: {sum(map(bool, times)):,} of {len(times):,}"
    return f"{text} {run.config.units}" if any(times) else ""


def unjudged_note(reported: ReportedRun, where: str | None, is_labelled: bool) -> str | None:
    """Return a note on finished scenarios that the set lacks; `None` if it has all."""
    count, total = reported.count_unjudged(where)
    if not count or reported.judging is None:
        return None
    name = "all judges of the panel" if reported.judging.members else repr(reported.judging.name)
    label = f"{reported.label}: " if is_labelled else ""
    return f"{label}Not judged by {name}: {count:,} of {total:,} finished {reported.run.config.units}."


def panel_note(reported: ReportedRun, where: str | None, is_labelled: bool) -> str | None:
    """Return a note on a panel's scores that some of its judges did not give; `None` if all judges gave all of them."""
    members = () if reported.judging is None else reported.judging.members
    sets = zip(*(reported.run.episodes(name) for name in members), strict=True)
    chosen = (
        {each.id for each in select_episodes(reported.run, reported.set_name, where)} if members and where else None
    )
    checks = WithJudging.of(reported.run.recipe).check_metrics
    scored, by_fewer = Counter[str](), Counter[str]()
    for episodes in sets:
        if chosen is not None and episodes[0].id not in chosen:
            continue
        judgements = (pair for episode in episodes for pair in index_by_subject(episode.outcome.judgements).items())
        given = Counter(subject for subject, each in judgements if each.score is not None and each.metric not in checks)
        for (metric, target, *_), count in given.items():
            scored[f"{metric} ({target})"] += 1
            by_fewer[f"{metric} ({target})"] += count < len(members)
    texts = [f"{what} {by_fewer[what]:,} of {count:,}" for what, count in scored.items() if by_fewer[what]]
    label = f"{reported.label}: " if is_labelled else ""
    return f"{label}Scored by fewer than all {len(members)} judges of the panel: {', '.join(texts)}." if texts else None


def prompts_note(reported: Sequence[ReportedRun]) -> str | None:
    """Return a note on custom sets of prompts that the runs use; `None` if all use the standard prompts."""
    named = {each.label: ", ".join(Path(one).name for one in each.run.config.prompts) for each in reported}
    if not any(named.values()):
        return None
    texts = [f"{label}: {names or 'standard'}" for label, names in named.items()]
    return f"Prompts: {'; '.join(texts) if len(set(named.values())) > 1 else next(iter(named.values()))}."


def changed_note(reported: Sequence[ReportedRun], where: str | None = None) -> str | None:
    """Return a note on outcomes that a person changed in the step debugger; `None` if there are none."""
    named: dict[tuple[Path, str], str] = {}
    several = len({each.run.path for each in reported}) > 1
    for each in reported:
        keeps = None if where is None else Where.parse(where, each.run).matches
        for id_, branch in each.run.promoted_branches():
            episode = each.run.episode(each.run.resolve(id_), each.set_name)
            if episode is not None and (keeps is None or keeps(episode)):
                named[each.run.path, id_] = f"{id_} ({branch.summary()}{f', {each.label}' if several else ''})"
    if not named:
        return None
    what = "1 outcome was" if len(named) == 1 else f"{len(named):,} outcomes were"
    return (
        f"{what} changed by a person in the step debugger and included here: "
        f"{_truncate_list([*named.values()], '; ', '; and')}. To exclude them, select scenarios where 'not changed'."
    )


def _truncate_list(texts: Sequence[str], separator: str, conjunction: str) -> str:
    """Return the first texts, and the number of the others."""
    rest = f"{conjunction} {len(texts) - _MAX_LISTED:,} more" if len(texts) > _MAX_LISTED else ""
    return f"{separator.join(texts[:_MAX_LISTED])}{rest}"


def self_judging_note(reported: Sequence[ReportedRun]) -> str | None:
    """Return a note on models that judge their own replies; `None` if there are none."""
    found: dict[str, None] = {}
    for each in reported:
        recipe, models = each.run.recipe, each.models
        evaluated = models.get(WithRoles.of(recipe).evaluated or "")
        judges = {models[role].model for role in WithJudging.of(recipe).judging_roles() if role in models}
        if evaluated is not None and evaluated.model in judges and not is_offline(evaluated.model):
            found[evaluated.model] = None
    text = f"{', '.join(found)} judges text that it wrote itself, and models are known to favour their own text."
    return f"{text} A second judge of another family shows by how much." if found else None


def offline_note(reported: Sequence[ReportedRun]) -> str | None:
    """Return a note that figures of roles played by an offline model are not evidence; `None` without such roles.

    Several runs with the same label are listed as one.
    """
    played = offline_roles_by_label(reported)
    roles = {*played.values()}
    named = "; ".join(f"{label}: {roles}" for label, roles in played.items() if roles)
    return OFFLINE_NOTE.format(roles=named if len(roles) > 1 else roles.pop()) if any(roles) else None


def offline_roles_by_label(reported: Sequence[ReportedRun]) -> dict[str, str]:
    """Return the roles played by an offline model, by the run's label; an empty string if there are none."""
    return {
        label: offline_roles(one for each in reported if each.label == label for one in each.role_bindings)
        for label in dict.fromkeys(each.label for each in reported)
    }


def offline_roles(players: Iterable[tuple[str, ModelBinding]]) -> str:
    """Return the roles played by an offline model, separated by commas; an empty string if there are none."""
    return ", ".join(dict.fromkeys(role for role, who in players if is_offline(who.model)))


def is_offline(model: str) -> bool:
    """Return whether a model is an understudy, whose scores are not evidence."""
    return model.startswith("offline/")


def add_offline_column(
    tables: Sequence[Table], reported: Sequence[ReportedRun], *, with_first: bool = False
) -> list[Table]:
    """Add a column of offline roles to each table of scores that they affect, and a note to the other tables.

    Args:
        tables: Tables of these runs, which are modified. The rows of several runs begin with a run's label.
        reported: The runs.
        with_first: Whether each row compares a run with the first one.
    """
    played, note = offline_roles_by_label(reported), offline_note(reported)
    all_roles = offline_roles(one for each in reported for one in each.role_bindings)
    if with_first:
        first_bindings = reported[0].role_bindings
        played = {
            label: offline_roles([*first_bindings, *each.role_bindings]) for each in reported for label in [each.label]
        }
    for table in tables:
        if not any(isinstance(cell, Estimate) for row in table.rows for cell in row):
            table.notes += [note] if note and note not in table.notes else []
        elif all_roles:
            table.columns = [*table.columns, OFFLINE_COLUMN]
            table.facets = {**table.facets, OFFLINE_COLUMN: None}
            table.rows = [[*row, played.get(str(row[0]), all_roles) or None] for row in table.rows]
    return [*tables]


def find_user_differences(first: ReportedRun, other: ReportedRun, recipe: Recipe) -> list[str]:
    """Return what differs between two runs' simulated users: any of `user model`, `user prompt`, `persona source`.

    Nothing differs in a recipe without the role `user`, or with `user` as its evaluated role. The persona source does
    not differ if the runs have a scenario in common, as scenarios are then paired by their content, which contains the
    persona.
    """
    if USER not in recipe.roles or WithRoles.of(recipe).evaluated == USER:
        return []
    found = []
    if _user_models(first) != _user_models(other):
        found.append("user model")
    prompts = [
        {prompt.id: prompt.hash for prompt in each.run.prompts.values() if prompt.front.role == USER}
        for each in (first, other)
    ]
    if prompts[0] != prompts[1]:
        found.append("user prompt")
    if _persona_sources(first.run) != _persona_sources(other.run):
        known = {id_ for _, id_, _, _ in first.run.listing()}
        if not any(id_ in known for _, id_, _, _ in other.run.listing()):
            found.append("persona source")
    return found


def different_users_warning(label: str, first: str, differing: Sequence[str]) -> str:
    """Return a warning that the differences between two runs are not computed because their users differ."""
    return (
        f"not computed for {label}, whose simulated users differ from those of {first} ({', '.join(differing)}): a "
        "difference might come from the users. Allow different users to compute it anyway."
    )


def title_with_user_differences(title: str, differing: Iterable[str]) -> str:
    """Return a table's title, extended by the differences between the users of the compared runs."""
    differences = ", ".join(dict.fromkeys(differing))
    return f"{title} (with different users: {differences})" if differences else title


def _user_models(each: ReportedRun) -> list[dict[str, Any]]:
    """Return the models of the user with the settings that affect replies, without addresses."""
    excluded = {"api_base", "session", "structured"}
    return [cast[USER].model_dump(exclude=excluded) for cast in each.run.config.players if USER in cast]


def _persona_sources(run: RunFile) -> list[Any]:
    """Return the sources of a run's people: files in the options, the source of the users' traits, a study's people."""
    options = run.recipe.options_type.model_validate(run.config.options)
    study = run.config.study or {}
    traits = run.config.options.get("traits_from") or study.get("user", {}).get("traits")
    return [sorted(each.spec for each in file_references(options)), traits, study.get("people")]


def difference_note(reported: Sequence[ReportedRun], recipe: Recipe) -> str | None:
    """Return a note on differences between the runs besides the model under evaluation; `None` if there are none.

    The note covers models and their sampling, options, prompts and scenarios, but not the seed, whose effect is visible
    in the scenarios.
    """
    models = [
        {role: binding for role, binding in each.models.items() if role != WithRoles.of(recipe).evaluated}
        for each in reported
    ]
    found = [
        ("the models of", differing_keys(models)),
        ("the options", differing_keys([each.run.config.options for each in reported])),
        ("the prompts", differing_keys([select_prompt_hashes(each, each.models) for each in reported])),
    ]
    parts = [f"{what} {', '.join(keys)}" for what, keys in found if keys]
    if len({plan_hash(each.run) for each in reported}) > 1:
        parts.append("the scenarios")
    return f"The runs also differ in {'; '.join(parts)}." if parts else None


def _differing_models(models: Sequence[Mapping[str, str]]) -> list[str]:
    """Return each run's models for the roles in which the runs' models differ, with the names of the roles."""
    roles = differing_keys(models)
    return [", ".join(f"{role} {played.get(role, 'none')}" for role in roles) for played in models]


def differing_keys(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the keys whose values are not the same in all mappings."""
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    return [key for key in keys if any(each.get(key) != mappings[0].get(key) for each in mappings)]


def select_prompt_hashes(each: ReportedRun, roles: Container[str]) -> dict[str, str]:
    """Return hashes of the prompts of some roles of a run, and of those behind its set of judgements."""
    own = {prompt.id: prompt.hash for prompt in each.run.prompts.values() if prompt.front.role in roles}
    return {**own, **(each.judging.prompts if each.judging else {})}


def plan_hash(run: RunFile) -> str:
    """Return a hash of a run's scenarios that does not depend on their order."""
    ids = (id_.encode() for _, id_, _, _ in run.listing())
    total = sum(int.from_bytes(hashlib.blake2b(id_, digest_size=16).digest()) for id_ in ids)
    return f"{total % 2**64:016x}"
