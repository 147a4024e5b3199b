"""Several judges of one run, and judges that are asked more than once: which sets of judgements are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from dialoom.graphs import Recipe, stream
from dialoom.graphs.capabilities import WithJudging, WithRoles
from dialoom.graphs.outcome import TRIAL
from dialoom.graphs.recipe import is_to_judge
from dialoom.roles.binding import Bindings, ModelBinding, bind
from dialoom.runs.errors import RunError
from dialoom.runs.progress import Ended
from dialoom.runs.reading.scenarios import selected
from dialoom.runs.store import RunFile
from dialoom.settings import ModelLike, Players, PlayerSettings


def drawn_to_judge(run: RunFile, sample: int | None, where: str | None) -> frozenset[int] | None:
    """Return the positions of the scenarios to judge; `None` for all finished ones.

    Scenarios are drawn, each with all its trials. Each scenario has a number from the run's seed, and those with the
    lowest are drawn: a smaller sample is part of a larger one, and asking again draws the same ones.

    Args:
        run: The run.
        sample: The most scenarios, of those that the recipe's judging applies to; `None` for no bound.
        where: Only those that match this expression.

    Raises:
        RunError: If the number or the expression is wrong, or none is left.
    """
    if sample is None and where is None:
        return None
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or sample < 1):
        raise RunError(f"sample {sample!r} is no whole number from 1", setting="sample")
    recipe, seed = run.recipe, run.config.seed
    found = [
        each.id
        for each in selected(run, None, where)
        if each.state == "done" and is_to_judge(recipe, run.scenario(recipe, run.resolve(each.id)), each.outcome)
    ]
    if not found:
        raise RunError(f"{run.path} has nothing to judge" + (f" where {where}" if where else ""))
    scenarios = {id_.partition(TRIAL)[0] for id_ in found}
    drawn = set(sorted(scenarios, key=lambda id_: (stream(seed, id_, "judged").random(), id_))[:sample])
    chosen = {id_ for id_ in found if id_.partition(TRIAL)[0] in drawn}
    return frozenset(position for position, id_, _, _ in run.listing() if id_ in chosen)


Seats: TypeAlias = "tuple[ModelLike | None, dict[str, ModelLike]]"
"""The judge of every role and the judges of single roles, in one set of judgements."""


def seated(model: Players | None, models: Mapping[str, Players] | None) -> list[Seats]:
    """Return the judges of each set, from one judge or several for each role.

    Raises:
        RunError: If roles with several judges have different numbers of them.
    """
    named = {**({} if model is None else {"": model}), **(models or {})}
    given = {role: _several(judges) for role, judges in named.items()}
    counts = {role: len(judges) for role, judges in given.items() if len(judges) != 1}
    if len({*counts.values()}) > 1 or 0 in counts.values():
        told = ", ".join(f"{count} of {role or 'every role'}" for role, count in counts.items())
        raise RunError(f"models: as many judges of each role are needed, or one; there are {told}", setting="models")
    seats = [
        {role: judges[place if len(judges) > 1 else 0] for role, judges in given.items()}
        for place in range(max(counts.values(), default=1))
    ]
    return [(each.pop("", None), each) for each in seats]


def bound_judges(recipe: Recipe, model: Players | None, players: PlayerSettings) -> list[Bindings]:
    """Return the judges of each set, bound to the recipe's judging roles.

    Raises:
        RunError, BindingError: Naming what is wrong.
    """
    bound = []
    for one, by_role in seated(model, players.get("models")):
        given: PlayerSettings = {**players, "models": by_role}
        bound.append(bind(WithJudging.of(recipe).judging_roles(), one, WithRoles.of(recipe).reply_limits, **given))
    return bound


def check_several(recipe: Recipe, models: Mapping[str, Players] | None) -> None:
    """Check that only judges are given several models, and that they can judge after all scenarios are played.

    Raises:
        RunError: If not.
    """
    several = [role for role, players in (models or {}).items() if isinstance(players, list | tuple)]
    judging = WithJudging.of(recipe)
    judges = judging.judging_roles() if judging.judging() is not None else {}
    for role in several:
        if role not in judges:
            told = f"several may judge: {', '.join(judges)}" if judges else f"{recipe.name!r} has no judging of its own"
            raise RunError(f"models: one model plays {role!r}; {told}", setting="models")


def further_judges(recipe: Recipe, first: Bindings, others: Sequence[Bindings]) -> tuple[dict[str, ModelBinding], ...]:
    """Return the bindings of further judges that a run keeps.

    Raises:
        RunError: If two have one name, or one is in no file, so that a resumed run could not call it.
    """
    if others and any(each.objects.keys() - first.objects.keys() for each in others):
        raise RunError(
            "models: of several judges each is kept by name, and one is a function or graph that is in no file; let it "
            "judge once all is played",
            setting="models",
        )
    panel = [Bindings({role: each.by_role[role] for role in WithJudging.of(recipe).judging_roles()}) for each in others]
    return tuple(dict(judges.by_role) for judges, _ in set_names(panel, None, 1))


def set_names(bound: Sequence[Bindings], name: str | None, repeat: int) -> list[tuple[Bindings, str]]:
    """Return each judge with the name of each of its sets: the first judging of all comes before the second of any.

    Raises:
        RunError: If one name is given for several judges, two have one name, or `repeat` is no number from 1.
    """
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        raise RunError(f"repeat {repeat!r} is no whole number from 1", setting="repeat")
    if name is not None and len(bound) > 1:
        raise RunError(
            f"name {name!r}: the sets of several judges are named after their models; name one judge's alone",
            setting="name",
        )
    names = [name or ", ".join(each.model for each in judges.by_role.values()) for judges in bound]
    if twice := [each for each in names if names.count(each) > 1]:
        raise RunError(
            f"models: {twice[0]} is named twice; 'repeat' asks a judge more than once, and judges who differ in "
            "something else need names of their own, so let them judge one after the other",
            setting="models",
        )
    return [
        (judges, each if number == 1 else f"{each} #{number}")
        for number in range(1, repeat + 1)
        for judges, each in zip(bound, names, strict=True)
    ]


def together(before: Ended | None, now: Ended) -> Ended:
    """Merge the results of the work on several sets of judgements."""
    if before is None:
        return now
    return replace(now, done=before.done + now.done, failed=before.failed + now.failed, judging=before.judging)


def _several(judges: Players) -> Sequence[ModelLike]:
    return judges if isinstance(judges, list | tuple) else [judges]
