"""A run and the operations on it: play, resume, judge, review, retry, step."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Unpack

from pydantic import BaseModel

from dialoom.graphs.capabilities import WithExports, WithJudging
from dialoom.graphs.recipe import Review
from dialoom.graphs.study import read_study
from dialoom.graphs.transcript import build_transcripts
from dialoom.outputs import OutputError
from dialoom.roles.binding import bind
from dialoom.runs.configuration.recipes import find_recipe, parse_options
from dialoom.runs.configuration.trust import Trust, cast_references, find_changed_files
from dialoom.runs.control import Control, Ended, Event, NodeMessage, Notice
from dialoom.runs.errors import RunError
from dialoom.runs.preflight import CostEstimate, estimate_cost
from dialoom.runs.stepping import Stepper
from dialoom.runs.store import MAIN, RunFile
from dialoom.settings import (
    Model,
    ModelLike,
    PathLike,
    PlayerObject,
    Players,
    PlayerSettings,
    check_lists,
    select_settings,
    validate_settings,
)

from .blocking import blocking
from .judges import add_counts, bind_judges, check_columns, draw_positions, name_judgement_sets
from .judging import apply_gate, check_judges, get_judging_graph, judge_scenarios, open_for_judging, rejudge_unparsed
from .open_run import (
    OpenRun,
    get_listener_and_control,
    open_new_run,
    reopen_run,
    report_ineffective_settings,
    retry_failures,
    study_transaction,
)
from .operation_settings import CallSettings, JudgeSettings, PlaySettings, RecipeLike, resolve_new_run
from .playing import ensure_playable, play_again, play_pending
from .run import RunReader


class Run(RunReader):
    """A handle of a run: it reads the run's file as `RunReader` does, and can resume, judge and step through the run.

    Example:
        >>> run = dialoom.open_run("run.db")
        >>> run.status().done, run.episode(1).state
        (4, 'done')

    Args:
        path: The file.
        recipe: The recipe, if the run was made with a recipe object.
        models: Functions and graphs given as Python objects, by role, kept for later resuming.
        ended: The result of the work that returned this handle.
        trust: As for `RunReader`.

    Attributes:
        ended: The result of the work that returned this handle; `None` if no work did. `ended.stopped` is the reason if
            the work was stopped by its budget or by failures.
    """

    def __init__(
        self,
        path: PathLike,
        recipe: RecipeLike | None = None,
        *,
        models: Mapping[str, ModelLike] | None = None,
        ended: Ended | None = None,
        trust: bool | Trust = False,
    ) -> None:
        super().__init__(path, recipe, trust=trust)
        self.ended = ended
        self._models = dict(models or {})

    def __repr__(self) -> str:
        with self._open_file() as file:
            status = file.status()
            text = (
                f"{str(self.path)!r}: {file.config.recipe}, {status.done:,} of {status.total:,} "
                f"{file.config.units} done, {status.failed:,} failed"
            )
        if self.ended is not None and self.ended.stopped is not None:
            text += f", stopped: {self.ended.stopped.reason}"
        return f"<Run {text}>"

    def step(
        self,
        scenario: str | int,
        *,
        branch: str = "main",
        models: Mapping[str, ModelLike] | None = None,
        **calls: Unpack[CallSettings],
    ) -> AbstractAsyncContextManager[Stepper]:
        """Open one conversation for stepping: `async with run.step(1) as stepper`.

        Args:
            scenario: Its id, the beginning of its id, or its number in the plan (from 1).
            branch: The branch to open.
            models: Functions and graphs given as Python objects, by role; those that this handle was made with need not
                be given again.
            **calls: How calls are made; see `CallSettings`.

        Raises:
            StoreError: If another process writes the run, or there is no such scenario.
            SteppingError: If there is no such branch.
        """
        return step(
            self.path,
            scenario,
            branch=branch,
            recipe=self._given_recipe,
            models=self._merge_models(models),
            **self._add_trust(calls),
        )

    def resume(
        self,
        *,
        models: Mapping[str, ModelLike] | None = None,
        retry_failed: bool = False,
        **calls: Unpack[CallSettings],
    ) -> Run:
        """Resume the run where it stopped; see `dialoom.resume`."""
        return resume(
            self.path,
            recipe=self._given_recipe,
            models=self._merge_models(models),
            retry_failed=retry_failed,
            **self._add_trust(calls),
        )

    def judge(
        self,
        model: Players | None = None,
        *,
        models: Mapping[str, Players] | None = None,
        name: str | None = None,
        repeat: int = 1,
        sample: int | None = None,
        where: str | None = None,
        judges: PathLike | None = None,
        retry_failed: bool = False,
        **calls: Unpack[CallSettings],
    ) -> Run:
        """Judge the run once more; see `dialoom.judge`."""
        judged = judge(
            self.path,
            model=model,
            models=models,
            name=name,
            repeat=repeat,
            sample=sample,
            where=where,
            judges=judges,
            retry_failed=retry_failed,
            recipe=self._given_recipe,
            **self._add_trust(calls),
        )
        return Run(self.path, self._given_recipe, models=self._models, ended=judged.ended, trust=self._trust)

    def stream(
        self, *, models: Mapping[str, ModelLike] | None = None, **calls: Unpack[CallSettings]
    ) -> AsyncGenerator[Event, None]:
        """Resume the run, and yield its events; see `dialoom.stream`."""
        return stream(
            self._given_recipe,
            path=self.path,
            is_new=False,
            models=self._merge_models(models),
            **self._add_trust(calls),
        )

    def _add_trust(self, calls: CallSettings) -> CallSettings:
        """Return the call settings, with this handle's trust setting unless they contain their own."""
        return {"trust": self._trust.trusts_all, **calls}

    def _get_stateful_players(self, file: RunFile) -> dict[str, PlayerObject]:
        for role, binding in file.config.models.items():
            model = self._models.get(role)
            player = model.player if isinstance(model, Model) else model
            if player is not None and not isinstance(player, str):
                self._players.setdefault(binding.model, player)
        return self._players

    def _merge_models(self, models: Mapping[str, ModelLike] | None) -> Mapping[str, ModelLike]:
        """Return the functions and graphs that this handle holds, overridden by those given now."""
        return {**self._models, **(models or {})}


def open_run(path: PathLike, recipe: RecipeLike | None = None, *, trust: bool | Trust = False) -> Run:
    """Open a run's file, and return a handle for reading it and for the operations on it.

    Example:
        >>> len(dialoom.open_run("run.db"))  # scenarios
        4

    Args:
        path: The file.
        recipe: The recipe, if the run was made with a recipe object.
        trust: Whether to use the code and the addresses that the file refers to, whoever made it; see `RunReader`.

    Raises:
        StoreError: If there is no such file, or it is not a run.
    """
    return Run(path, recipe, trust=trust)


async def aplay(
    recipe: RecipeLike,
    *,
    path: PathLike,
    folder: PathLike | None = None,
    **settings: Unpack[PlaySettings],
) -> Run:
    """Make a new run: plan it, play every scenario and store every step.

    Example:
        >>> run = dialoom.play("personalens", path="new.db", options={"limit": 2})  # or: await dialoom.aplay(...)
        >>> run.status().done
        2

    Args:
        recipe: A registered name (`personalens`), `path/to/file.py:NAME`, a recipe, or its class. A class from an
            imported file is stored as `path/to/file.py:NAME`. A class that is in no file (such as a notebook's) must be
            given again to resume the run in another process.
        path: The run's file; it must not exist.
        folder: For recipes that generate data (a source, pairs, people, or drafts of these): the folder to write the
            data to once every scenario is done. Nothing is written if a scenario failed or the work was stopped.
        **settings: The players, the options of the recipe, and how calls are made; see `PlaySettings`.

    Returns:
        The run. Failed scenarios are stored in it and raise no exception: `run.status()` counts them. `run.ended` tells
        whether the work was stopped early, and why.

    Raises:
        RunError, RecipeError, BindingError, PromptError, DataError, StoreError, CacheError: If an argument is wrong. An
            error found before the first scenario is played leaves no file. After an error found later, such as an input
            of a prompt that a node does not provide, the run can be resumed. All of these errors are subclasses of
            `DialoomError`.
        StoppedError: If the run was stopped while it was planned; nothing is written.
    """
    if folder is not None:
        format_ = await asyncio.to_thread(_check_data_folder, recipe, settings.get("options"), Path(folder))
    async with open_new_run(recipe, path, settings, is_played=True) as opened:
        ended = await play_pending(opened, is_resumed=False)
    run = _build_run(opened, recipe, ended, trust=True)
    if folder is not None and ended.is_complete and not ended.failed:
        await asyncio.to_thread(run.export, format_, folder)
    return run


async def aplan(recipe: RecipeLike, *, path: PathLike, **settings: Unpack[PlaySettings]) -> Run:
    """Make a new run and its plan without playing; `resume` plays it, `Run.step` steps through a conversation.

    The arguments and the errors raised are those of `play`.

    Example:
        >>> dialoom.plan("personalens", path="planned.db", options={"limit": 2}).status().pending
        2
    """
    async with open_new_run(recipe, path, settings, is_played=False) as opened:
        pass
    return _build_run(opened, recipe, trust=True)


async def aresume(
    path: PathLike,
    *,
    recipe: RecipeLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    retry_failed: bool = False,
    trials: int | None = None,
    **calls: Unpack[CallSettings],
) -> Run:
    """Resume a run where it stopped: finished scenarios stay unchanged, and started ones continue from their last step.

    Example:
        >>> dialoom.resume("run.db").status().pending
        0

    Args:
        path: The run's file.
        recipe: The recipe, if the run was made with a recipe object.
        models: Functions and graphs given as Python objects, by role. The models of other roles cannot be changed.
        retry_failed: Whether failed scenarios are tried again.
        trials: The total number of trials of each scenario; missing trials are added to the run's plan.
        **calls: How calls are made; see `CallSettings`.

    Raises:
        StoreError: If it is not a run, another process writes it, or it has more trials than requested.
        RunError, BindingError, CacheError: If something is missing or wrong; the message says what.
        TrustError: If the run refers to code or an address that was not specified on this machine, and `trust` is not
            set.
    """
    async with reopen_run(path, recipe, models, calls) as opened:
        if retry_failed or trials is not None:
            await ensure_playable(opened)
        if trials is not None:
            opened.store.add_trials(trials)
        if retry_failed:
            retry_failures(opened)
        ended = await play_pending(opened, is_resumed=True)
    return _build_run(opened, recipe, ended, trust=calls.get("trust", False))


async def ajudge(
    path: PathLike,
    model: Players | None = None,
    *,
    name: str | None = None,
    repeat: int = 1,
    sample: int | None = None,
    where: str | None = None,
    judges: PathLike | None = None,
    recipe: RecipeLike | None = None,
    retry_failed: bool = False,
    **settings: Unpack[JudgeSettings],
) -> Run:
    """Judge a run's finished scenarios once more, into a new set of judgements; or continue a set of that name.

    Example:
        >>> run = dialoom.judge("run.db", "offline/generic", name="second")
        >>> [each.name for each in run.judgement_sets]
        ['run', 'second']

    Args:
        path: The run's file.
        model: The judge for every judging role that is not in `models`. Several judges, in a list, judge one after the
            other, each into its own set; the set `panel` combines them. `models` accepts lists as well.
        name: The set's name; by default the judges' models.
        repeat: How often each judge judges all scenarios; each repetition goes into its own set (`NAME`, `NAME #2`,
            ...). The sets show how far a judge agrees with itself.
        sample: The maximum number of scenarios to judge, drawn with the run's seed from those that the judge is asked
            about (some recipes ask about failures only). A larger number in a later call adds scenarios.
        where: Only scenarios that match this expression are judged.
        judges: A study's file; its judges and checks score the imported conversations, also in later calls.
        recipe: The recipe, if the run was made with a recipe object.
        retry_failed: Whether failed judgings are tried again.
        **settings: The judge of each role (`models`), sampling settings, and how calls are made, as for `play`; see
            `JudgeSettings`.

    Raises:
        StoreError: If it is not a run, or another process writes it.
        RunError: If the recipe cannot judge finished conversations, or the name belongs to other judgements.
        BindingError, CacheError: If a setting is wrong; the message names it.
    """
    validate_settings(JudgeSettings, settings)
    study = None if judges is None else build_transcripts(read_study(Path(judges), is_played=False))
    calls = select_settings(CallSettings, settings)
    with open_for_judging(path, recipe, calls) as store, study_transaction(store, study):
        judge, ended = store.recipe, None
        get_judging_graph(judge)  # fails early if the recipe has no judges
        only = draw_positions(store, sample, where)
        check_columns(store, study, only)
        bindings_list = bind_judges(judge, model, select_settings(PlayerSettings, settings))
        sets = name_judgement_sets(bindings_list, name, repeat)
        await asyncio.to_thread(check_judges, store, judge, bindings_list, calls)
        tell, _ = get_listener_and_control(calls)
        report_ineffective_settings(tell, settings, [each.by_role for each in bindings_list])
        if not store.status().done:
            tell(Notice(f"{path} has no finished scenarios to judge"))
        for bindings, set_name in sets:
            ended = add_counts(
                ended, await judge_scenarios(store, judge, bindings, set_name, retry_failed, calls, only)
            )
            if not ended.is_complete:
                break
    return Run(path, recipe=recipe, ended=ended, trust=settings.get("trust", False))


async def areview(
    path: PathLike,
    model: ModelLike | None = None,
    *,
    name: str | None = None,
    recipe: RecipeLike | None = None,
    retry_failed: bool = False,
    **settings: Unpack[JudgeSettings],
) -> Run:
    """Find faults in a run's finished conversations: by the current rules, and by a reviewer if one is given.

    The rules make no model calls, and the faults that they find replace those stored in the run. A reviewer is asked
    about faults that rules cannot detect (`dialoom.graphs.recipe.REVIEWED_FAULTS`); its verdicts are stored as a
    separate set of judgements.

    Example:
        >>> run = dialoom.review("run.db")  # by rules; models={"reviewer": "openai/gpt-4o"} also asks a model

    Args:
        path: The run's file.
        model: The model of the reviewer; by default no reviewer is asked.
        name: The set's name; by default `review by` and the model's name.
        recipe: The recipe, if the run was made with a recipe object.
        retry_failed: Whether failed reviews are tried again.
        **settings: As for `judge`.

    Raises:
        StoreError: If it is not a run, or another process writes it.
        RunError: If the name belongs to other judgements.
        BindingError, CacheError: If a setting is wrong; the message names it.
    """
    validate_settings(JudgeSettings, settings)
    calls = select_settings(CallSettings, settings)
    with open_for_judging(path, recipe, calls) as store:
        await asyncio.to_thread(apply_gate, store)
        ended = None
        if model is not None or settings.get("models"):
            reviewing = Review(store.recipe)
            bindings = bind(
                WithJudging.of(reviewing).judging_roles(), model, **select_settings(PlayerSettings, settings)
            )
            await asyncio.to_thread(check_judges, store, reviewing, [bindings], calls)
            ended = await judge_scenarios(store, reviewing, bindings, name, retry_failed, calls)
    return Run(path, recipe=recipe, ended=ended, trust=settings.get("trust", False))


async def aretry(
    path: PathLike,
    *,
    failed: bool | None = None,
    scenarios: Collection[str | int] = (),
    unparsed: bool = False,
    judging: str | None = None,
    recipe: RecipeLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    **calls: Unpack[CallSettings],
) -> Run:
    """Retry failed scenarios or unparsed judgements only. Pending scenarios stay pending; `resume` plays them.

    Example:
        >>> dialoom.retry("run.db", scenarios=[1]).status().done
        4

    Args:
        path: The run's file.
        failed: Whether to retry failed scenarios, from their last step; the default if neither `scenarios` nor
            `unparsed` is given.
        scenarios: Scenarios to play again from their beginning, with new replies: ids, beginnings of ids, or numbers in
            the plan (from 1).
        unparsed: Whether to request new replies for judgements whose replies could not be parsed.
        judging: The set whose unparsed judgements are repeated; by default the run's own set.
        recipe: The recipe, if the run was made with a recipe object.
        models: Functions and graphs given as Python objects, by role.
        **calls: How calls are made; see `CallSettings`.

    Raises:
        StoreError: If it is not a run, another process writes it, or it has no such scenario or set.
        RunError, BindingError, CacheError: If something is missing or wrong; the message says what.
        TrustError: If the run refers to code or an address that was not specified on this machine, and `trust` is not
            set.
    """
    if judging is not None and not unparsed:
        raise RunError(
            f"judging {judging!r}: it names the set whose unparsed judgements are repeated, so 'unparsed' is needed "
            "too",
            setting="judging",
        )
    check_lists(scenarios=scenarios)
    is_failed = failed if failed is not None else not scenarios and not unparsed
    async with reopen_run(path, recipe, models, calls) as opened:
        ended = None
        if unparsed:
            ended = await rejudge_unparsed(opened, judging)
        if (is_failed or scenarios) and (ended is None or (ended.is_complete and not ended.failed)):
            ended = await play_again(opened, is_failed, scenarios)
    return _build_run(opened, recipe, ended, trust=calls.get("trust", False))


async def aestimate(recipe: RecipeLike, **settings: Unpack[PlaySettings]) -> CostEstimate:
    """Estimate the cost of a run before anything is sent, from a few of its scenarios played by scripted stand-ins.

    Example:
        >>> dialoom.estimate("personalens", options={"limit": 2}).total.calls > 0
        True

    Args:
        recipe: As for `play`.
        **settings: As for `play`.

    Raises:
        RunError: If stand-ins cannot play the recipe, and in the same cases as `play`.
    """
    new = await asyncio.to_thread(lambda: resolve_new_run(recipe, False, **settings))
    tell, control = get_listener_and_control(settings)
    return await estimate_cost(new.recipe, new.config, new.policy.limits, lambda text: tell(Notice(text)), control)


async def stream(
    recipe: RecipeLike | None = None, *, path: PathLike, is_new: bool | None = None, **settings: Unpack[PlaySettings]
) -> AsyncGenerator[Event, None]:
    """Yield the events of a run while it is played or, if no recipe is given, resumed.

    Leaving the loop early stops the work. Committed steps are kept, and `resume` continues from them. If the same
    coroutine then does other work, wrap the stream in `contextlib.aclosing`: otherwise, the event loop closes the
    stream only later.

    Example:
        >>> async def watch():
        ...     async for event in dialoom.stream("personalens", path="watched.db", options={"limit": 2}):
        ...         if isinstance(event, dialoom.Ended):
        ...             print(event.done, "done")
        >>> asyncio.run(watch())
        2 done

    Args:
        recipe: As for `play`; `None` to resume the run at `path`.
        path: The run's file.
        is_new: Whether to make a new run; by default true if a recipe is given. To resume a run made with a recipe
            object, give the object again and set this to false.
        **settings: As for `play`; when resuming, only `models` and those of `CallSettings`.

    Yields:
        Events; the last one is `Ended`.

    Raises:
        DialoomError: In the same cases as `play` and `resume`.
    """
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    listener, control = settings.get("on_event"), settings.get("control") or Control()

    def on_event(event: Event) -> None:
        if listener is not None:
            listener(event)
        loop.call_soon_threadsafe(queue.put_nowait, event)  # planning reports from another thread

    loop = asyncio.get_running_loop()
    arguments: Any = {**settings, "on_event": on_event, "control": control}
    work = asyncio.create_task(
        aresume(path, recipe=recipe, **arguments)
        if recipe is None or is_new is False
        else aplay(recipe, path=path, **arguments)
    )
    work.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await work
    finally:
        if not work.done():
            control.stop()
            with contextlib.suppress(Exception):
                await work


@contextlib.asynccontextmanager
async def step(
    path: PathLike,
    scenario: str | int,
    *,
    branch: str = MAIN,
    recipe: RecipeLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    **calls: Unpack[CallSettings],
) -> AsyncIterator[Stepper]:
    """Open one conversation of a run for stepping; see `Run.step`.

    Example:
        >>> async def refuse():
        ...     async with dialoom.step("run.db", 1) as stepper:
        ...         await stepper.goto(2)  # the user has spoken, the assistant is next
        ...         stop = await stepper.say("assistant", "I would rather not.")
        ...         return stop.branch
        >>> asyncio.run(refuse())
        'b1'
    """
    async with reopen_run(path, recipe, models, calls, is_stepped=True) as opened:
        tell, config = opened.tell, opened.store.config
        players = [reference for cast in config.casts for reference in cast_references(cast)]
        if changed := ", ".join(each.name for each in find_changed_files(players, config.code)):
            tell(
                Notice(
                    f"{path}: recorded replies of the old {changed} are used; 'resample' requests replies from the new "
                    "code"
                )
            )

        async with Stepper.open(
            opened.store,
            scenario,
            branch=branch,
            policy=opened.policy,
            tell=lambda text: tell(NodeMessage(str(scenario), text)),
        ) as stepper:
            if (problem := stepper.context.problem) is not None:
                tell(Notice(f"{problem.message}. Recorded steps can be viewed, without the scores of checks"))
            yield stepper


play = blocking("play", aplay)
plan = blocking("plan", aplan)
resume = blocking("resume", aresume)
judge = blocking("judge", ajudge)
review = blocking("review", areview)
retry = blocking("retry", aretry)
estimate = blocking("estimate", aestimate)


def _build_run(opened: OpenRun, recipe: RecipeLike | None, ended: Ended | None = None, *, trust: bool = False) -> Run:
    """Return the handle of a run after an operation; it holds the players that were passed as objects."""
    objects = opened.policy.objects
    models = {role: objects[each.model] for role, each in opened.models.items() if each.model in objects}
    return Run(opened.store.path, recipe, models=models, ended=ended, trust=trust)


def _check_data_folder(recipe: RecipeLike, options: Mapping[str, Any] | BaseModel | None, folder: Path) -> str:
    """Return the name of the folder format in which the recipe, with these options, writes the data that it generates.

    Raises:
        RunError: If there is no such recipe, an option is wrong, or the recipe generates no data for a folder.
        OutputError: If the path exists already.
    """
    _, loaded = find_recipe(recipe)
    format_ = WithExports.of(loaded).folder_format(parse_options(loaded, options))
    if format_ is None:
        raise RunError(
            f"folder {str(folder)!r}: {loaded.name} generates no data for a folder; export a format instead",
            setting="folder",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder} exists and is not an empty folder; give another folder for the run's data")
    return format_
