"""Checks that a recipe has all required parts, with a clear message before it is used."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dialoom.errors import RunError
from dialoom.grouping import group_pairs

if TYPE_CHECKING:
    from dialoom.graphs import Recipe
    from dialoom.graphs.judge import Graph

_REQUIRED_ATTRIBUTES = ("name", "summary", "roles", "prompts", "scenario_type")


def check_recipe(candidate: Any, spec: str) -> Recipe:
    """Return the recipe that was found under a name, as an instance, after a check of its parts.

    Args:
        candidate: A recipe, or its class.
        spec: The name, for messages.

    Raises:
        RunError: If the object is not a recipe, or a part of it is missing.
    """
    from dialoom.graphs import Recipe

    recipe = _instantiate(candidate) if isinstance(candidate, type) and issubclass(candidate, Recipe) else candidate
    if not isinstance(recipe, Recipe):
        raise _recipe_error(
            f"recipe {spec!r} is {type(recipe).__name__}; it must be an instance of dialoom.graphs.Recipe",
        )
    if (problem := next(_find_problems(recipe, type(recipe).__name__), None)) is not None:
        raise _recipe_error(f"recipe: {problem}")
    return recipe


def build_graph(recipe: Recipe, options: Any) -> Graph:
    """Return a recipe's uncompiled graph.

    Args:
        recipe: The recipe.
        options: Its options, as an instance of their type or as plain values.

    Raises:
        RunError: If the recipe does not return an uncompiled graph, or the end of the graph cannot be reached.
    """
    from langgraph.graph import StateGraph

    chosen = options if isinstance(options, recipe.options_type) else recipe.options_type.model_validate(options)
    graph: Any = recipe.graph(chosen)
    if not isinstance(graph, StateGraph):
        advice = "; leave out `.compile()`" if hasattr(graph, "ainvoke") else ""
        raise _recipe_error(
            f"recipe: `graph` of {type(recipe).__name__} returns {type(graph).__name__}; it must return a StateGraph "
            f"that is not compiled{advice}"
        )
    if not _can_end(graph):
        raise _recipe_error(
            f"recipe: `graph` of {type(recipe).__name__} never ends: no path of edges leads from START to END; add an "
            "edge to END"
        )
    return graph


def _can_end(graph: Graph) -> bool:
    """Return whether the end of a graph can be reached; `True` if the successors of some node are not declared."""
    from langgraph.graph import END, START

    edges = [*graph.edges, *((begin, end) for begins, end in graph.waiting_edges for begin in begins)]
    for name, branches in graph.branches.items():
        edges += [(name, end) for each in branches.values() for end in (each.ends.values() if each.ends else (END,))]
    edges += [(name, end) for name, spec in graph.nodes.items() for end in spec.ends or ()]
    following, reached, waiting = group_pairs(edges), set[str](), {START}
    while waiting:
        if (name := waiting.pop()) == END or name not in following:
            return True
        reached.add(name)
        waiting |= {*following[name]} - reached
    return False


def list_used_facets(recipe: Recipe) -> Mapping[str, str]:
    """Return the facets that a recipe's pivots and `facets` use, each with the place where it is used."""
    from dialoom.graphs.capabilities import WithFacets

    named: dict[str, str] = {}
    for pivot in recipe.pivots:
        compared = [name for column in pivot.columns for name in column.facets]
        named |= dict.fromkeys([*(facet.name for facet in pivot.facets), *compared], f"pivot {pivot.name!r}")
    return {**named, **{facet.name: "`facets`" for facet in WithFacets.of(recipe).facets}}


def check_facets(recipe: Recipe, known: Collection[str]) -> None:
    """Check that the scenarios have all facets that a recipe's pivots and `facets` use.

    Args:
        recipe: The recipe.
        known: The facets of the scenarios of a plan.

    Raises:
        RunError: If a facet occurs in no scenario; the message names it.
    """
    for name, place in list_used_facets(recipe).items():
        if name not in known:
            raise _recipe_error(
                f"recipe: {place} of {type(recipe).__name__} names the facet {name!r}, which no scenario has; "
                f"they have {', '.join(sorted(known)) or 'none'}"
            )


def _instantiate(kind: type[Recipe]) -> Recipe:
    if missing := _abstract_names(kind):
        raise _recipe_error(f"recipe: {kind.__name__} needs {missing}")
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(kind).parameters.values()
    if any(each.default is each.empty and each.kind not in variable for each in parameters):
        raise _recipe_error(f"recipe: {kind.__name__} cannot be created without arguments; give an instance of it")
    return kind()


def _find_problems(recipe: Any, kind: str) -> Iterator[str]:
    """Yield what is wrong with the parts of a recipe; later checks require that earlier ones have found nothing."""
    from dialoom.graphs import Scenario, capabilities

    if missing := [piece for piece in _REQUIRED_ATTRIBUTES if not hasattr(recipe, piece)]:
        yield f"{kind} needs {_format_names(missing)}"
    if not isinstance(recipe.roles, Mapping):
        yield f"`roles` of {kind} is {recipe.roles!r:.60}; it must be a mapping from roles to temperatures"
    if isinstance(recipe.prompts, str):
        yield f"`prompts` of {kind} is {recipe.prompts!r:.60}; it must be a tuple of prompt ids"
    scenario: Any = recipe.scenario_type
    if not isinstance(scenario, type) or not issubclass(scenario, Scenario):
        yield f"`scenario_type` of {kind} is {scenario!r:.60}; it must be a subclass of Scenario"
    if lacking := _abstract_names(scenario):
        yield f"{scenario.__name__} needs {lacking}"
    if not isinstance(inspect.getattr_static(scenario, "label"), property | cached_property):
        yield f"`label` of {scenario.__name__} is not a property; write @property above it"
    for capability in capabilities.Capability.__subclasses__():
        defined = [name for name in vars(capability) if not name.startswith("_") and hasattr(recipe, name)]
        if defined and not isinstance(recipe, capability):
            yield (
                f"{kind} defines `{defined[0]}` and must inherit from {capability.__name__} for it to be used, as "
                f"`class {kind}(Recipe, {capability.__name__})` does"
            )
    known_metrics = capabilities.WithJudging.of(recipe).metrics
    for pivot in recipe.pivots:
        metrics = {column.metric for column in pivot.columns} - {""}
        titles = [column.title for column in pivot.columns]
        for what, named, known in (
            ("has a column of the metric", metrics, known_metrics),
            ("charts the column", pivot.charted, titles),
        ):
            if unknown := sorted(set(named) - set(known)):
                names = ", ".join(known) or "none"
                yield f"pivot {pivot.name!r} of {kind} {what} {unknown[0]!r}; it may use {names}"


def _abstract_names(kind: type) -> str:
    """Return the abstract methods and properties that a class does not define; empty if it can be instantiated."""
    return _format_names(sorted(getattr(kind, "__abstractmethods__", ())))


def _format_names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _recipe_error(message: str) -> RunError:
    return RunError(message, setting="recipe")
