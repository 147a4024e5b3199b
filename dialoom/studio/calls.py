"""One call of a model on a page: its figures and, on demand, its request and reply."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from dialoom import Run
from dialoom.prompts import ChatMessage
from dialoom.prompts.messages import format_call
from dialoom.roles.gateway.calls import BROKEN_OFF
from dialoom.runs.reading.conversations import MarkedMessage, RequestDiff
from dialoom.text import counted

from .parts import element, late, text, verbatim

_SAME = 4
"""A first request with more messages than this is shortened to the first two messages and the last two."""


def figures(call: Mapping[str, Any]) -> str:
    """Return a call's figures: its tokens, those among them that are cached or reasoning, cost, time and attempts."""
    tokens = ["?" if call[kind] is None else f"{call[kind]:,}" for kind in ("input_tokens", "output_tokens")]
    parts = ["tokens unknown" if tokens == ["?", "?"] else f"{' + '.join(tokens)} tokens"]
    parts += [f"{call[f'{kind}_tokens']:,} {kind}" for kind in ("cached", "reasoning") if call[f"{kind}_tokens"]]
    parts += ["price unknown" if call["cost"] is None else f"${call['cost']:,.4f}"]
    parts += [] if call["latency"] is None else [f"{call['latency']:.2f} s"]
    parts += [f"{call['attempts']} attempts"] if (call["attempts"] or 1) > 1 else []
    parts += [f"replayed {call['replays']} ×"] if call["replays"] else []
    return " · ".join(parts)


def call_fold(run: Run, summary: str, call: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
    """Add a folded part with a call's reply and its request; the request is compared with the previous one."""

    async def fill() -> None:
        shown = await asyncio.to_thread(run.request, call["call"], None if before is None else before["call"])
        parts = [call["model"], call["prompt"], *([f"sample {call['sample']}"] if call["sample"] else [])]
        text("div", " · ".join(parts), "quiet small")
        text("div", figures(call), "quiet small number")
        request(shown)
        text("div", "reply", "label")
        reply(call)

    late(summary, fill, "call")


def request(shown: RequestDiff) -> None:
    """Add the messages of a request; messages of the previous request are folded, and new ones are highlighted."""
    new = sum(each.mark == "new" for each in shown.messages)
    if shown.has_before:
        gone = sum(each.mark == "gone" for each in shown.messages)
        summary = (
            f"request: {counted(len(shown.messages) - gone, 'messages')}, {new} of them new since the previous call"
        )
        text("div", summary + (f", {gone} removed" if gone else ""), "label")
    else:
        text("div", f"request: {counted(len(shown.messages), 'messages')}", "label")
    if shown.tools:
        text("div", f"tools: {', '.join(shown.tools)}", "quiet small")
    for same, messages in _stretches(shown):
        if same:
            count = counted(len(messages), "messages")
            late(f"{count} unchanged" if shown.has_before else f"{count} in between", partial(_messages, messages))
        else:
            _messages(messages)


def reply(call: Mapping[str, Any]) -> None:
    """Add the reply of a call."""
    if call["error"]:
        verbatim(call["error"], "said bad")
    if call["reply"]:
        verbatim(call["reply"], "said block")
    for each in call["tool_calls"]:
        verbatim(format_call(each), "said mono block")
    if call["finish_reason"] in BROKEN_OFF:
        text("div", f"({BROKEN_OFF[call['finish_reason']]})", "quiet small")


def message_block(message: ChatMessage, mark: str = "same") -> None:
    """Add a message of a request."""
    with element("div", f"asked {mark}"):
        text("div", message["role"] + {"new": " · new", "gone": " · gone"}.get(mark, ""), "label")
        if message["content"]:
            verbatim(message["content"])
        for each in message.get("tool_calls", ()):
            verbatim(f"calls {format_call(each)}", "said mono")


def message_blocks(messages: Iterable[ChatMessage]) -> None:
    """Add messages that are not compared."""
    for each in messages:
        message_block(each)


def _messages(messages: Sequence[MarkedMessage]) -> None:
    for each in messages:
        message_block(each.message, each.mark)


def _stretches(shown: RequestDiff) -> list[tuple[bool, list[MarkedMessage]]]:
    """Return groups of consecutive messages, each unchanged or new; the middle of a first request is one group."""
    messages = list(shown.messages)
    if not shown.has_before:
        if len(messages) <= _SAME:
            return [(False, messages)]
        return [(False, messages[:2]), (True, messages[2:-2]), (False, messages[-2:])]
    found: list[tuple[bool, list[MarkedMessage]]] = []
    for each in shown.messages:
        if not found or found[-1][0] != (each.mark == "same"):
            found.append((each.mark == "same", []))
        found[-1][1].append(each)
    return found
