"""The interface between a system and the code that runs, stores and shows it.

It also defines types of options, and a recipe that reviews conversations.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from dialoom.errors import DialoomError
from dialoom.personas import resolve_embedder

from .capabilities import WithGate, WithJudging
from .check import run_checks
from .judge import Case, Graph, Judge, sort_judgements
from .outcome import REVIEWER, USER, Outcome
from .scenario import Scenario
from .tables.pivot import Pivot


class RecipeError(DialoomError):
    """An option's value that a recipe cannot use. The message states the value and what is valid."""


class RecipeOptions(BaseModel):
    """The options of a recipe. A field's name is the option's name, and its description is the help text.

    On the command line each field is a flag. A flag of a tuple type can be repeated. If a field has an alias, the alias
    is the flag's name.

    Example:
        >>> class Options(dialoom.RecipeOptions):
        ...     callers: int = pydantic.Field(10, ge=1, description="How many callers there are.")
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, validate_by_alias=True)


class Recipe(ABC):
    """A system: its roles, its scenarios, its graph, and the scoring of its results.

    A recipe is an instance of a subclass, in a folder of `graphs/` or in any file of the user. It is found by an entry
    point (`dialoom.recipes`) or as `path/to/file.py:NAME`. `dialoom.graphs.capabilities` has optional capabilities.

    Example:
        >>> class Pool(dialoom.Recipe):
        ...     name = "pool"
        ...     roles = {"writer": 0.8}
        ...     # and the methods scenarios, initial, graph and outcome

    Attributes:
        name: The recipe's name on the command line.
        summary: One line for help texts; by default the first line of the docstring.
        roles: The default sampling temperature of each role.
        prompts: The ids of the prompts other than those of the judges. `support/*` stands for all prompts of a folder.
        options_type: The type of the recipe's options.
        scenario_type: The type of the recipe's scenarios.
        judges: The metrics that models score.
        pivots: The tables of the report. If there are none, the report has each metric overall and by each facet with
            few values.
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
        """Take the summary from the docstring, if the class does not declare one."""
        super().__init_subclass__()
        if "summary" not in vars(cls) and cls.__doc__:
            cls.summary = cls.__doc__.strip().splitlines()[0]

    @abstractmethod
    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Scenario]:
        """Yield the scenarios in plan order, one at a time, because there may be more than fit in memory.

        Args:
            options: An instance of `options_type`.
            draw: The random stream of planning.
            note: A function that passes a message to the user, e.g. about repairs in the source.

        Raises:
            RecipeError: If an option's value is wrong.
            DataError: If a source file is wrong.
        """

    @abstractmethod
    def graph(self, options: Any) -> Graph:
        """Return the uncompiled state graph. Its nodes are made with `node` and get a `Stage` as context."""

    @abstractmethod
    def initial(self, scenario: Any) -> dict[str, Any]:
        """Return the state in which a scenario starts."""

    @abstractmethod
    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return a scenario's outcome, made from its final state or, if it failed, from its last state."""


def build_outcome(recipe: Recipe, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
    """Return a scenario's outcome. Unless the scenario failed, add the judgements of the recipe's checks.

    Args:
        recipe: The recipe.
        scenario: The scenario that was played.
        state: The graph's state.
        failed: Whether the graph did not reach its end.
    """
    return complete_outcome(recipe, scenario, recipe.outcome(scenario, state, failed), is_checked=not failed)


def complete_outcome(recipe: Recipe, scenario: Any, outcome: Outcome, is_checked: bool = True) -> Outcome:
    """Return an outcome with the judgements of the recipe's checks. The judgements are in the order of reports.

    Args:
        recipe: The recipe.
        scenario: The scenario that was played.
        outcome: The scenario's outcome, with the judges' judgements in any order.
        is_checked: Whether to run the checks.
    """
    check_judgements = run_checks(WithJudging.of(recipe).checks, scenario, outcome) if is_checked else []
    judgements = sort_judgements(WithJudging.of(recipe).metrics, [*outcome.judgements, *check_judgements])
    return outcome.model_copy(update={"judgements": judgements})


def is_judgeable(recipe: Recipe, scenario: Any, outcome: Outcome) -> bool:
    """Return whether any judge has something to judge in an outcome. Only such outcomes are drawn for judging."""
    unjudged = outcome.model_copy(update={"judgements": ()})
    return not recipe.judges or any(judge.open_cases(scenario, unjudged) for judge in recipe.judges if not judge.after)


T = TypeVar("T")

_MAX_LISTED_NAMES = 12
"""Maximum number of names that an error message lists."""


def _deduplicate(values: tuple[T, ...]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(values))


def _at_least(minimum: int) -> AfterValidator:
    def check(value: int) -> int:
        if value < minimum:
            raise ValueError(f"give numbers of at least {minimum}")
        return value

    return AfterValidator(check)


def _require_values(values: tuple[T, ...]) -> tuple[T, ...]:
    if not values:
        raise ValueError("give at least one value")
    return values


FromZero: TypeAlias = Annotated[int, _at_least(0)]
FromOne: TypeAlias = Annotated[int, _at_least(1)]

AbsolutePath: TypeAlias = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]
"""A file or folder, made absolute so that the run can be resumed from any working directory."""

EmbedderName: TypeAlias = Annotated[str, AfterValidator(resolve_embedder)]
"""`lexical`, `st:MODEL` or `litellm:PROVIDER/MODEL`; the path of a model's folder is made absolute."""

Axis: TypeAlias = Annotated[tuple[T, ...], AfterValidator(_deduplicate)]
"""The type of an option that gives an axis's values, e.g. `Axis[int]`. Duplicates are removed and the order is kept."""

FilledAxis: TypeAlias = Annotated[tuple[T, ...], AfterValidator(_require_values), AfterValidator(_deduplicate)]
"""The type of an option that gives at least one value of an axis."""


def chosen(option: str, text: str, known: Iterable[str]) -> list[str]:
    """Return the names in an option's comma-separated list, in order and without duplicates; `all` gives all names.

    Args:
        option: The option's name, for the error message.
        text: The option's value.
        known: The names to choose from.

    Raises:
        RecipeError: If the list is empty or contains an unknown name.
    """
    known_names = list(known)
    if (names := [part.strip() for part in text.split(",") if part.strip()]) == ["all"]:
        return known_names
    for name in names or [text]:
        if name not in known_names:
            more = f" and {len(known_names) - _MAX_LISTED_NAMES} more" if len(known_names) > _MAX_LISTED_NAMES else ""
            listed = ", ".join(known_names[:_MAX_LISTED_NAMES]) + more
            raise RecipeError(f"{option}: there is no {name!r}; the names are {listed}", setting=option)
    return list(dict.fromkeys(names))


REVIEW_PROMPT = "gate/review"
REVIEWED_FAULTS: Mapping[str, str] = {
    "contradicts_persona": "the user contradicts who they are",
    "invents_facts": "the user invents facts of the task",
    "gives_up": "the user gives up although the goal is open",
    "content_too_soon": "the user is content although the task is not done",
    "reveals": "the user gives away what only their instructions say",
}
"""The faults that a reviewer looks for. Each has a verdict, which is true if the fault is present."""


class Review(Recipe):
    """A recipe that only reviews another recipe's conversations.

    Args:
        recipe: The recipe of the conversations.
    """

    name = "review"
    summary = "Faults in the play of simulated users."
    roles: ClassVar[Mapping[str, float]] = {REVIEWER: 0.0}
    prompts = ()

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self.judges = [
            Judge(
                kind,
                prompt=REVIEW_PROMPT,
                role=REVIEWER,
                target=USER,
                node=kind,
                cases=partial(self._case, kind=kind),
                lower_is_better=True,
            )
            for kind in REVIEWED_FAULTS
        ]

    def _case(self, scenario: Any, outcome: Outcome, kind: str) -> Iterator[Case]:
        """Yield a case with the conversation and the user's instructions; nothing if there is no conversation."""
        if outcome.messages:
            history = [{"speaker": line.role, "content": line.spoken} for line in outcome.messages]
            instructions = dict(WithGate.of(self._recipe).user_instructions(scenario))
            yield Case(None, {"user": USER, "about": instructions, "history": history, "fault": kind})

    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Scenario]:
        """Return the reviewed recipe's scenarios."""
        return self._recipe.scenarios(options, draw, note)

    def graph(self, options: Any) -> Graph:
        """Return the reviewed recipe's graph."""
        return self._recipe.graph(options)

    def initial(self, scenario: Any) -> dict[str, Any]:
        """Return the reviewed recipe's initial state."""
        return self._recipe.initial(scenario)

    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the reviewed recipe's outcome."""
        return self._recipe.outcome(scenario, state, failed)
