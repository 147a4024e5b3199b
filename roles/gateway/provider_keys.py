"""Whether the keys of models are there, before anything is done that would be lost without them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping

from dialoom.errors import Advice
from dialoom.roles.binding import OBJECT, OFFLINE, ModelBinding
from dialoom.roles.errors import BindingError

from .providers import provider_of

_KEYS: dict[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN"),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
}
"""Variables of which LiteLLM takes any one, for providers that answer nobody without a key and know no other proof than
that. The others (clouds, servers of one's own) have more ways than can be looked through from here."""

_OWN_CODE = ("python:", "graph:", OBJECT, OFFLINE)


def check_keys(models: Mapping[str, ModelBinding]) -> None:
    """Refuse models that cannot be called for want of a key. One with an address of its own may want none.

    Args:
        models: By role.

    Raises:
        BindingError: Naming every such model, who it is to play, and the variable.
    """
    roles: dict[tuple[str, str], list[str]] = defaultdict(list)
    for role, binding in models.items():
        if binding.api_base is None and (name := _missing(binding.model)) is not None:
            roles[binding.model, name].append(role)
    if roles:
        lacking = [f"in {name} for {model} ({', '.join(each)})" for (model, name), each in roles.items()]
        raise BindingError(
            f"models: there is no key {', nor '.join(lacking)}",
            setting="models",
            advice=Advice("keys", "put it into the environment, from a file of keys with dialoom.load_env_file(path)"),
        )


def _missing(model: str) -> str | None:
    """The variable that a model's key is missing in."""
    if model.startswith(_OWN_CODE):
        return None
    provider = provider_of(model)
    names = _KEYS.get(provider)
    if names is None or any(os.environ.get(name) for name in names) or _is_set_up_otherwise(provider):
        return None
    return names[0]


def _is_set_up_otherwise(provider: str) -> bool:
    """Whether it is LiteLLM that was told the key, where keys are kept, or another address."""
    from .litellm_backend import load_litellm

    litellm = load_litellm()
    told = ("api_key", "api_base", "secret_manager_client", f"{provider}_key")
    addresses = (f"{provider.upper()}_API_BASE", f"{provider.upper()}_BASE_URL")
    return any(getattr(litellm, name, None) for name in told) or any(os.environ.get(name) for name in addresses)
