"""The flags that say how calls are made, declared once for every command that makes some."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .flags import Flags

_KEPT = "Kept for resume. "

SAMPLING: Flags = {
    "max_reply": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="[ROLE=]N|none",
                help="The most tokens of a reply, thoughts included. Repeatable. [default: the recipe's own]",
            ),
        ],
        None,
    ),
    "param": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="[ROLE.]KEY=VALUE",
                help="top_p, stop, seed, reasoning_effort, ..., or extra_body, in YAML or JSON. Repeatable.",
            ),
        ],
        None,
    ),
    "structured": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="[ROLE=]HOW",
                help="How a model is held to the form of a reply: schema, json, prompt, or auto for the strictest that "
                "it takes. Repeatable. [default: auto]",
            ),
        ],
        None,
    ),
}
"""Flags of sampling; part of what identifies a run or a set of judgements."""

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
    "context": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="MODEL=N|none",
                help=f"Tokens that a model reads, request and reply; what cannot fit is not sent. Repeatable. {_KEPT}"
                "[default: what LiteLLM knows]",
            ),
        ],
        None,
    ),
    "timeout": (
        Annotated[
            list[str] | None,
            typer.Option(
                metavar="[ROLE=]S|none",
                help=f"Seconds after which a try is given up and made again. Repeatable. {_KEPT}[default: 600]",
            ),
        ],
        None,
    ),
}
"""Budget, prices, rates, time-outs and context windows: the run's file keeps those that were given last."""

ANEW: Flags = {
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
    "patience": (
        Annotated[
            str | None,
            typer.Option(
                metavar="TIME",
                help="Wait so long (90s, 10m, 2h) for a provider that cannot be reached, then stop, resumable; 0 lets "
                "scenarios fail. [default: 10m]",
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
"""Flags that are given anew with each command."""

REPLAY_ONLY: Flags = {
    "replay_only": (
        Annotated[bool, typer.Option("--replay-only", help="Make no call: every reply must be recorded already.")],
        False,
    )
}

WORKERS: Flags = {
    "workers": (
        Annotated[
            int | None,
            typer.Option(
                min=1,
                metavar="N",
                help="Play on N processes; what bounds calls bounds all of them. Needs dialoom[ray].",
            ),
        ],
        None,
    ),
    "ray": (
        Annotated[
            str | None,
            typer.Option(metavar="ADDRESS", help="Play on this Ray cluster: auto, or HOST:PORT. Needs dialoom[ray]."),
        ],
        None,
    ),
}
"""Flags of the processes that play."""

CALLING: Flags = {**KEPT, **ANEW, **WORKERS, **REPLAY_ONLY}
