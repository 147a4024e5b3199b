"""The settings of the API's operations: those of `dialoom.settings`, an event listener, and a control to stop work."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, TypeAlias

from pydantic import Field

from dialoom.graphs import Recipe
from dialoom.runs.control import Control, Event
from dialoom.runs.gateway_setup import CallPolicy, RunLimits
from dialoom.settings import OwnPlayer, PlayerSettings, ProcessSettings, RunSettings, checked, described, part

RecipeLike: TypeAlias = "str | Recipe | type[Recipe]"
"""A registered name, `path/to/file.py:NAME`, a recipe, or its class."""


class CallSettings(ProcessSettings, total=False):
    """Settings of how calls are made. None of them changes the content of a dialogue.

    Budget, prices, rates, time-outs and context windows are stored in the run's file, and apply when it is resumed.

    Example:
        >>> calls = dialoom.CallSettings(concurrency=4, budget=dialoom.Budget(max_cost=2))
        >>> run = dialoom.resume("run.db", **calls)
    """

    on_event: Annotated[
        Callable[[Event], None] | None, Field(description="A function called with each event in the thread that plays.")
    ]
    control: Annotated[Control | None, Field(description="An object through which another thread can stop the work.")]


class JudgeSettings(PlayerSettings, CallSettings, total=False):
    """Settings of judges or reviewers, and of how calls are made."""


class PlaySettings(RunSettings, CallSettings, total=False):
    """Settings of a new run, besides its recipe and its file.

    Example:
        >>> settings = dialoom.PlaySettings(options={"limit": 1}, seed=7, concurrency=4)
        >>> run = dialoom.play("personalens", path="seeded.db", **settings)
    """


for _kind in (CallSettings, JudgeSettings, PlaySettings):
    _kind.__doc__ = described(_kind)


def call_policy(
    settings: CallSettings, stored: RunLimits, objects: Mapping[str, OwnPlayer], roles: Collection[str]
) -> CallPolicy:
    """Return the call policy: settings given now, completed by those stored in the run's file.

    Args:
        settings: The settings given now.
        stored: The limits stored in the run's file.
        objects: Functions and graphs that play roles, by name.
        roles: The recipe's roles.

    Raises:
        SettingError, RunError, CacheError: If a setting is wrong or unknown; the message names it.
    """
    given = checked(CallSettings, settings)
    policy = CallPolicy(stored.changed(given, roles), part(ProcessSettings, given), objects)
    if policy.cache is not None:
        from dialoom.roles.gateway.cache import check_cache

        check_cache(policy.cache)
    if given["otel"]:
        from dialoom.roles.gateway.tracing import check_tracing

        check_tracing()
    if not policy.is_alone:
        from dialoom.runs.workers.cluster import check_ray

        check_ray()
    return policy
