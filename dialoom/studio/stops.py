"""A stop of the step debugger on a page: calls, changes, conversation, tree of checkpoints; two branches compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import groupby
from typing import Any

from nicegui import ui

from dialoom.graphs import Judgement, Line, Outline
from dialoom.graphs.outcome import ENVIRONMENT
from dialoom.prompts.messages import format_call
from dialoom.roles.gateway.calls import WRITTEN_BY_PERSON
from dialoom.runs.reading.conversations import TextPiece, diff_words
from dialoom.runs.report.health import Health
from dialoom.runs.stepping import Difference, Stop
from dialoom.runs.stepping.stop import ABSENT, PLAYERS_KEY, Change, format_change, format_cost
from dialoom.runs.stepping.tree import SpokenLine, TreeNode, assign_columns, transcript_lines
from dialoom.runs.stepping.values import to_plain
from dialoom.runs.stepping.view import HistoryEntry
from dialoom.runs.store import StepCall
from dialoom.text import pluralize

from .calls import add_messages
from .components import details, element, fragment, lazy_details, link, text, verbatim
from .labelling import format_badge, format_judgement
from .step_data import format_state_value

_MAX_INITIAL_LINES = 6
"""Number of lines of a conversation that are shown at first."""
_MAX_UNFOLDED_CHANGES = 4
"""Number of changes of a step that are shown at first."""
_MAX_INITIAL_CALLS = 2
"""Number of calls of a step that are shown at first."""


def add_heading(stop: Stop) -> None:
    """Add the position, and the next node."""
    with element("div", "row-of head"):
        text("h1", f"{stop.branch} {stop.number}")
        text("span", stop.title, "metric")
        for name, count in stop.counts.items():
            text("span", f"{name} {count}", "badge number")
    if stop.is_end:
        text(
            "p",
            "The end: no further steps. To change something, go back with a row of the tree or with Back.",
            "quiet",
        )
    else:
        for why, nodes in stop.reasons.items():
            text("p", f"Next: {', '.join(nodes)}" + (f" ({why})" if why else ""), "quiet")


def add_calls(stop: Stop, parsed_replies: Mapping[int, Any]) -> None:
    """Add the calls that led to this stop; if there are many, only their number is shown until they are opened."""
    if len(stop.calls) > _MAX_INITIAL_CALLS:
        lazy_details(format_cost(stop.cost), partial(_add_call_list, stop.calls, parsed_replies), "call")
    else:
        _add_call_list(stop.calls, parsed_replies)


def _add_call_list(calls: Sequence[StepCall], parsed_replies: Mapping[int, Any]) -> None:
    for call in calls:
        where = "" if call.node == call.role else f" in {call.node}"
        edited = ", with a request edited by a person" if call.is_edited else ""
        who = (
            f"written by a person as {call.role}"
            if call.model == WRITTEN_BY_PERSON
            else f"{call.role}{where} ({call.model})"
        )
        with element("div", "step-call"):
            with element("div", "meta"):
                text("span", f"{who}{edited}", "who")
                text("span", format_call_figures(call), "number")
            parsed_reply = parsed_replies.get(call.id)
            if isinstance(parsed_reply, Mapping):
                for name, value in parsed_reply.items():
                    with element("div", "row-of"):
                        text("span", str(name), "label")
                        verbatim(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
            elif call.reply:
                verbatim(call.reply, "said block")
            for each in call.tool_calls:
                verbatim(format_call(each), "said mono block")
            lazy_details(f"request: {pluralize(len(call.messages), 'messages')}", partial(_add_request, call), "call")


def _add_request(call: StepCall) -> None:
    text("div", call.prompt, "quiet small")
    add_messages(call.messages)


def format_call_figures(call: StepCall) -> str:
    """Return the figures of a call."""
    if call.model == WRITTEN_BY_PERSON:
        return "nothing was sent"
    tokens = " + ".join("?" if each is None else f"{each:,}" for each in (call.input_tokens, call.output_tokens))
    cost = "price unknown" if call.cost is None else f"${call.cost:,.4f}"
    parts = [f"{tokens} tokens", cost, f"{call.seconds or 0:.2f} s"]
    parts += [f"replayed {call.replays} ×"] if call.replays else []
    parts += ["shared between scenarios"] if call.is_common else []
    return " · ".join(parts)


def add_changes(changes: Sequence[Change]) -> None:
    """Add the changes to the state since the previous stop."""
    if changes:
        summary = f"{pluralize(len(changes), 'changes')} to the state"
        container = details(summary) if len(changes) > _MAX_UNFOLDED_CHANGES else nullcontext()
        with container, element("ul", "changes"):
            for each in changes:
                _add_change(each)


def _add_change(change: Change) -> None:
    with element("li", ("added" if change.before is ABSENT else "removed" if change.after is ABSENT else "changed")):
        verbatim(format_change(change, 400), "said mono")


def add_states(state: Mapping[str, Any]) -> None:
    """Add the states of stateful players and of the environment, loaded on request."""
    players = state.get(PLAYERS_KEY)  # a recipe may have a channel of that name
    states_by_title = (
        {f"State of {role}": each for role, each in players.items()} if isinstance(players, Mapping) else {}
    )
    if ENVIRONMENT in state:
        states_by_title["State of the environment"] = state[ENVIRONMENT]
    for name, value in states_by_title.items():
        lazy_details(name, partial(verbatim, format_state_value(to_plain(value)), "said mono block"))


def add_transcript(transcript: Sequence[Line] | Outline) -> None:
    """Add the conversation so far: its last lines, and the earlier ones loaded on request."""
    lines = transcript_lines(transcript)
    earlier, last = lines[:-_MAX_INITIAL_LINES], lines[-_MAX_INITIAL_LINES:]
    if earlier:
        lazy_details(f"{pluralize(len(earlier), 'lines')} earlier", partial(_add_lines, earlier))
    _add_lines(last)
    if not lines:
        text("p", "Nothing has been said yet.", "quiet")


def _add_lines(lines: Sequence[SpokenLine]) -> None:
    for line in lines:
        with element("div", f"spoken {line[0] if line[0] in ('user', 'assistant') else ''}"):
            _add_line(line, None)


def _add_line(line: SpokenLine, pieces: Sequence[TextPiece] | None) -> None:
    role, content = line
    if role:
        text("span", role, "label")
    if pieces is None:
        verbatim(content if role else content.strip())
        return
    with element("div", "said"):
        for piece in pieces:
            text("span" if piece.is_shared else "mark", piece.text, "" if piece.is_shared else "differs")


def add_comparison(
    comparison: Difference, health: Mapping[str, Health], add_actions: Callable[[int], None] | None = None
) -> None:
    """Add two branches side by side: first the differing judgements, then the messages; equal messages are counted.

    Args:
        comparison: The two branches.
        health: The health of the judge, by metric and target.
        add_actions: Adds the possible actions to the head of each side.
    """
    positions = " and ".join(
        f"{name}, step {number}{' (end)' if is_end else ''}"
        for name, (number, is_end) in zip(comparison.names, comparison.positions, strict=True)
    )
    text(
        "p",
        f"{positions}; {pluralize(comparison.shared, 'steps')} in common ({format_cost(comparison.before)})",
        "quiet",
    )
    with element("div", "versus", role="region", aria_label="Two branches side by side"):
        for index, name in enumerate(comparison.names):
            with element("div", "stack side-head"):
                text("div", name, "label side-name")
                if add_actions is not None:
                    add_actions(index)
        _add_judgements(comparison, health)
        for is_same, group in groupby(comparison.lines, key=lambda pair: pair.is_same):
            pairs = list(group)
            if is_same:
                with details(f"{pluralize(len(pairs), 'equal lines')}", "alike"):
                    _add_lines([pair.left for pair in pairs if pair.left is not None])
                continue
            for pair in pairs:
                _add_line_pair(pair.left, pair.right)
        for cost in comparison.costs:
            text("div", f"since the fork: {format_cost(cost)}", "quiet small side")


def _add_judgements(comparison: Difference, health: Mapping[str, Health]) -> None:
    """Add differing judgements side by side, and equal ones as one line each."""
    for is_equal in (False, True):
        for subject, ours, theirs in comparison.judgements:
            if (is_same_score := _format_side(ours) == _format_side(theirs)) == is_equal:
                for each in (ours, theirs):
                    _add_judgement_side(subject, each, health, is_same_score=is_same_score, is_same=ours == theirs)


def _add_line_pair(left: SpokenLine | None, right: SpokenLine | None) -> None:
    is_both = left is not None and right is not None and left[0] == right[0]
    pieces = diff_words(left[1], right[1]) if is_both and left is not None and right is not None else (None, None)
    for line, marked_pieces, side in ((left, pieces[0], "ours"), (right, pieces[1], "theirs")):
        with element("div", f"side spoken {side} {'' if line else 'nothing'}"):
            if line is not None:
                _add_line(line, marked_pieces)


def _format_side(judgement: Judgement | None) -> str:
    return "not judged" if judgement is None else format_judgement(judgement)


def _add_judgement_side(
    subject: str, judgement: Judgement | None, health: Mapping[str, Health], *, is_same_score: bool, is_same: bool
) -> None:
    """Add a judgement beside the other side's: marked if the scores differ, explained if the explanations differ."""
    with element("div", "side judged-side quiet" if is_same_score else "side judged-side"):
        text("span", subject, "label")
        score, why = (_format_side(judgement), "") if judgement is None else format_badge(judgement, health)
        text("span", score, "badge" if is_same_score else "badge warn")
        if judgement is not None and judgement.explanation and not is_same:
            verbatim(judgement.explanation, "said small quiet")
        if why:
            text("div", why, "small quiet")


_MAX_LABEL_CHARACTERS = 200
"""Maximum number of characters of a row's text, which CSS clips at the row's end."""
_ROW_HEIGHT, _COLUMN_WIDTH, _MARGIN = 28, 16, 11
"""Sizes of the drawn tree in pixels: the height of a row, the width of a column, and the margin."""

_SCROLL_TO_CURRENT_SCRIPT = """
const list = document.querySelector(".history"), here = list?.querySelector("[aria-current]");
if (here) list.scrollTop = here.parentElement.offsetTop - list.clientHeight / 2;
"""


def add_checkpoint_tree(
    entries: Sequence[HistoryEntry],
    current: int,
    branch_checkpoints: Sequence[int],
    label: Callable[[HistoryEntry], str],
    build_url: Callable[[int], str],
) -> None:
    """Draw the tree.

    Args:
        entries: The checkpoints, the oldest first.
        current: The number of the current checkpoint.
        branch_checkpoints: The numbers of the checkpoints on the displayed branch, which are highlighted.
        label: Returns the text of a row.
        build_url: Returns the address that a click on a row opens.
    """
    columns = assign_columns([TreeNode(each.number, each.parent, "") for each in entries])
    rows = {each.number: index for index, each in enumerate(entries)}
    width = _MARGIN * 2 + _COLUMN_WIDTH * max(columns.values(), default=0)
    with fragment("div", "history"):
        _draw_lines(entries, columns, rows, width, frozenset(branch_checkpoints), current)
        with element("ol", style=f"padding-inline-start: {width}px"):
            for each in entries:
                attributes = {"aria_current": "step"} if each.number == current else {}
                with element("li"), link("", build_url(each.number), **attributes):
                    text("span", str(each.number), "number quiet")
                    text("span", label(each)[:_MAX_LABEL_CHARACTERS], "clipped")
                    for name in each.branches:
                        text("span", name, "badge accent")
    ui.run_javascript(_SCROLL_TO_CURRENT_SCRIPT)


def _draw_lines(
    entries: Sequence[HistoryEntry],
    columns: Mapping[int, int],
    rows: Mapping[int, int],
    width: int,
    branch_checkpoints: frozenset[int],
    current: int,
) -> None:
    height = _ROW_HEIGHT * len(entries)
    with element("svg", width=str(width), height=str(height), viewBox=f"0 0 {width} {height}", aria_hidden="true"):
        for each in entries:
            if each.parent is not None and each.parent in rows:
                is_highlighted = each.number in branch_checkpoints and each.parent in branch_checkpoints
                element("path", "on" if is_highlighted else "", d=_build_path(each.number, each.parent, columns, rows))
        for each in entries:
            x, y = _locate(each.number, columns, rows)
            classes = f"{'on' if each.number in branch_checkpoints else ''} {'here' if each.number == current else ''}"
            element("circle", classes, cx=str(x), cy=str(y), r="6" if each.number == current else "4")


def _locate(number: int, columns: Mapping[int, int], rows: Mapping[int, int]) -> tuple[int, int]:
    return _MARGIN + _COLUMN_WIDTH * columns[number], _ROW_HEIGHT * rows[number] + _ROW_HEIGHT // 2


def _build_path(number: int, parent: int, columns: Mapping[int, int], rows: Mapping[int, int]) -> str:
    """Return the drawn line from a checkpoint's parent: across to the checkpoint's column, then down."""
    x, y = _locate(number, columns, rows)
    from_x, from_y = _locate(parent, columns, rows)
    if x == from_x:
        return f"M {from_x} {from_y} V {y}"
    bend = from_y + _ROW_HEIGHT
    return f"M {from_x} {from_y} C {from_x} {bend - 6} {x} {from_y + 6} {x} {bend} V {y}"
