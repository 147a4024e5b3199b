"""Whose models are whose."""

from __future__ import annotations

import functools

_EMBED = "embed"


@functools.cache
def provider_of(model: str) -> str:
    """LiteLLM's name of a model's provider; for one's own code, its kind (`python`, `graph`, `object`)."""
    kind, colon, rest = model.partition(":")
    if colon and "/" not in kind:
        return provider_of(rest) if kind == _EMBED else kind
    from .litellm_backend import load_litellm

    try:
        return str(load_litellm().get_llm_provider(model)[1])
    except Exception:
        return model.split("/")[0]
