"""What comes of a recipe's graph: outcomes with the judgements of its checks, and which of them can be judged."""

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
    """Return what came of a scenario, with the judgements of the recipe's checks unless it failed.

    Args:
        recipe: The recipe.
        scenario: What was played.
        state: The graph's state.
        failed: Whether the graph did not come to its end.
    """
    return completed(recipe, scenario, recipe.outcome(scenario, state, failed), is_checked=not failed)


def completed(recipe: Recipe, scenario: Any, outcome: Outcome, is_checked: bool = True) -> Outcome:
    """Return an outcome with the judgements of the recipe's checks, all in the order of reports and exports.

    Args:
        recipe: The recipe.
        scenario: What was played.
        outcome: What came of it, with the judgements of judges in any order.
        is_checked: Whether the checks are made.
    """
    made = checked(recipe.checks, scenario, outcome) if is_checked else []
    judgements = in_order(WithJudging.of(recipe).metrics, [*outcome.judgements, *made])
    return outcome.model_copy(update={"judgements": judgements})


def is_to_judge(recipe: Recipe, scenario: Any, outcome: Outcome) -> bool:
    """Return whether any judge has something to judge: of such outcomes a sample is drawn."""
    bare = outcome.model_copy(update={"judgements": ()})
    return not recipe.judges or any(judge.open_cases(scenario, bare) for judge in recipe.judges if not judge.after)
