"""The contract between a system and everything that runs, keeps, shows and exports it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from dialoom.errors import DialoomError

from .capabilities import WithJudging
from .check import Check
from .judge import Graph, Judge
from .outcome import Episode, Outcome
from .reporting.pivot import Facet, Pivot, default_tables, tabulate, unit_facet, units_of
from .reporting.table import Table
from .scenario import Scenario

__all__ = ["Graph", "Recipe", "RecipeError", "RecipeOptions"]


class RecipeError(DialoomError):
    """An option's value that a recipe cannot use: names the value and what would be right."""


class RecipeOptions(BaseModel):
    """A recipe's own options, by the names of the fields; a field's description is its help.

    On the command line each field is a flag: one of a tuple type can be repeated, and a field's alias is the flag's
    name where that differs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


class Recipe(ABC):
    """A system: its roles, its scenarios, its graph, and how its results are scored.

    A recipe is an instance of a subclass, in a folder of `graphs/` or any file of the user's. Entry points
    (`dialoom.recipes`) or `path/to/file.py:NAME` lead to it. What only some recipes need is in
    `dialoom.graphs.capabilities`, and what follows from a recipe in `dialoom.graphs.finishing`.

    Attributes:
        name: The name on the command line.
        summary: One line for the help; by default the first line of the docstring.
        roles: The default sampling temperature of each role.
        prompts: The ids of the prompts, besides those of the judges.
        options_type: The recipe's options.
        scenario_type: The type of its scenarios.
        judges: What models score.
        checks: What functions score.
        pivots: The tables of the report.
        facets: Facets of the scenarios that mean more than a group: by which exports are split, over which intervals
            are made, or which tell the length of a conversation.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    roles: ClassVar[Mapping[str, float]]
    prompts: ClassVar[Sequence[str] | Mapping[str, str]]
    options_type: ClassVar[type[RecipeOptions]] = RecipeOptions
    scenario_type: ClassVar[type[Scenario]]
    judges: Sequence[Judge] = ()
    checks: Sequence[Check] = ()
    pivots: ClassVar[Sequence[Pivot]] = ()
    facets: ClassVar[Sequence[Facet]] = ()

    def __init_subclass__(cls) -> None:
        """Take the summary from the docstring of a class that has none."""
        super().__init_subclass__()
        if "summary" not in vars(cls) and cls.__doc__:
            cls.summary = cls.__doc__.strip().splitlines()[0]

    @abstractmethod
    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Scenario]:
        """Yield the scenarios in plan order, one at a time: there may be more than fit in memory.

        Args:
            options: An instance of `options_type`.
            draw: The random stream of planning.
            note: Takes a line that the user should read, e.g. what was repaired in the source.

        Raises:
            RecipeError: If an option's value is wrong.
            DataError: If a source file is.
        """

    @abstractmethod
    def graph(self, options: Any) -> Graph:
        """Return the uncompiled state machine; its nodes are made with `node` and get a `Stage` as context."""

    @abstractmethod
    def initial(self, scenario: Any) -> dict[str, Any]:
        """Return the state in which a scenario starts."""

    @abstractmethod
    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return what came of a scenario, from its final state; or from the last one, if it failed."""

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the report's tables, from finished scenarios read one at a time.

        By default those of the recipe's `pivots`; without any, every metric over all and by each facet of few values.
        """
        unit, units = unit_facet(self.facets), units_of(self.facets)
        if self.pivots:
            return tabulate(self.pivots, episodes, unit, units)
        scales = WithJudging.of(self).scales
        return default_tables(episodes, unit, units, {check.metric for check in self.checks}, scales)
