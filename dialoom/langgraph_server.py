"""Recipes as compiled graphs for LangGraph's server; requests pass their settings as JSON in the context."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime, get_runtime
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import Recipe, RecipeError, Scenario, Stage, WithPrompts, WithRoles, stream
from dialoom.graphs.judge import Graph
from dialoom.prompts import PromptLibrary
from dialoom.roles import BindingError, Cast, Gateway, ModelBinding
from dialoom.roles.gateway.calls import MemoryLedger
from dialoom.roles.gateway.gateway import check_model
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.players import load_player, takes_tools
from dialoom.runs.configuration.config import DEFAULT_MODEL
from dialoom.runs.configuration.recipe_checks import build_graph
from dialoom.runs.configuration.recipes import load_recipe
from dialoom.runs.errors import RunError
from dialoom.settings import PathLike, resolve_prompt_sets


class RequestError(RunError, ValueError):
    """A request that cannot be fulfilled; a `ValueError`, because the server shows clients only built-in errors."""


class StageRequest(BaseModel):
    """A scenario and the players of its roles. All fields are optional."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: int | dict[str, Any] = Field(
        1, description="The scenario's number in the plan, from 1, or a whole scenario."
    )
    model: str | None = Field(None, description="The model of all roles that are not in `models`.")
    models: dict[str, str] = Field({}, description="The model of each role.")
    seed: int = Field(0, description="The seed of every random stream.")
    sample: int = Field(
        0, ge=0, description="The sample number; another number gives other replies of the same models."
    )


_LOCAL_PREFIXES = ("python:", "graph:")


class ServedRecipe:
    """The configuration of a served graph: a recipe with its options, and the default models.

    Args:
        recipe: The recipe.
        options: Its options.
        models: The models by role.
        prompts: Sets of prompts that replace the recipe's own; as for `play`.

    Raises:
        RunError: If a role is unknown.
        PromptError: If a prompt cannot be read.
    """

    def __init__(self, recipe: Recipe, options: Any, models: Mapping[str, str], prompts: Any) -> None:
        self.recipe = recipe
        self.options = options
        self._roles = WithRoles.of(recipe).roles_used(options)
        self._models = {**WithRoles.of(recipe).models_named(options), **self._check_roles(models)}
        self._library = WithPrompts.of(recipe).library(resolve_prompt_sets(prompts))
        self._ledger = MemoryLedger()

    def stage(self, request: StageRequest) -> Stage:
        """Return the stage that a request describes. This reads files and imports modules.

        Raises:
            RequestError: If a part of the request is invalid; the message names it.
            DataError: If a source file of the recipe is invalid.
        """
        try:
            return self._build_stage(request)
        except (RunError, RecipeError, BindingError) as error:
            raise RequestError(error.message, setting=error.setting, advice=error.advice) from error

    def _build_stage(self, request: StageRequest) -> Stage:
        models = self._bind_models(request)
        for binding in models.values():
            check_model(binding.model)
        load_litellm()  # imported here, because importing it on the first call would block the server's event loop
        scenario = self._find_scenario(request.scenario, request.seed)
        library = PromptLibrary(prompt for prompt in self._library.values() if prompt.front.role in models)
        gateway = Gateway(self._ledger)
        gateway.prepare(models.values())
        cast = Cast(library, models, gateway, WithPrompts.of(self.recipe).reply_types)
        return Stage(scenario, cast, scenario.id, request.seed, request.sample)

    def _bind_models(self, request: StageRequest) -> dict[str, ModelBinding]:
        models = self._check_roles(request.models)
        for model in (request.model, *models.values()):
            if model is not None and model.startswith(_LOCAL_PREFIXES):
                raise RunError(
                    f"model {model!r}: a request can use only providers' models and offline ones; models that are "
                    "code on this machine must be given where the graph is created: serve(..., models={...})"
                )
        model_names = {
            role: models.get(role) or self._models.get(role) or request.model or DEFAULT_MODEL for role in self._roles
        }
        return {
            role: ModelBinding(
                model=model,
                temperature=self._roles[role],
                max_reply=WithRoles.of(self.recipe).reply_limits.get(role),
                takes_tools=(player := load_player(model)) is not None and takes_tools(player),
            )
            for role, model in model_names.items()
        }

    def _check_roles(self, models: Mapping[str, str]) -> Mapping[str, str]:
        for role in models:
            if role not in self._roles:
                raise RunError(f"models: unknown role {role!r}; the roles are {', '.join(self._roles)}")
        return models

    def _find_scenario(self, selector: int | Mapping[str, Any], seed: int) -> Scenario:
        if isinstance(selector, int):
            return self._get_planned_scenario(selector, seed)
        try:
            return self.recipe.scenario_type.model_validate(selector)
        except ValidationError as error:
            place, message, _ = first_problem(error)
            raise RunError(
                f"scenario: {place}: {message}; it must be a complete {self.recipe.name} scenario"
            ) from error

    def _get_planned_scenario(self, number: int, seed: int) -> Scenario:
        """Return a scenario by its number in the plan of a run with this seed."""
        scenarios = self.recipe.scenarios(self.options, stream(seed, "", "plan"), lambda _note: None)
        count = 0
        for count, scenario in enumerate(scenarios, start=1):
            if count == number:
                return scenario
        raise RunError(f"scenario must be from 1 to {count} (the scenarios of {self.recipe.name} here), got {number}")


class ServedContext(StageRequest):
    """The settings of a run, as a request passes them. All fields are optional."""

    served: ClassVar[ServedRecipe]

    _current_stage: Stage | None = PrivateAttr(None)
    _stage_lock: asyncio.Lock = PrivateAttr(default_factory=asyncio.Lock)
    _first_step: int = PrivateAttr(1)

    async def begin(self, step: int) -> Stage:
        """Return the stage of a thread that begins with this context; context and superstep are stored in the thread.

        Raises:
            RequestError: If a part of the context is invalid; the message names it.
        """
        self._current_stage = await asyncio.to_thread(self.served.stage, self)
        self._first_step = step
        if (store := get_runtime().store) is not None:
            values = self.model_dump(mode="json", exclude_unset=True)
            await store.aput(self._namespace(), self._thread_id(), {"said": values, "step": step})
        return self._current_stage

    async def stage(self, step: int) -> Stage:
        """Return the stage for a node. In a continued thread, omitted values are those of the thread's first context.

        Steps are counted without the node `begin`, so that calls have the same places and seeds as in a run's file.
        """
        async with self._stage_lock:
            if self._current_stage is None:
                self._current_stage = await asyncio.to_thread(self.served.stage, await self._load_request())
        return replace(self._current_stage, step=step - self._first_step)

    async def _load_request(self) -> ServedContext:
        store = get_runtime().store
        begun = None if store is None else await store.aget(self._namespace(), self._thread_id())
        if begun is not None:
            self._first_step = begun.value["step"]
            return type(self)(**{**begun.value["said"], **self.model_dump(exclude_unset=True)})
        if "scenario" not in self.model_fields_set:
            raise RequestError("the beginning of this thread is not stored; state the scenario in the context")
        return self

    def _namespace(self) -> tuple[str, ...]:
        return ("dialoom", self.served.recipe.name)

    @staticmethod
    def _thread_id() -> str:
        return str(get_config()["configurable"].get("thread_id"))


BEGIN = "begin"
"""The node before a recipe's own nodes: it writes the scenario's initial state."""


def serve(
    recipe: str,
    options: Mapping[str, Any] | None = None,
    models: Mapping[str, str] | None = None,
    prompts: PathLike | Sequence[PathLike] | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a recipe's graph for LangGraph's own server.

    Args:
        recipe: An installed recipe's name, or `path/to/file.py:NAME`.
        options: The recipe's options by name.
        models: The models by role, for roles without a model in the request. `python:` and `graph:` models are allowed
            only here.
        prompts: Sets of prompts that replace the recipe's own; as for `play`.

    Raises:
        RunError: If there is no such recipe or role.
        PromptError: If a prompt cannot be read.
        pydantic.ValidationError: If an option is unknown or invalid.
    """
    loaded = load_recipe(recipe)
    parsed_options = loaded.options_type.model_validate(options or {})
    served = ServedRecipe(loaded, parsed_options, models or {}, prompts)
    context = type("Context", (ServedContext,), {"served": served, "__doc__": ServedContext.__doc__})
    builder = build_graph(loaded, parsed_options)
    builder.context_schema = context
    _add_begin_node(builder, loaded)
    return builder.compile(name=loaded.name)


def _add_begin_node(builder: Graph, recipe: Recipe) -> None:
    """Add a node before the first ones, so that a request need not contain a scenario's initial state."""
    first_nodes = sorted(target for source, target in builder.edges if source == START)
    builder.edges -= {(START, target) for target in first_nodes}
    builder.branches[BEGIN] = builder.branches.pop(START, {})
    builder.add_node(BEGIN, _build_begin_node(recipe))
    builder.add_edge(START, BEGIN)
    for target in first_nodes:
        builder.add_edge(BEGIN, target)


def _build_begin_node(recipe: Recipe) -> Callable[..., Awaitable[dict[str, Any]]]:
    async def begin(state: Any, config: RunnableConfig, runtime: Runtime[ServedContext]) -> dict[str, Any]:
        """Write the parts of the initial state that the input omits."""
        step = config["metadata"]["langgraph_step"]
        if step > 1 and any(state.values()):
            raise RequestError(
                "this thread already has a conversation; start a new thread for a new one, or send null as input to "
                "continue this one"
            )
        stage = await runtime.context.begin(step)
        return {name: value for name, value in recipe.initial(stage.scenario).items() if not state.get(name)}

    return begin
