"""Asking an understudy for words."""

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
    """Give the words of an understudy; the role is called as the prompt unless said otherwise."""
    return offline.play(model, messages, prompt, role or prompt.partition("/")[2], seed=seed, inputs=inputs).words
