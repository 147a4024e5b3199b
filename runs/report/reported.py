"""The runs of a report, each with one set of its judgements and a distinguishing label."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialoom.graphs import Estimate, Recipe, Table
from dialoom.graphs.capabilities import WithJudging, WithRoles
from dialoom.roles import ModelBinding
from dialoom.runs.reading.scenarios import Where
from dialoom.runs.store import JudgementSet, RunFile

_OFFLINE = "Made with an offline model ({roles}): a scripted stand-in, no evidence about any model."
OFFLINE = "offline"
"""The column of tables and data frames with the roles played by an offline model."""

_MOST_LISTED = 10
"""Maximum number of changed outcomes that are listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run and a set of its judgements (`None` if it has none).

    Attributes:
        label: The model under evaluation, if it distinguishes the runs; else the models that differ, or the file.
    """

    label: str
    run: RunFile
    judging: JudgementSet | None

    @property
    def models(self) -> dict[str, ModelBinding]:
        """The models by role; the judge is that of the set."""
        return {**self.run.config.models, **(self.judging.models if self.judging else {})}

    @property
    def set_name(self) -> str | None:
        """The set's name, as the store's readers expect it."""
        return self.judging.name if self.judging else None


def reported_runs(runs: Sequence[RunFile], recipe: Recipe, judging: str | None = None) -> list[ReportedRun]:
    """Return each run with the set of that name (by default its oldest) and its label.

    Raises:
        StoreError: If a run has no such set.
    """
    chosen = [run.judgement_set(judging) for run in runs]
    models = [
        {**run.config.model_names, **(set_.model_names if set_ else {})} for run, set_ in zip(runs, chosen, strict=True)
    ]
    candidates = [
        [played.get(WithRoles.of(recipe).evaluated or "", "") for played in models],
        _differing(models),
        [run.path.name for run in runs],
        [str(run.path) for run in runs],
    ]
    labels = next(labels for labels in candidates if all(labels) and len(set(labels)) == len(runs))
    return [ReportedRun(*each) for each in zip(labels, runs, chosen, strict=True)]


def notes_on(reported: Sequence[ReportedRun], where: str | None) -> list[str | None]:
    """Return the notes below all tables and charts: the filter, changes made by people, offline models."""
    return [*notes_on_content(reported, where), offline_note(reported)]


def notes_on_content(reported: Sequence[ReportedRun], where: str | None) -> list[str | None]:
    """Return these notes without the one on offline models: tables of scores have a column for them."""
    only = None if where is None else f"Only scenarios of which this holds: {where}"
    return [only, changed_note(reported, where), broken_off_note(reported), self_judging_note(reported)]


def changed_note(reported: Sequence[ReportedRun], where: str | None = None) -> str | None:
    """Return a note on outcomes that a person changed in the step debugger; `None` if none is counted."""
    named: dict[tuple[Path, str], str] = {}
    several = len({each.run.path for each in reported}) > 1
    for each in reported:
        keeps = None if where is None else Where.parse(where, each.run).keeps
        for id_, branch in each.run.promoted_branches():
            episode = each.run.episode(each.run.resolve(id_), each.set_name)
            if episode is not None and (keeps is None or keeps(episode)):
                named[each.run.path, id_] = f"{id_} ({branch.summary()}{f', {each.label}' if several else ''})"
    if not named:
        return None
    rest = f"; and {len(named) - _MOST_LISTED:,} more" if len(named) > _MOST_LISTED else ""
    what = "1 outcome was" if len(named) == 1 else f"{len(named):,} outcomes were"
    some = "; ".join([*named.values()][:_MOST_LISTED])
    return (
        f"{what} changed by a person in the step debugger and counted here: {some}{rest}. "
        "To leave them out: where 'not changed'."
    )


def broken_off_note(reported: Sequence[ReportedRun]) -> str | None:
    """Return a note on the number of incomplete replies in whole runs, by role and reason; `None` if there are none."""
    named = {}
    for each in reported:
        by_role = each.run.status().by_role.items()
        cut_off = [f"{role} {_counts_text(usage.broken_off)}" for role, usage in by_role if usage.broken_off]
        if cut_off:
            named[each.label] = "; ".join(cut_off)
    if not named:
        return None
    several = len({each.run.path for each in reported}) > 1
    return "Replies that broke off: " + ". ".join(
        f"{who}: {cut_off}" if several else cut_off for who, cut_off in named.items()
    )


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


def self_judging_note(reported: Sequence[ReportedRun]) -> str | None:
    """Return a note on models that judge their own replies; `None` if there are none."""
    found: dict[str, None] = {}
    for each in reported:
        recipe, models = each.run.recipe, {role: binding.model for role, binding in each.models.items()}
        judges = {models[role] for role in WithJudging.of(recipe).judging_roles() if role in models}
        for own in judges & {models.get(WithRoles.of(recipe).evaluated or "", "")}:
            if not is_offline(own):
                found[own] = None
    if not found:
        return None
    return (
        f"{', '.join(found)} judges its own words: models are known to favour what they wrote themselves. "
        "A second judge of another family shows by how much."
    )


def offline_note(reported: Sequence[ReportedRun]) -> str | None:
    """Return a note on roles played by an offline model, whose figures are no evidence; `None` if there are none.

    Several runs with the same label are listed as one.
    """
    played = offline_by_label(reported)
    if not any(played.values()):
        return None
    if len(set(played.values())) == 1:
        return _OFFLINE.format(roles=next(iter(played.values())))
    named = "; ".join(f"{label}: {roles}" for label, roles in played.items() if roles)
    return _OFFLINE.format(roles=named)


def offline_by_label(reported: Sequence[ReportedRun]) -> dict[str, str]:
    """Return the roles played by an offline model, by the run's label; an empty text if there are none."""
    models: dict[str, dict[str, ModelBinding]] = {}
    for each in reported:
        offline = {role: who for role, who in each.models.items() if is_offline(who.model)}
        models[each.label] = {**models.get(each.label, {}), **offline}
    return {label: offline_roles(found) for label, found in models.items()}


def _joined_roles(roles: Iterable[str]) -> str:
    """Return the distinct roles of several comma-separated texts."""
    return ", ".join(dict.fromkeys(role for text in roles if text for role in text.split(", ")))


def offline_roles(models: Mapping[str, ModelBinding]) -> str:
    """Return the roles played by an offline model, separated by commas; an empty text if there are none."""
    return ", ".join(role for role, who in models.items() if is_offline(who.model))


def is_offline(model: str) -> bool:
    """Return whether a model is an understudy, whose scores are no evidence."""
    return model.startswith("offline/")


def add_offline_column(
    tables: Sequence[Table], reported: Sequence[ReportedRun], *, with_first: bool = False
) -> list[Table]:
    """Add a column of offline players to each table of scores that they took part in, and a note to other tables.

    Args:
        tables: Tables of these runs, which are modified. The rows of several runs begin with a run's label.
        reported: The runs.
        with_first: Whether each row compares a run with the first one.
    """
    played = offline_by_label(reported)
    everywhere = _joined_roles(played.values())
    if with_first:
        played = {label: _joined_roles([played[reported[0].label], roles]) for label, roles in played.items()}
    note = offline_note(reported)
    for table in tables:
        if not any(isinstance(cell, Estimate) for row in table.rows for cell in row):
            table.notes += [note] if note and note not in table.notes else []
        elif everywhere:
            table.columns = [*table.columns, OFFLINE]
            table.facets = {**table.facets, OFFLINE: None}
            table.rows = [[*row, played.get(str(row[0]), everywhere) or None] for row in table.rows]
    return [*tables]


def difference_note(reported: Sequence[ReportedRun], recipe: Recipe) -> str | None:
    """Return a note on what differs between the runs besides the model under evaluation; `None` if nothing does.

    It lists models and their sampling, options, prompts and scenarios; not the seed, whose effect the scenarios show.
    """
    models = [
        {role: binding for role, binding in each.models.items() if role != WithRoles.of(recipe).evaluated}
        for each in reported
    ]
    found = [
        ("the models of", _differing_keys(models)),
        ("the options", _differing_keys([each.run.config.options for each in reported])),
        ("the prompts", _differing_keys([_prompts(each) for each in reported])),
    ]
    parts = [f"{what} {', '.join(keys)}" for what, keys in found if keys]
    if len({plan_hash(each.run) for each in reported}) > 1:
        parts.append("the scenarios")
    return f"The runs also differ in {'; '.join(parts)}." if parts else None


def _differing(models: Sequence[Mapping[str, str]]) -> list[str]:
    """Return, for each run, the models of those roles whose models differ."""
    roles = _differing_keys(models)
    if len(roles) == 1:
        return [played.get(roles[0], "none") for played in models]
    return [", ".join(f"{role} {played.get(role, 'none')}" for role in roles) for played in models]


def _differing_keys(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    return [key for key in keys if any(each.get(key) != mappings[0].get(key) for each in mappings)]


def _prompts(each: ReportedRun) -> dict[str, str]:
    """Return hashes of the prompts behind a run and its set of judgements."""
    own = {prompt.id: prompt.hash for prompt in each.run.prompts.values() if prompt.front.role in each.models}
    return {**own, **(each.judging.prompts if each.judging else {})}


def plan_hash(run: RunFile) -> str:
    """Return a hash of a run's scenarios that does not depend on their order."""
    total = 0
    for _, id_, _, _ in run.listing():
        total += int.from_bytes(hashlib.blake2b(id_.encode(), digest_size=16).digest())
    return f"{total % 2**64:016x}"
