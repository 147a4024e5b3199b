"""Whether a recipe's requests fit into the context windows of its models, before anything is sent.

A few of its scenarios are played by understudies, and the requests that real models would get are counted. Understudies
say little, so what does not fit here would not fit in the run either.
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
from dialoom.roles.tokens import COUNTER

from .config import DEFAULT_MODEL
from .errors import RunError
from .gateway_setup import prompts_of
from .recipe_check import graph_of

LOOKED_AT, PLAYED = 64, 3
"""Of so many scenarios at the beginning of the plan, the longest are played: so many."""

_TOLERANCE = 1.1
"""Models count otherwise than we do; what is near is left to the server."""

_SECONDS = 10.0
_NO_LIMIT = 1_000_000


class Unkept:
    """A ledger that keeps nothing: its calls belong to no run."""

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:  # noqa: ARG002
        """Let the call be made."""
        return 0

    async def find(self, key: str, place: CallPlace) -> Completion | None:  # noqa: ARG002
        """Find nothing."""
        return None

    async def failed(self, id_: int, attempt: Attempt) -> None:
        """Keep no attempt: only the outcome counts."""

    async def record(self, id_: int, record: CallRecord) -> None:
        """Keep no outcome: it is told to whoever asks."""


class _Largest(Unkept):
    """Remembers the size of each role's largest request, in tokens."""

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
    """Refuse a run whose requests are longer than a model's server says that it reads.

    Args:
        recipe: The recipe.
        options: Its options.
        seed: The run's seed.
        library: Its prompts.
        models: Who plays.
        stated: The windows that the user has stated, by model: their requests are looked at one by one when they are
            made, and no server is asked.

    Raises:
        RunError: With both lengths, and what to do.
    """
    windows = await asyncio.to_thread(_windows, models, stated)
    if not windows:
        return
    largest = await largest_requests(recipe, options, seed, library, models)
    for role, window in windows.items():
        if (reason := misfit(role, models[role], largest.get(role, 0), window)) is not None:
            raise RunError(f"models: {reason}", setting="models")


def misfit(role: str, binding: ModelBinding, request: int, window: ServedWindow) -> str | None:
    """Return why a role's requests do not fit into its model's window; `None` if they do.

    Args:
        role: The role.
        binding: Its model.
        request: The tokens of its largest request.
        window: What its server says.
    """
    reply = (binding.max_reply or 0) if window.holds_reply else 0
    if request + reply <= window.tokens * _TOLERANCE:
        return None
    told = f"{request:,} tokens by {COUNTER}" + (f", and {reply:,} for the reply" if reply else "")
    return (
        f"{role} is asked with requests of {told}, and {binding.model} reads {window.tokens:,} by what its server "
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

    Understudies play them. Roles that are not reached are left out: an understudy cannot play the recipe, or it takes
    too long.
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

    with suppress(Exception):  # whatever it is, the run itself will tell it: here it only ends the counting
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
