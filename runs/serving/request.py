"""What a request to a served graph may ask for, as plain values."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dialoom.runs.errors import RunError


class RequestError(RunError, ValueError):
    """What a request asks for cannot be had. The server shows a client the messages of Python's own errors only."""


class StageRequest(BaseModel):
    """Which scenario, played by whom. All of it may be left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    scenario: int | dict[str, Any] = Field(1, description="A number of the plan, from 1 on, or a whole scenario.")
    model: str | None = Field(None, description="Plays the roles that nobody else is named for.")
    models: dict[str, str] = Field({}, description="The model of each role.")
    seed: int = Field(0, description="Of every random stream.")
    sample: int = Field(0, ge=0, description="Another number gives other replies of the same models.")
