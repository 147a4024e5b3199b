"""Outcomes of a recipe's graph with the judgements of its checks, and the choice of outcomes to judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .capabilities import WithJudging
from .check import checked
from .judge import in_order
from .outcome import Outcome

if TYPE_CHECKING:
    from .recipe import Recipe


def finished(recipe: Recipe, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
    """Return a scenario's outcome, with the judgements of the recipe's checks unless it failed.

    Args:
        recipe: The recipe.
        scenario: The scenario that was played.
        state: The graph's state.
        failed: Whether the graph did not reach its end.
    """
    return completed(recipe, scenario, recipe.outcome(scenario, state, failed), is_checked=not failed)


def completed(recipe: Recipe, scenario: Any, outcome: Outcome, is_checked: bool = True) -> Outcome:
    """Return an outcome with the judgements of the recipe's checks added, all in the order of reports and exports.

    Args:
        recipe: The recipe.
        scenario: The scenario that was played.
        outcome: Its outcome, with the judges' judgements in any order.
        is_checked: Whether to run the checks.
    """
    made = checked(recipe.checks, scenario, outcome) if is_checked else []
    judgements = in_order(WithJudging.of(recipe).metrics, [*outcome.judgements, *made])
    return outcome.model_copy(update={"judgements": judgements})


def is_to_judge(recipe: Recipe, scenario: Any, outcome: Outcome) -> bool:
    """Return whether any judge has something to judge; samples of outcomes are drawn from these."""
    bare = outcome.model_copy(update={"judgements": ()})
    return not recipe.judges or any(judge.open_cases(scenario, bare) for judge in recipe.judges if not judge.after)
