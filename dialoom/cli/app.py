"""The commands and their options. Their work is in the modules beside this one; errors are printed as one line here."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from dialoom.version import __version__

from .agree_command import agree
from .command_list import CommandList, PanelCommand
from .completion import judgings, tables, words_so_far
from .datasets_command import describe, push
from .doctor_command import doctor
from .errors import EXIT_USAGE, OF_DOCTOR, OF_LOOKING, OF_PLAYING
from .export_command import register as register_export
from .flags import WHERE, Flags, TrustFlag, with_more
from .new_command import register as register_new
from .personas_command import register as register_personas
from .run_command import register as register_run
from .scorecard_command import scorecard
from .step_command import register as register_step
from .step_command import register_replay
from .studio_command import studio
from .terminal import say

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The run's file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
JudgingName = Annotated[
    str | None,
    typer.Option(
        "--judging",
        metavar="NAME",
        help="A set of judgements; by default the run's own.",
        autocompletion=judgings,
    ),
]
WhereText = Annotated[str | None, WHERE]


def build_app(arguments: list[str]) -> typer.Typer:
    """Return the command that the arguments begin with, or all if they begin with none: building all of them is slow.

    `dialoom run RECIPE` is given the options of the recipe that the arguments name.
    """
    app = typer.Typer(
        name="dialoom",
        help="Language models that talk to each other in roles: every step kept, every run resumable.",
        epilog=OF_PLAYING,
        cls=CommandList,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_common)
    names = [*_REGISTERED, *_COMMANDS]
    wanted = arguments[:1]
    for name in wanted if set(wanted) & set(names) else names:
        if name in _REGISTERED:
            _REGISTERED[name](app, arguments)
        else:
            _add(app, _COMMANDS[name], wanted == [name])
    return app


def _add(app: typer.Typer, command: Callable[..., None], is_wanted: bool) -> None:
    """Add a command; its generated flags only if the arguments begin with it, as making them takes time."""
    epilog = OF_DOCTOR if command is doctor else OF_PLAYING if command in _CALLING else OF_LOOKING
    if command in _CALLING and is_wanted:
        app.command(epilog=epilog, cls=PanelCommand)(with_more(command, _generated(command)))
    else:
        app.command(epilog=epilog)(command)


def _generated(command: Callable[..., None]) -> Flags:
    """Return the flags of the settings that a command takes."""
    from dialoom.settings import LimitSettings, PlayerSettings, ProcessSettings

    from .settings import SessionSettings, flags_for

    if command is doctor:
        without = {*flags_for(LimitSettings), "models", "prices", "log_format"} - {"timeout"}
        return flags_for(PlayerSettings, LimitSettings, SessionSettings, without=without)
    players = (PlayerSettings,) if command in (judge, review, scorecard) else ()
    return flags_for(*players, ProcessSettings, SessionSettings)


def main() -> None:
    """Run the command line; an expected mistake prints one line and exits with 2."""
    arguments = sys.argv[1:]
    completed = words_so_far()
    try:
        build_app(arguments if completed is None else completed)(args=arguments, prog_name="dialoom")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _exit_with(error)


def _exit_with(error: Exception) -> None:
    from dialoom.runs.errors import Fault, fault_of

    from .errors import worded

    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        say(f"dialoom: {error.filename}: {error.strerror}", err=True)  # such as a name that is too long
        sys.exit(EXIT_USAGE)
    if fault_of(error) is Fault.BUG and not isinstance(error, MemoryError):
        say("".join(traceback.format_exception(error)), err=True, nl=False)  # its message may quote a reply
        sys.exit(1)
    say(f"dialoom: {worded(error)}", err=True)
    sys.exit(EXIT_USAGE)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        say(f"dialoom {__version__}")
        raise typer.Exit


def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Handle the options that precede a command."""


def resume(
    run: Run,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed scenarios again.")] = False,
    trials: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Add trials, so that each scenario has N.", show_default=False),
    ] = None,
    **given: Any,
) -> None:
    """Continue a run where it stopped: finished scenarios are kept, started ones continue from their last step."""
    from .playing import resume_run

    raise typer.Exit(resume_run(run, retry_failed, trials, given))


def retry(
    run: Run,
    failed: Annotated[
        bool, typer.Option("--failed", help="Failed scenarios, from their last step. The default.")
    ] = False,
    unparsed: Annotated[
        bool, typer.Option("--unparsed", help="Judgements whose replies could not be read: ask for other ones.")
    ] = False,
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A scenario, from its beginning and with replies of its own. Repeatable."),
    ] = None,
    judging: Annotated[
        str | None,
        typer.Option(
            "--judging", metavar="NAME", help="Of which set; by default the run's own.", autocompletion=judgings
        ),
    ] = None,
    **given: Any,
) -> None:
    """Repeat failed scenarios, unparsed judgements, or chosen scenarios."""
    from .playing import retry_run

    raise typer.Exit(retry_run(run, failed, unparsed, scenario or [], judging, given))


def status(
    run: Run,
    json: Json = False,
    config: Annotated[bool, typer.Option("--config", help="Print the run's configuration as YAML.")] = False,
    trust: TrustFlag = False,
) -> None:
    """Show a run's progress, calls, tokens and cost."""
    from .inspecting import print_config, print_status

    if config:
        print_config(run, trust)
    else:
        print_status(run, json)


def show(
    run: Run,
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="SCENARIO", help="Its id, the beginning of it, or its number. Without it: a list."),
    ] = None,
    json: Json = False,
    judging: JudgingName = None,
    where: WhereText = None,
    sort: Annotated[
        str | None,
        typer.Option(metavar="EXPR", help="Of the list: by a metric or anything else that --where knows, e.g. turns."),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Of the list: the highest first.")] = False,
    said: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="Of the list: where a message has these words; '\"in quotes\"' beside each other, 'begin*'.",
        ),
    ] = None,
    labelled_by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the list: those that this person has labelled completely; see agree."),
    ] = None,
    unlabelled_by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the list: those that this person has not labelled completely."),
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="The calls of SCENARIO instead, with what was wrong with each line.")
    ] = False,
    trust: TrustFlag = False,
) -> None:
    """One dialogue with its judgements and how it ended; without a scenario, the list of them with their scores."""
    from .inspecting import list_scenarios, show_scenario

    if scenario is None and calls:
        raise typer.BadParameter("--calls is for one scenario; say which")
    if scenario is None:
        list_scenarios(run, json, judging, where, sort, reverse, said, trust, (labelled_by, unlabelled_by))
    elif where or sort or reverse or said or labelled_by or unlabelled_by:
        raise typer.BadParameter("what chooses and sorts (--where, --sort, ...) is for the list; leave out SCENARIO")
    elif calls:
        from .show_lines import show_calls

        show_calls(run, scenario, json, trust)
    else:
        show_scenario(run, scenario, json, judging, trust)


def judge(
    run: Run,
    name: Annotated[str | None, typer.Option(help="What to call these judgements; by default the model.")] = None,
    repeat: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Judge all of it N times, to see how far a judge agrees with itself."),
    ] = 1,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Judge no more than N, drawn with the seed among those of which the judge is asked anything.",
        ),
    ] = None,
    where: WhereText = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed judgings again.")] = False,
    **given: Any,
) -> None:
    """Judge a run's dialogues again; the judgements are kept apart from the run's own, and can be compared."""
    from .playing import JudgedScenarios, judge_run

    which: JudgedScenarios = {"name": name, "repeat": repeat, "sample": sample, "where": where}
    raise typer.Exit(judge_run(run, which, retry_failed, given))


def review(
    run: Run,
    name: Annotated[str | None, typer.Option(help="What to call the verdicts; by default 'review by MODEL'.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed reviews again.")] = False,
    **given: Any,
) -> None:
    """Look for faults in a run's dialogues by the present rules, and with a model for what rules cannot find."""
    from .playing import review_run

    raise typer.Exit(review_run(run, name, retry_failed, given))


def compact(run: Run) -> None:
    """Free the space of unreferenced checkpoints."""
    from .reporting import compact_run

    compact_run(run)


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="The run's file; several are compared.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="Write Markdown and CSV there, and the recipe's charts."),
    ] = None,
    judging: Annotated[
        str | None,
        typer.Option(
            "--judging",
            metavar="NAME",
            help="One set of judgements; by default all, compared.",
            autocompletion=judgings,
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Only this table, e.g. scores. Repeatable.",
            autocompletion=tables,
        ),
    ] = None,
    where: WhereText = None,
    cost: Annotated[
        bool, typer.Option("--cost", help="What the calls of each role took instead: tokens, prompt caches, money.")
    ] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the tables as LaTeX; needs the package booktabs.")
    ] = False,
    trust: TrustFlag = False,
) -> None:
    """Print scores with their intervals, and statistics of the dialogues; several runs of one recipe side by side."""
    from .reporting import report_cost, report_run

    if cost:
        if judging or table or where or latex:
            raise typer.BadParameter("--cost is a report of its own; leave out --judging, --table, --where and --latex")
        report_cost(runs, out)
        return
    report_run(runs, out, judging, table or [], where, trust, latex)


_CALLING = (resume, retry, judge, review, scorecard, doctor)
"""The commands that make calls, besides those that depend on the arguments."""
_COMMANDS: Mapping[str, Callable[..., None]] = {
    command.__name__: command for command in (*_CALLING, status, show, studio, report, agree, describe, push, compact)
}
_REGISTERED: Mapping[str, Callable[[typer.Typer, list[str]], None]] = {
    "run": register_run,
    "step": register_step,
    "replay": register_replay,
    "export": register_export,
    "personas": register_personas,
    "new": register_new,
}
"""Commands whose parameters or help depend on the arguments, or that are groups."""
