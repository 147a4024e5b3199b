"""The runs that a report shows, each with one set of its judgements and a label that tells it from the others."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dialoom.graphs import Recipe
from dialoom.graphs.capabilities import WithJudging, WithRoles
from dialoom.roles import ModelBinding
from dialoom.runs.scenario_pages import Where
from dialoom.runs.store import JudgementSet, RunFile

_OFFLINE = "Made with an offline model ({roles}): a scripted stand-in, no evidence about any model."
_NAMED = 10
"""So many changed outcomes are named, and the rest counted."""


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A run and a set of its judgements (`None` if it has none).

    Attributes:
        label: The model under evaluation, where it tells the runs apart; else the models that differ, or the file.
    """

    label: str
    run: RunFile
    judging: JudgementSet | None

    @property
    def models(self) -> dict[str, ModelBinding]:
        """Who played each role; the judge is that of the set."""
        return {**self.run.config.models, **(self.judging.models if self.judging else {})}

    @property
    def set_name(self) -> str | None:
        """The set's name, as the store's readers take it."""
        return self.judging.name if self.judging else None


def reported_runs(runs: Sequence[RunFile], recipe: Recipe, judging: str | None = None) -> list[ReportedRun]:
    """Each run with the set of that name (by default its oldest) and its label.

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
    """What is said below all tables and charts: what they count, what of it a person changed, who was no model."""
    only = None if where is None else f"Only scenarios of which this holds: {where}"
    notes = [changed_note(reported, where), broken_off_note(reported), own_words_note(reported), offline_note(reported)]
    return [only, *notes]


def changed_note(reported: Sequence[ReportedRun], where: str | None = None) -> str | None:
    """Which outcomes come from what a person did in the step debugger, if any is counted."""
    named: dict[tuple[Path, str], str] = {}
    several = len({each.run.path for each in reported}) > 1
    for each in reported:
        keeps = None if where is None else Where.parse(where, each.run).keeps
        for id_, branch in each.run.branches_taken():
            episode = each.run.episode(each.run.resolve(id_), each.set_name)
            if episode is not None and (keeps is None or keeps(episode)):
                named[each.run.path, id_] = f"{id_} ({branch.told()}{f', {each.label}' if several else ''})"
    if not named:
        return None
    rest = f"; and {len(named) - _NAMED:,} more" if len(named) > _NAMED else ""
    what = "1 outcome was" if len(named) == 1 else f"{len(named):,} outcomes were"
    some = "; ".join([*named.values()][:_NAMED])
    return (
        f"{what} changed by a person in the step debugger and counted here: {some}{rest}. "
        "To leave them out: where 'not changed'."
    )


def broken_off_note(reported: Sequence[ReportedRun]) -> str | None:
    """How many replies of whole runs were not all that a reply should be, by role and what was wrong, if any."""
    named = {}
    for each in reported:
        by_role = each.run.status().by_role.items()
        told = [f"{role} {_listed(usage.broken_off)}" for role, usage in by_role if usage.broken_off]
        if told:
            named[each.label] = "; ".join(told)
    if not named:
        return None
    several = len({each.run.path for each in reported}) > 1
    return "Replies that broke off: " + ". ".join(f"{who}: {told}" if several else told for who, told in named.items())


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


def own_words_note(reported: Sequence[ReportedRun]) -> str | None:
    """Which models judge what they have written themselves, if any."""
    found: dict[str, None] = {}
    for each in reported:
        recipe, models = each.run.recipe, {role: binding.model for role, binding in each.models.items()}
        judges = {models[role] for role in WithJudging.of(recipe).judging_roles() if role in models}
        for own in judges & {models.get(WithRoles.of(recipe).evaluated or "", "")}:
            if not own.startswith("offline/"):
                found[own] = None
    if not found:
        return None
    return (
        f"{', '.join(found)} judges its own words: models are known to favour what they wrote themselves. "
        "A second judge of another family shows by how much."
    )


def offline_note(reported: Sequence[ReportedRun]) -> str | None:
    """Which roles an offline model played, if any: figures that are evidence of nothing.

    Several runs of one label are told as one.
    """
    roles: dict[str, dict[str, None]] = {each.label: {} for each in reported}
    for each in reported:
        roles[each.label] |= {role: None for role, who in each.models.items() if who.model.startswith("offline/")}
    played = {label: ", ".join(named) for label, named in roles.items()}
    if not any(played.values()):
        return None
    if len(set(played.values())) == 1:
        return _OFFLINE.format(roles=next(iter(played.values())))
    named = "; ".join(f"{label}: {told}" for label, told in played.items() if told)
    return _OFFLINE.format(roles=named)


def difference_note(reported: Sequence[ReportedRun], recipe: Recipe) -> str | None:
    """What differs between the runs beside the model under evaluation, so that nobody takes its effect for the model's.

    Told are models and their sampling, options, prompts and scenarios; not the seed, which the scenarios show.
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
    """Each run's models of those roles whose models differ."""
    roles = _differing_keys(models)
    if len(roles) == 1:
        return [played.get(roles[0], "none") for played in models]
    return [", ".join(f"{role} {played.get(role, 'none')}" for role in roles) for played in models]


def _differing_keys(mappings: Sequence[Mapping[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for mapping in mappings for key in mapping)
    return [key for key in keys if any(each.get(key) != mappings[0].get(key) for each in mappings)]


def _prompts(each: ReportedRun) -> dict[str, str]:
    """Hashes of the prompts behind a run and its set of judgements."""
    own = {prompt.id: prompt.hash for prompt in each.run.prompts.values() if prompt.front.role in each.models}
    return {**own, **(each.judging.prompts if each.judging else {})}


def plan_hash(run: RunFile) -> str:
    """The scenarios of a run, as one value that does not depend on their order."""
    total = 0
    for _, id_, _, _ in run.listing():
        total += int.from_bytes(hashlib.blake2b(id_.encode(), digest_size=16).digest())
    return f"{total % 2**64:016x}"
