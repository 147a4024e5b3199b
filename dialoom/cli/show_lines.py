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
from .option_flags import build_trust
from .terminal import echo_json


def format_message_faults(faults: Iterable[DialogueFault], message: int) -> list[Text]:
    """Return the faults of one message."""
    return [format_fault(each) for each in faults if each.message == message]


def format_other_faults(faults: Iterable[DialogueFault], messages: Sequence[object]) -> list[Text]:
    """Return the faults that belong to no displayed message, each with its position."""
    return [
        format_fault(each, has_place=True) for each in faults if each.message is None or each.message >= len(messages)
    ]


def format_fault(fault: DialogueFault, has_place: bool = False) -> Text:
    """Return a fault as a line: role, kind, certainty, and the text that is evidence of it."""
    message = "" if fault.message is None else f"message {fault.message + 1}"
    place = ", ".join(filter(None, (message, fault.where and f"at {fault.where}")))
    about = f" of the {fault.role}" + (f" ({place})" if place and has_place else "")
    confidence = "" if fault.confidence == 1 else f", {fault.confidence:.0%} sure"
    words = f": {' '.join(fault.excerpt.split())}" if fault.excerpt else ""
    return Text.assemble(("  fault", "red"), about, f"{confidence}: ", (fault.kind, "bold"), (words, "dim"))


ROLE_COLOURS = {"user": "cyan", "assistant": "green"}


def show_calls(path: Path, name: str, as_json: bool, is_trusted: bool) -> None:
    """Print a scenario's calls in the order in which they began, without the calls that it shares with others."""
    console = make_console()
    for call in RunReader(path, trust=build_trust(is_trusted)).calls(name):
        if as_json:
            echo_json({**call, "faults": [fault.model_dump() for fault in call["faults"]]})
            continue
        console.print(_format_call(call))
        for text, style in ((call["reply"], ""), (call["error"], "red")):
            if text is not None:
                console.print(text, style=style)
        if call["finish_reason"] in INCOMPLETE_REASONS:
            console.print(f"({INCOMPLETE_REASONS[call['finish_reason']]})", style="dim")
        for fault in call["faults"]:
            console.print(format_fault(fault))
        console.print()


def _format_call(call: Mapping[str, Any]) -> Text:
    tokens = " + ".join("?" if call[kind] is None else f"{call[kind]:,}" for kind in ("input_tokens", "output_tokens"))
    parts = [
        f"step {call['step']}",
        call["model"],
        f"{tokens} tokens",
        *([] if call["latency"] is None else [f"{call['latency']:.2f} s"]),
        *([f"asked again ({call['ask']})"] if call["ask"] > 1 else []),
        *(f"{kind} {call[kind]!r}" for kind in ("judging", "branch") if call[kind] is not None),
    ]
    role = (call["role"], f"bold {ROLE_COLOURS.get(call['role'], 'magenta')}")
    where = "" if call["node"] == call["role"] else f" in {call['node']}"
    rejected = (", rejected", "bold red") if call["rejected"] else ("", "")
    return Text.assemble(role, (f"{where}: {', '.join(parts)}", "dim"), rejected)


def format_bounds(bounds: BudgetStatus, run: str) -> list[str]:
    """Return the bounds and their usage as lines for people."""
    limits = bounds.limits
    return [
        *_format_budget(bounds),
        *(
            f"{model or 'every model'}: at most {maximum:,} requests per minute"
            for model, maximum in limits.rpm.items()
        ),
        *(f"{model or 'every model'}: at most {maximum:,} tokens per minute" for model, maximum in limits.tpm.items()),
        *(f"{role or 'every role'}: at most {maximum:g} s per attempt" for role, maximum in limits.timeouts.items()),
        *(f"{model}: context window of {window:,} tokens" for model, window in limits.context.items()),
        *(f"{model}: priced {_format_price(price)} per million tokens" for model, price in limits.prices.items()),
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


def format_budget_flags(bounds: BudgetStatus) -> str:
    """Return the flags of `dialoom resume RUN` that enlarge the budget, in brackets unless `max_calls` is used up."""
    budget, spend = bounds.limits.budget, bounds.spend
    if spend is None:
        return ""
    flags = " ".join(f"--{name.replace('_', '-')} MORE" for name in budget.model_dump(exclude_none=True))
    return f" {flags}" if budget.max_calls is not None and spend.calls >= budget.max_calls else f" [{flags}]"


def _format_budget(bounds: BudgetStatus) -> list[str]:
    budget, spend = bounds.limits.budget, bounds.spend
    if spend is None:
        return []
    parts = (
        ("{:,} of {:,} calls", spend.calls, budget.max_calls),
        ("{:,} of {:,} tokens", spend.tokens, budget.max_tokens),
        ("${:,.4f} of ${:,.4f}", spend.cost, budget.max_cost),
    )
    used = ", ".join(form.format(value, maximum) for form, value, maximum in parts if maximum is not None)
    return [f"budget: {used} used"]


def _format_price(price: Price) -> str:
    cached = "" if price.cached_input is None else f", {price.cached_input:g} from the prompt cache"
    return f"{price.input:g} US dollars in, {price.output:g} out{cached}"


def format_changes(changes: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return a line for each setting of a role that was not sent as configured."""
    return [
        f"not sent as configured, {role}: {text} in {calls:,} call{'s' if calls > 1 else ''}"
        for role, texts in changes.items()
        for text, calls in texts.items()
    ]
