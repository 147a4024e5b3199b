"""Check that a recipe's requests fit into the context windows of its models, before anything is sent.

Understudies play a few of its scenarios, and the requests that real models would get are counted. Understudies say
little, so a request that does not fit here would not fit in the run either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice

from dialoom.graphs import Recipe, Scenario, Stage, stream
from dialoom.graphs.capabilities import WithPrompts
from dialoom.prompts import PromptLibrary
from dialoom.roles import Cast, Completion, Gateway, ModelBinding
from dialoom.roles.cast import stand_ins
from dialoom.roles.gateway import Attempt, CallPlace, CallRecord, Request
from dialoom.roles.gateway.windows import ServedWindow, counted, served_window
from dialoom.roles.parameters import COUNTER

from .config import DEFAULT_MODEL
from .errors import RunError
from .gateway_setup import prompts_of
from .recipe_check import graph_of

LOOKED_AT, PLAYED = 64, 3
"""The number of scenarios at the beginning of the plan that are examined, and the number of the longest ones played."""

_TOLERANCE = 1.1
"""The tolerance for models whose tokenizers count differently; close cases are left to the server."""

_SECONDS = 10.0
_NO_LIMIT = 1_000_000


class Unkept:
    """A ledger that stores nothing, for calls that belong to no run."""

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        """Let the call be made."""
        return 0

    async def find(self, key: str, place: CallPlace) -> Completion | None:  # noqa: ARG002
        """Find nothing."""
        return None

    async def failed(self, id_: int, attempt: Attempt) -> None:
        """Ignore the attempt: only the result counts."""

    async def record(self, id_: int, record: CallRecord) -> None:
        """Ignore the result: the caller gets it."""


class _Largest(Unkept):
    """A ledger that only tracks the size of each role's largest request, in tokens."""

    def __init__(self) -> None:
        self.by_role: dict[str, int] = {}

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        self.by_role[request.role] = max(counted(request), self.by_role.get(request.role, 0))
        return 0


async def ensure_fits(
    recipe: Recipe,
    options: Mapping[str, object],
    seed: int,
    library: PromptLibrary,
    models: Mapping[str, ModelBinding],
    stated: Mapping[str, int],
) -> None:
    """Refuse a run whose requests exceed the context window that a model's server reports.

    Args:
        recipe: The recipe.
        options: Its options.
        seed: The run's seed.
        library: Its prompts.
        models: The models by role.
        stated: The context windows that the user has stated, by model: the requests of these models are checked one by
            one when they are made, and no server is asked.

    Raises:
        RunError: With both lengths, and advice.
    """
    windows = await asyncio.to_thread(_windows, models, stated)
    if not windows:
        return
    largest = await largest_requests(recipe, options, seed, library, models)
    for role, window in windows.items():
        if (reason := misfit(role, models[role], largest.get(role, 0), window)) is not None:
            raise RunError(f"models: {reason}", setting="models")


def misfit(role: str, binding: ModelBinding, request: int, window: ServedWindow) -> str | None:
    """Return the reason why a role's requests do not fit into its model's window; `None` if they fit.

    Args:
        role: The role.
        binding: Its model.
        request: The tokens of its largest request.
        window: The window that its server reports.
    """
    reply = (binding.max_reply or 0) if window.holds_reply else 0
    if request + reply <= window.tokens * _TOLERANCE:
        return None
    size = f"{request:,} tokens by {COUNTER}" + (f", and {reply:,} for the reply" if reply else "")
    return (
        f"{role} is asked with requests of {size}, and {binding.model} reads {window.tokens:,} by what its server "
        f"says: serve it with a longer context, or give {role} another model (context={{{binding.model!r}: "
        f"{window.tokens}}} plays what fits, and fails the rest)"
    )


async def largest_requests(
    recipe: Recipe,
    options: Mapping[str, object],
    seed: int,
    library: PromptLibrary,
    models: Mapping[str, ModelBinding],
) -> Mapping[str, int]:
    """Return the tokens of each role's largest request in the longest of the first scenarios.

    Understudies play them. Roles that are not reached are left out, because an understudy cannot play the recipe, or it
    takes too long.
    """
    ledger = _Largest()
    played = stand_ins(library)
    players = {
        role: each.model_copy(update={"model": played.get(role, DEFAULT_MODEL), "api_base": None})
        for role, each in models.items()
    }

    def longest() -> list[Scenario]:
        chosen = recipe.options_type.model_validate(options)
        plan = recipe.scenarios(chosen, stream(seed, "", "plan"), lambda _note: None)
        return sorted(islice(plan, LOOKED_AT), key=lambda each: -len(each.model_dump_json()))[:PLAYED]

    with suppress(Exception):  # whatever it is, the run itself will report it: here it only ends the counting
        cast = Cast(prompts_of(library, players), players, Gateway(ledger), WithPrompts.of(recipe).reply_types)
        graph = graph_of(recipe, options).compile()
        async with asyncio.timeout(_SECONDS):
            for scenario in await asyncio.to_thread(longest):
                stage = Stage(scenario, cast, scenario.id, seed)
                await graph.ainvoke(recipe.initial(scenario), {"recursion_limit": _NO_LIMIT}, context=stage)
    return ledger.by_role


def _windows(models: Mapping[str, ModelBinding], stated: Mapping[str, int]) -> dict[str, ServedWindow]:
    """Return the windows that servers report, by role; each is asked once."""
    asked: dict[str, ServedWindow | None] = {}
    for each in models.values():
        if each.model not in stated and (place := f"{each.model} {each.api_base}") not in asked:
            asked[place] = served_window(each)
    found = {role: asked.get(f"{each.model} {each.api_base}") for role, each in models.items()}
    return {role: window for role, window in found.items() if window is not None}
