"""What the answers of the step debugger look like: as JSON for programs, and as text for people."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from dialoom.graphs import Judgement, Line, Outline
from dialoom.runs.stepping import Asked, Cost, Difference, Stop
from dialoom.runs.stepping.changes import said
from dialoom.runs.stepping.differences import Said, spoken
from dialoom.runs.stepping.gateway import SAID
from dialoom.runs.stepping.values import plain
from dialoom.runs.store.branches import Branch, StepCall

COLOURS = {"user": "cyan", "assistant": "green"}
_LINES = 4
"""So many lines of the conversation are shown at a stop; `transcript` shows all."""
_TAIL = 3
"""So many lines of a request."""
_WIDTH = 100
_IN, _FURTHER_IN = (0, 0, 0, 2), (0, 0, 0, 4)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command comes to.

    Attributes:
        data: For programs.
        shown: For people.
    """

    data: Mapping[str, Any]
    shown: Sequence[RenderableType]


def note(text: str, **data: Any) -> Answer:
    """An answer of one line."""
    return Answer({"note": text, **data}, [Text(text)])


def stop_answer(stop: Stop, parsed: Mapping[int, Any], is_full: bool = False) -> Answer:
    """Where a session stands.

    Args:
        stop: The stop.
        parsed: What was understood of structured replies, by the calls' rows.
        is_full: Whether requests and the conversation are shown whole.
    """
    shown: list[RenderableType] = [_heading(stop)]
    are_many = len(stop.calls) > 1
    calls = [_call(call, parsed.get(call.id), is_full, are_many) for call in stop.calls]
    shown += [Padding(call, _IN, expand=False) for call in calls]
    shown += [Padding(_change(said(change, _WIDTH)), _IN, expand=False) for change in stop.changes]
    if conversation := _conversation(stop.transcript, None if is_full else _LINES):
        shown += [Text("  the conversation", style="dim"), Padding(Group(*conversation), _FURTHER_IN, expand=False)]
    shown.append(_coming(stop))
    return Answer(stop_data(stop, parsed), shown)


def stop_data(stop: Stop, parsed: Mapping[int, Any]) -> dict[str, Any]:
    """A stop, for programs."""
    return {
        "branch": stop.branch,
        "number": stop.number,
        "checkpoint": stop.checkpoint,
        "kind": stop.kind,
        "ran": list(stop.ran),
        "next": list(stop.next),
        "why": dict(stop.why),
        "counts": dict(stop.counts),
        "changes": [{"path": each.path, "line": said(each, None)} for each in stop.changes],
        "calls": [call_data(call, parsed.get(call.id)) for call in stop.calls],
        "transcript": [{"role": role, "content": content} for role, content in spoken(stop.transcript)],
    }


def call_data(call: StepCall, parsed: Any) -> dict[str, Any]:
    """A call, for programs."""
    return {
        "node": call.node,
        "role": call.role,
        "model": call.model,
        "prompt": call.prompt,
        "sample": call.sample,
        "request": [{"role": role, "content": content} for role, content in call.messages],
        "is_edited": call.is_edited,
        "reply": call.reply,
        "parsed": parsed,
        "input_tokens": call.input_tokens,
        "output_tokens": call.output_tokens,
        "cost": call.cost,
        "seconds": call.seconds,
        "replays": call.replays,
    }


def calls_answer(stop: Stop, parsed: Mapping[int, Any]) -> Answer:
    """The calls that led to a stop, with their whole requests."""
    if not stop.calls:
        return note(f"no call led to checkpoint {stop.number}", calls=[])
    data = {"calls": [call_data(call, parsed.get(call.id)) for call in stop.calls]}
    return Answer(data, [_call(call, parsed.get(call.id), is_full=True) for call in stop.calls])


def asked_answer(asked: Sequence[Asked]) -> Answer:
    """The prompts of the step to come."""
    data = [
        {
            "node": each.node,
            "role": each.role,
            "model": each.request.model,
            "prompt": each.request.prompt_id,
            "messages": list(each.request.messages),
        }
        for each in asked
    ]
    shown: list[RenderableType] = []
    for each in asked:
        head = f"{each.role} is asked by {each.node} ({each.request.model}, {each.request.prompt_id})"
        shown.append(Text(head, style="bold"))
        shown += [Padding(_message(one["role"], one["content"]), _IN, expand=False) for one in each.request.messages]
    return Answer({"asked": data}, shown or [Text("the next step asks nobody")])


def transcript_answer(transcript: Sequence[Line] | Outline) -> Answer:
    """The whole conversation."""
    lines = [{"role": role, "content": content} for role, content in spoken(transcript)]
    return Answer({"transcript": lines}, _conversation(transcript, None) or [Text("nothing was said yet")])


def state_answer(path: str, value: Any) -> Answer:
    """A value in the state."""
    known = plain(value)
    text = known if isinstance(known, str) else json.dumps(known, ensure_ascii=False, indent=2)
    return Answer({"path": path, "value": known}, [Text(text)])


def forks_answer(branches: Iterable[tuple[Branch, Stop]], here: str, taken: str) -> Answer:
    """The branches."""
    table = RichTable("", "branch", "from", "at", "next", "sample", "models", box=None, header_style="dim")
    data = []
    for branch, stop in branches:
        end = "the end" if stop.is_end else ", ".join(stop.next)
        models = ", ".join(f"{role}={model}" for role, model in branch.models.items())
        name = branch.name + (" (the outcome)" if branch.name == taken else "")
        mark = "@" if branch.name == here else ""
        table.add_row(mark, name, branch.origin or "", str(stop.number), end, str(branch.sample), models)
        data.append(
            {
                "branch": branch.name,
                "origin": branch.origin,
                "number": stop.number,
                "next": list(stop.next),
                "sample": branch.sample,
                "models": dict(branch.models),
                "is_here": branch.name == here,
                "is_outcome": branch.name == taken,
            }
        )
    return Answer({"branches": data}, [table])


def diff_answer(difference: Difference) -> Answer:
    """Two branches side by side."""
    left, right = difference.names
    table = RichTable(left, right, expand=True, show_lines=False, header_style="bold", pad_edge=False)
    for column in table.columns:
        column.ratio = 1
    same = 0
    for pair in difference.lines:
        if pair.is_same:
            same += 1
            continue
        if same:
            table.add_row(*[Text(f"... {same} {'line' if same == 1 else 'lines'} alike", style="dim")] * 2)
            same = 0
        table.add_row(_said(pair.left), _said(pair.right))
    if same:
        table.add_row(*[Text(f"... {same} {'line' if same == 1 else 'lines'} alike", style="dim")] * 2)
    for thing, ours, theirs in difference.judgements:
        table.add_row(_judged(thing, ours), _judged(thing, theirs))
    table.add_row(*(Text(f"{cost_text(cost)} since they parted", style="dim") for cost in difference.costs))
    shared = f"{difference.shared} {'step' if difference.shared == 1 else 'steps'} in common"
    head = Text(
        f"{shared} ({cost_text(difference.before)}); "
        + "; ".join(
            f"{name} at {number}{', the end' if is_end else ''}"
            for name, (number, is_end) in zip(difference.names, difference.stands, strict=True)
        )
    )
    return Answer(_difference_data(difference), [head, table])


def cost_text(cost: Cost) -> str:
    """What calls took, in words."""
    tokens = "tokens unknown" if cost.tokens is None else f"{cost.tokens:,} tokens"
    dollars = "price unknown" if cost.dollars is None else f"${cost.dollars:,.4f}"
    return f"{cost.calls} {'call' if cost.calls == 1 else 'calls'}, {tokens}, {dollars}, {cost.seconds:.2f} s"


def _difference_data(difference: Difference) -> dict[str, Any]:
    def line(side: Said | None) -> dict[str, str] | None:
        return None if side is None else {"role": side[0], "content": side[1]}

    def word(judgement: Judgement | None) -> dict[str, Any] | None:
        return None if judgement is None else judgement.model_dump(mode="json")

    def cost(of: Cost) -> dict[str, Any]:
        return {"calls": of.calls, "tokens": of.tokens, "cost": of.dollars, "seconds": of.seconds}

    return {
        "branches": list(difference.names),
        "shared_steps": difference.shared,
        "lines": [
            {"same": each.is_same, "left": line(each.left), "right": line(each.right)} for each in difference.lines
        ],
        "judgements": [
            {"what": thing, "left": word(ours), "right": word(theirs)} for thing, ours, theirs in difference.judgements
        ],
        "shared_cost": cost(difference.before),
        "costs": [cost(each) for each in difference.costs],
    }


def _heading(stop: Stop) -> Text:
    what = {"edit": "the state was edited", "input": "the beginning", "fork": "gone back to"}.get(stop.kind, "")
    ran = ", ".join(node for node in stop.ran if not node.startswith("__"))
    counts = "".join(f" · {word} {count}" for word, count in stop.counts.items())
    told = f"{ran} ran" if ran else what or "nothing was played yet"
    return Text.assemble((f"{stop.branch} {stop.number}", "bold"), (counts, "dim"), (f" · {told}", "bold"))


def _coming(stop: Stop) -> Text:
    if stop.is_end:
        return Text("  the end: nothing comes next", style="bold")
    reasons: dict[str, list[str]] = {}
    for node in stop.next:
        reasons.setdefault(stop.why.get(node, ""), []).append(node)
    text = Text("  next: ", style="bold")
    parts = [f"{', '.join(nodes)} ({why})" if why else ", ".join(nodes) for why, nodes in reasons.items()]
    return text.append("; ".join(parts), style="not bold")


def _call(call: StepCall, parsed: Any, is_full: bool, is_one_of_many: bool = False) -> Group:
    """A call: whole; or with the last words of its request; or, among many, only what it came to."""
    answer = Text(call.reply or "") if parsed is None or is_full else _understood(parsed)
    if is_one_of_many and not is_full:
        return Group(_call_head(call), Padding(answer, _IN, expand=False))
    messages = call.messages if is_full else call.messages[-1:]
    hidden = len(call.messages) - len(messages)
    edited = " (written by a person)" if call.is_edited else ""
    parts: list[RenderableType] = [_call_head(call), Text(f"asked{edited}:", style="dim")]
    if hidden:
        parts.append(Text(f"  ... {hidden} more before it, or parts: 'calls' shows all", style="dim"))
    parts += [Padding(_message(*each, None if is_full else _TAIL), _IN, expand=False) for each in messages]
    parts += [Text("answered:", style="dim"), Padding(answer, _IN, expand=False)]
    if parsed is not None and is_full:
        parts += [Text("understood:", style="dim"), Padding(_understood(parsed), _IN, expand=False)]
    return Group(*parts)


def _call_head(call: StepCall) -> Text:
    if call.model == SAID:
        took = "nothing was sent"
    else:
        tokens = "/".join("?" if each is None else f"{each:,}" for each in (call.input_tokens, call.output_tokens))
        cost = "price unknown" if call.cost is None else f"${call.cost:,.4f}"
        took = f"{tokens} tokens in/out, {cost}, {call.seconds or 0:.2f} s"
    replayed = f", replayed {call.replays} x" if call.replays else ""
    where = "" if call.node == call.role else f" in {call.node}"
    colour = COLOURS.get(call.role, "magenta")
    return Text.assemble((call.role, f"bold {colour}"), (f"{where} ({call.model}): {took}{replayed}", "dim"))


def _understood(parsed: Any) -> Text:
    if not isinstance(parsed, dict):
        return Text(str(parsed))
    text = Text()
    for number, (key, value) in enumerate(parsed.items()):
        text.append("\n" if number else "").append(f"{key}: ", style="dim")
        text.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text


def _message(role: str, content: str, lines: int | None = None) -> Text:
    rows = content.splitlines()
    if lines is not None and len(rows) > lines:
        rows = ["...", *rows[-lines:]]
    return Text.assemble((f"{role}: ", "dim"), "\n".join(rows))


def _change(line: str) -> Text:
    style = {"+": "green", "-": "red"}.get(line[:1], "yellow")
    return Text(line, style=style)


def _conversation(transcript: Sequence[Line] | Outline, last: int | None) -> list[RenderableType]:
    lines = spoken(transcript)
    shown = lines if last is None else lines[-last:]
    left = len(lines) - len(shown)
    before: list[RenderableType] = [Text(f"... {left} before: 'transcript' shows them", style="dim")] if left else []
    return [*before, *(_said(line) for line in shown)]


def _said(line: Said | None) -> Text:
    if line is None:
        return Text("")
    role, content = line
    return Text.assemble((f"{role}: ", f"bold {COLOURS.get(role, 'magenta')}"), content) if role else Text(content)


def _judged(thing: str, judgement: Judgement | None) -> Text:
    if judgement is None:
        return Text(f"{thing}: not judged", style="dim")
    word = judgement.status if judgement.score is None else str(judgement.score)
    return Text.assemble((f"{thing}: ", "dim"), (word, "bold"), (f"  {judgement.explanation}", "dim"))
