"""A recipe's graph, compiled for a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from dialoom.graphs import Recipe
from dialoom.graphs.recipe import Graph
from dialoom.runs.recipe_check import graph_of
from dialoom.runs.recipes import load_recipe

from .context import ServedContext
from .programme import Programme
from .request import RequestError

BEGIN = "begin"
"""The node before a recipe's own: it writes the state in which the scenario starts."""


def serve(
    recipe: str,
    options: Mapping[str, Any] | None = None,
    models: Mapping[str, str] | None = None,
    prompts: Path | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """A recipe's graph for LangGraph's own server.

    Args:
        recipe: An installed recipe's name, or `path/to/file.py:NAME`.
        options: The recipe's options, by their names.
        models: Models by role, for what a request leaves open; here also `python:` and `graph:` ones.
        prompts: A folder of prompts that replace the recipe's own.

    Raises:
        RunError: If there is no such recipe or role.
        PromptError: If a prompt cannot be read.
        pydantic.ValidationError: If an option is unknown or wrong.
    """
    found = load_recipe(recipe)
    chosen = found.options_type.model_validate(options or {})
    programme = Programme(found, chosen, models or {}, prompts)
    context = type("Context", (ServedContext,), {"programme": programme, "__doc__": ServedContext.__doc__})
    builder = graph_of(found, chosen)
    builder.context_schema = context
    _with_beginning(builder, found)
    return builder.compile(name=found.name)


def _with_beginning(builder: Graph, recipe: Recipe) -> None:
    """Put a node before the first ones, so that a request need not know in which state a scenario starts."""
    first = sorted(end for start, end in builder.edges if start == START)
    builder.edges -= {(START, end) for end in first}
    builder.branches[BEGIN] = builder.branches.pop(START, {})
    builder.add_node(BEGIN, _beginning(recipe))
    builder.add_edge(START, BEGIN)
    for end in first:
        builder.add_edge(BEGIN, end)


def _beginning(recipe: Recipe) -> Callable[..., Awaitable[dict[str, Any]]]:
    async def begin(state: Any, config: RunnableConfig, runtime: Runtime[ServedContext]) -> dict[str, Any]:
        """Writes what the input leaves out of the initial state."""
        step = config["metadata"]["langgraph_step"]
        if step > 1 and any(state.values()):
            raise RequestError(
                "this thread holds a conversation already, and a new one needs a new thread; to go on with this one, "
                "send null as input"
            )
        stage = await runtime.context.begin(step)
        return {name: value for name, value in recipe.initial(stage.scenario).items() if not state.get(name)}

    return begin
