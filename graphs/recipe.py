"""The contract between a system and everything that runs, keeps, shows and exports it."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from dialoom.errors import DialoomError
from dialoom.prompts import Prompt

from .check import Check, checked
from .judge import Graph, Judge, in_order, judging_graph
from .outcome import Episode, Judgement, Outcome
from .reporting.chart import Chart
from .reporting.comparison import side_by_side
from .reporting.pivot import Facet, Pivot, chart_of, default_tables, tabulate
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

    A recipe is an instance of a subclass, in a folder of `graphs/` or any file of the user's. Nothing else in dialoom
    knows it by name: entry points (`dialoom.recipes`) or `path/to/file.py:NAME` lead to it. What only the gate,
    labelling, the debugger or exports need is in `dialoom.graphs.capabilities`.

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
        reply_limits: The most tokens of a reply, of the roles that have a limit unless one is given.
        templates: The folder that holds the prompts as `<id>.md`; `None` for dialoom's own `prompts/`.
        reply_types: Reply types of the recipe's own, by the names that its prompts use.
        evaluated: The role under evaluation: reports name a run by its model. `None` if there is none.
        languages: What is spoken, as ISO 639 codes, for the cards of exports and the gate.
        metrics: What is scored, in the order of reports and exports; derived from judges and checks.
        scales: The lowest and the highest score by metric, of those that are not verdicts; derived likewise.
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
    reply_limits: ClassVar[Mapping[str, int]] = {}
    templates: ClassVar[Path | None] = None
    reply_types: ClassVar[Mapping[str, type[BaseModel]]] = {}
    evaluated: ClassVar[str | None] = None
    languages: ClassVar[tuple[str, ...]] = ()
    metrics: ClassVar[tuple[str, ...]] = ()
    scales: ClassVar[Mapping[str, tuple[int, int]]] = {}

    def __init_subclass__(cls) -> None:
        """Derive what a class does not say itself: its summary, metrics and scales."""
        super().__init_subclass__()
        own = vars(cls)
        if "summary" not in own and cls.__doc__:
            cls.summary = cls.__doc__.strip().splitlines()[0]
        if "judges" in own or "checks" in own:
            scored = [(metric, judge.scale) for judge in cls.judges for metric in judge.metrics]
            scored += [(check.metric, check.scale) for check in cls.checks]
            if "metrics" not in own:
                cls.metrics = tuple(dict.fromkeys(metric for metric, _ in scored))
            if "scales" not in own:
                cls.scales = {metric: scale for metric, scale in scored if scale is not None}

    @property
    def split_by(self) -> str | None:
        """The facet by which an export may be split into train and test; `None` if there is none."""
        return next((facet.name for facet in self.facets if facet.splits), None)

    @property
    def unit(self) -> str | None:
        """The facet over whose values intervals are made, by default that of `split_by`; `None` if over scenarios."""
        return next((facet.name for facet in self.facets if facet.unit), self.split_by)

    @property
    def units(self) -> str:
        """What the values of `unit` are called, in the plural."""
        named = next((facet.unit for facet in self.facets if facet.unit), "people")
        return "scenarios" if self.unit is None else named

    @property
    def longest_first(self) -> str | None:
        """The facet, a number, that tells which conversations take long; `None` if none does."""
        return next((facet.name for facet in self.facets if facet.tells_length), None)

    def roles_used(self, options: Any) -> Mapping[str, float]:
        """Return the roles that a run with these options needs, with their temperatures: all but judges not asked."""
        judging, asked = ({judge.role for judge in judges} for judges in (self.judges, self.judges_used(options)))
        return {role: value for role, value in self.roles.items() if role in asked or role not in judging}

    def models_named(self, options: Any) -> Mapping[str, str]:  # noqa: ARG002
        """Return models that the options themselves name, by role; models given for the run override them."""
        return {}

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

    def judges_used(self, options: Any) -> Sequence[Judge]:
        """Return the judges that a run with these options asks; none if an option `judge` is false."""
        return self.judges if getattr(options, "judge", True) else ()

    def judging(self) -> Graph | None:
        """Return a graph that only judges (its nodes read `Scene.judged`); `None` if the recipe has no judges."""
        return judging_graph(self, self.judges) if self.judges else None

    def judging_roles(self) -> Mapping[str, float]:
        """Return the roles that judge, with their default temperatures."""
        return {judge.role: self.roles[judge.role] for judge in self.judges}

    def is_to_judge(self, scenario: Any, outcome: Outcome) -> bool:
        """Return whether any judge has something to judge: of such outcomes a sample is drawn."""
        bare = outcome.model_copy(update={"judgements": ()})
        return not self.judges or any(judge.open_cases(scenario, bare) for judge in self.judges if not judge.after)

    def finished(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return what came of a scenario as `outcome` does, with the judgements of the checks unless it failed."""
        outcome = self.outcome(scenario, state, failed)
        return outcome if failed else self.with_checks(scenario, outcome)

    def with_checks(self, scenario: Any, outcome: Outcome) -> Outcome:
        """Return a finished outcome with the judgements of the recipe's checks among its own."""
        if not self.checks:
            return outcome
        made = checked(self.checks, scenario, outcome)
        return outcome.model_copy(update={"judgements": self.ordered([*outcome.judgements, *made])})

    def ordered(self, judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
        """Return judgements in the order of reports and exports."""
        return in_order(self.metrics, judgements)

    def prompt_list(self) -> list[str | Prompt]:
        """Return the ids of the prompts that the recipe uses, or the prompts themselves where it makes them."""
        judging = [prompt for judge in self.judges if (prompt := judge.prompt_of(self.name)) not in self.prompts]
        return list(dict.fromkeys([*self.prompts, *judging]))

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the report's tables, from finished scenarios read one at a time.

        By default those of the recipe's `pivots`; without any, every metric over all and by each facet of few values.
        """
        if self.pivots:
            return tabulate(self.pivots, episodes, self.unit, self.units)
        unjudged = {check.metric for check in self.checks}
        return default_tables(episodes, self.unit, self.units, unjudged)

    def compared(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Table]:
        """Return the tables of a report over one run or several, from each run's label and its finished scenarios.

        By default the `tables` of a single run, and those of several runs side by side. Each run's scenarios can be
        read once.
        """
        if len(runs) == 1:
            return self.tables(runs[0][1])
        return side_by_side([(label, self.tables(episodes)) for label, episodes in runs])

    def charts(self, runs: Sequence[tuple[str, Iterable[Episode]]]) -> list[Chart]:
        """Return what a report draws, from each run's label and its finished scenarios, which can be read once.

        By default the charted columns of the recipe's pivots.
        """
        charted = [pivot for pivot in self.pivots if pivot.charted]
        if not charted:
            return []
        drawn = []
        for number, (label, episodes) in enumerate(runs, start=1):
            for pivot, table in zip(charted, tabulate(charted, episodes, self.unit, keep_empty=True), strict=True):
                if (chart := chart_of(pivot, table)) is not None:
                    if len(runs) > 1:
                        chart = replace(chart, name=f"{chart.name}-{number}", title=f"{chart.title} ({label})")
                    drawn.append(chart)
        return drawn
