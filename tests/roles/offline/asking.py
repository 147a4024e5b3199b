"""Calls of an understudy, without a gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dialoom.roles import offline


def answer(
    model: str,
    messages: Sequence[Mapping[str, object]],
    prompt: str,
    role: str = "",
    *,
    seed: int | None = None,
    **inputs: Any,
) -> str:
    """Return an understudy's reply; the role is named like the prompt unless given."""
    return offline.play(model, messages, prompt, role or prompt.partition("/")[2], seed=seed, inputs=inputs).words
