"""API keys: a model's provider, checks for its key, and reading keys from a file."""

from __future__ import annotations

import functools
import io
import os
from collections import defaultdict
from collections.abc import Collection, Mapping
from pathlib import Path

from dotenv.parser import Binding, parse_stream

from dialoom.errors import Advice
from dialoom.inputs import MOST_YAML_BYTES, read_text
from dialoom.roles.binding import OBJECT, OFFLINE, ModelBinding
from dialoom.roles.errors import BindingError

from .secrets import guard


def load_env_file(path: Path) -> list[str]:
    """Set the file's variables in the environment, except those already set.

    Every value is treated as a secret from then on, whatever its name: no message shows it.

    Args:
        path: Lines of `NAME=VALUE`, empty lines and comments (`#`); values may be quoted, lines may begin with
            `export`.

    Returns:
        The names in the file, in its order.

    Raises:
        DataError: If the file cannot be read.
        BindingError: If a line is of another form, or a name occurs twice. No message holds a value.
    """
    text = read_text(path, MOST_YAML_BYTES, streams=True)
    given: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(text)):
        if not _says_nothing(binding):
            name, value = _checked(binding, path, given)
            given[name] = value
    for name, value in given.items():
        guard(name, value)
        os.environ.setdefault(name, value)
    return list(given)


def _says_nothing(binding: Binding) -> bool:
    return binding.key is None and not binding.error


def _checked(binding: Binding, path: Path, before: Collection[str]) -> tuple[str, str]:
    # A statement begins at its first letter; the parser counts the blank lines before it to it.
    statement = binding.original.string
    line = binding.original.line + statement[: len(statement) - len(statement.lstrip())].count("\n")
    place = f"the key file {str(path)!r}, line {line}"
    if binding.error or not binding.key:
        raise BindingError(f"{place}: not of the form NAME=VALUE")
    if not binding.key.isidentifier():
        # The text may be a key pasted without a name: only its place is reported.
        raise BindingError(f"{place}: what stands before '=' is no name of an environment variable")
    if not binding.value:
        raise BindingError(
            f"{place}: {binding.key} has no value; NAME=VALUE is needed"
            if "=" in statement
            else f"{place}: not of the form NAME=VALUE"
        )
    if binding.key in before:
        raise BindingError(f"{place}: {binding.key} is given twice; leave one out")
    return binding.key, binding.value


_EMBED = "embed"


@functools.cache
def provider_of(model: str) -> str:
    """Return LiteLLM's name of a model's provider; for user code, its kind (`python`, `graph`, `object`)."""
    kind, colon, rest = model.partition(":")
    if colon and "/" not in kind:
        return provider_of(rest) if kind == _EMBED else kind
    from .litellm_backend import load_litellm

    try:
        return str(load_litellm().get_llm_provider(model)[1])
    except Exception:
        return model.split("/")[0]


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
"""Environment variables of which LiteLLM needs any one, for providers that accept no other form of authentication.
Other providers (clouds, self-hosted servers) have more ways than can be checked here.
"""

_OWN_CODE = ("python:", "graph:", OBJECT, OFFLINE)


def check_keys(models: Mapping[str, ModelBinding]) -> None:
    """Raise an error for models whose key is missing. A model with its own address may need none.

    Args:
        models: The bindings by role.

    Raises:
        BindingError: With every such model, its roles, and the variable.
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
    """Return the environment variable in which a model's key is missing; `None` if none is."""
    if model.startswith(_OWN_CODE):
        return None
    provider = provider_of(model)
    names = _KEYS.get(provider)
    if names is None or any(os.environ.get(name) for name in names) or _is_set_up_otherwise(provider):
        return None
    return names[0]


def _is_set_up_otherwise(provider: str) -> bool:
    """Return whether LiteLLM itself is configured with the key, a secret manager or another address."""
    from .litellm_backend import load_litellm

    litellm = load_litellm()
    names = ("api_key", "api_base", "secret_manager_client", f"{provider}_key")
    addresses = (f"{provider.upper()}_API_BASE", f"{provider.upper()}_BASE_URL")
    return any(getattr(litellm, name, None) for name in names) or any(os.environ.get(name) for name in addresses)
