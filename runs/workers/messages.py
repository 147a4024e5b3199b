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
from dialoom.runs.store.connections import Synchronous
from dialoom.runs.store.transfer import Parcel

Action = Literal["play", "judge", "rejudge"]


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker is to do, and how.

    Attributes:
        file: The content of its run file, without scenarios.
        folder: Where it keeps that file.
        cwd: What names of files in the run are relative to.
        action: What is done with scenarios.
        judging: The set of judgements that is made, if it is one.
        models: Who plays.
        recipe: The recipe, if it was given as an object; else the file names it.
        is_review: Whether the judging is the reviewing of the recipe.
        policy: How calls are made; its concurrency is the worker's share.
        has_cache: Whether replies are shared with other runs.
        ahead: How many scenarios lie ready for it, as long as there are any.
        synchronous: What commits survive.
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
    """A worker is ready.

    Attributes:
        node: The id of Ray's node that it is on.
        path: Its file, there.
    """

    node: str
    path: Path


@dataclass(frozen=True, slots=True)
class Left:
    """What a dead worker has left.

    Attributes:
        parcels: What has come of its scenarios.
        spent: What its calls have taken.
    """

    parcels: list[Parcel]
    spent: Taken


@dataclass(slots=True)
class Delivery:
    """What a worker has to say; it says it again until it is told that it was heard.

    Attributes:
        number: Of the last thing in it.
        parcels: What has come of scenarios.
        events: What happened, each with a number that no other one of this worker has.
        is_over: Whether it is done for good: it was drained or stopped, or has stopped of its own accord.
        error: What it has broken off by, if it has: every other scenario would meet it, too.
        busy: Seconds in which it had a scenario under way.
        shapes: What it knows of the shapes that models can be held to; see `Shapes.found`.
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
    if os.getppid() != parent:  # it went before the system was asked
        os.kill(os.getpid(), signal.SIGKILL)
