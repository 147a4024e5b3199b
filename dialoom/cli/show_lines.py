"""Lines of `status` and `show` about calls, faults and budgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.text import Text

from dialoom.api.run import RunReader
from dialoom.graphs import DialogueFault
from dialoom.roles.gateway.calls import INCOMPLETE_REASONS
from dialoom.runs.gateway_setup import BudgetStatus
from dialoom.settings import Price
from dialoom.text import pluralize

from .console import make_console
from .option_flags import trust_by_flag
from .terminal import say_json


def at_message(faults: Iterable[DialogueFault], message: int) -> list[Text]:
    """Return the faults of one message."""
    return [fault_line(each) for each in faults if each.message == message]


def of_the_rest(faults: Iterable[DialogueFault], messages: Sequence[object]) -> list[Text]:
    """Return the faults that belong to no displayed message, each with its position."""
    return [
        fault_line(each, has_place=True) for each in faults if each.message is None or each.message >= len(messages)
    ]


def fault_line(fault: DialogueFault, has_place: bool = False) -> Text:
    """Return a fault as a line: role, kind, certainty, and the text that is evidence of it."""
    message = "" if fault.message is None else f"message {fault.message + 1}"
    place = ", ".join(filter(None, (message, fault.where and f"at {fault.where}")))
    about = f" of the {fault.who}" + (f" ({place})" if place and has_place else "")
    sure = "" if fault.sureness == 1 else f", {fault.sureness:.0%} sure"
    words = f": {' '.join(fault.words.split())}" if fault.words else ""
    return Text.assemble(("  fault", "red"), about, f"{sure}: ", (fault.kind, "bold"), (words, "dim"))


COLOURS = {"user": "cyan", "assistant": "green"}


def show_calls(path: Path, name: str, as_json: bool, is_trusted: bool) -> None:
    """Print a scenario's calls in the order in which they began, without the calls that it shares with others."""
    console = make_console()
    for call in RunReader(path, trust=trust_by_flag(is_trusted)).calls(name):
        if as_json:
            say_json({**call, "faults": [fault.model_dump() for fault in call["faults"]]})
            continue
        console.print(_head(call))
        for text, style in ((call["reply"], ""), (call["error"], "red")):
            if text is not None:
                console.print(text, style=style)
        if call["finish_reason"] in INCOMPLETE_REASONS:
            console.print(f"({INCOMPLETE_REASONS[call['finish_reason']]})", style="dim")
        for fault in call["faults"]:
            console.print(fault_line(fault))
        console.print()


def _head(call: Mapping[str, Any]) -> Text:
    tokens = " + ".join("?" if call[kind] is None else f"{call[kind]:,}" for kind in ("input_tokens", "output_tokens"))
    parts = [
        f"step {call['step']}",
        call["model"],
        f"{tokens} tokens",
        *([] if call["latency"] is None else [f"{call['latency']:.2f} s"]),
        *([f"asked again ({call['ask']})"] if call["ask"] > 1 else []),
        *(f"{kind} {call[kind]!r}" for kind in ("judging", "branch") if call[kind] is not None),
    ]
    role = (call["role"], f"bold {COLOURS.get(call['role'], 'magenta')}")
    where = "" if call["node"] == call["role"] else f" in {call['node']}"
    rejected = (", rejected", "bold red") if call["rejected"] else ("", "")
    return Text.assemble(role, (f"{where}: {', '.join(parts)}", "dim"), rejected)


def bound_lines(bounds: BudgetStatus, run: str) -> list[str]:
    """Return the bounds and their usage as lines for people."""
    limits = bounds.limits
    return [
        *_bounds(bounds),
        *(f"{model or 'every model'}: at most {most:,} requests per minute" for model, most in limits.rpm.items()),
        *(f"{model or 'every model'}: at most {most:,} tokens per minute" for model, most in limits.tpm.items()),
        *(f"{role or 'every role'}: at most {most:g} s per attempt" for role, most in limits.timeouts.items()),
        *(f"{model}: context window of {window:,} tokens" for model, window in limits.context.items()),
        *(f"{model}: priced {_priced(price)} per million tokens" for model, price in limits.prices.items()),
        *(
            f"{model}: {each.attempts:,} attempts failed, {each.throttled:,} of them throttled"
            for model, each in bounds.failed_attempts.items()
        ),
        *(
            f"{pluralize(count, 'scenarios')} with unparsed judgements to repeat in {name!r}: dialoom retry {run} "
            f"--unparsed --judging {name!r}"
            for name, count in bounds.rejudgings.items()
        ),
    ]


def budget_flags(bounds: BudgetStatus) -> str:
    """Return the flags of `dialoom resume RUN` that enlarge the budget, in brackets unless `max_calls` is used up."""
    budget, taken = bounds.limits.budget, bounds.spend
    if taken is None:
        return ""
    flags = " ".join(f"--{name.replace('_', '-')} MORE" for name in budget.model_dump(exclude_none=True))
    return f" {flags}" if budget.max_calls is not None and taken.calls >= budget.max_calls else f" [{flags}]"


def _bounds(bounds: BudgetStatus) -> list[str]:
    budget, taken = bounds.limits.budget, bounds.spend
    if taken is None:
        return []
    parts = (
        ("{:,} of {:,} calls", taken.calls, budget.max_calls),
        ("{:,} of {:,} tokens", taken.tokens, budget.max_tokens),
        ("${:,.4f} of ${:,.4f}", taken.cost, budget.max_cost),
    )
    used = ", ".join(form.format(value, most) for form, value, most in parts if most is not None)
    return [f"budget: {used} used"]


def _priced(price: Price) -> str:
    cached = "" if price.cached_input is None else f", {price.cached_input:g} from the prompt cache"
    return f"{price.input:g} US dollars in, {price.output:g} out{cached}"


def changed_lines(changes: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a line for each setting of a role that was not sent as configured."""
    return [
        f"not sent as configured, {role}: {text} in {calls:,} call{'s' if calls > 1 else ''}"
        for role, texts in changes.items()
        for text, calls in texts.items()
    ]
