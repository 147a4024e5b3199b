"""A panel of judges: what several sets of judgements say together of the same things, never kept but made of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

from dialoom.graphs import Judgement
from dialoom.roles import ModelBinding

from .judgement_sets import JudgementSet

PANEL = "panel"
"""The name by which a run's panel is asked for."""


def judges_of(sets: Iterable[JudgementSet]) -> list[list[JudgementSet]]:
    """The sets of each judge together, oldest first: the same models, sampling and prompts are one judge, asked again.

    Reviews are no judge's.
    """
    found: list[list[JudgementSet]] = []
    for each in sets:
        if each.is_review:
            continue
        same = next((group for group in found if _judge(group[0]) == _judge(each)), None)
        if same is None:
            found.append([each])
        else:
            same.append(each)
    return found


def panel_of(sets: Sequence[JudgementSet]) -> JudgementSet | None:
    """The panel of a run's judges, each with its oldest set; `None` of fewer than two, or if a set has its name."""
    judges = [group[0] for group in judges_of(sets)]
    if len(judges) < 2 or any(each.name == PANEL for each in sets):
        return None
    roles = dict.fromkeys(role for judge in judges for role in judge.models)
    models = {role: ModelBinding(model=_names(judges, role), temperature=0.0) for role in roles}
    prompts = {id_: hash_ for judge in reversed(judges) for id_, hash_ in judge.prompts.items()}
    return JudgementSet(PANEL, models, prompts, tuple(judge.name for judge in judges))


def words_of_panel(words: Mapping[str, Sequence[Judgement]]) -> list[Judgement]:
    """The panel's word on each thing that any of the judges has judged.

    Scores give their median, verdicts what more than half of them say; `tied` if none does. What a judge could not be
    understood in is left out; if that leaves nothing, it is unparsed.

    Args:
        words: The judgements of one scenario by the judge's set.
    """
    by_thing: dict[tuple[str, str, int | None], dict[str, Judgement]] = {}
    for name, judgements in words.items():
        for each in judgements:
            by_thing.setdefault((each.metric, each.target, each.turn), {})[name] = each
    return [_together(said) for said in by_thing.values()]


def _together(said: Mapping[str, Judgement]) -> Judgement:
    scores = [each.score for each in said.values() if each.score is not None]
    first = next(iter(said.values()))
    told = "; ".join(f"{name}: {each.status if each.score is None else each.score}" for name, each in said.items())
    if not scores:
        return first.model_copy(update={"explanation": told})
    if not all(isinstance(score, bool) for score in scores):
        median = statistics.median(map(float, scores))
        score = int(median) if median.is_integer() else median
        return first.model_copy(update={"score": score, "status": "ok", "explanation": told})
    yes = sum(scores)
    if 2 * yes == len(scores):
        return first.model_copy(update={"score": None, "status": "tied", "explanation": told})
    return first.model_copy(update={"score": 2 * yes > len(scores), "status": "ok", "explanation": told})


def _judge(judgement_set: JudgementSet) -> tuple[object, object]:
    return dict(judgement_set.models) or judgement_set.name, dict(judgement_set.prompts)


def _names(judges: Sequence[JudgementSet], role: str) -> str:
    return ", ".join(dict.fromkeys(judge.models[role].model for judge in judges if role in judge.models))
