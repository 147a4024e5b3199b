"""The commands of the step debugger: their names, keys and help, and their effect on a stepper."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from dialoom.runs.stepping import Condition, Stepper, SteppingError, Stop, case_of, diff, write_case
from dialoom.runs.stepping.stop import format_label, truncate
from dialoom.runs.stepping.values import get_value, parse_value, split_path
from dialoom.runs.store.branches import MAIN

from . import branch_views, views
from .editing import edit_messages
from .views import Answer, FittedLine, build_note, build_stop_answer

_CHECKPOINT = re.compile(r"#?\d+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A checkpoint's number or id."""


class Quit(Exception):
    """The request to quit."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command.

    Attributes:
        key: The command's one-key form.
        usage: The arguments that follow the command's name, for the help.
        help: The command's effect, in one line.
        carry_out: A function that carries out the command, given the text after its name; it may return a stop to show.
        missing_argument: A message about the argument, if the command needs one.
    """

    name: str
    key: str
    usage: str
    help: str
    carry_out: Callable[[CommandInterpreter, str], Awaitable[Answer | Stop]]
    missing_argument: str = ""


class CommandInterpreter:
    """A stepper with its user's settings: breakpoints, and the amount of detail displayed.

    Args:
        stepper: The current stepper.
        watch: Called with the answer for each stop that is passed.
        inputs: The files that the commands and the conversation come from, which `save` does not overwrite.
    """

    def __init__(self, stepper: Stepper, watch: Callable[[Answer], None], inputs: Sequence[Path] = ()) -> None:
        self.stepper = stepper
        self.inputs = inputs
        self.breakpoints: list[Condition] = []
        self.watch = watch
        self.is_full = False  # whether stops show complete requests and the complete conversation

    async def execute(self, line: str) -> Answer | None:
        """Carry out a line; return `None` if it is empty.

        Raises:
            Quit: If the line is the command to quit.
            SteppingError, ConditionError, PathError: If the command cannot be carried out; the message says what is
                possible.
            RoleError, PromptError: If a node failed with such an error.
        """
        words = line.strip()
        if not words or words.startswith("#"):
            return None
        name, rest = _split_first_word(words)
        command = COMMANDS_BY_NAME.get(name)
        if command is None:
            raise SteppingError(_format_unknown_command(name))
        if rest and not command.usage and command.name != "quit":
            raise SteppingError(f"{command.name} takes no further argument, got {rest!r}")
        if not rest and command.missing_argument:
            raise SteppingError(command.missing_argument)
        result = await command.carry_out(self, rest)
        return await self.show_stop(result) if isinstance(result, Stop) else result

    async def show_stop(self, stop: Stop) -> Answer:
        """Return the answer that shows a stop."""
        return build_stop_answer(stop, self.stepper.parsed_replies(stop), self.is_full)

    async def run(self, until: Sequence[Condition]) -> Answer:
        """Play until a condition is met, or to a breakpoint or the end; the answer includes the passed stops.

        A breakpoint on a counter (`turn 3`) stops where its number is reached, and not at each later step.
        """
        passed: list[Stop] = []
        here = await self.stepper.here()
        active_breakpoints = [
            each for each in self.breakpoints if not each.is_counter or not await self.stepper.meets([each], here)
        ]

        def report_passed(stop: Stop) -> None:
            self.watch(_build_passed_answer(stop))
            passed.append(stop)

        stop = await self.stepper.run([*until, *active_breakpoints], report_passed)
        return _add_passed(await self.show_stop(stop), passed[:-1])


def _build_passed_answer(stop: Stop) -> Answer:
    line = f"  {stop.number:>4} {format_label(stop)}"
    return Answer(
        {"number": stop.number, "ran": list(stop.ran)}, [FittedLine(lambda width: truncate(line, width), "dim")]
    )


def _add_passed(answer: Answer, passed: Sequence[Stop]) -> Answer:
    """Return the answer with a list of the passed stops added."""
    return Answer({**answer.data, "passed": [dict(_build_passed_answer(stop).data) for stop in passed]}, answer.shown)


async def _next(interpreter: CommandInterpreter, rest: str) -> Answer:
    passed: list[Stop] = []
    for _ in range(_parse_count(rest, 1) - 1):
        passed.append(await interpreter.stepper.step())
        interpreter.watch(_build_passed_answer(passed[-1]))
    return _add_passed(await interpreter.show_stop(await interpreter.stepper.step()), passed)


async def _break(interpreter: CommandInterpreter, rest: str) -> Answer:
    condition = interpreter.stepper.condition(rest)
    interpreter.breakpoints.append(condition)
    return build_note(
        f"breakpoint {len(interpreter.breakpoints)}: {condition}", breakpoint=len(interpreter.breakpoints)
    )


async def _breaks(interpreter: CommandInterpreter, _rest: str) -> Answer:
    lines = [f"{number}  {condition}" for number, condition in enumerate(interpreter.breakpoints, start=1)]
    return Answer(
        {"breaks": [str(each) for each in interpreter.breakpoints]}, [Text("\n".join(lines) or "no breakpoints")]
    )


async def _clear(interpreter: CommandInterpreter, rest: str) -> Answer:
    if not rest:
        interpreter.breakpoints.clear()
        return build_note("all breakpoints are cleared")
    number = _parse_count(rest, 0)
    if not 1 <= number <= len(interpreter.breakpoints):
        raise SteppingError(f"there is no breakpoint {rest}; 'breaks' lists them")
    return build_note(f"cleared: {interpreter.breakpoints.pop(number - 1)}")


async def _goto(interpreter: CommandInterpreter, rest: str) -> Stop:
    if _CHECKPOINT.fullmatch(rest):
        return await interpreter.stepper.goto(rest)
    return await interpreter.stepper.goto_where(interpreter.stepper.condition(rest))


async def _history(interpreter: CommandInterpreter, _rest: str) -> Answer:
    return branch_views.build_history_answer(
        await interpreter.stepper.history(), (await interpreter.stepper.here()).number
    )


async def _state(interpreter: CommandInterpreter, rest: str) -> Answer:
    return views.build_state_answer(rest, get_value(interpreter.stepper.state, rest))


async def _set(interpreter: CommandInterpreter, rest: str) -> Stop:
    path, text = split_path(rest)
    if not text:
        raise SteppingError("set takes a path and a value: set turns 2, set messages[1].content Hello")
    return await interpreter.stepper.edit(path, parse_value(text))


async def _say(interpreter: CommandInterpreter, rest: str) -> Stop:
    role, text = _split_first_word(rest)
    if not text:
        raise SteppingError("say takes a role and its text: say user I would rather take the train.")
    return await interpreter.stepper.say(role, text)


async def _prompt(interpreter: CommandInterpreter, rest: str) -> Answer | Stop:
    words = rest.split()
    is_edit = words[:1] == ["edit"]
    target = words[is_edit:]
    if len(target) > 1:
        raise SteppingError(f"prompt takes 'edit' and a role or a node, got {rest!r}")
    requests = await interpreter.stepper.next_requests()
    selected = [each for each in requests if not target or target[0] in (each.role, each.node, each.name)]
    roles = ", ".join(dict.fromkeys(each.role for each in requests)) or "no role"
    if not selected and (target or is_edit):
        raise SteppingError(f"the next step calls {roles}{f', not {target[0]!r}' if target else ''}")
    if not is_edit:
        return views.build_requests_answer(selected)
    if len(nodes := dict.fromkeys(each.node for each in selected)) > 1:
        raise SteppingError(
            f"the next step calls {target[0] if target else roles} in several nodes; name one: {', '.join(nodes)}"
        )
    messages = edit_messages(selected[0].request.messages)
    if messages is None:
        return build_note("the prompt is unchanged, so nothing was played")
    return await interpreter.stepper.edit_request(selected[0].name, messages)


async def _model(interpreter: CommandInterpreter, rest: str) -> Answer:
    role, model = _split_first_word(rest)
    if not model:
        raise SteppingError("model takes a role and a model: model assistant openai/gpt-4o-mini")
    await interpreter.stepper.replace_model(role, model)
    return build_note(f"{role} is now played by {model} on {interpreter.stepper.branch}")


async def _resample(interpreter: CommandInterpreter, _rest: str) -> Answer:
    sample = await interpreter.stepper.resample()
    text = f"sample {sample} on {interpreter.stepper.branch}: new replies are requested from now on"
    return build_note(text, sample=sample, branch=interpreter.stepper.branch)


async def _fork(interpreter: CommandInterpreter, rest: str) -> Stop:
    interpreter.stepper = await interpreter.stepper.fork(rest)
    return await interpreter.stepper.here()


async def _switch(interpreter: CommandInterpreter, rest: str) -> Stop:
    interpreter.stepper = await interpreter.stepper.switch(rest)
    return await interpreter.stepper.here()


async def _forks(interpreter: CommandInterpreter, _rest: str) -> Answer:
    branches = [
        (each, await (await interpreter.stepper.switch(each.name)).here()) for each in interpreter.stepper.branches()
    ]
    outcome_branch = None if interpreter.stepper.is_pending else interpreter.stepper.outcome_branch
    return branch_views.build_forks_answer(branches, interpreter.stepper.branch, outcome_branch)


async def _diff(interpreter: CommandInterpreter, rest: str) -> Answer:
    names = rest.split()
    if len(names) > 2:
        raise SteppingError(
            "diff takes two branches, one branch to compare with this one, or none to compare main with this one"
        )
    if len(names) < 2:
        names = [names[0] if names else MAIN, interpreter.stepper.branch]
    steppers = [
        interpreter.stepper if name == interpreter.stepper.branch else await interpreter.stepper.switch(name)
        for name in names
    ]
    return branch_views.build_diff_answer(await diff(steppers[0], steppers[1]))


async def _promote(interpreter: CommandInterpreter, rest: str) -> Answer:
    stepper = await interpreter.stepper.switch(rest) if rest else interpreter.stepper
    outcome = await stepper.promote()
    judged = f" with {len(outcome.judgements)} judgements" if outcome.judgements else ""
    text = f"the outcome of {stepper.scenario} now comes from {stepper.branch}{judged}"
    return build_note(text, promoted=stepper.branch, ended_by=outcome.ended_by)


async def _save(interpreter: CommandInterpreter, rest: str) -> Answer:
    case = await case_of(interpreter.stepper)
    branch, replaces = interpreter.stepper.branch, write_case(case, Path(rest), interpreter.inputs)
    where = f"{rest}, replacing an earlier case" if replaces else rest
    text = f"{len(case.steps)} steps of {branch} saved in {where}; 'dialoom replay {rest}' replays them"
    if not case.is_end:
        text += f". The conversation is unfinished; to save all of {branch}, 'continue' to its end and save again"
    return build_note(text, file=rest, steps=len(case.steps), branch=branch, replaced=replaces, is_end=case.is_end)


async def _calls(interpreter: CommandInterpreter, _rest: str) -> Answer:
    stop = await interpreter.stepper.here()
    return views.build_calls_answer(stop, interpreter.stepper.parsed_replies(stop))


async def _transcript(interpreter: CommandInterpreter, _rest: str) -> Answer:
    stop = await interpreter.stepper.here()
    return views.build_transcript_answer(stop.transcript, stop.faults)


async def _full(interpreter: CommandInterpreter, rest: str) -> Answer:
    if rest not in ("", "on", "off"):
        raise SteppingError(f"full takes on or off, got {rest!r}")
    interpreter.is_full = rest == "on" or (not rest and not interpreter.is_full)
    return build_note(f"stops show {'everything' if interpreter.is_full else 'the last lines'}")


async def _help(interpreter: CommandInterpreter, rest: str) -> Answer:  # noqa: ARG001
    if rest:
        if rest not in COMMANDS_BY_NAME:
            raise SteppingError(_format_unknown_command(rest))
        chosen = [COMMANDS_BY_NAME[rest]]
    else:
        chosen = list(COMMANDS)
    return views.build_help_answer([(each.key, f"{each.name} {each.usage}".rstrip(), each.help) for each in chosen])


async def _quit(interpreter: CommandInterpreter, rest: str) -> Answer:  # noqa: ARG001
    raise Quit


COMMANDS = (
    Command("next", "n", "[N]", "go forward one step, or N: along steps already played, or by playing new ones", _next),
    Command("continue", "c", "", "play to the next breakpoint or the end", lambda on, _: on.run([])),
    Command(
        "until",
        "u",
        "WHERE",
        "play until a NODE or ROLE is next, until 'turn N' or 'round N', or until an expression is true",
        lambda on, rest: on.run([on.stepper.condition(rest)]),
    ),
    Command("break", "b", "WHERE", "set a breakpoint; WHERE is a condition as for until", _break),
    Command("breaks", "B", "", "list the breakpoints", _breaks),
    Command("clear", "x", "[N]", "clear breakpoint N, or all", _clear),
    Command(
        "back",
        "<",
        "[N]",
        "go back one step, or N; later steps stay in the history",
        lambda on, rest: on.stepper.rewind(_parse_count(rest, 1)),
    ),
    Command(
        "forward",
        ">",
        "[N]",
        "go forward one step already played, or N such steps; edits and written replies are included",
        lambda on, rest: on.stepper.forward(_parse_count(rest, 1)),
    ),
    Command(
        "goto",
        "g",
        "CHECKPOINT|WHERE",
        "go to a checkpoint by its number, or to the first one that meets WHERE",
        _goto,
        "goto takes a checkpoint's number ('history' shows them), or a condition as for 'until'",
    ),
    Command("history", "h", "", "show the tree of checkpoints with its forks", _history),
    Command("where", ".", "", "show this stop again", lambda on, _: on.stepper.here()),
    Command("transcript", "t", "", "show the whole conversation so far", _transcript),
    Command(
        "calls", "i", "", "show the calls that led to this stop: complete requests, replies, tokens, cost, time", _calls
    ),
    Command("state", "s", "[PATH]", "show the state or a part of it: state messages[-1].content", _state),
    Command("set", "e", "PATH VALUE", "edit the state; the next nodes are chosen again", _set),
    Command(
        "say",
        "y",
        "WHO TEXT",
        "play the next step with this text as the reply of a role (or of the role called in a node)",
        _say,
    ),
    Command(
        "prompt",
        "p",
        "[edit] [WHO]",
        "show the prompt of the next step; edit: change it in $EDITOR and play the step",
        _prompt,
    ),
    Command("model", "m", "ROLE MODEL", "use another model for a role in the following steps", _model),
    Command(
        "resample", "r", "", "request new replies in the following steps, instead of using recorded ones", _resample
    ),
    Command(
        "fork",
        "f",
        "NAME",
        "create a branch at this stop, and switch to it",
        _fork,
        "fork takes a name for the new branch: fork by-train",
    ),
    Command(
        "switch", "w", "NAME", "switch to a branch", _switch, "switch takes the name of a branch; 'forks' lists them"
    ),
    Command("forks", "F", "", "list the branches", _forks),
    Command("diff", "d", "[A] [B]", "show two branches side by side; by default main and this one", _diff),
    Command("promote", "P", "[NAME]", "make the end of this branch the scenario's outcome", _promote),
    Command(
        "save",
        "S",
        "FILE",
        "save this branch up to this stop as a case for 'dialoom replay'",
        _save,
        "save takes a file: save case.json",
    ),
    Command("full", "v", "[on|off]", "show requests and conversations in full, or shortened", _full),
    Command("help", "?", "[COMMAND]", "this", _help),
    Command("quit", "q", "", "quit; everything is saved", _quit),
)
COMMANDS_BY_NAME = {name: command for command in COMMANDS for name in (command.name, command.key)}


_SYNONYMS = {"edit": "set", "exit": "quit", "rewind": "back", "run": "continue", "step": "next", "undo": "back"}
"""Names that commands have in Python or in other debuggers."""


def _format_unknown_command(name: str) -> str:
    command = _SYNONYMS.get(name)
    return f"there is no command {name!r}; {f'did you mean {command!r}? ' if command else ''}'help' lists them"


def _split_first_word(text: str) -> tuple[str, str]:
    """Split a text after its first word."""
    first, rest = [*text.split(maxsplit=1), "", ""][:2]
    return first, rest


def _parse_count(text: str, default: int) -> int:
    if not text:
        return default
    if not text.isdecimal() or not int(text):
        raise SteppingError(f"{text!r} is not a valid number of steps; give a whole number of at least 1")
    return int(text)
