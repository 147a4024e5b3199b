"""Messages between the owning process and its workers, and ending a worker with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dialoom.graphs import Recipe
from dialoom.roles import ModelBinding
from dialoom.roles.gateway.budget import Taken
from dialoom.runs.gateway_setup import CallPolicy
from dialoom.runs.progress import Event
from dialoom.runs.store.transfer import Parcel
from dialoom.settings import Synchronous

Action = Literal["play", "judge", "rejudge"]


@dataclass(frozen=True, slots=True)
class Order:
    """The configuration of a worker.

    Attributes:
        file: The content of its run file, without scenarios.
        folder: The folder for that file.
        cwd: The folder that relative file names in the run refer to.
        action: The kind of work.
        judging: The set of judgements to make, if any.
        models: The models by role.
        recipe: The recipe, if it was passed as an object; by default the file names it.
        is_review: Whether the judging is a review of the recipe's scenarios.
        policy: The policy for calls; its concurrency is the worker's share.
        has_cache: Whether replies are shared with other runs.
        ahead: The number of scenarios queued for it, while there are any.
        synchronous: The durability of commits.
    """

    file: bytes
    folder: Path
    cwd: Path
    action: Action
    judging: str | None
    models: Mapping[str, ModelBinding]
    recipe: Recipe | None
    is_review: bool
    policy: CallPolicy
    has_cache: bool = False
    ahead: int = 0
    synchronous: Synchronous = "normal"


@dataclass(frozen=True, slots=True)
class Begun:
    """The location of a worker that has begun.

    Attributes:
        node: The id of its Ray node.
        path: Its file on that node.
    """

    node: str
    path: Path


@dataclass(frozen=True, slots=True)
class Left:
    """The results that a dead worker has left.

    Attributes:
        parcels: The results of its scenarios.
        spent: The spend of its calls.
    """

    parcels: list[Parcel]
    spent: Taken


@dataclass(slots=True)
class Delivery:
    """A worker's report; its content is sent again until it is acknowledged.

    Attributes:
        number: The number of its last item.
        parcels: The results of scenarios.
        events: The events, each with a number that is unique for this worker.
        is_over: Whether the worker has finished for good: drained, stopped, or by itself.
        error: The error that ended it, if any: every other scenario would meet it, too.
        busy: The seconds in which it had a scenario in progress.
        shapes: The reply formats that models have refused; see `Shapes.found`.
    """

    number: int = 0
    parcels: list[Parcel] = field(default_factory=list)
    events: list[tuple[int, Event]] = field(default_factory=list)
    is_over: bool = False
    error: Exception | None = None
    busy: float = 0.0
    shapes: Mapping[str, Sequence[str]] = field(default_factory=dict)


_PR_SET_PDEATHSIG = 1
"""See prctl(2)."""


def end_with_parent() -> None:
    """Have the system kill this process as soon as its parent is gone. Only Linux can; elsewhere this does nothing."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:  # the parent ended before the call
        os.kill(os.getpid(), signal.SIGKILL)
