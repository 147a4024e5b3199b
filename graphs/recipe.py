"""The interface between a system and all code that runs, stores, shows and exports it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from dialoom.errors import DialoomError

from .capabilities import WithJudging
from .check import checked
from .judge import Graph, Judge, in_order
from .outcome import Outcome
from .reporting.pivot import Pivot
from .scenario import Scenario


class RecipeError(DialoomError):
    """An option's value that a recipe cannot use; the message names the value and valid ones."""


class RecipeOptions(BaseModel):
    """A recipe's own options; each field's name is the option's, its description the help.

    On the command line each field is a flag: a flag of a tuple type can be repeated, and a field's alias replaces its
    name as the flag's name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


class Recipe(ABC):
    """A system: its roles, its scenarios, its graph, and the scoring of its results.

    A recipe is an instance of a subclass, in a folder of `graphs/` or any file of the user's. Entry points
    (`dialoom.recipes`) or `path/to/file.py:NAME` refer to it. Optional capabilities are in
    `dialoom.graphs.capabilities`; functions of a recipe and an outcome are in `dialoom.graphs.recipe`.

    Attributes:
        name: The name on the command line.
        summary: One line for the help; by default the first line of the docstring.
        roles: The default sampling temperature of each role.
        prompts: The ids of the prompts other than those of the judges; `support/*` stands for all of a folder.
        options_type: The recipe's options.
        scenario_type: The type of its scenarios.
        judges: The metrics that models score.
        pivots: The tables of the report; without any, each metric overall and by each facet with few values.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    roles: ClassVar[Mapping[str, float]]
    prompts: ClassVar[Sequence[str] | Mapping[str, str]]
    options_type: ClassVar[type[RecipeOptions]] = RecipeOptions
    scenario_type: ClassVar[type[Scenario]]
    judges: Sequence[Judge] = ()
    pivots: ClassVar[Sequence[Pivot]] = ()

    def __init_subclass__(cls) -> None:
        """Take the summary from the docstring of a class that declares none."""
        super().__init_subclass__()
        if "summary" not in vars(cls) and cls.__doc__:
            cls.summary = cls.__doc__.strip().splitlines()[0]

    @abstractmethod
    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Scenario]:
        """Yield the scenarios in plan order, one at a time: there may be more than fit in memory.

        Args:
            options: An instance of `options_type`.
            draw: The random stream of planning.
            note: Takes a message for the user, e.g. about repairs in the source.

        Raises:
            RecipeError: If an option's value is wrong.
            DataError: If a source file is wrong.
        """

    @abstractmethod
    def graph(self, options: Any) -> Graph:
        """Return the uncompiled state graph; its nodes are made with `node` and get a `Stage` as context."""

    @abstractmethod
    def initial(self, scenario: Any) -> dict[str, Any]:
        """Return the state in which a scenario starts."""

    @abstractmethod
    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return a scenario's outcome from its final state, or from the last state if it failed."""


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
    made = checked(WithJudging.of(recipe).checks, scenario, outcome) if is_checked else []
    judgements = in_order(WithJudging.of(recipe).metrics, [*outcome.judgements, *made])
    return outcome.model_copy(update={"judgements": judgements})


def is_to_judge(recipe: Recipe, scenario: Any, outcome: Outcome) -> bool:
    """Return whether any judge has something to judge; samples of outcomes are drawn from these."""
    bare = outcome.model_copy(update={"judgements": ()})
    return not recipe.judges or any(judge.open_cases(scenario, bare) for judge in recipe.judges if not judge.after)
