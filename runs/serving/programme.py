"""What one served graph plays, and the stage that it makes of what a request asks for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import Recipe, RecipeError, Scenario, Stage, stream
from dialoom.graphs.capabilities import WithPrompts, WithRoles
from dialoom.prompts import PromptLibrary
from dialoom.roles import BindingError, Cast, Gateway, ModelBinding
from dialoom.roles.binding import does_take_tools
from dialoom.roles.gateway.gateway import check_model
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.runs.config import DEFAULT_MODEL
from dialoom.runs.errors import RunError

from .memory_ledger import MemoryLedger
from .request import RequestError, StageRequest

_LOCAL = ("python:", "graph:")


class Programme:
    """What one served graph plays: a recipe with options, and who plays what is not said otherwise.

    Args:
        recipe: The recipe.
        options: Its options.
        models: Models by role.
        overrides: A folder of prompts that replace the recipe's own.

    Raises:
        RunError: If a role is unknown.
        PromptError: If a prompt cannot be read.
    """

    def __init__(self, recipe: Recipe, options: Any, models: Mapping[str, str], overrides: Path | None) -> None:
        self.recipe = recipe
        self.options = options
        self._roles = WithRoles.of(recipe).roles_used(options)
        self._models = {**WithRoles.of(recipe).models_named(options), **self._known(models)}
        self._library = WithPrompts.of(recipe).library(overrides)
        self._ledger = MemoryLedger()

    def stage(self, request: StageRequest) -> Stage:
        """The stage that a request asks for. Reads files and imports modules.

        Raises:
            RequestError: Naming what is wrong in the request.
            DataError: If a source file of the recipe is wrong.
        """
        try:
            return self._stage(request)
        except (RunError, RecipeError, BindingError) as error:
            raise RequestError(error.message, setting=error.setting, advice=error.advice) from error

    def _stage(self, request: StageRequest) -> Stage:
        models = self._bound(request)
        for binding in models.values():
            check_model(binding.model)
        load_litellm()  # here rather than on the first call, as it would hold the server's event loop for seconds
        scenario = self._scenario(request.scenario, request.seed)
        library = PromptLibrary(prompt for prompt in self._library.values() if prompt.front.role in models)
        gateway = Gateway(self._ledger)
        gateway.prepare(binding.model for binding in models.values())
        cast = Cast(library, models, gateway, WithPrompts.of(self.recipe).reply_types)
        return Stage(scenario, cast, scenario.id, request.seed, request.sample)

    def _bound(self, request: StageRequest) -> dict[str, ModelBinding]:
        asked = self._known(request.models)
        for model in (request.model, *asked.values()):
            if model is not None and model.startswith(_LOCAL):
                raise RunError(
                    f"model {model!r}: a request may name models of providers and offline ones; code of this machine "
                    "is named where the graph is made: serve(..., models={...})"
                )
        named = {
            role: asked.get(role) or self._models.get(role) or request.model or DEFAULT_MODEL for role in self._roles
        }
        return {
            role: ModelBinding(
                model=model,
                temperature=self._roles[role],
                max_reply=WithRoles.of(self.recipe).reply_limits.get(role),
                takes_tools=does_take_tools(model),
            )
            for role, model in named.items()
        }

    def _known(self, models: Mapping[str, str]) -> Mapping[str, str]:
        for role in models:
            if role not in self._roles:
                raise RunError(f"models: unknown role {role!r}; the roles are {', '.join(self._roles)}")
        return models

    def _scenario(self, wanted: int | Mapping[str, Any], seed: int) -> Scenario:
        if isinstance(wanted, int):
            return self._planned(wanted, seed)
        try:
            return self.recipe.scenario_type.model_validate(wanted)
        except ValidationError as error:
            place, message, _ = first_problem(error)
            raise RunError(f"scenario: {place}: {message}; it must be a whole {self.recipe.name} scenario") from error

    def _planned(self, number: int, seed: int) -> Scenario:
        """A scenario by its number in the plan that a run with this seed would have."""
        scenarios = self.recipe.scenarios(self.options, stream(seed, "", "plan"), lambda _note: None)
        count = 0
        for count, scenario in enumerate(scenarios, start=1):
            if count == number:
                return scenario
        raise RunError(f"scenario {number}: {self.recipe.name} has {count} here; give a number from 1 to that")
