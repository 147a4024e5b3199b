"""Facts about models: their providers, keys, prices, tool support and context windows."""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import quote, urlsplit

from dotenv.parser import parse_stream

from dialoom.errors import Advice
from dialoom.inputs import MAX_YAML_BYTES, read_text
from dialoom.roles.binding import EMBEDDING_PREFIX, OBJECT_PREFIX, OFFLINE_PREFIX, ModelBinding, is_provider_model
from dialoom.roles.errors import BindingError, ContextError
from dialoom.roles.parameters import DEPLOYMENT, TOKENIZER, count_tokens
from dialoom.settings import Price

from .calls import Completion, Request
from .failures import format_too_long
from .families import find_family, strip_prefixes
from .litellm_backend import is_inferred_model, load_litellm
from .secrets import register_secret


def load_env_file(path: Path) -> list[str]:
    """Set the variables of a file in the environment, except those already set.

    From then on, every value is treated as a secret, whatever its name, and is not shown in messages.

    Example:
        >>> dialoom.load_env_file(Path("keys.env"))  # doctest: +SKIP
        ['OPENAI_API_KEY']

    Args:
        path: Lines of `NAME=VALUE`, empty lines and comments (`#`); values may be quoted, lines may begin with
            `export`.

    Returns:
        The names in the file, in its order.

    Raises:
        DataError: If the file cannot be read.
        BindingError: If a line is malformed, or a name occurs twice. The message contains no value.
    """
    text = read_text(path, MAX_YAML_BYTES, streams=True)
    values: dict[str, str] = {}
    for binding in parse_stream(io.StringIO(text)):
        if binding.key is None and not binding.error:
            continue  # a blank line or a comment
        # The parser includes preceding blank lines in a statement; here it begins at its first character.
        statement = binding.original.string
        line = binding.original.line + statement[: len(statement) - len(statement.lstrip())].count("\n")
        location = f"the key file {str(path)!r}, line {line}"
        if binding.error or not binding.key:
            raise BindingError(f"{location}: not of the form NAME=VALUE")
        if not binding.key.isidentifier():
            # The text may be a key pasted without a name, so only its position is reported.
            raise BindingError(f"{location}: the text before '=' is not a valid name of an environment variable")
        if not binding.value:
            problem = f"{binding.key} has no value; write NAME=VALUE"
            raise BindingError(f"{location}: {problem if '=' in statement else 'not of the form NAME=VALUE'}")
        if binding.key in values:
            raise BindingError(f"{location}: {binding.key} is given twice; leave one out")
        values[binding.key] = binding.value
    for name, value in values.items():
        register_secret(name, value)
        os.environ.setdefault(name, value)
    return list(values)


@functools.cache
def provider_of(model: str) -> str:
    """Return LiteLLM's name for a model's provider; for a user's own player, return `python`, `graph` or `object`."""
    kind, colon, rest = model.partition(":")
    if colon and "/" not in kind:
        return provider_of(rest) if kind == EMBEDDING_PREFIX[:-1] else kind
    try:
        return str(load_litellm().get_llm_provider(model)[1])
    except Exception:
        return model.split("/")[0]


_KEY_VARIABLES: dict[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "moonshot": ("MOONSHOT_API_KEY",),
    "dashscope": ("DASHSCOPE_API_KEY",),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY", "TOGETHER_AI_TOKEN"),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
    "azure": ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_AD_TOKEN", "AZURE_CLIENT_ID"),
    "azure_ai": ("AZURE_AI_API_KEY", "AZURE_API_KEY", "AZURE_AD_TOKEN", "AZURE_CLIENT_ID"),
}
"""Environment variables for the keys of providers that accept no other form of authentication; one variable of a
provider is sufficient. Other providers (clouds, self-hosted servers) have more forms of authentication than can be
checked here.
"""

_ADDRESS_VARIABLES = {"azure": ("AZURE_API_BASE",), "azure_ai": ("AZURE_AI_API_BASE",)}
"""Environment variables for the addresses of providers that have no default address, and need a key at any address."""

_LOCAL_PREFIXES = ("python:", "graph:", OBJECT_PREFIX, OFFLINE_PREFIX)


def check_keys(*casts: Mapping[str, ModelBinding]) -> None:
    """Raise an error for models whose key or address is missing.

    Models with an address of their own are not checked, except Azure's, which always have one.

    Args:
        casts: The bindings by role.

    Raises:
        BindingError: If a key or address is missing; the message lists every such model, its roles, and the variable.
    """
    if roles := find_missing_keys(casts):
        missing = [f"no {what} for {model} ({', '.join(each)})" for (model, what), each in roles.items()]
        raise BindingError(
            f"models: there is {', and '.join(missing)}",
            setting="models",
            advice=Advice(
                "keys", "set it in the environment, e.g. from a file of keys with dialoom.load_env_file(path)"
            ),
        )


def find_missing_keys(casts: Iterable[Mapping[str, ModelBinding]]) -> dict[tuple[str, str], list[str]]:
    """Return the roles of the models whose key or address is missing, by the model and the missing item.

    Models whose provider only LiteLLM can name are checked last, and only if no other key is missing, because importing
    LiteLLM takes seconds.
    """
    roles: dict[tuple[str, str], list[str]] = defaultdict(list)
    for is_quick in (True, False):
        for role, binding in (item for models in casts for item in models.items()):
            what = find_missing_key(binding, is_quick=is_quick)
            if what is not None and role not in roles[binding.model, what]:
                roles[binding.model, what].append(role)
        if roles:
            break
    return roles


def find_missing_key(binding: ModelBinding, *, is_quick: bool = False) -> str | None:
    """Return which key or address of a model is missing, and its environment variable; `None` if none is missing.

    With `is_quick`, also return `None` if LiteLLM must be imported to know the model's provider.
    """
    model, address = binding.model, binding.api_base
    prefix, slash, _ = model.removeprefix(EMBEDDING_PREFIX).partition("/")
    if (address is not None and prefix not in _ADDRESS_VARIABLES) or model.startswith(_LOCAL_PREFIXES):
        return None
    listed_provider = prefix if slash else _find_listed_provider(prefix)  # first, as importing LiteLLM takes seconds
    if is_quick and listed_provider not in _KEY_VARIABLES:
        return None
    provider = listed_provider if listed_provider in _KEY_VARIABLES else provider_of(model)
    missing = [
        f"{kind} in {names[0]}"
        for kind, names in (
            ("key", _KEY_VARIABLES.get(provider)),
            ("address", () if address else _ADDRESS_VARIABLES.get(provider)),
        )
        if names and not any(os.environ.get(name) for name in names)
    ]
    return None if _is_configured_in_litellm(provider) else " and no ".join(missing) or None


@functools.cache
def _find_listed_provider(name: str) -> str | None:
    """Return a model's provider by LiteLLM's table, for a name without one; `None` if only LiteLLM itself can tell."""
    spec = importlib.util.find_spec("litellm")
    assert spec is not None and spec.submodule_search_locations
    table = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    provider = json.loads(table.read_bytes()).get(name, {}).get("litellm_provider")
    return provider if provider in ("openai", "anthropic") else None  # others need their provider's name


def _is_configured_in_litellm(provider: str) -> bool:
    """Return whether LiteLLM itself has been configured with a key, a secret manager or another address."""
    litellm = sys.modules.get("litellm")  # LiteLLM can only be configured if it is imported
    names = ("api_key", "api_base", "secret_manager_client", f"{provider}_key", f"enable_{provider}_ad_token_refresh")
    addresses = (
        () if provider in _ADDRESS_VARIABLES else (f"{provider.upper()}_API_BASE", f"{provider.upper()}_BASE_URL")
    )
    return any(getattr(litellm, name, None) for name in names) or any(os.environ.get(name) for name in addresses)


TOKENS_PER_MESSAGE = 4
"""Approximate number of tokens that a message takes besides its text."""

_WINDOW_TOLERANCE = 1.1
"""Tolerance for windows from LiteLLM's table: token counts are approximate, so slightly longer requests are sent."""

_MAX_CACHED_CHARACTERS = 10_000
"""Length in characters up to which a text's token count is cached, because every request repeats earlier messages."""


def check_window(request: Request, stated: Mapping[str, int]) -> None:
    """Reject a request that cannot fit into its model's context window.

    Args:
        request: The request.
        stated: Tokens of request and reply together, by model, as stated by the user.

    Raises:
        ContextError: If the request is too long; the message states its length, the tokenizer and the window.
    """
    window, reply = stated.get(request.model), request.max_reply
    if window is None and request.api_base is None and (listed := _find_listed_window(request.model)) is not None:
        window, available, reply = listed, int(listed * _WINDOW_TOLERANCE), None
    elif window is not None:
        available = window - (reply or 0)
    else:
        return
    # An upper bound, because a token has at least one byte, and a character at most four.
    upper_bound = sum(len(text) * (1 if text.isascii() else 4) for text in request.texts)
    if (
        TOKENS_PER_MESSAGE * len(request.messages) + upper_bound > available
        and (length := count_request_tokens(request)) > available
    ):
        needed = f"{length:,} tokens by {TOKENIZER}" + (f", and {reply:,} for the reply" if reply else "")
        raise ContextError(f"{request.model}: not sent, because {format_too_long(needed, f'{window:,}', request)}")


def count_request_tokens(request: Request) -> int:
    """Return the approximate number of a request's tokens."""
    return TOKENS_PER_MESSAGE * len(request.messages) + sum(map(_count_text_tokens, request.texts))


def _count_text_tokens(text: str) -> int:
    return _count_tokens_cached(text) if len(text) <= _MAX_CACHED_CHARACTERS else count_tokens(text)


_count_tokens_cached = lru_cache(maxsize=8192)(count_tokens)


@functools.cache
def _find_listed_window(model: str) -> int | None:
    """Return a model's window in LiteLLM's table; `None` if the model is not listed."""
    if not is_provider_model(model):
        return None
    try:
        found = load_litellm().get_model_info(model).get("max_input_tokens")
    except Exception:
        return None
    return found if isinstance(found, int) and found > 0 else None


_TIMEOUT_SECONDS = 2.0
_MAX_RESPONSE_BYTES = 4 * 2**20
_OLLAMA = ("ollama", "ollama_chat")
_OLLAMA_ADDRESS = "http://localhost:11434"
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


class ServedWindow(NamedTuple):
    """A model's window as reported by its server.

    Attributes:
        tokens: The window in tokens.
        holds_reply: Whether the window must hold the request and the maximum tokens of its reply together.
    """

    tokens: int
    holds_reply: bool = False


def fetch_served_window(binding: ModelBinding) -> ServedWindow | None:
    """Ask a model's server for its context window. No text of a run is sent.

    Args:
        binding: The model. No request is made for a model at its provider's own address.

    Returns:
        The window; `None` if there is no such server, or it does not report one.
    """
    provider, _, model = binding.model.partition("/")
    if not model or ":" in provider:
        return None
    provider, model = provider_of(binding.model), binding.params.get(DEPLOYMENT, model)
    address = binding.api_base or os.environ.get(f"{provider.removesuffix('_chat').upper()}_API_BASE")
    if provider in _OLLAMA:
        return next(_iter_ollama_windows(address or _OLLAMA_ADDRESS, model, binding.params.get("num_ctx")), None)
    if address is None:
        return None
    return next(_iter_openai_windows(address, model, os.environ.get(f"{provider.upper()}_API_KEY")), None)


def _iter_openai_windows(address: str, model: str, key: str | None) -> Iterator[ServedWindow]:
    listed = _fetch_json(f"{address.rstrip('/')}/models", key=key).get("data")
    models = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    for each in models:  # vLLM
        if each.get("id") == model and _is_size(size := each.get("max_model_len")):
            yield ServedWindow(size, holds_reply=True)
    root = "{0.scheme}://{0.netloc}".format(urlsplit(address))
    properties = _fetch_json(f"{root}/props?model={quote(model, safe='')}&autoload=false", key=key)
    settings = properties.get("default_generation_settings")
    if isinstance(settings, dict) and _is_size(size := settings.get("n_ctx")):  # llama.cpp: the window of a single slot
        yield ServedWindow(size)


def _iter_ollama_windows(address: str, model: str, configured: Any) -> Iterator[ServedWindow]:
    """Yield a model's windows in Ollama, most reliable first: configured, loaded, in the model file, maximum."""
    if _is_size(configured):
        yield ServedWindow(configured)
    loaded = _fetch_json(f"{address}/api/ps").get("models")
    for each in loaded if isinstance(loaded, list) else ():
        names = {each.get("name"), each.get("model")} if isinstance(each, dict) else set()
        if names & {model, f"{model}:latest"} and _is_size(size := each.get("context_length")):
            yield ServedWindow(size)
    shown = _fetch_json(f"{address}/api/show", body={"model": model})
    if found := _NUM_CTX.search(str(shown.get("parameters") or "")):
        yield ServedWindow(int(found[1]))
    facts = shown.get("model_info")
    for name, size in facts.items() if isinstance(facts, dict) else ():
        if str(name).endswith(".context_length") and _is_size(size):
            yield ServedWindow(size)


def _fetch_json(url: str, body: dict[str, str] | None = None, key: str | None = None) -> dict[str, Any]:
    """Return the JSON object at a URL; an empty object on failure."""
    import httpx

    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
    method = "GET" if body is None else "POST"
    is_encrypted = url.startswith("https:")  # otherwise no certificates are loaded, which takes some 40 ms
    received = bytearray()
    try:
        with httpx.stream(
            method, url, json=body, headers=headers, timeout=_TIMEOUT_SECONDS, verify=is_encrypted
        ) as response:
            if response.status_code != 200:
                return {}
            for chunk in response.iter_raw():
                received += chunk
                if len(received) > _MAX_RESPONSE_BYTES:
                    return {}
        found = json.loads(received)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model as stated by the user, which override LiteLLM's."""

    stated: Mapping[str, Price] = field(default_factory=dict)

    def apply_to(self, completion: Completion, model: str) -> Completion:
        """Return the completion with its cost, if the price is stated and the tokens are known."""
        price = self.stated.get(model)
        if price is None or completion.input_tokens is None or completion.output_tokens is None:
            return completion
        cost = price.compute_cost(completion.input_tokens, completion.output_tokens, completion.cached_tokens or 0)
        return replace(completion, cost=cost)

    def estimate_cost(self, model: str, tokens: int) -> float | None:
        """Return an upper bound of the cost of this many tokens; `None` if the price is unknown."""
        price = self.find_price(model)
        return None if price is None else max(price.input, price.output) * tokens / _MILLION

    def find_price(self, model: str) -> Price | None:
        """Return the model's price, stated or LiteLLM's; `None` if it is unknown."""
        return self.stated.get(model) or _find_listed_price(model)


def _find_listed_price(model: str) -> Price | None:
    """Return a model's price from the table in LiteLLM's package; `None` if it is unknown."""
    litellm, name = load_litellm(), model.removeprefix(EMBEDDING_PREFIX)
    try:
        info = litellm.get_model_info(name)
    except Exception:
        return None
    keys = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
    read, written, cached = (None if (each := info.get(key)) is None else float(each) * _MILLION for key in keys)
    return None if read is None or written is None or is_inferred_model(litellm, name) else Price(read, written, cached)


@functools.cache
def supports_tools(model: str) -> bool:
    """Return whether a model supports tools, by its family or by LiteLLM's table; `False` if neither lists it.

    Args:
        model: A model's name, as in a binding.
    """
    if not is_provider_model(model):
        return False
    if (family := find_family(model)) is not None and family.tools is not None:
        return family.tools
    litellm = load_litellm()
    return any(litellm.supports_function_calling(name) for name in (model, strip_prefixes(model)))
