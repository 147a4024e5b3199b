"""Views of a stop, its calls and its prompts: as JSON for programs, and as text for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from dialoom.cli.show_lines import ROLE_COLOURS, format_message_faults, format_other_faults
from dialoom.graphs import DialogueFault, Line, Outline
from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition
from dialoom.prompts.messages import format_call, get_tool_name
from dialoom.roles.gateway.calls import WRITTEN_BY_PERSON
from dialoom.runs.stepping import Cost, NextRequest, Stop
from dialoom.runs.stepping.stop import ABSENT, Change, format_change, format_cost, truncate
from dialoom.runs.stepping.tree import SpokenLine, transcript_lines
from dialoom.runs.stepping.values import to_plain
from dialoom.runs.store import StepCall

_MAX_CONVERSATION_LINES = 4
"""Number of lines of the conversation that are shown at a stop; `transcript` shows all."""
_MAX_REQUEST_LINES = 3
"""Number of lines of a request that are shown."""
_MAX_REPLY_LINES = 12
"""Number of lines of a reply that are shown."""
_MAX_CHANGES = 8
"""Number of changes of the state that are shown."""
_CONVERSATION_INDENT = 4


@dataclass(frozen=True, slots=True)
class FittedLine:
    """A line that is fitted to the available width.

    Attributes:
        write: A function that returns the line with at most a given number of columns.
        style: Its colour.
    """

    write: Callable[[int], str]
    style: str = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the line, truncated if it is still too long."""
        yield Text(self.write(options.max_width), style=self.style, no_wrap=True, overflow="ellipsis")


@dataclass(frozen=True, slots=True)
class ClippedContent:
    """The beginning of long content.

    Attributes:
        shown: The content.
        lines: The number of lines shown.
        hint: A hint on how to see the rest.
    """

    shown: RenderableType
    lines: int
    hint: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the first lines, and the number of further lines."""
        rendered = console.render_lines(self.shown, options, pad=False)
        omitted = len(rendered) - self.lines
        if omitted < 2:  # a line about the omission would take as much room
            yield self.shown
            return
        for line in rendered[: self.lines]:
            yield from line
            yield Segment.line()
        yield Text(f"... {omitted} more lines: {self.hint}", style="dim")


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The result of a command.

    It has no representation of its contents, because `asyncio.Runner.run` represents each result, which may be large.

    Attributes:
        data: The result as data for programs.
        shown: The result as text for people.
    """

    data: Mapping[str, Any]
    shown: Sequence[RenderableType]


def build_note(text: str, **data: Any) -> Answer:
    """Return a one-line answer."""
    return Answer({"note": text, **data}, [Text(text)])


def build_stop_answer(stop: Stop, parsed: Mapping[int, Any], is_full: bool = False) -> Answer:
    """Return the answer that shows a stop.

    Args:
        stop: The stop.
        parsed: Parsed structured replies, by the calls' rows in the ledger.
        is_full: Whether complete requests and the complete conversation are shown.
    """
    shown: list[RenderableType] = [_format_heading(stop)]
    shown += [Padding.indent(each, 2) for each in _format_calls(stop.calls, parsed, is_full)]
    shown += [Padding.indent(each, 2) for each in _format_changes(stop.changes, is_full)]
    if conversation := _format_conversation(stop.transcript, None if is_full else _MAX_CONVERSATION_LINES, stop.faults):
        shown += [Text("  the conversation", style="dim"), Padding.indent(Group(*conversation), _CONVERSATION_INDENT)]
    shown.append(Padding.indent(_format_next(stop), 2))
    return Answer(stop_as_json(stop, parsed), shown)


def stop_as_json(stop: Stop, parsed: Mapping[int, Any]) -> dict[str, Any]:
    """Return a stop as data for programs."""
    return {
        "branch": stop.branch,
        "number": stop.number,
        "checkpoint": stop.checkpoint,
        "kind": stop.kind,
        "ran": list(stop.ran),
        "next": list(stop.next),
        "why": dict(stop.why),
        "counts": dict(stop.counts),
        "changes": [{"path": each.path, "line": format_change(each, None)} for each in stop.changes],
        "calls": [call_as_json(call, parsed.get(call.id)) for call in stop.calls],
        "transcript": [{"role": role, "content": content} for role, content in transcript_lines(stop.transcript)],
        "faults": [each.model_dump() for each in stop.faults],
    }


def call_as_json(call: StepCall, parsed: Any) -> dict[str, Any]:
    """Return a call as data for programs."""
    return {
        "node": call.node,
        "role": call.role,
        "model": call.model,
        "prompt": call.prompt,
        "sample": call.sample,
        "request": list(call.messages),
        **({"tools": list(call.tools)} if call.tools else {}),
        "is_edited": call.is_edited,
        "reply": call.reply,
        **({"tool_calls": list(call.tool_calls)} if call.tool_calls else {}),
        "parsed": parsed,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cost": call.cost,
        "seconds": call.seconds,
        "replays": call.replays,
        "is_common": call.is_common,
    }


def build_calls_answer(stop: Stop, parsed: Mapping[int, Any]) -> Answer:
    """Return the calls that led to a stop, with their complete requests."""
    if not stop.calls:
        return build_note(f"no call led to checkpoint {stop.number}", calls=[])
    data = {"calls": [call_as_json(call, parsed.get(call.id)) for call in stop.calls]}
    return Answer(data, _format_calls(stop.calls, parsed, is_full=True))


def build_requests_answer(requests: Sequence[NextRequest]) -> Answer:
    """Return the prompts of the next step."""
    data = [
        {
            "node": each.node,
            "role": each.role,
            "model": each.request.model,
            "prompt": each.request.prompt_id,
            "messages": list(each.request.messages),
            **({"tools": list(each.request.tools)} if each.request.tools else {}),
        }
        for each in requests
    ]
    shown: list[RenderableType] = []
    for each in requests:
        head = f"{each.role} is called by {each.node} ({each.request.model}, {each.request.prompt_id})"
        shown.append(Text(head, style="bold"))
        shown += [
            Padding.indent(each, 2)
            for each in (*_format_tools(each.request.tools), *map(_format_message, each.request.messages))
        ]
    return Answer({"asked": data}, shown or [Text("the next step calls no role")])


def build_transcript_answer(transcript: Sequence[Line] | Outline, faults: Sequence[DialogueFault] = ()) -> Answer:
    """Return the whole conversation."""
    lines = [{"role": role, "content": content} for role, content in transcript_lines(transcript)]
    return Answer({"transcript": lines}, _format_conversation(transcript, None, faults) or [Text("no messages yet")])


def build_state_answer(path: str, value: Any) -> Answer:
    """Return an answer with a value of the state."""
    plain_value = to_plain(value)
    text = plain_value if isinstance(plain_value, str) else json.dumps(plain_value, ensure_ascii=False, indent=2)
    return Answer({"path": path, "value": plain_value}, [Text(text)])


def build_help_answer(commands: Sequence[tuple[str, str, str]]) -> Answer:
    """Return the help: each command's key, usage and effect."""
    table = RichTable.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", style="bold")
    for _ in range(2):
        table.add_column()
    for command in commands:
        table.add_row(*map(Text, command))
    data = [{"name": usage.split()[0], "key": key, "usage": usage, "help": help_} for key, usage, help_ in commands]
    return Answer({"commands": data}, [table])


def format_spoken_line(line: SpokenLine | None) -> RenderableType:
    """Return a message with its speaker; a line of an outline is indented by its level."""
    if line is None:
        return Text("")
    role, content = line
    if role:
        return Text.assemble((f"{role}: ", f"bold {ROLE_COLOURS.get(role, 'magenta')}"), content)
    words = content.lstrip(" ")
    return Padding.indent(Text(words), len(content) - len(words))


def _format_heading(stop: Stop) -> Text:
    counts = "".join(f" · {word} {count}" for word, count in stop.counts.items())
    return Text.assemble((f"{stop.branch} {stop.number}", "bold"), (counts, "dim"), (f" · {stop.title}", "bold"))


def _format_next(stop: Stop) -> Text:
    if stop.is_end:
        return Text("the end: no further steps", style="bold")
    text = Text("next: ", style="bold")
    parts = [f"{', '.join(nodes)} ({why})" if why else ", ".join(nodes) for why, nodes in stop.reasons.items()]
    return text.append("; ".join(parts), style="not bold")


def _format_calls(calls: Sequence[StepCall], parsed: Mapping[int, Any], is_full: bool) -> list[RenderableType]:
    """Return calls: one call with the end of its request, or a line for each of several; with `is_full`, in full."""
    if is_full or len(calls) < 2:
        return [_format_call(call, parsed.get(call.id), is_full) for call in calls]
    lines: list[RenderableType] = [_format_call_line(call, parsed.get(call.id)) for call in calls]
    return [*lines, Text(f"{format_cost(Cost.of(calls))}: 'calls' shows them in full", style="dim")]


def _format_call_line(call: StepCall, parsed: Any) -> FittedLine:
    content = _append_calls(call.reply or "", call.tool_calls) if parsed is None else parsed
    answer = ", ".join(" ".join(line.split()) for line in _format_parsed(content).plain.splitlines() if line.strip())
    return FittedLine(lambda width: truncate(f"{call.node}: {answer}", width), ROLE_COLOURS.get(call.role, "magenta"))


def _format_call(call: StepCall, parsed: Any, is_full: bool) -> Group:
    """Return a call with its complete request, or with the last lines of the request."""
    messages = call.messages if is_full else call.messages[-1:]
    hidden = len(call.messages) - len(messages)
    edited = " (written by a person)" if call.is_edited else ""
    parts: list[RenderableType] = [_format_call_header(call), Text(f"asked{edited}:", style="dim")]
    if hidden:
        count = f"{hidden} {'message' if hidden == 1 else 'messages'}"
        parts.append(Text(f"  ... {count} before this one; 'calls' shows all", style="dim"))
    parts += [Padding.indent(each, 2) for each in _format_tools(call.tools if is_full else ())]
    parts += [Padding.indent(_format_message(each, None if is_full else _MAX_REQUEST_LINES), 2) for each in messages]
    if parsed is None or is_full:
        answer = _append_calls(call.reply or "", call.tool_calls)
        parts += [Text("answered:", style="dim"), _format_reply(Text(answer), is_full)]
    if parsed is not None:
        parts += [
            Text("understood:" if is_full else "answered:", style="dim"),
            _format_reply(_format_parsed(parsed), is_full),
        ]
    return Group(*parts)


def _format_reply(answer: Text, is_full: bool) -> Padding:
    return Padding.indent(answer if is_full else ClippedContent(answer, _MAX_REPLY_LINES, "'calls' shows all"), 2)


def _format_call_header(call: StepCall) -> Text:
    if call.model == WRITTEN_BY_PERSON:
        usage = "nothing was sent"
    else:
        tokens = "/".join("?" if each is None else f"{each:,}" for each in (call.input_tokens, call.output_tokens))
        cost = "price unknown" if call.cost is None else f"${call.cost:,.4f}"
        usage = f"{tokens} tokens in/out, {cost}, {call.seconds or 0:.2f} s"
    replayed = f", replayed {call.replays} x" if call.replays else ""
    common = ", shared between scenarios" if call.is_common else ""
    where = "" if call.node == call.role else f" in {call.node}"
    colour = ROLE_COLOURS.get(call.role, "magenta")
    return Text.assemble((call.role, f"bold {colour}"), (f"{where} ({call.model}): {usage}{replayed}{common}", "dim"))


def _format_parsed(parsed: Any) -> Text:
    if not isinstance(parsed, dict):
        return Text(str(parsed))
    text = Text()
    for number, (key, value) in enumerate(parsed.items()):
        text.append("\n" if number else "").append(f"{key}: ", style="dim")
        text.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text


def _format_message(message: ChatMessage, lines: int | None = None) -> Text:
    rows = _append_calls(message["content"], message.get("tool_calls", ())).splitlines()
    if lines is not None and len(rows) > lines:
        rows = ["...", *rows[-lines:]]
    return Text.assemble((f"{message['role']}: ", "dim"), "\n".join(rows))


def _append_calls(text: str, calls: Sequence[FunctionCall]) -> str:
    """Join a message's text and its tool calls, one per line."""
    return "\n".join([*filter(None, [text]), *(f"calls {format_call(call)}" for call in calls)])


def _format_tools(tools: Sequence[ToolDefinition]) -> list[Text]:
    """Return the names of the tools that a request offers."""
    return [Text.assemble(("tools: ", "dim"), ", ".join(map(get_tool_name, tools)))] if tools else []


def _format_changes(changes: Sequence[Change], is_full: bool) -> list[RenderableType]:
    """Return the changes of the state, one line for each unless they are shown in full."""
    if is_full:
        return [Text(format_change(each, None), style=_select_style(each)) for each in changes]
    shown: list[RenderableType] = [_format_change(each) for each in changes[:_MAX_CHANGES]]
    if omitted := len(changes) - len(shown):
        shown.append(
            Text(f"... {omitted} more {'change' if omitted == 1 else 'changes'}: 'full' shows all", style="dim")
        )
    return shown


def _format_change(change: Change) -> FittedLine:
    return FittedLine(lambda width: format_change(change, width), _select_style(change))


def _select_style(change: Change) -> str:
    if change.before is ABSENT:
        return "green"
    return "red" if change.after is ABSENT else "yellow"


def _format_conversation(
    transcript: Sequence[Line] | Outline, last: int | None, faults: Sequence[DialogueFault] = ()
) -> list[RenderableType]:
    lines = transcript_lines(transcript)
    omitted = 0 if last is None else max(0, len(lines) - last)
    shown: list[RenderableType] = (
        [Text(f"... {omitted} earlier messages; 'transcript' shows them", style="dim")] if omitted else []
    )
    if isinstance(transcript, Outline):  # an outline's lines are not messages
        return [*shown, *map(format_spoken_line, lines[omitted:]), *format_other_faults(faults, ())]
    for index, line in enumerate(lines[omitted:], start=omitted):
        shown += [format_spoken_line(line), *format_message_faults(faults, index)]
    return [*shown, *format_other_faults(faults, lines)]
