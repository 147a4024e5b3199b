"""Scorecards: every system of a suite is played by every assistant, in separate runs that are resumed together."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack, cast

from dialoom.errors import DialoomError
from dialoom.graphs import Recipe, WithJudging, WithRoles
from dialoom.grouping import nest_triples
from dialoom.outputs import make_file_name, make_folder
from dialoom.roles.binding import OBJECT_PREFIX
from dialoom.runs.configuration.config import DEFAULT_MODEL, DEFAULT_MODELS, config_diff
from dialoom.runs.configuration.recipes import load_recipe, parse_options
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.control import Event, Notice
from dialoom.runs.errors import RunError
from dialoom.runs.gateway_setup import RunLimits
from dialoom.runs.reading.scenarios import Where
from dialoom.runs.scorecard import (
    DEFAULT_SUITE,
    AssistantRuns,
    CardRecord,
    Scorecard,
    Size,
    Suite,
    SuiteSystem,
    read_record,
    read_suite,
    write_record,
)
from dialoom.runs.scorecard.card import check_contrasts
from dialoom.runs.store import RunFile
from dialoom.settings import Budget, ModelLike, PathLike, PlayerSettings, select_settings, validate_settings

from .blocking import blocking
from .open_run import get_listener_and_control
from .operation_settings import CallSettings, JudgeSettings, NewRun, PlaySettings, resolve_new_run
from .operations import aplan, aresume


@dataclass(frozen=True, slots=True)
class _SuiteRun:
    """One system, played by one assistant.

    Attributes:
        system: The system.
        label: The assistant's model.
        path: The run's file.
        new: The run's settings, resolved.
        settings: The same settings, in the form that `play` accepts.
    """

    system: SuiteSystem
    label: str
    path: Path
    new: NewRun
    settings: PlaySettings


async def ascorecard(
    path: PathLike,
    *,
    suite: PathLike = DEFAULT_SUITE,
    size: Size = "quick",
    model: ModelLike | None = None,
    retry_failed: bool = False,
    **settings: Unpack[JudgeSettings],
) -> Scorecard:
    """Play all systems of a suite, each as a run in a folder, and write a page with their results.

    If the function is called again with the same arguments, it resumes where it stopped and repeats no paid call. If it
    is called with additional assistants, it adds them.

    Example:
        >>> card = dialoom.scorecard("card", models={"assistant": ["offline/attentive", my_agent]})  # doctest: +SKIP
        >>> print(card["differences"])  # doctest: +SKIP

    Args:
        path: The folder for the results: runs, `index.html`, `scorecard.md`, `scorecard.json`, `scorecard.tex`, charts,
            and the suite's settings.
        suite: The name of a shipped suite, or a YAML file.
        size: `quick` or `full`: how much of the suite is played.
        model: The model of every role that is neither in `models` nor in the suite; by default `offline/attentive`.
        retry_failed: Whether failed scenarios are tried again.
        **settings: The player of each role (`models`), sampling settings, and how calls are made, as for `play`.
            Several assistants, in a list, are compared; several judges form a panel. A budget applies to all runs
            together.

    Returns:
        The scorecard; `is_complete` tells whether no scenario is pending, and `failed` counts failed scenarios.

    Raises:
        RunError: If something in the suite or the settings is wrong, or the folder holds another scorecard. It is
            raised before anything is sent.
        DialoomError: In the same cases as `play`.
    """
    folder = Path(path)
    tell, control = get_listener_and_control(settings)
    chosen = await asyncio.to_thread(read_suite, os.fspath(suite))
    if size not in ("quick", "full"):
        raise RunError(f"size must be quick or full, got {size!r}", setting="size")
    suite_runs = await asyncio.to_thread(lambda: _resolve_suite_runs(chosen, size, folder, model, settings))
    _report_stand_ins(suite_runs, tell)
    await _plan_runs(suite_runs, folder, chosen, size, tell)
    calls = select_settings(CallSettings, validate_settings(JudgeSettings, settings))
    calls["control"], calls["trust"] = control, True  # the runs' settings were already compared with the given ones
    total_budget = calls["budget"]
    for number, suite_run in enumerate(suite_runs, start=1):
        if control.is_draining or not _is_unfinished(suite_run.path, retry_failed):
            continue
        tell(Notice(f"{number} of {len(suite_runs)}: {suite_run.system.label}, {suite_run.label}"))
        calls["budget"] = _compute_remaining_budget(
            cast("Budget | None", total_budget), [each.path for each in suite_runs if each is not suite_run]
        )
        run = await aresume(
            suite_run.path, models=_get_player_objects(suite_run.new), retry_failed=retry_failed, **calls
        )
        if run.ended is None or not run.ended.is_complete:
            break
    card = await asyncio.to_thread(lambda: Scorecard.of([folder], Trust(True)))
    await asyncio.to_thread(card.write, folder)
    return card


def open_scorecard(*folders: PathLike, allow_different_users: bool = False, trust: bool = False) -> Scorecard:
    """Open a finished scorecard, or several of one suite side by side; the results are read again from the runs.

    Example:
        >>> dialoom.open_scorecard("card", "other-card").write("both")  # doctest: +SKIP

    Args:
        *folders: The folders of the scorecards.
        allow_different_users: Whether assistants are compared even if the user model, the user prompt or the source of
            personas differs; the table's title then states it.
        trust: As for `Run`.

    Raises:
        RunError: If a folder holds no scorecard, or the scorecards are of different suites or sizes.
        StoreError: If a run is missing or damaged.
    """
    if not folders:
        raise RunError("folders: give at least one folder", setting="folders")
    return Scorecard.of([Path(folder) for folder in folders], Trust(trust), allow_different_users)


def _resolve_suite_runs(
    suite: Suite, size: Size, folder: Path, model: ModelLike | None, settings: JudgeSettings
) -> list[_SuiteRun]:
    """Return a part for each system and assistant, with resolved and checked settings; nothing is written.

    Raises:
        DialoomError: If a setting of a system is wrong; the message names the system and the setting.
    """
    recipes = []
    for system in suite.systems:
        with _name_system_in_errors(suite, system, settings):
            recipe = load_recipe(system.recipe)
            if WithRoles.of(recipe).evaluated is None:
                raise RunError(f"recipe {recipe.name!r} has no role under evaluation")
            check_contrasts(WithJudging.of(recipe).metrics, system.contrasts)
            recipes.append(recipe)
    role = _get_evaluated_role(suite, recipes)
    valid_roles = list(dict.fromkeys(role for recipe in recipes for role in recipe.roles))
    _check_roles(valid_roles, select_settings(PlayerSettings, settings))
    try:
        _check_roles(valid_roles, suite.players())
    except RunError as error:
        raise RunError(f"suite {suite.suite!r}: {error.message}", setting="suite") from error
    players = (settings.get("models") or {}).get(role, DEFAULT_MODEL if model is None else model)
    suite_runs = []
    for assistant in players if isinstance(players, list | tuple) else [players]:
        for system, recipe in zip(suite.systems, recipes, strict=True):
            with _name_system_in_errors(suite, system, settings):
                merged = _merge_settings(suite, system, recipe, size, model, settings)
                merged["models"] = {**(merged["models"] or {}), role: assistant}
                new = resolve_new_run(system.recipe, True, **merged)
            label = new.config.models[role].model
            path = folder / make_file_name(f"{system.label}--{label}.db".replace("/", "-").replace(":", "-"))
            suite_runs.append(_SuiteRun(system, label, path, new, merged))
    assistants = suite_runs[:: len(suite.systems)]
    files = [each.path for each in assistants]  # names may differ only in characters that file names cannot have
    if duplicates := [each.label for each in assistants if files.count(each.path) > 1]:
        name = duplicates[0].removeprefix(OBJECT_PREFIX)
        advice = f"; give each a different name: dialoom.Model({name}, name=...)" if name != duplicates[0] else ""
        raise RunError(f"models: two assistants are named {duplicates[0]}{advice}", setting="models")
    return suite_runs


@contextlib.contextmanager
def _name_system_in_errors(suite: Suite, system: SuiteSystem, settings: JudgeSettings) -> Iterator[None]:
    """Add the system's name to an error in the suite's settings, but not to an error in the caller's settings."""
    try:
        yield
    except DialoomError as error:
        if dict(settings).get(str(error.setting)) is not None:
            raise
        message = f"suite {suite.suite!r}, {system.label}: {error.message}"
        raise RunError(message, setting="suite", advice=error.advice) from error


def _get_evaluated_role(suite: Suite, recipes: Sequence[Recipe]) -> str:
    """Return the role under evaluation, which must be the same in all systems."""
    roles = {
        system.label: str(WithRoles.of(recipe).evaluated) for system, recipe in zip(suite.systems, recipes, strict=True)
    }
    if len(set(roles.values())) > 1:
        listing = ", ".join(f"{label} {role}" for label, role in roles.items())
        raise RunError(
            f"suite {suite.suite!r}: its systems must evaluate the same role, got {listing}", setting="suite"
        )
    return next(iter(roles.values()))


def _check_roles(valid_roles: Collection[str], players: Mapping[str, Any]) -> None:
    """Check that each role in the caller's settings is a role of at least one system.

    Raises:
        RunError: If a role is unknown.
    """
    for name, value in players.items():
        for role in value if isinstance(value, Mapping) else ():
            if role and role not in valid_roles:
                raise RunError(f"{name}: unknown role {role!r}; the roles are {', '.join(valid_roles)}", setting=name)


def _merge_settings(
    suite: Suite, system: SuiteSystem, recipe: Recipe, size: Size, model: ModelLike | None, given: JudgeSettings
) -> PlaySettings:
    """Return the settings of a system's run: the suite's, overridden by the system's, overridden by the caller's."""
    sized_system = system.for_size(size)
    roles = WithRoles.of(recipe).roles_used(parse_options(recipe, sized_system.options))
    _check_roles(recipe.roles, system.players())
    players: dict[str, Any] = {}
    for name in PlayerSettings.__annotations__:
        caller_value: Any = given.get(name)
        if isinstance(caller_value, list | tuple):  # roles, e.g. of stateful players
            players[name] = caller_value
            continue
        caller_value = caller_value if isinstance(caller_value, Mapping) or caller_value is None else {"": caller_value}
        merged = {**suite.players().get(name, {}), **system.players().get(name, {}), **(caller_value or {})}
        players[name] = {role: value for role, value in merged.items() if not role or role in roles} or None
    values: dict[str, Any] = {
        **players,
        **select_settings(CallSettings, given),
        "model": model,
        "options": sized_system.options,
        "seed": suite.seed if system.seed is None else system.seed,
        "sample": sized_system.sample,
        "on_user_fault": system.on_user_fault,
    }
    return cast(PlaySettings, values)


async def _plan_runs(
    suite_runs: Sequence[_SuiteRun], folder: Path, suite: Suite, size: Size, tell: Callable[[Event], None]
) -> None:
    """Plan every run that does not exist yet, so that a missing source is reported before anything is sent.

    Raises:
        RunError: If the folder belongs to another scorecard, or a run in it has other settings; the folder is not
            changed.
    """
    assistants = nest_triples((each.label, each.system.label, each.path.name) for each in suite_runs)
    now = tuple(AssistantRuns(label=label, runs=runs) for label, runs in assistants.items())
    new = CardRecord(suite=suite, size=size, assistants=now)
    existing = await asyncio.to_thread(read_record, folder)
    if existing is not None and existing.summary() != new.summary():
        raise RunError(
            f"path {folder} contains a scorecard of {existing.summary()}, not of {new.summary()}; give another folder",
            setting="path",
        )
    for suite_run in suite_runs:
        await asyncio.to_thread(_check_existing_run, suite_run)
    make_folder(folder)
    created: list[Path] = []
    reported: set[str] = set()

    def emit_once(event: Event) -> None:
        """Report each notice of planning once for all assistants; other planning events are dropped."""
        if isinstance(event, Notice) and event.text not in reported:
            reported.add(event.text)
            tell(event)

    try:
        for suite_run in suite_runs:
            if not suite_run.path.exists():
                with _name_system_in_errors(suite, suite_run.system, suite_run.settings):
                    quiet: PlaySettings = {**suite_run.settings, "on_event": emit_once}
                    await aplan(suite_run.system.recipe, path=suite_run.path, **quiet)
                created.append(suite_run.path)
            await asyncio.to_thread(_check_expressions, suite, suite_run)
        await asyncio.to_thread(write_record, folder, new if existing is None else existing.with_assistants(now))
    except BaseException:
        for path in created:
            path.unlink(missing_ok=True)
        raise


def _check_existing_run(suite_run: _SuiteRun) -> None:
    """Check that an existing run was made with the same settings.

    Raises:
        RunError: If its settings differ.
    """
    if not suite_run.path.exists():
        return
    with RunFile(suite_run.path, recipe=suite_run.new.recipe) as run:
        if differing := config_diff(run.config, suite_run.new.config):
            differences = "; ".join(differing)
            raise RunError(
                f"path {suite_run.path} was played with other settings ({differences}); give another folder",
                setting="path",
            )


def _check_expressions(suite: Suite, suite_run: _SuiteRun) -> None:
    """Check the suite's expressions against the planned scenarios.

    Raises:
        RunError: If an expression is wrong.
    """
    with (
        RunFile(suite_run.path, recipe=suite_run.new.recipe) as run,
        _name_system_in_errors(suite, suite_run.system, suite_run.settings),
    ):
        for contrast in suite_run.system.contrasts:
            if contrast.where is not None:
                Where.parse(contrast.where, run)


def _report_stand_ins(suite_runs: Sequence[_SuiteRun], tell: Callable[[Event], None]) -> None:
    """Report, before any paid call, the roles that a stand-in plays because no model was given."""
    casts = [cast for each in suite_runs for cast in each.new.config.players]
    models = [(role, each.model) for cast in casts for role, each in cast.items()]
    for stand_in in DEFAULT_MODELS:
        if roles := list(dict.fromkeys(role for role, model in models if model == stand_in)):
            tell(Notice(f"{', '.join(roles)}: played by {stand_in}, a scripted stand-in"))


def _is_unfinished(path: Path, retry_failed: bool) -> bool:
    """Return whether a run has unfinished work."""
    with RunFile(path) as run:
        status = run.status()
        return bool(status.pending or run.config.panel or (retry_failed and status.failed))


def _compute_remaining_budget(budget: Budget | None, others: Collection[Path]) -> Budget | None:
    """Return the budget of one run: the common budget minus the usage of the other runs."""
    if budget is None:
        return None
    bounds = budget.model_dump(include=budget.model_fields_set)
    for path in others:
        with RunFile(path) as run:
            spend = run.spend(RunLimits.of(run).stated_prices)
        for name, used in (("max_calls", spend.calls), ("max_tokens", spend.tokens), ("max_cost", spend.cost)):
            if bounds.get(name) is not None:
                bounds[name] = max(0, bounds[name] - used)
    return Budget(**bounds)


def _get_player_objects(new: NewRun) -> dict[str, ModelLike]:
    """Return the functions and graphs that play roles, by role, which are needed to resume a run."""
    objects = new.bindings.objects
    return {role: objects[each.model] for role, each in new.bindings.by_role.items() if each.model in objects}


scorecard = blocking("scorecard", ascorecard)
