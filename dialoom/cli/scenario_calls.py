"""`show --calls`: the ledger of one scenario, each call with what was wrong with what it said."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.text import Text

from dialoom.roles.gateway.calls import BROKEN_OFF
from dialoom.runs.fault_calls import calls_at_fault
from dialoom.runs.store import RunFile

from .console import make_console
from .fault_lines import fault_line
from .terminal import say_json
from .trusting import trust

_COLOURS = {"user": "cyan", "assistant": "green"}


def show_calls(path: Path, name: str, as_json: bool, is_trusted: bool) -> None:
    """Every call that belongs to a scenario, in the order in which they were begun; common calls belong to none."""
    with RunFile(path, trust=trust(is_trusted)) as run:
        position = run.resolve(name)
        calls = run.calls_of(position)
        outcome = (run.episode(position) or run.so_far(position)).outcome
        found = calls_at_fault(run, position, calls, outcome)
    console = make_console()
    for call in calls:
        faults, is_rejected = found.faults.get(call["call"], []), call["call"] in found.rejected
        if as_json:
            say_json({**call, "rejected": is_rejected, "faults": [fault.model_dump() for fault in faults]})
            continue
        console.print(_head(call, is_rejected))
        for text, style in ((call["reply"], ""), (call["error"], "red")):
            if text is not None:
                console.print(text, style=style)
        if call["finish_reason"] in BROKEN_OFF:
            console.print(f"({BROKEN_OFF[call['finish_reason']]})", style="dim")
        for fault in faults:
            console.print(fault_line(fault))
        console.print()


def _head(call: Mapping[str, Any], is_rejected: bool) -> Text:
    tokens = " + ".join("?" if call[kind] is None else f"{call[kind]:,}" for kind in ("input_tokens", "output_tokens"))
    told = [f"step {call['step']}", call["model"], f"{tokens} tokens"]
    told += [] if call["latency"] is None else [f"{call['latency']:.2f} s"]
    told += [f"ask {call['ask']}"] if call["ask"] > 1 else []
    told += [f"judging {call['judging']!r}"] if call["judging"] is not None else []
    told += [f"branch {call['branch']!r}"] if call["branch"] is not None else []
    role = (call["role"], f"bold {_COLOURS.get(call['role'], 'magenta')}")
    where = "" if call["node"] == call["role"] else f" in {call['node']}"
    rejected = (", rejected", "bold red") if is_rejected else ("", "")
    return Text.assemble(role, (f"{where}: {', '.join(told)}", "dim"), rejected)
