"""`run`, `resume`, `retry` and `judge`: the API's operations under a progress display."""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from dialoom.api import Run, aestimate, ajudge, aplay, aresume, aretry, areview, review
from dialoom.graphs import Recipe
from dialoom.graphs.capabilities import WithExports
from dialoom.graphs.gate import reduced_shares
from dialoom.roles.gateway.litellm_backend import tune_process
from dialoom.runs.errors import StoppedError
from dialoom.runs.progress import Ended
from dialoom.runs.recipes import parsed_options
from dialoom.runs.store import OWN_JUDGEMENTS, RunFile

from .dry_run import print_estimate
from .errors import EXIT_DONE, EXIT_INTERRUPTED, flag
from .settings import call_settings, merged, players, several_players
from .terminal import say
from .watcher import Watcher

Operation = Callable[..., Coroutine[Any, Any, Any]]


def start_run(spec: str, recipe: Recipe, given: dict[str, Any], **common: Any) -> int:
    """Carry out `dialoom run`; return the exit code.

    Args:
        spec: The recipe's name or file.
        recipe: The recipe.
        given: Its own options.
        common: The options of every run.
    """
    is_estimate = bool(common.pop("dry_run"))
    settings, log_format = merged(recipe, given, common, needs_path=not is_estimate)
    if is_estimate:
        for name in ("path", "folder"):
            settings.pop(name, None)
        estimate = carried_out(
            lambda **watched: aestimate(spec, **{**settings, **watched}), Watcher(settings["control"])
        )
        print_estimate(estimate, settings.get("budget"))
        return EXIT_DONE
    watcher = Watcher(settings["control"], log_format=log_format)
    carried_out(lambda **watched: aplay(spec, **{**settings, **watched}), watcher)
    if (folder := settings.get("folder")) is not None:
        format_ = WithExports.of(recipe).folder_format(parsed_options(recipe, settings["options"]))
        export = f"dialoom export {settings['path']} --format {format_} -o {folder}"
        is_done = watcher.exit_code() == EXIT_DONE
        say(f"{folder} is written" if is_done else f"{folder} is not written; when all is done: {export}")
    return watcher.exit_code()


def resume_run(path: Path, concurrency: int, retry_failed: bool, given: Mapping[str, Any]) -> int:
    """Carry out `dialoom resume`; return the exit code."""
    settings = call_settings(given, concurrency)
    watcher = Watcher(settings["control"], log_format=given.get("log_format"))
    carried_out(lambda **watched: aresume(path, retry_failed=retry_failed, **{**settings, **watched}), watcher)
    return watcher.exit_code()


def retry_run(
    path: Path,
    failed: bool,
    unparsed: bool,
    scenarios: Sequence[str],
    judging: str | None,
    concurrency: int,
    given: Mapping[str, Any],
) -> int:
    """Carry out `dialoom retry`; return the exit code."""
    settings = call_settings(given, concurrency)
    rejudge = f"dialoom retry {path} --unparsed --judging {judging or OWN_JUDGEMENTS!r}"
    watcher = Watcher(
        settings["control"],
        again=lambda ended: f"dialoom resume {path}" if ended.judging is None else rejudge,
        retry=lambda ended: f"dialoom retry {path}" if ended.judging is None else rejudge,
        log_format=given.get("log_format"),
    )

    def retry(**watched: Any) -> Coroutine[Any, Any, Run]:
        which: dict[str, Any] = {"failed": failed or None, "scenarios": scenarios, "unparsed": unparsed}
        return aretry(path, **which, judging=judging, **{**settings, **watched})

    carried_out(retry, watcher)
    if unparsed and watcher.exit_code() == EXIT_DONE:
        _say_what_is_unparsed(path, judging, rejudge)
    return watcher.exit_code()


def judge_run(
    path: Path,
    which: Mapping[str, Any],
    judges: Mapping[str, list[str] | None],
    concurrency: int,
    retry_failed: bool,
    given: Mapping[str, Any],
) -> int:
    """Carry out `dialoom judge`; return the exit code.

    Args:
        path: The run's file.
        which: What is judged, how often, and what it is called: `name`, `repeat`, `sample` and `where`.
        judges: Who judges and how they sample, as flags say it.
        concurrency: How many dialogues at once.
        retry_failed: Whether failed judgings are tried again.
        given: The other flags.
    """

    def judge(**settings: Any) -> Coroutine[Any, Any, Run]:
        return ajudge(path, retry_failed=retry_failed, **which, **{**settings, **several_players(judges)})

    def same(ended: Ended) -> str:
        is_one = which["repeat"] == 1 and len(judges["model"] or ()) == 1
        shown = {**which, "repeat": which["repeat"] if which["repeat"] > 1 else None}
        again = "".join(_as_flag(*each) for each in {**shown, **({"name": ended.judging} if is_one else {})}.items())
        return f"dialoom judge {path}{again} {_who(judges)}"

    code = _judged(same, judge, judges, call_settings(given, concurrency), given.get("log_format"))
    if code == EXIT_DONE:
        with RunFile(path) as run:
            if len(run.judgement_sets()) > 1:
                say(f"what the judges say side by side, and how far they agree: dialoom report {path}")
    return code


def review_run(
    path: Path,
    name: str | None,
    reviewers: Mapping[str, list[str] | None],
    concurrency: int,
    retry_failed: bool,
    given: Mapping[str, Any],
) -> int:
    """Carry out `dialoom review`; return the exit code. `reviewers` are the reviewing models and their sampling."""
    if not reviewers["model"]:
        say(_found(review(path, trust=bool(given.get("trust")))))
        return EXIT_DONE

    def reviewing(**settings: Any) -> Coroutine[Any, Any, Run]:
        return areview(path, name=name, retry_failed=retry_failed, **settings)

    def same(ended: Ended) -> str:
        return f"dialoom review {path}{_as_flag('name', ended.judging)} {_who(reviewers)}"

    return _judged(same, reviewing, reviewers, call_settings(given, concurrency), given.get("log_format"))


def _who(judges: Mapping[str, list[str] | None]) -> str:
    return " ".join(f"{flag(name)} {shlex.quote(text)}" for name, texts in judges.items() for text in texts or ())


def _as_flag(name: str, value: object) -> str:
    return "" if value is None else f" {flag(name)} {value!r}"


def _judged(
    same: Callable[[Ended], str],
    operation: Operation,
    judges: Mapping[str, list[str] | None],
    settings: Mapping[str, Any],
    log_format: Any,
) -> int:
    """Carry out a command that makes a set of judgements; return the exit code."""
    watcher = Watcher(
        settings["control"],
        again=same,
        retry=lambda ended: f"{same(ended)} --retry-failed",
        log_format=log_format,
    )

    def judging(**watched: Any) -> Coroutine[Any, Any, Run]:
        return operation(**{**players(judges), **settings, **watched})

    carried_out(judging, watcher)
    return watcher.exit_code()


def _found(run: Run) -> str:
    """Return what the rules found, and the rules' coverage of the languages."""
    found, status = list(run.faults()), run.status()
    ids = {episode.id for episode, _ in found}
    told = f"{run.path}: {len(found):,} faults in {len(ids):,} of {status.done:,} dialogues"
    told += f"; dialoom report {run.path} --table faults" if found else ""
    return f"{told}\n{reduced_shares(status.languages, status.gated)}"


def carried_out(operation: Operation, watcher: Watcher) -> Any:
    """Do the work under a progress display; the first Ctrl-C (or SIGTERM) drains it, the second stops it.

    Raises:
        typer.Exit: If it was stopped before there was anything to go on with.
    """
    tune_process()

    async def run() -> Any:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, watcher.control.interrupt)
        showing = asyncio.create_task(watcher.watch())
        try:
            return await operation(on_event=watcher, control=watcher.control)
        finally:
            showing.cancel()

    with watcher:
        try:
            return asyncio.run(run())
        except StoppedError as error:
            raise typer.Exit(EXIT_INTERRUPTED) from error


def _say_what_is_unparsed(path: Path, name: str | None, again: str) -> None:
    with RunFile(path) as run:
        chosen = run.judgement_set(name)
        left = run.unparsed(chosen.name) if chosen is not None else 0
    if left:
        say(
            f"{left:,} judgements are unparsed still: their replies could not be read again, or the recipe judges "
            f"these things only while it plays (dialoom retry {path} --scenario ID). Once more: {again}"
        )
