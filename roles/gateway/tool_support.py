"""Tool support of models by LiteLLM's table."""

from __future__ import annotations

import functools

from dialoom.roles.binding import OBJECT, OFFLINE

from .litellm_backend import load_litellm

_OWN = (OFFLINE, OBJECT, "python:", "graph:", "embed:")


@functools.cache
def knows_tools(model: str) -> bool:
    """Return whether LiteLLM's table says that a model supports tools; `False` if it does not list the model.

    Args:
        model: A model's name, as in a binding.
    """
    return not model.startswith(_OWN) and bool(load_litellm().supports_function_calling(model))
