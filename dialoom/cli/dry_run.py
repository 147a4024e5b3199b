"""The output of `dialoom run ... --dry-run`."""

from __future__ import annotations

from rich import box
from rich.table import Table

from dialoom.runs.configuration.config import DEFAULT_MODEL
from dialoom.runs.preflight import CostEstimate, Expected
from dialoom.settings import Budget

from .console import make_console
from .terminal import say


def print_estimate(estimate: CostEstimate, budget: Budget | None) -> None:
    """Print the table by role, how it was estimated, its uncertainty, and the bounds that the run would exceed."""
    say(f"{estimate.scenarios:,} scenarios; nothing was sent, nothing is written")
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("role", "model", "calls", "input tokens", "output tokens", "cost"):
        table.add_column(column, justify="left" if column in ("role", "model") else "right")
    for role, model, expected in estimate.by_role:
        table.add_row(role, model, *_cells(expected))
    table.add_row("all", "", *_cells(estimate.total))
    make_console().print(table)
    say(_how(estimate))
    for warning in _warnings(estimate, budget or Budget()):
        say(warning)


def _how(estimate: CostEstimate) -> str:
    least, most = (_tokens_and_cost(each) for each in (estimate.least, estimate.most))
    sample = (
        f"all {estimate.sampled:,} scenarios were"
        if estimate.sampled == estimate.scenarios
        else f"{estimate.sampled:,} of the scenarios, drawn with the seed, were"
    )
    return (
        f"An estimate: {sample} played by {DEFAULT_MODEL}, with a token for four letters. Real models say more or "
        "less, and count otherwise; prompt caching is not reckoned with. If every scenario were like the shortest of "
        f"these: {least}; like the longest: {most}."
    )


def _warnings(estimate: CostEstimate, budget: Budget) -> list[str]:
    """Return warnings about bounds that the run would reach before its end, and about missing prices."""
    total = estimate.total
    told = [
        f"--price {model}=IN,OUT would tell what {role} costs"
        for role, model, expected in estimate.by_role
        if expected.cost is None
    ]
    tokens = total.input_tokens + total.output_tokens
    for flag, bound, expected in (
        ("--max-calls", budget.max_calls, total.calls),
        ("--max-tokens", budget.max_tokens, tokens),
        ("--max-cost", budget.max_cost, total.cost),
    ):
        if bound is not None and expected is not None and expected > bound:
            told.append(f"{flag} {bound:g} would be used up before the run is done")
    return told


def _tokens_and_cost(expected: Expected) -> str:
    _, input_tokens, output_tokens, cost = _cells(expected)
    return f"{input_tokens} + {output_tokens} tokens, cost {cost}"


def _cells(expected: Expected) -> tuple[str, str, str, str]:
    counts = (f"{round(count):,}" for count in (expected.calls, expected.input_tokens, expected.output_tokens))
    calls, input_tokens, output_tokens = counts
    return calls, input_tokens, output_tokens, "unknown" if expected.cost is None else f"${expected.cost:,.4f}"
