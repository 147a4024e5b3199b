"""A run and the operations on it: play, resume, judge, review, retry, step."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Unpack

from dialoom.graphs.capabilities import WithJudging
from dialoom.graphs.review import Review
from dialoom.roles.binding import bind
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import RunError
from dialoom.runs.preflight import CostEstimate, estimate_cost
from dialoom.runs.progress import Control, Ended, Event, NodeSaid, Noted
from dialoom.runs.stepping import Stepper
from dialoom.runs.store.branches import MAIN
from dialoom.settings import ModelLike, PathLike, Players, PlayerSettings, checked, part

from .blocking import blocking
from .folder import made_folder
from .judges import bound_judges, drawn_to_judge, set_names, together
from .resolving import resolve
from .run import RunReader
from .settings import CallSettings, JudgeSettings, PlaySettings, RecipeLike
from .tasks import (
    OpenRun,
    judge_unparsed,
    judged_anew,
    judging_graph,
    new_run,
    pass_gate,
    play_again,
    play_pending,
    reopened,
    reopened_to_judge,
    retry_failures,
    watched,
)


class Run(RunReader):
    """A handle that reads a run's file at any time, as `RunReader`, and resumes, judges and steps through the run.

    Args:
        path: The file.
        recipe: The recipe, if it was given as an object when the run was made.
        models: Functions and graphs that were given as objects, by role, kept for resuming.
        ended: The result of the work that returned this handle.
        trust: As of `RunReader`.

    Attributes:
        ended: The result of the work that returned this handle; `None` without any. `ended.stopped` is the reason
            if it was stopped by its budget or by failures.
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
        with self._opened() as file:
            status = file.status()
            text = (
                f"{str(self.path)!r}: {file.config.recipe}, {status.done:,} of {status.total:,} scenarios done, "
                f"{status.failed:,} failed"
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
            scenario: Its id, the beginning of its id, or its place in the plan (from 1).
            branch: The branch to open.
            models: Functions and graphs that were given as objects, by role; those that this handle was made with are
                known.
            **calls: How calls are made; see `CallSettings`.

        Raises:
            StoreError: If another process writes the run, or there is no such scenario.
            SteppingError: If there is no such branch.
        """
        trusting = self._trusting(calls)
        return step(self.path, scenario, branch=branch, recipe=self._given, models=self._known(models), **trusting)

    def resume(
        self,
        *,
        models: Mapping[str, ModelLike] | None = None,
        retry_failed: bool = False,
        **calls: Unpack[CallSettings],
    ) -> Run:
        """Resume the run where it stopped; see `dialoom.resume`."""
        known, trusting = self._known(models), self._trusting(calls)
        return resume(self.path, recipe=self._given, models=known, retry_failed=retry_failed, **trusting)

    def judge(
        self,
        model: Players | None = None,
        *,
        models: Mapping[str, Players] | None = None,
        name: str | None = None,
        repeat: int = 1,
        sample: int | None = None,
        where: str | None = None,
        **calls: Unpack[CallSettings],
    ) -> Run:
        """Judge the run once more; see `dialoom.judge`."""
        which: dict[str, Any] = {"name": name, "repeat": repeat, "sample": sample, "where": where}
        judged = judge(self.path, model=model, models=models, recipe=self._given, **which, **self._trusting(calls))
        return Run(self.path, self._given, models=self._models, ended=judged.ended, trust=self._trust)

    def stream(
        self, *, models: Mapping[str, ModelLike] | None = None, **calls: Unpack[CallSettings]
    ) -> AsyncGenerator[Event, None]:
        """Resume the run, and yield its events; see `dialoom.stream`."""
        trusting = self._trusting(calls)
        return stream(self._given, path=self.path, is_new=False, models=self._known(models), **trusting)

    def _trusting(self, calls: CallSettings) -> CallSettings:
        """Return the call settings, with the trust of this handle unless they set another."""
        return {"trust": self._trust.everything, **calls}

    def _known(self, models: Mapping[str, ModelLike] | None) -> Mapping[str, ModelLike]:
        """Return the functions and graphs that this handle keeps, overridden by those given now."""
        return {**self._models, **(models or {})}


def open_run(path: PathLike, recipe: RecipeLike | None = None, *, trust: bool | Trust = False) -> Run:
    """Open a run's file for reading, and as a handle for the operations on it.

    Args:
        path: The file.
        recipe: The recipe, if it was given as an object when the run was made.
        trust: Use the code and the addresses that the file names, whoever made it; see `RunReader`.

    Raises:
        StoreError: If there is no such file, or it is no run.
    """
    return Run(path, recipe, trust=trust)


async def aplay(
    recipe: RecipeLike,
    *,
    path: PathLike,
    folder: PathLike | None = None,
    **settings: Unpack[PlaySettings],
) -> Run:
    """Make a new run: plan it, play every scenario, keep every step.

    Args:
        recipe: A registered name (`personalens`), `path/to/file.py:NAME`, a recipe, or its class. A class of an
            imported file is kept as `path/to/file.py:NAME`; one that is in no file (a notebook's) is given again by
            the caller who resumes the run in another process.
        path: The run's file; it must not exist.
        folder: Where the folder is to be written that the run is made for (a source, pairs, people, or drafts of
            these), as soon as everything is done; nothing is written if something failed or was stopped before.
        **settings: Who plays, what is played, and how calls are made; see `PlaySettings`.

    Returns:
        The run. Scenarios that failed are rows in it, not exceptions: `run.status()` counts them, and `run.ended` tells
        whether the work was stopped early, and why.

    Raises:
        RunError, RecipeError, BindingError, PromptError, DataError, StoreError, CacheError: With nothing written, if it
            can be known beforehand; what only comes out while a scenario is played (a node that leaves out an input of
            its prompt) leaves a run to go on with. All of them are `DialoomError`.
        StoppedError: If it was stopped while it was planned; nothing is written.
    """
    if folder is not None:
        format_ = await asyncio.to_thread(made_folder, recipe, settings.get("options"), Path(folder))
    async with new_run(recipe, path, settings, is_played=True) as task:
        ended = await play_pending(task, is_resumed=False)
    run = _handle(task, recipe, ended, trust=True)
    if folder is not None and ended.is_complete and not ended.failed:
        await asyncio.to_thread(run.export, format_, folder)
    return run


async def aplan(recipe: RecipeLike, *, path: PathLike, **settings: Unpack[PlaySettings]) -> Run:
    """Make a new run and its plan without playing; `resume` plays it, `Run.step` steps through a conversation.

    The arguments, and what is raised, are those of `play`.
    """
    async with new_run(recipe, path, settings, is_played=False) as task:
        pass
    return _handle(task, recipe, trust=True)


async def aresume(
    path: PathLike,
    *,
    recipe: RecipeLike | None = None,
    models: Mapping[str, ModelLike] | None = None,
    retry_failed: bool = False,
    trials: int | None = None,
    **calls: Unpack[CallSettings],
) -> Run:
    """Resume a run where it stopped: finished scenarios stay as they are, begun ones go on from their last step.

    Args:
        path: The run's file.
        recipe: The recipe, if it was given as an object.
        models: Functions and graphs that were given as objects, by role; no other model can be changed.
        retry_failed: Try failed scenarios again.
        trials: The number of trials that each scenario is to have; those that the run lacks are added to its plan.
        **calls: How calls are made; see `CallSettings`.

    Raises:
        StoreError: If it is no run, another process writes it, or it has more trials.
        RunError, BindingError, CacheError: Naming what is missing or wrong.
        TrustError: If it names code or an address that this user has not given, and `trust` is not set.
    """
    async with reopened(path, recipe, models, calls) as task:
        if retry_failed:
            retry_failures(task)
        if trials is not None:
            task.store.add_trials(trials)
        ended = await play_pending(task, is_resumed=True)
    return _handle(task, recipe, ended, trust=calls.get("trust", False))


async def ajudge(
    path: PathLike,
    model: Players | None = None,
    *,
    name: str | None = None,
    repeat: int = 1,
    sample: int | None = None,
    where: str | None = None,
    recipe: RecipeLike | None = None,
    retry_failed: bool = False,
    **settings: Unpack[JudgeSettings],
) -> Run:
    """Judge a run's finished scenarios once more, into a set of judgements of its own; or go on with that set.

    Args:
        path: The run's file.
        model: Who judges, in every judging role that `models` does not name. Several, in a list, judge one after the
            other, each into a set of its own; what they say together is the set `panel`. So it is in `models`.
        name: The set's name; by default the judges' models.
        repeat: How often each judge judges all of it, into as many sets (`NAME`, `NAME #2`, ...), which tell how far it
            agrees with itself.
        sample: Judge no more than so many scenarios, drawn with the run's seed among those about which a judge is asked
            anything (some recipes ask about failures alone). A larger number later adds to them.
        where: Judge only scenarios that match this expression.
        recipe: The recipe, if it was given as an object.
        retry_failed: Try failed judgings again.
        **settings: Who judges in which role (`models`), how they sample, and how calls are made, as for `play`; see
            `JudgeSettings`.

    Raises:
        StoreError: If it is no run, or another process writes it.
        RunError: If the recipe has no judging of its own, or the name belongs to other judgements.
        BindingError, CacheError: Naming what is wrong.
    """
    checked(JudgeSettings, settings)
    with reopened_to_judge(path, recipe, part(CallSettings, settings)) as store:
        judge, ended = store.recipe, None
        judging_graph(judge)  # fails early if the recipe has none
        only = drawn_to_judge(store, sample, where)
        bound = bound_judges(judge, model, part(PlayerSettings, settings))
        for judges, named in set_names(bound, name, repeat):
            made = await judged_anew(store, judge, judges, named, retry_failed, part(CallSettings, settings), only)
            ended = together(ended, made)
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

    The rules cost nothing, and their faults replace those that the run has. A reviewer's verdicts are a set of their
    own beside the judgements; it is asked what rules cannot see (`dialoom.graphs.review.REVIEWED`).

    Args:
        path: The run's file.
        model: The reviewer; by default none.
        name: The set's name; by default `review by` the model.
        recipe: The recipe, if it was given as an object.
        retry_failed: Try failed reviews again.
        **settings: As for `judge`.

    Raises:
        StoreError: If it is no run, or another process writes it.
        RunError: If the name belongs to other judgements.
        BindingError, CacheError: Naming what is wrong.
    """
    checked(JudgeSettings, settings)
    with reopened_to_judge(path, recipe, part(CallSettings, settings)) as store:
        await asyncio.to_thread(pass_gate, store)
        ended = None
        if model is not None or settings.get("models"):
            reviewing = Review(store.recipe)
            bound = bind(WithJudging.of(reviewing).judging_roles(), model, **part(PlayerSettings, settings))
            ended = await judged_anew(store, reviewing, bound, name, retry_failed, part(CallSettings, settings))
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
    """Retry failed scenarios or unparsed judgements only: pending scenarios stay pending (`resume` plays them).

    Args:
        path: The run's file.
        failed: Failed scenarios, from their last step; by default if neither `scenarios` nor `unparsed` is given.
        scenarios: Scenarios to be played anew, from their beginning and with replies of their own: ids, beginnings of
            ids, or places in the plan (from 1).
        unparsed: Judgements whose replies could not be parsed: new replies are requested.
        judging: Of which set; by default the run's own.
        recipe: The recipe, if it was given as an object.
        models: Functions and graphs that were given as objects, by role.
        **calls: How calls are made; see `CallSettings`.

    Raises:
        StoreError: If it is no run, another process writes it, or it has no such scenario or set.
        RunError, BindingError, CacheError: Naming what is missing or wrong.
        TrustError: If it names code or an address that this user has not given, and `trust` is not set.
    """
    if judging is not None and not unparsed:
        raise RunError(
            f"judging {judging!r}: it names the set whose unparsed judgements are made again; ask for these too",
            setting="judging",
        )
    is_failed = failed if failed is not None else not scenarios and not unparsed
    async with reopened(path, recipe, models, calls) as task:
        ended = None
        if unparsed:
            ended = await judge_unparsed(task, judging)
        if (is_failed or scenarios) and (ended is None or (ended.is_complete and not ended.failed)):
            ended = await play_again(task, is_failed, scenarios)
    return _handle(task, recipe, ended, trust=calls.get("trust", False))


async def aestimate(recipe: RecipeLike, **settings: Unpack[PlaySettings]) -> CostEstimate:
    """Estimate what a run would cost before anything is sent: a few of its scenarios are played by understudies.

    Args:
        recipe: As for `play`.
        **settings: As for `play`.

    Raises:
        RunError: If understudies cannot play the recipe; and whatever `play` would raise.
    """
    new = await asyncio.to_thread(lambda: resolve(recipe, **settings))
    tell, control = watched(settings)
    return await estimate_cost(
        new.recipe, new.config, new.overrides, new.policy.limits, lambda text: tell(Noted(text)), control
    )


async def stream(
    recipe: RecipeLike | None = None, *, path: PathLike, is_new: bool | None = None, **settings: Unpack[PlaySettings]
) -> AsyncGenerator[Event, None]:
    """Yield events while a run is played, as they happen; without a recipe, while it is resumed.

    Leaving the loop early stops the work; what was committed is kept, and `resume` goes on from there. In the same
    coroutine that wants `contextlib.aclosing`, as an event loop closes what was left a moment later.

    Args:
        recipe: As for `play`; `None` to go on with the run at `path`.
        path: The run's file.
        is_new: True to make the run; by default if there is a recipe. One that was given as an object is given
            again to go on.
        **settings: As for `play`; to go on, only `models` and how calls are made.

    Yields:
        Events; the last one is `Ended`.

    Raises:
        DialoomError: As `play` and `resume`.
    """
    queue: asyncio.Queue[Event | None] = asyncio.Queue()
    listener, control = settings.get("on_event"), settings.get("control") or Control()

    def on_event(event: Event) -> None:
        if listener is not None:
            listener(event)
        loop.call_soon_threadsafe(queue.put_nowait, event)  # planning reports from another thread

    loop = asyncio.get_running_loop()
    told: Any = {**settings, "on_event": on_event, "control": control}
    if recipe is None or is_new is False:
        work = asyncio.create_task(aresume(path, recipe=recipe, **told))
    else:
        work = asyncio.create_task(aplay(recipe, path=path, **told))
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
    """Open one conversation of a run for stepping; see `Run.step`."""
    async with reopened(path, recipe, models, calls) as task:
        tell = task.tell

        def told(text: str) -> None:
            tell(NodeSaid(str(scenario), text))

        opened = Stepper.open(task.store, scenario, branch=branch, policy=task.policy, tell=told)
        async with opened as stepper:
            yield stepper


play = blocking("play", aplay)
plan = blocking("plan", aplan)
resume = blocking("resume", aresume)
judge = blocking("judge", ajudge)
review = blocking("review", areview)
retry = blocking("retry", aretry)
estimate = blocking("estimate", aestimate)


def _handle(task: OpenRun, recipe: RecipeLike | None, ended: Ended | None = None, *, trust: bool = False) -> Run:
    """Return the handle on the run of a finished task; it keeps the models that were given as objects."""
    objects = task.policy.objects
    models = {role: objects[each.model] for role, each in task.models.items() if each.model in objects}
    return Run(task.store.path, recipe, models=models, ended=ended, trust=trust)
