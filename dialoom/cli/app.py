"""The commands and their options; other modules do the work. Errors are printed here, each as one line."""

from __future__ import annotations

import errno
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Unpack

import typer

from dialoom.version import __version__

from .agree_command import agree
from .command_list import CommandList, PanelCommand
from .completion import complete_judgings, complete_tables, get_completed_words
from .datasets_command import describe, push
from .doctor_command import doctor
from .errors import DOCTOR_EPILOG, EXIT_USAGE, IMPORT_EPILOG, PLAY_EPILOG, READ_EPILOG, REQUIRE_EPILOG
from .export_command import register as register_export
from .new_command import register as register_new
from .option_flags import (
    DifferentUsersFlag,
    JsonFlag,
    JudgingFlag,
    RunArgument,
    TrustFlag,
    WhereFlag,
    placeholder_command,
)
from .personas_command import register as register_personas
from .run_command import register as register_run
from .scorecard_command import scorecard
from .step_command import register_replay, register_step
from .studio_command import studio
from .terminal import echo

if TYPE_CHECKING:
    from .setting_flags import CallCommand, JudgeCommand


def build_app(arguments: list[str]) -> typer.Typer:
    """Return an app with the command that the arguments begin with or, without a command, with all commands.

    Building all commands is slow.

    `dialoom run RECIPE` gets the options of the recipe that the arguments name.
    """
    app = typer.Typer(
        name="dialoom",
        help="Let language models in roles talk to each other. Every step is stored, and every run can be resumed.",
        epilog=PLAY_EPILOG,
        cls=CommandList,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_handle_common_options)
    names = [*_REGISTER_FUNCTIONS, *_COMMANDS]
    requested = arguments[:1]
    for name in requested if set(requested) & set(names) else names:
        if name in _REGISTER_FUNCTIONS:
            _REGISTER_FUNCTIONS[name](app, arguments)
        else:
            _add_command(app, _COMMANDS[name], requested == [name])
    return app


def _add_command(app: typer.Typer, command: Callable[..., None], is_requested: bool) -> None:
    """Add a command. Its parameters, which are slow to build, are added only if the arguments begin with its name."""
    name = command.__name__.rstrip("_")  # `import` is a keyword of Python
    epilogs = {doctor: DOCTOR_EPILOG, require: REQUIRE_EPILOG, import_: IMPORT_EPILOG}
    epilog = epilogs.get(command, PLAY_EPILOG if command in _CALL_COMMANDS else READ_EPILOG)
    if not is_requested:
        app.command(name, help=command.__doc__, epilog=epilog)(placeholder_command)
    elif command in _CALL_COMMANDS:
        from .setting_flags import with_settings

        excluded = _DOCTOR_EXCLUDED_SETTINGS if command is doctor else ()
        app.command(name, epilog=epilog, cls=PanelCommand)(with_settings(command, without=excluded))
    else:
        app.command(name, epilog=epilog)(command)


def main() -> None:
    """Run the command line; print an error that the user can correct as one line, and exit with 2."""
    arguments = sys.argv[1:]
    words = get_completed_words()
    try:
        build_app(arguments if words is None else words)(args=arguments, prog_name="dialoom")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        _report_and_exit(error)


def _report_and_exit(error: Exception) -> None:
    from dialoom.errors import DialoomError
    from dialoom.runs.errors import Fault, fault_of

    from .errors import format_error

    if isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        echo(f"dialoom: {error.filename}: {error.strerror}", err=True)  # for example, a name that is too long
        sys.exit(EXIT_USAGE)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        echo(f"dialoom: standard output cannot be written: {error.strerror}", err=True)
        with suppress(OSError):
            sys.stdout.close()  # otherwise, Python would write the rest when it exits
        sys.exit(EXIT_USAGE)
    if fault_of(error) is Fault.BUG and not isinstance(error, DialoomError | MemoryError):
        echo("".join(traceback.format_exception(error)), err=True, nl=False)  # the message may quote a reply
        sys.exit(1)
    echo(f"dialoom: {format_error(error)}", err=True)
    sys.exit(EXIT_USAGE)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        echo(f"dialoom {__version__}")
        raise typer.Exit


def _handle_common_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Handle the options that precede a command."""


def resume(
    run: RunArgument,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Play failed scenarios again.")] = False,
    trials: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Add trials until each scenario has N.", show_default=False),
    ] = None,
    **settings: Unpack[CallCommand],
) -> None:
    """Continue a run where it stopped: finished scenarios are kept, started ones continue from their last step."""
    from .playing import resume_run

    raise typer.Exit(resume_run(run, retry_failed, trials, settings))


def retry(
    run: RunArgument,
    failed: Annotated[
        bool, typer.Option("--failed", help="Retry failed scenarios, from their last step. The default.")
    ] = False,
    unparsed: Annotated[
        bool, typer.Option("--unparsed", help="Request new replies for judgements whose replies could not be parsed.")
    ] = False,
    scenario: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A scenario to play again from its beginning, with new replies. Repeatable."),
    ] = None,
    judging: Annotated[
        str | None,
        typer.Option(
            "--judging",
            metavar="NAME",
            help="The set whose unparsed judgements are repeated; by default the run's own.",
            autocompletion=complete_judgings,
        ),
    ] = None,
    **settings: Unpack[CallCommand],
) -> None:
    """Repeat failed scenarios, unparsed judgements, or chosen scenarios."""
    from .playing import retry_run

    raise typer.Exit(retry_run(run, failed, unparsed, scenario or [], judging, settings))


def status(
    run: RunArgument,
    json: JsonFlag = False,
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
    run: RunArgument,
    scenario: Annotated[
        str | None,
        typer.Argument(
            metavar="SCENARIO",
            help="The scenario's id, a prefix of it, or its number. Without it, all scenarios are listed.",
        ),
    ] = None,
    json: JsonFlag = False,
    judging: JudgingFlag = None,
    where: WhereFlag = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="EXPR", help="Sort the list by a metric or another name that --where accepts, e.g. turns."
        ),
    ] = None,
    reverse: Annotated[bool, typer.Option("--reverse", help="Sort the list with the highest value first.")] = False,
    search: Annotated[
        str | None,
        typer.Option(
            metavar="WORDS",
            help="List scenarios with these words in a message; '\"in quotes\"' is a phrase, 'begin*' a prefix.",
        ),
    ] = None,
    labelled_by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="List only scenarios that this person has labelled completely."),
    ] = None,
    unlabelled_by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="List only scenarios that this person has not labelled completely."),
    ] = None,
    calls: Annotated[
        bool, typer.Option("--calls", help="Show the calls of SCENARIO with the faults of each message.")
    ] = False,
    trust: TrustFlag = False,
) -> None:
    """Print one dialogue with its judgements and its ending; without SCENARIO, list all scenarios with their scores."""
    from .inspecting import list_scenarios, show_scenario

    if scenario is None and calls:
        raise typer.BadParameter("--calls needs a scenario; give SCENARIO")
    if scenario is None:
        list_scenarios(run, json, judging, where, sort, reverse, search, trust, labelled_by, unlabelled_by)
    elif where or sort or reverse or search or labelled_by or unlabelled_by:
        raise typer.BadParameter(
            "options that select and sort (--where, --sort, ...) apply to the list; leave out SCENARIO"
        )
    elif calls:
        if judging is not None:
            raise typer.BadParameter("--calls lists the calls of all sets of judgements; leave out --judging")
        from .show_lines import show_calls

        show_calls(run, scenario, json, trust)
    else:
        show_scenario(run, scenario, json, judging, trust)


def judge(
    run: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="The run's file.", show_default=False)] = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the new set of judgements; by default the model's name.")
    ] = None,
    repeat: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Judge everything N times, to measure how well a judge agrees with itself."
        ),
    ] = 1,
    sample: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Judge at most N scenarios, drawn with the seed from those to be judged.",
        ),
    ] = None,
    where: WhereFlag = None,
    judges: Annotated[
        Path | None,
        typer.Option(
            metavar="STUDY.toml",
            help="For imported conversations: the study whose judges score them.",
            show_default=False,
        ),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat failed judgings.")] = False,
    tried: Annotated[
        Path | None,
        typer.Option(
            "--try",
            metavar="FILE",
            help="Let the judge score the labelled conversations of this file or run, and print its health and its "
            "agreement with people.",
            show_default=False,
        ),
    ] = None,
    labels: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv",
            help="With --try: people's labels, if they are neither in the rows nor in RUN.labels.csv.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="RUN", help="With --try: the file to store the judged run in.", show_default=False
        ),
    ] = None,
    **settings: Unpack[JudgeCommand],
) -> None:
    """Judge a run's dialogues again. The judgements are stored apart from the run's own, and can be compared with them.

    With --try FILE nothing is played or changed: the judge scores labelled conversations, and its health and its
    agreement with the labels are printed.
    """
    from .playing import judge_run, run_judge_trial

    arguments = {"judges": judges, "repeat": repeat, "retry_failed": retry_failed}
    if tried is not None:
        unsupported = {"RUN": run, "--name": name, "--sample": sample, "--where": where}
        if given_options := [*filter(unsupported.get, unsupported)]:
            raise typer.BadParameter(f"--try cannot be combined with {', '.join(given_options)}")
        raise typer.Exit(run_judge_trial(tried, settings, labels=labels, path=out, **arguments))
    if run is None or labels is not None or out is not None:
        raise typer.BadParameter("give RUN, or --try FILE (--labels and -o need --try)")
    raise typer.Exit(judge_run(run, settings, name=name, sample=sample, where=where, **arguments))


def review(
    run: RunArgument,
    name: Annotated[
        str | None, typer.Option(help="The name of the set of verdicts; by default 'review by MODEL'.")
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Repeat failed reviews.")] = False,
    **settings: Unpack[JudgeCommand],
) -> None:
    """Find faults in a run's dialogues by the current rules; a model, if given, looks for faults that rules miss."""
    from .playing import review_run

    raise typer.Exit(review_run(run, name, retry_failed, settings))


def import_(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="WHAT",
            help="A file of conversations, or a folder of such files; see docs/transcripts.md.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "-o", "--out", metavar="RUN", help="The run; if it exists, new conversations are added.", show_default=False
        ),
    ],
    judges: Annotated[
        Path | None,
        typer.Option(
            metavar="STUDY.toml",
            help="A study; the run uses its judges, checks and simulated user.",
            show_default=False,
        ),
    ] = None,
    reader: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:FUNCTION", help="A function that reads a format of your own.", show_default=False
        ),
    ] = None,
    skip_broken: Annotated[
        bool,
        typer.Option("--skip-broken", help="Skip broken rows; without this option, a broken row stops the import."),
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=MODEL",
            help="The model that continues conversations in the step debugger. Repeatable.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make a run from conversations recorded elsewhere, to judge, label, describe, export and continue them."""
    from .transcripts import import_file

    import_file(source, out, judges, reader, skip_broken, model or [])


def compact(run: RunArgument) -> None:
    """Free the space of checkpoints that are no longer needed."""
    from .reporting import compact_run

    compact_run(run)


def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN", help="The run's file; several runs are compared.", show_default=False)
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="DIR",
            help="Write Markdown, CSV and the recipe's charts into this folder, in place of an earlier report.",
        ),
    ] = None,
    judging: Annotated[
        str | None,
        typer.Option(
            "--judging",
            metavar="NAME",
            help="A set of judgements; by default, all sets are compared.",
            autocompletion=complete_judgings,
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Only this table, e.g. scores. Repeatable.",
            autocompletion=complete_tables,
        ),
    ] = None,
    where: WhereFlag = None,
    cost: Annotated[
        bool,
        typer.Option("--cost", help="Print the usage of each role's calls instead: tokens, prompt caches, cost."),
    ] = False,
    calibrated: Annotated[
        bool,
        typer.Option("--calibrated", help="Also print scores calibrated with people's labels (see 'dialoom agree')."),
    ] = False,
    labels: Annotated[
        list[Path] | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="For --calibrated: the labels file, by default RUN.labels.csv. With several runs, give one for each.",
        ),
    ] = None,
    allow_different_users: DifferentUsersFlag = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Print the tables as LaTeX; needs the package booktabs.")
    ] = False,
    trust: TrustFlag = False,
) -> None:
    """Print scores with their intervals, and statistics of the dialogues; runs of one recipe appear side by side."""
    from .reporting import report_cost, report_run

    if labels and not calibrated:
        raise typer.BadParameter("--labels needs --calibrated")
    if cost:
        if judging or table or where or latex or calibrated or allow_different_users:
            raise typer.BadParameter(
                "--cost is a separate report; leave out options that select or format other tables"
            )
        report_cost(runs, out)
        return
    label_files: Sequence[Path] | Literal[True] | None = (labels or True) if calibrated else None
    report_run(runs, out, judging, table or [], where, trust, latex, label_files, allow_different_users)


def require(
    run: RunArgument,
    requirements: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="REQUIREMENT",
            help="A requirement, such as 'resolved >= 80%', 'tone >= 3.5', 'pass^3(resolved) >= 60%'.",
        ),
    ] = None,
    confident: Annotated[
        bool,
        typer.Option(
            "--confident", help="Require that the whole 95 % interval meets a requirement, not only the mean."
        ),
    ] = False,
    not_worse_than: Annotated[
        Path | None,
        typer.Option(
            "--not-worse-than",
            metavar="RUN",
            help="Fail if a required metric (without requirements, any metric) is significantly worse than in this "
            "run, by the paired test.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="WHAT[,WHAT]",
            help="Accept scores of an 'offline' model or an 'unhealthy' judge, scores 'missing' or 'constant', or an "
            "'unfinished' run. "
            "Repeatable.",
        ),
    ] = None,
    allow_different_users: DifferentUsersFlag = False,
    junit: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also write JUnit XML: a test case for each requirement.", show_default=False
        ),
    ] = None,
    summary: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write Markdown, with the worst conversation, for a pull request.",
            show_default=False,
        ),
    ] = None,
    judging: JudgingFlag = None,
    where: WhereFlag = None,
    trust: TrustFlag = False,
) -> None:
    """Check a run's scores against requirements: exit code 1 if one is not met."""
    from .reporting import check_run_requirements

    code = check_run_requirements(
        run,
        requirements or [],
        trust,
        junit,
        summary,
        is_confident=confident,
        not_worse_than=not_worse_than,
        allow=allow or [],
        allow_different_users=allow_different_users,
        judging=judging,
        where=where,
    )
    raise typer.Exit(code)


_CALL_COMMANDS = (resume, retry, judge, review, scorecard, doctor)
"""The commands that make calls, except those in `_REGISTER_FUNCTIONS`."""
_DOCTOR_EXCLUDED_SETTINGS = (
    "models",
    "prices",
    "rpm",
    "tpm",
    "context",
    "max_calls",
    "max_tokens",
    "max_cost",
    "log_format",
)
_COMMANDS: Mapping[str, Callable[..., None]] = {
    command.__name__.rstrip("_"): command
    for command in (*_CALL_COMMANDS, import_, status, show, studio, report, require, agree, describe, push, compact)
}
_REGISTER_FUNCTIONS: Mapping[str, Callable[[typer.Typer, list[str]], None]] = {
    "run": register_run,
    "step": register_step,
    "replay": register_replay,
    "export": register_export,
    "personas": register_personas,
    "new": register_new,
}
"""Commands whose parameters or help depend on the arguments, and command groups."""
