"""The flags that say how calls are made, which every command that makes some has; and what becomes of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .flags import Flags

if TYPE_CHECKING:  # a command's help needs no model
    from dialoom.runs.limits import RunLimits
    from dialoom.runs.session import Conduct
    from dialoom.runs.store.connections import Synchronous

_KEPT = "Kept for resume. "

KEPT: Flags = {
    "max_cost": (
        Annotated[
            str | None,
            typer.Option(metavar="USD|none", help=f"The most that the whole run may cost. {_KEPT}"),
        ],
        None,
    ),
    "max_tokens": (
        Annotated[str | None, typer.Option(metavar="N|none", help=f"The most tokens, in and out. {_KEPT}")],
        None,
    ),
    "max_calls": (
        Annotated[str | None, typer.Option(metavar="N|none", help=f"The most answered calls. {_KEPT}")],
        None,
    ),
    "price": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="MODEL=IN,OUT[,CACHED]",
                help=f"US dollars for a million tokens, where LiteLLM knows none. Repeatable. {_KEPT}",
            ),
        ],
        None,
    ),
    "rpm": (
        Annotated[
            list[str] | None,
            typer.Option(metavar="[MODEL=]N", help=f"Requests per minute, for every model or one. Repeatable. {_KEPT}"),
        ],
        None,
    ),
    "tpm": (
        Annotated[
            list[str] | None,
            typer.Option(metavar="[MODEL=]N", help=f"Tokens per minute, for every model or one. Repeatable. {_KEPT}"),
        ],
        None,
    ),
}
"""Budget, prices and rates: the run's file keeps those that were given last."""

SITTING: Flags = {
    "env_file": (
        Annotated[
            Path | None, typer.Option(metavar="FILE", help="NAME=VALUE lines with keys, beside the environment's.")
        ],
        None,
    ),
    "fail_on_error": (
        Annotated[
            str | None,
            typer.Option(
                metavar="N|P%", help="Stop after N failed scenarios, or when more than P % of 20 or more failed."
            ),
        ],
        None,
    ),
    "cache": (
        Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Share replies with other runs of the same seed through this file."),
        ],
        None,
    ),
    "synchronous": (
        Annotated[
            Literal["normal", "full"] | None,
            typer.Option(help="What a commit survives: normal a crash, full a power cut too. [default: normal]"),
        ],
        None,
    ),
    "otel": (
        Annotated[bool, typer.Option("--otel", help="Send a span of each call to OTEL_EXPORTER_OTLP_ENDPOINT.")],
        False,
    ),
    "log_format": (
        Annotated[
            Literal["text", "json"] | None,
            typer.Option(help="Of the lines on standard error: for people, or JSON for programs. [default: text]"),
        ],
        None,
    ),
}
"""What is given anew for each sitting."""

REPLAY_ONLY: Flags = {
    "replay_only": (
        Annotated[bool, typer.Option("--replay-only", help="Make no call: every reply must be recorded already.")],
        False,
    )
}

CALLING: Flags = {**KEPT, **SITTING, **REPLAY_ONLY}


def synchronous_of(given: Mapping[str, Any]) -> Synchronous:
    """What the commits of this sitting are to survive."""
    return given.get("synchronous") or "normal"


def conduct_of(kept: RunLimits, given: Mapping[str, Any]) -> Conduct:
    """How calls are made: what the run's file keeps, and what is given now, which wins.

    Raises:
        RunError, BindingError: Naming the flag and the value that is wrong.
    """
    from dialoom.runs.limits import FailOnError
    from dialoom.runs.session import Conduct

    if (env_file := given.get("env_file")) is not None:
        from dialoom.roles.gateway.keys import load_env_file

        load_env_file(env_file)
    if (cache := given.get("cache")) is not None:
        from dialoom.roles.gateway.cache import check_cache

        check_cache(cache)
    if given.get("otel"):
        from dialoom.roles.gateway.tracing import check_tracing

        check_tracing()
    stop_at = given.get("fail_on_error")
    return Conduct(
        kept.changed(given),
        bool(given.get("replay_only")),
        FailOnError() if stop_at is None else FailOnError.parse(str(stop_at)),
        cache,
        bool(given.get("otel")),
    )
