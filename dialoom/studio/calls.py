"""One call of a model on a page: its figures and, on demand, its request and reply."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from dialoom import Run
from dialoom.prompts import ChatMessage
from dialoom.prompts.messages import format_call
from dialoom.roles.gateway.calls import INCOMPLETE_REASONS
from dialoom.runs.reading.conversations import MarkedMessage, RequestDiff
from dialoom.text import pluralize

from .components import element, lazy_details, text, verbatim

_MAX_UNABRIDGED_MESSAGES = 4
"""A first request with more messages than this is shortened to the first two messages and the last two."""


def format_figures(call: Mapping[str, Any]) -> str:
    """Return a call's figures: its tokens, those among them that are cached or reasoning, cost, time and attempts."""
    tokens = ["?" if call[kind] is None else f"{call[kind]:,}" for kind in ("input_tokens", "output_tokens")]
    parts = ["tokens unknown" if tokens == ["?", "?"] else f"{' + '.join(tokens)} tokens"]
    parts += [f"{call[f'{kind}_tokens']:,} {kind}" for kind in ("cached", "reasoning") if call[f"{kind}_tokens"]]
    parts += ["price unknown" if call["cost"] is None else f"${call['cost']:,.4f}"]
    parts += [] if call["latency"] is None else [f"{call['latency']:.2f} s"]
    parts += [f"{call['attempts']} attempts"] if (call["attempts"] or 1) > 1 else []
    parts += [f"replayed {call['replays']} ×"] if call["replays"] else []
    return " · ".join(parts)


def add_call(run: Run, summary: str, call: Mapping[str, Any], previous: Mapping[str, Any] | None) -> None:
    """Add a folded part with a call's reply and its request; the request is compared with the previous one."""

    async def fill() -> None:
        diff = await asyncio.to_thread(run.request, call["call"], None if previous is None else previous["call"])
        parts = [call["model"], call["prompt"], *([f"sample {call['sample']}"] if call["sample"] else [])]
        text("div", " · ".join(parts), "quiet small")
        text("div", format_figures(call), "quiet small number")
        _add_request(diff)
        text("div", "reply", "label")
        _add_reply(call)

    lazy_details(summary, fill, "call")


def _add_request(diff: RequestDiff) -> None:
    """Add the messages of a request; messages of the previous request are folded, and new ones are highlighted."""
    new_count = sum(each.mark == "new" for each in diff.messages)
    if diff.has_previous:
        removed_count = sum(each.mark == "gone" for each in diff.messages)
        count = pluralize(len(diff.messages) - removed_count, "messages")
        summary = f"request: {count}, {new_count} of them new since the previous call"
        text("div", summary + (f", {removed_count} removed" if removed_count else ""), "label")
    else:
        text("div", f"request: {pluralize(len(diff.messages), 'messages')}", "label")
    if diff.tools:
        text("div", f"tools: {', '.join(diff.tools)}", "quiet small")
    for is_unchanged, messages in _group_messages(diff):
        if is_unchanged:
            count = pluralize(len(messages), "messages")
            lazy_details(
                f"{count} unchanged" if diff.has_previous else f"{count} in between",
                partial(_add_marked_messages, messages),
            )
        else:
            _add_marked_messages(messages)


def _add_reply(call: Mapping[str, Any]) -> None:
    """Add the reply of a call."""
    if call["error"]:
        verbatim(call["error"], "said bad")
    if call["reply"]:
        verbatim(call["reply"], "said block")
    for each in call["tool_calls"]:
        verbatim(format_call(each), "said mono block")
    if call["finish_reason"] in INCOMPLETE_REASONS:
        text("div", f"({INCOMPLETE_REASONS[call['finish_reason']]})", "quiet small")


def add_message(message: ChatMessage, mark: str = "same") -> None:
    """Add a message of a request."""
    with element("div", f"asked {mark}"):
        text("div", message["role"] + {"new": " · new", "gone": " · gone"}.get(mark, ""), "label")
        if message["content"]:
            verbatim(message["content"])
        for each in message.get("tool_calls", ()):
            verbatim(f"calls {format_call(each)}", "said mono")


def add_messages(messages: Iterable[ChatMessage]) -> None:
    """Add messages that are not compared."""
    for each in messages:
        add_message(each)


def _add_marked_messages(messages: Sequence[MarkedMessage]) -> None:
    for each in messages:
        add_message(each.message, each.mark)


def _group_messages(diff: RequestDiff) -> list[tuple[bool, list[MarkedMessage]]]:
    """Return groups of consecutive messages, each unchanged or new; the middle of a first request is one group."""
    messages = list(diff.messages)
    if not diff.has_previous:
        if len(messages) <= _MAX_UNABRIDGED_MESSAGES:
            return [(False, messages)]
        return [(False, messages[:2]), (True, messages[2:-2]), (False, messages[-2:])]
    groups: list[tuple[bool, list[MarkedMessage]]] = []
    for each in diff.messages:
        if not groups or groups[-1][0] != (each.mark == "same"):
            groups.append((each.mark == "same", []))
        groups[-1][1].append(each)
    return groups
