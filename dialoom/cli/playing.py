"""`run`, `resume`, `retry` and `judge`: the API's operations under a progress display."""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, TypeVar, cast

import typer

from dialoom import Run, aestimate, ajudge, aplay, aresume, aretry, areview, review
from dialoom.api.run import RunReader
from dialoom.api.settings import JudgeSettings
from dialoom.graphs import Recipe
from dialoom.graphs.capabilities import WithExports
from dialoom.graphs.gate import reduced_shares
from dialoom.roles.gateway.litellm_backend import tune_process
from dialoom.runs.configuration.recipes import parsed_options
from dialoom.runs.errors import RunError, StoppedError
from dialoom.runs.progress import Ended
from dialoom.runs.store import OWN_JUDGEMENTS
from dialoom.settings import Budget, ModelLike

from .dry_run import print_estimate
from .errors import EXIT_DONE, EXIT_INTERRUPTED, flag
from .settings import call_settings, judge_settings, named_models, play_settings
from .terminal import say
from .watcher import Watcher

Result = TypeVar("Result")

WHO = ("model", "temperature", "api_base", "structured", "max_reply", "param")
"""The flags that identify a set of judgements."""


class JudgedScenarios(TypedDict):
    """What is judged, how often, and what it is called."""

    name: str | None
    repeat: int
    sample: int | None
    where: str | None


def start_run(spec: str, recipe: Recipe, options: Mapping[str, Any], flags: Mapping[str, Any]) -> int:
    """Carry out `dialoom run`; return the exit code.

    Args:
        spec: The recipe's name or file.
        recipe: The recipe.
        options: Its own options.
        flags: The values of the other flags.
    """
    settings, command = play_settings(recipe, options, flags)
    watcher = Watcher(settings, log_format=command["log_format"])
    if command["dry_run"]:
        estimate = carried_out(aestimate(spec, **settings), watcher)
        print_estimate(estimate, cast("Budget | None", settings["budget"]))
        return EXIT_DONE
    if (path := command["out"]) is None:
        raise RunError("-o RUN is missing: give the file in which the run is to be kept, such as -o run.db")
    folder = command["folder"]
    carried_out(aplay(spec, path=path, folder=folder, **settings), watcher)
    if folder is not None:
        format_ = WithExports.of(recipe).folder_format(parsed_options(recipe, settings["options"]))
        export = f"dialoom export {path} --format {format_} -o {folder}"
        is_done = watcher.exit_code() == EXIT_DONE
        say(f"{folder} is written" if is_done else f"{folder} is not written; when all is done: {export}")
    return watcher.exit_code()


def resume_run(path: Path, retry_failed: bool, trials: int | None, flags: Mapping[str, Any]) -> int:
    """Carry out `dialoom resume`; return the exit code."""
    calls = call_settings(flags)
    watcher = Watcher(calls, log_format=flags["log_format"])
    carried_out(aresume(path, retry_failed=retry_failed, trials=trials, **calls), watcher)
    return watcher.exit_code()


def retry_run(
    path: Path, failed: bool, unparsed: bool, scenarios: Sequence[str], judging: str | None, flags: Mapping[str, Any]
) -> int:
    """Carry out `dialoom retry`; return the exit code."""
    rejudge = f"dialoom retry {path} --unparsed --judging {judging or OWN_JUDGEMENTS!r}"
    calls = call_settings(flags)
    watcher = Watcher(
        calls,
        again=lambda ended: f"dialoom resume {path}" if ended.judging is None else rejudge,
        retry=lambda ended: f"dialoom retry {path}" if ended.judging is None else rejudge,
        log_format=flags["log_format"],
    )
    work = aretry(path, failed=failed or None, scenarios=scenarios, unparsed=unparsed, judging=judging, **calls)
    carried_out(work, watcher)
    if unparsed and watcher.exit_code() == EXIT_DONE:
        _say_what_is_unparsed(path, judging, rejudge)
    return watcher.exit_code()


def judge_run(path: Path, which: JudgedScenarios, retry_failed: bool, flags: Mapping[str, Any]) -> int:
    """Carry out `dialoom judge`; return the exit code.

    Args:
        path: The run's file.
        which: What is judged.
        retry_failed: Whether failed judgings are tried again.
        flags: The values of the other flags.
    """
    if not flags["model"]:
        raise RunError("--model is missing: give the model that judges, such as --model openai/gpt-5")
    settings = judge_settings(flags)
    every, settings["models"] = named_models(settings)

    def again(ended: Ended) -> str:
        is_one = which["repeat"] == 1 and len(flags["model"]) == 1
        shown = {**which, "repeat": which["repeat"] if which["repeat"] > 1 else None}
        given = "".join(_as_flag(*each) for each in {**shown, **({"name": ended.judging} if is_one else {})}.items())
        return f"dialoom judge {path}{given} {_who(flags)}"

    watcher = _judging_watcher(again, settings, flags)
    judges = cast("list[ModelLike]", every) or None
    carried_out(ajudge(path, judges, retry_failed=retry_failed, **which, **settings), watcher)
    if (code := watcher.exit_code()) == EXIT_DONE and len(RunReader(path).judgement_sets) > 1:
        say(f"what the judges say side by side, and how far they agree: dialoom report {path}")
    return code


def review_run(path: Path, name: str | None, retry_failed: bool, flags: Mapping[str, Any]) -> int:
    """Carry out `dialoom review`; return the exit code."""
    if not flags["model"]:
        say(_found(review(path, trust=bool(flags["trust"]))))
        return EXIT_DONE
    settings = judge_settings(flags)
    every, settings["models"] = named_models(settings, ())

    def again(ended: Ended) -> str:
        return f"dialoom review {path}{_as_flag('name', ended.judging)} {_who(flags)}"

    watcher = _judging_watcher(again, settings, flags)
    reviewer = every[-1] if every else None
    carried_out(areview(path, reviewer, name=name, retry_failed=retry_failed, **settings), watcher)
    return watcher.exit_code()


def _judging_watcher(again: Callable[[Ended], str], settings: JudgeSettings, flags: Mapping[str, Any]) -> Watcher:
    """Return the watcher of a command that makes a set of judgements."""
    return Watcher(
        settings, again=again, retry=lambda ended: f"{again(ended)} --retry-failed", log_format=flags["log_format"]
    )


def _who(flags: Mapping[str, Any]) -> str:
    return " ".join(f"{flag(name)} {shlex.quote(text)}" for name in WHO for text in flags[name] or ())


def _as_flag(name: str, value: object) -> str:
    return "" if value is None else f" {flag(name)} {value!r}"


def _found(run: Run) -> str:
    """Return what the rules found, and the rules' coverage of the languages."""
    found, status = list(run.faults()), run.status()
    ids = {episode.id for episode, _ in found}
    told = f"{run.path}: {len(found):,} faults in {len(ids):,} of {status.done:,} dialogues"
    told += f"; dialoom report {run.path} --table faults" if found else ""
    return f"{told}\n{reduced_shares(status.languages, status.gated)}"


def carried_out(work: Coroutine[Any, Any, Result], watcher: Watcher) -> Result:
    """Do the work under a progress display; the first Ctrl-C (or SIGTERM) drains it, the second stops it.

    Raises:
        typer.Exit: If it was stopped before there was anything to go on with.
    """
    tune_process()

    async def run() -> Result:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, watcher.control.interrupt)
        showing = asyncio.create_task(watcher.watch())
        try:
            return await work
        finally:
            showing.cancel()

    with watcher:
        try:
            return asyncio.run(run())
        except StoppedError as error:
            raise typer.Exit(EXIT_INTERRUPTED) from error


def _say_what_is_unparsed(path: Path, name: str | None, again: str) -> None:
    if left := RunReader(path).unparsed(name):
        say(
            f"{left:,} judgements are unparsed still: their replies could not be read again, or the recipe judges "
            f"these things only while it plays (dialoom retry {path} --scenario ID). Once more: {again}"
        )
