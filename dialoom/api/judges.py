"""The sets of judgements that are made when a run has several judges, or a judge is asked more than once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from dialoom.graphs import Recipe, WithJudging, WithRoles, stream
from dialoom.graphs.outcome import USER, scenario_of
from dialoom.graphs.recipe import is_judgeable
from dialoom.graphs.transcript import Transcripts
from dialoom.graphs.transcript_rows import TRANSCRIPT
from dialoom.roles.binding import OBJECT_PREFIX, Bindings, ModelBinding, bind
from dialoom.runs.control import Ended
from dialoom.runs.errors import RunError
from dialoom.runs.reading.scenarios import select_episodes
from dialoom.runs.store import RunFile
from dialoom.settings import ModelLike, Players, PlayerSettings


def draw_positions(run: RunFile, sample: int | None, where: str | None) -> frozenset[int] | None:
    """Return the positions of the scenarios to judge; `None` for all finished ones.

    A sample consists of whole scenarios, each with all its trials. The run's seed gives each scenario a number, and the
    scenarios with the lowest numbers are drawn. So a smaller sample is part of a larger one, and a repeated draw
    returns the same scenarios.

    Args:
        run: The run.
        sample: The maximum number of scenarios, drawn from those that the recipe can judge; `None` for no limit.
        where: Only scenarios that match this expression.

    Raises:
        RunError: If the number or the expression is wrong, or no scenario is left.
    """
    if sample is None and where is None:
        return None
    if sample is not None and (isinstance(sample, bool) or not isinstance(sample, int) or sample < 1):
        raise RunError(f"sample must be a whole number of at least 1, got {sample!r}", setting="sample")
    recipe, seed = run.recipe, run.config.seed
    ids = [
        each.id
        for each in select_episodes(run, None, where)
        if each.state == "done" and is_judgeable(recipe, run.scenario(recipe, run.resolve(each.id)), each.outcome)
    ]
    if not ids:
        raise RunError(f"{run.path} has no scenarios to judge" + (f" where {where}" if where else ""))
    scenarios = {scenario_of(id_) for id_ in ids}
    drawn = set(sorted(scenarios, key=lambda id_: (stream(seed, id_, "judged").random(), id_))[:sample])
    chosen_ids = {id_ for id_ in ids if scenario_of(id_) in drawn}
    return frozenset(position for position, id_, _, _ in run.listing() if id_ in chosen_ids)


def check_columns(run: RunFile, study: Transcripts | None, only: Collection[int] | None) -> None:
    """Check, before a judge is called, that imported conversations have the columns that rubrics use.

    Args:
        run: The run. Nothing is checked if it is a run of another recipe, whose rows were checked before it was played.
        study: The recipe with the study whose judges score; by default the run's.
        only: The positions of the conversations to judge; by default those of all finished ones.

    Raises:
        DataError, DialoomError: If a conversation lacks a column.
    """
    recipe = run.recipe
    if isinstance(recipe, Transcripts):
        talks: Iterable[Any] = (
            run.scenario(recipe, each) for each in run.positions("done") if only is None or each in only
        )
        (study or recipe).check_rubric_columns((talk, recipe.recorded_outcome(talk)) for talk in talks)


JudgeAssignment: TypeAlias = "tuple[ModelLike | None, dict[str, ModelLike]]"
"""The judges of one set of judgements: the judge of all roles, and judges of single roles, which take precedence."""


def split_judges(model: Players | None, models: Mapping[str, Players] | None) -> list[JudgeAssignment]:
    """Return the judges of each set of judgements, given one judge or several for each role.

    Raises:
        RunError: If roles with several judges have different numbers of them.
    """
    named = {**({} if model is None else {"": model}), **(models or {})}
    judges_by_role = {role: judges if isinstance(judges, list | tuple) else [judges] for role, judges in named.items()}
    counts = {role: len(judges) for role, judges in judges_by_role.items() if len(judges) != 1}
    if len({*counts.values()}) > 1 or 0 in counts.values():
        numbers = ", ".join(f"{count} of {role or 'every role'}" for role, count in counts.items())
        raise RunError(
            f"models: every judging role needs the same number of judges, or one; got {numbers}", setting="models"
        )
    assignments = [
        {role: judges[index if len(judges) > 1 else 0] for role, judges in judges_by_role.items()}
        for index in range(max(counts.values(), default=1))
    ]
    return [(each.pop("", None), each) for each in assignments]


def bind_judges(recipe: Recipe, model: Players | None, players: PlayerSettings) -> list[Bindings]:
    """Return the judges of each set of judgements, bound to the recipe's judging roles.

    Raises:
        RunError, BindingError: If a setting is wrong; the message names it.
    """
    bindings_list = []
    for judge, by_role in split_judges(model, players.get("models")):
        settings: PlayerSettings = {**players, "models": by_role}
        bindings_list.append(
            bind(WithJudging.of(recipe).judging_roles(), judge, WithRoles.of(recipe).reply_limits, **settings)
        )
    return bindings_list


def list_multi_model_roles(recipe: Recipe) -> list[str]:
    """Return the roles for which one run accepts several models: the user, and the recipe's judging roles."""
    judging = WithJudging.of(recipe)
    judges = judging.judging_roles() if judging.judging() is not None else {}
    return [*([USER] if USER in recipe.roles and recipe.name != TRANSCRIPT else []), *judges]


def check_multi_model_roles(recipe: Recipe, models: Mapping[str, Players] | None) -> None:
    """Check that no role has several models unless the run accepts several for that role.

    Raises:
        RunError: If there are several models for a role that accepts only one.
    """
    several = [role for role, players in (models or {}).items() if isinstance(players, list | tuple)]
    may = list_multi_model_roles(recipe)
    for role in several:
        if role not in may:
            reason = f"several models are possible for {', '.join(may)}" if may else f"{recipe.name!r} does not judge"
            raise RunError(f"models: only one model can play {role!r}; {reason}", setting="models")


def split_user_models(models: Mapping[str, Players] | None) -> tuple[dict[str, Players], list[ModelLike]]:
    """Return the players with only the first of the user's models, and the list of the user's other models.

    Raises:
        RunError: If the list of the user's models is empty.
    """
    players = dict(models or {})
    users = players.get(USER)
    if not isinstance(users, list | tuple):
        return players, []
    if not users:
        raise RunError(f"models: the list of models of {USER!r} is empty; name one or several", setting="models")
    return {**players, USER: users[0]}, [*users[1:]]


def get_additional_users(first: Bindings, others: Sequence[Bindings]) -> tuple[ModelBinding, ...]:
    """Return the bindings of the user's further models, which the run's file stores.

    Raises:
        RunError: If two have the same name, or one is defined in no file, so that a resumed run could not call it.
    """
    users = [each.by_role[USER] for each in (first, *others)]
    names = [each.model for each in users]
    if duplicates := [each for each in names if names.count(each) > 1]:
        raise RunError(
            f"models: {duplicates[0]} is given twice for {USER!r}; to repeat conversations, use 'trials'",
            setting="models",
        )
    if unnamed := [each.removeprefix(OBJECT_PREFIX) for each in names if each.startswith(OBJECT_PREFIX) and others]:
        raise RunError(
            f"models: with several user models, each is stored by name, but {unnamed[0]!r} cannot be imported by a "
            "name; give a model's name or an importable function",
            setting="models",
        )
    return tuple(users[1:])


def get_additional_judges(
    recipe: Recipe, first: Bindings, others: Sequence[Bindings]
) -> tuple[dict[str, ModelBinding], ...]:
    """Return the bindings of further judges, which the run's file stores.

    Raises:
        RunError: If two have the same name, or one is defined in no file, so that a resumed run could not call it.
    """
    if any(first.objects.get(name) is not player for each in others for name, player in each.objects.items()):
        raise RunError(
            "models: with several judges, each is stored by name, but one is a function or graph that cannot be "
            "imported by a name; use it in a separate judging after the run",
            setting="models",
        )
    panel = [Bindings({role: each.by_role[role] for role in WithJudging.of(recipe).judging_roles()}) for each in others]
    return tuple(dict(judges.by_role) for judges, _ in name_judgement_sets(panel, None, 1))


def name_judgement_sets(bindings_list: Sequence[Bindings], name: str | None, repeat: int) -> list[tuple[Bindings, str]]:
    """Return the judges and the set's name for each judging: the first judging by each judge, then the second, etc.

    Raises:
        RunError: If a name is given for several judges, two sets would have the same name, or `repeat` is less than 1.
    """
    if isinstance(repeat, bool) or not isinstance(repeat, int) or repeat < 1:
        raise RunError(f"repeat must be a whole number of at least 1, got {repeat!r}", setting="repeat")
    if name is not None and len(bindings_list) > 1:
        raise RunError(
            f"name {name!r}: the sets of several judges are named after their models; a name can be given for a "
            "single judge only",
            setting="name",
        )
    names = [name or ", ".join(each.model for each in judges.by_role.values()) for judges in bindings_list]
    if duplicates := [each for each in names if names.count(each) > 1]:
        raise RunError(
            f"models: {duplicates[0]} is given twice; to judge repeatedly, use 'repeat'; for judges that differ in "
            "other settings, judge separately under different names",
            setting="models",
        )
    return [
        (judges, each if number == 1 else f"{each} #{number}")
        for number in range(1, repeat + 1)
        for judges, each in zip(bindings_list, names, strict=True)
    ]


def add_counts(earlier: Ended | None, latest: Ended) -> Ended:
    """Return the result of the latest work, with the scenario counts of the earlier work, if any, added to it."""
    if earlier is None:
        return latest
    return replace(
        latest, done=earlier.done + latest.done, failed=earlier.failed + latest.failed, judging=earlier.judging
    )
