"""`run`, `resume`, `retry`, `judge` and `--dry-run` under a progress display; Ctrl-C stops them."""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
from collections.abc import Coroutine, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar, cast

import typer

from dialoom import Run, aestimate, ajudge, aplay, aresume, aretry, areview, atry_judge, review
from dialoom.api.blocking import run_in_daemon_threads
from dialoom.api.operation_settings import CallSettings, JudgeSettings, PlaySettings, resolve_new_run
from dialoom.api.run import RunReader
from dialoom.graphs import Recipe, WithExports
from dialoom.graphs.gate import format_reduced_coverage
from dialoom.roles.gateway.litellm_backend import tune_process
from dialoom.runs.configuration.recipes import parse_options
from dialoom.runs.control import Ended
from dialoom.runs.errors import RunError, StoppedError
from dialoom.runs.preflight import CostEstimate, ExpectedUsage
from dialoom.runs.store import OWN_JUDGEMENTS
from dialoom.settings import Budget, ModelLike, select_settings

from .console import build_table, make_console
from .errors import EXIT_DONE, EXIT_INTERRUPTED, get_flag
from .reporting import print_tables
from .setting_flags import CallCommand, JudgeCommand, RunCommand, get_single_model, split_models
from .terminal import echo, echo_lines
from .watcher import Watcher, prepare_watcher

Result = TypeVar("Result")


def start_run(spec: str, recipe: Recipe, command: RunCommand) -> int:
    """Carry out `dialoom run RECIPE`; return the exit code."""
    if command["dry_run"]:
        return estimate_run(spec, command)
    settings, watcher = prepare_watcher(PlaySettings, command)
    if (path := command["out"]) is None:
        raise RunError("-o RUN is missing: give the file in which to store the run, such as -o run.db")
    folder = command["folder"]
    run_with_display(aplay(spec, path=path, folder=folder, **settings), watcher)
    if folder is not None:
        format_ = WithExports.of(recipe).folder_format(parse_options(recipe, settings["options"]))
        export = f"dialoom export {path} --format {format_} -o {folder}"
        echo(
            f"{folder} is written"
            if watcher.exit_code() == EXIT_DONE
            else f"{folder} is not written; when all scenarios are done, run: {export}"
        )
    return watcher.exit_code()


def estimate_run(recipe: str | Recipe, command: RunCommand) -> int:
    """Carry out `--dry-run`; return the exit code."""
    settings, watcher = prepare_watcher(PlaySettings, command)
    print_estimate(
        run_with_display(aestimate(recipe, **settings), watcher), cast("Budget | None", settings["budget"]) or Budget()
    )
    return EXIT_DONE


def play_or_resume(recipe: Recipe, path: Path, command: RunCommand) -> Watcher:
    """Play the run that a command uses, or resume it if its file exists; return its display.

    Raises:
        RunError: If the existing run was made with other settings.
    """
    settings, watcher = prepare_watcher(PlaySettings, command)
    if path.exists():
        if differing := RunReader(path).config_diff(resolve_new_run(recipe, False, **settings).config, recipe):
            raise RunError(
                f"{path} was made with another configuration ({'; '.join(differing)}); give the same configuration to "
                "continue it, or another output path"
            )
        run_with_display(aresume(path, retry_failed=True, **select_settings(CallSettings, settings)), watcher)
    else:
        run_with_display(aplay(recipe, path=path, **settings), watcher)
    return watcher


def resume_run(path: Path, retry_failed: bool, trials: int | None, command: CallCommand) -> int:
    """Carry out `dialoom resume`; return the exit code."""
    calls, watcher = prepare_watcher(CallSettings, command)
    run_with_display(aresume(path, retry_failed=retry_failed, trials=trials, **calls), watcher)
    return watcher.exit_code()


def retry_run(
    path: Path, failed: bool, unparsed: bool, scenarios: Sequence[str], judging: str | None, command: CallCommand
) -> int:
    """Carry out `dialoom retry`; return the exit code."""
    rejudge = f"dialoom retry {path} --unparsed --judging {judging or OWN_JUDGEMENTS!r}"
    calls, watcher = prepare_watcher(
        CallSettings,
        command,
        format_resume=lambda ended: f"dialoom resume {path}" if ended.judging is None else rejudge,
        format_retry=lambda ended: f"dialoom retry {path}" if ended.judging is None else rejudge,
    )
    work = aretry(path, failed=failed or None, scenarios=scenarios, unparsed=unparsed, judging=judging, **calls)
    run_with_display(work, watcher)
    if unparsed and watcher.exit_code() == EXIT_DONE and RunReader(path).unparsed(judging):
        echo(
            "judgements that the recipe makes only while it plays are not repeated; to play their scenarios again: "
            f"dialoom retry {path} --scenario ID"
        )
    return watcher.exit_code()


def judge_run(path: Path, command: JudgeCommand, **arguments: Any) -> int:
    """Carry out `dialoom judge`; return the exit code.

    Args:
        path: The run's file.
        command: Who judges, and how calls are made.
        **arguments: What to judge, and the name of the set of judgements, as for `dialoom.judge`.
    """
    judges, settings, watcher = _prepare_judging(
        command, is_set_named=arguments["repeat"] == 1 and arguments["name"] is None
    )
    run_with_display(ajudge(path, judges, **arguments, **settings), watcher)
    if (code := watcher.exit_code()) == EXIT_DONE and len(RunReader(path).judgement_sets) > 1:
        echo(f"for the judges' scores side by side and their agreement, run: dialoom report {path}")
    return code


def run_judge_trial(source: Path, command: JudgeCommand, **arguments: Any) -> int:
    """Carry out `dialoom judge --try`; return the exit code.

    Args:
        source: The labelled conversations, or a run.
        command: Who judges, and how calls are made.
        **arguments: The study with the judges, the labels, and the file of the judged run, as for `dialoom.try_judge`.
    """
    judges, settings, watcher = _prepare_judging(command, is_kept=arguments["path"] is not None)
    print_tables(run_with_display(atry_judge(source, judges, **arguments, **settings), watcher).tables)
    return watcher.exit_code()


def _prepare_judging(
    command: JudgeCommand, *, is_set_named: bool = False, is_kept: bool = True
) -> tuple[list[ModelLike] | None, JudgeSettings, Watcher]:
    """Return the judges of every role, the other settings of a judging, and its display.

    Args:
        command: Who judges, and how calls are made.
        is_set_named: Whether the command that continues the work names the set of a single judge.
        is_kept: Whether the judged run is kept.
    """
    if not command["models"]:
        raise RunError("--model is missing: give the model that judges, such as --model openai/gpt-5")
    default_models, by_role = split_models(command)
    judges = [*default_models, *by_role.values()]
    is_named = is_set_named and len(judges) == 1 and isinstance(judges[0], str)

    def format_command(ended: Ended) -> str:
        return _format_same_command(ended, ended.judging if is_named else None)

    settings, watcher = prepare_watcher(
        JudgeSettings, {**command, "models": by_role}, format_resume=format_command, is_kept=is_kept
    )
    return cast("list[ModelLike]", default_models) or None, settings, watcher


def review_run(path: Path, name: str | None, retry_failed: bool, command: JudgeCommand) -> int:
    """Carry out `dialoom review`; return the exit code."""
    if not command["models"]:
        if name is not None or retry_failed:
            raise RunError(
                f"{'--retry-failed' if retry_failed else '--name'} needs --model reviewer=MODEL; without a "
                "model, only rules look for faults"
            )
        echo(_format_faults(review(path, trust=command["trust"])))
        return EXIT_DONE
    default_models, by_role = split_models(command)

    def format_command(ended: Ended) -> str:
        return _format_same_command(ended, ended.judging if name is None else None)

    settings, watcher = prepare_watcher(JudgeSettings, {**command, "models": by_role}, format_resume=format_command)
    run_with_display(
        areview(path, get_single_model(default_models), name=name, retry_failed=retry_failed, **settings), watcher
    )
    return watcher.exit_code()


def _format_same_command(ended: Ended, name: str | None) -> str:
    """Return this process's command line without the bound that was reached and, optionally, with a set's name."""
    bound = get_flag(ended.stopped.setting) if ended.stopped and ended.stopped.setting else None
    words = [word for before, word in pairwise(sys.argv) if word != "--retry-failed" and bound not in (before, word)]
    return f"dialoom {shlex.join(words)}" + ("" if name is None else f" --name {shlex.quote(name)}")


def _format_faults(run: Run) -> str:
    """Return lines about the faults that the rules found, and about languages that the rules do not fully cover."""
    faults, status = list(run.faults()), run.status()
    faulty = len({episode.id for episode, _ in faults})
    details = f"; for details, run: dialoom report {run.path} --table faults" if faults else ""
    return (
        f"{run.path}: {len(faults):,} faults in {faulty:,} of {status.done:,} dialogues{details}\n"
        f"{format_reduced_coverage(status.languages, status.gated)}"
    )


def run_with_display(work: Coroutine[Any, Any, Result], watcher: Watcher) -> Result:
    """Do the work under a progress display, and pass Ctrl-C and SIGTERM to its control (see `Control`).

    Raises:
        typer.Exit: If the work was stopped before there was anything to resume.
    """
    tune_process()

    async def run() -> Result:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, watcher.interrupt)
        display = asyncio.create_task(watcher.watch())
        try:
            return await work
        finally:
            display.cancel()

    try:
        return asyncio.run(run_in_daemon_threads(run()))
    except StoppedError as error:
        echo(f"dialoom: {error}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from error
    finally:
        watcher.close()


def print_estimate(estimate: CostEstimate, budget: Budget) -> None:
    """Print the estimate by role, how it was made, its uncertainty, and the bounds that the run would exceed."""
    echo(f"{estimate.scenarios:,} {estimate.units}; nothing was sent or written")
    columns = ("role", "model", "calls", "input tokens", "output tokens", "cost")
    usages = (*estimate.by_role, ("all", "", estimate.total))
    make_console().print(
        build_table(columns, ((role, model, *_format_usage(usage)) for role, model, usage in usages), 2)
    )
    echo_lines((_describe_method(estimate), *_list_warnings(estimate, budget)))


def _describe_method(estimate: CostEstimate) -> str:
    cells = (_format_usage(each)[1:] for each in (estimate.least, estimate.most))
    least, most = (f"{sent} + {received} tokens, cost {cost}" for sent, received, cost in cells)
    sample = (
        f"all {estimate.sampled:,} {estimate.units} were"
        if estimate.sampled == estimate.scenarios
        else f"{estimate.sampled:,} of the {estimate.units}, drawn with the seed, were"
    )
    return (
        f"An estimate: {sample} played by {' and '.join(estimate.players)}, counting one token per four characters. "
        "Real models write more or less, and count tokens differently; prompt caching is not included. If every "
        "scenario were like "
        f"the shortest of these: {least}; like the longest: {most}."
    )


def _list_warnings(estimate: CostEstimate, budget: Budget) -> list[str]:
    """Return warnings about bounds that the run would reach before its end, and about missing prices."""
    total = estimate.total
    lines = [
        f"add --price {model}=IN,OUT to include the cost of {role}"
        for role, model, expected in estimate.by_role
        if expected.cost is None
    ]
    for name, bound, expected in (
        ("--max-calls", budget.max_calls, total.calls),
        ("--max-tokens", budget.max_tokens, total.input_tokens + total.output_tokens),
        ("--max-cost", budget.max_cost, total.cost),
    ):
        if bound is not None and expected is not None and expected > bound:
            lines.append(f"{name} {bound:g} would be exceeded before the run is done")
    return lines


def _format_usage(expected: ExpectedUsage) -> tuple[str, str, str, str]:
    calls, input_tokens, output_tokens = (
        f"{round(count):,}" for count in (expected.calls, expected.input_tokens, expected.output_tokens)
    )
    return calls, input_tokens, output_tokens, "unknown" if expected.cost is None else f"${expected.cost:,.4f}"
