"""The context window that a model's own server reports: vLLM, llama.cpp and Ollama do."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeGuard
from urllib.parse import quote, urlsplit

from dialoom.roles.binding import ModelBinding

from .providers import provider_of

_SECONDS = 2.0
_MOST_BYTES = 4 * 2**20
_OLLAMA = ("ollama", "ollama_chat")
_OLLAMA_ADDRESS = "http://localhost:11434"
_SET = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


class ServedWindow(NamedTuple):
    """What a server says of a model.

    Attributes:
        tokens: How many the model reads.
        holds_reply: Whether a request is refused if it does not fit together with the most tokens of its reply.
    """

    tokens: int
    holds_reply: bool = False


def served_window(binding: ModelBinding) -> ServedWindow | None:
    """Ask the server of a model for its context window. No text of a run is sent.

    Args:
        binding: The model. One that is reached at its provider's own address is not asked for.

    Returns:
        The window; `None` if there is no such server, or it does not say.
    """
    provider, _, model = binding.model.partition("/")
    if not model or ":" in provider:
        return None
    provider = provider_of(binding.model)
    address = binding.api_base or os.environ.get(f"{provider.removesuffix('_chat').upper()}_API_BASE")
    if provider in _OLLAMA:
        return next(_of_ollama(address or _OLLAMA_ADDRESS, model, binding.params.get("num_ctx")), None)
    if address is None:
        return None
    return next(_of_openai(address, model, os.environ.get(f"{provider.upper()}_API_KEY")), None)


def _of_openai(address: str, model: str, key: str | None) -> Iterator[ServedWindow]:
    listed = _got(f"{address.rstrip('/')}/models", key=key).get("data")
    models = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    for each in models:  # vLLM
        if each.get("id") == model and _is_size(size := each.get("max_model_len")):
            yield ServedWindow(size, holds_reply=True)
    root = "{0.scheme}://{0.netloc}".format(urlsplit(address))
    properties = _got(f"{root}/props?model={quote(model, safe='')}&autoload=false", key=key)
    settings = properties.get("default_generation_settings")
    if isinstance(settings, dict) and _is_size(size := settings.get("n_ctx")):  # llama.cpp: of one of its places
        yield ServedWindow(size)


def _of_ollama(address: str, model: str, given: Any) -> Iterator[ServedWindow]:
    """Yield what is certain first: what is asked for, what a loaded model has, what its file sets, what it can have."""
    if _is_size(given):
        yield ServedWindow(given)
    loaded = _got(f"{address}/api/ps").get("models")
    for each in loaded if isinstance(loaded, list) else ():
        names = {each.get("name"), each.get("model")} if isinstance(each, dict) else set()
        if names & {model, f"{model}:latest"} and _is_size(size := each.get("context_length")):
            yield ServedWindow(size)
    shown = _got(f"{address}/api/show", body={"model": model})
    if found := _SET.search(str(shown.get("parameters") or "")):
        yield ServedWindow(int(found[1]))
    facts = shown.get("model_info")
    for name, size in facts.items() if isinstance(facts, dict) else ():
        if str(name).endswith(".context_length") and _is_size(size):
            yield ServedWindow(size)


def _got(url: str, body: dict[str, str] | None = None, key: str | None = None) -> dict[str, Any]:
    """Return the object at an address; an empty one if there is none."""
    import httpx

    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {key}"} if key else {})}
    method = "GET" if body is None else "POST"
    said = bytearray()
    try:
        with httpx.stream(method, url, json=body, headers=headers, timeout=_SECONDS) as response:
            if response.status_code != 200:
                return {}
            for chunk in response.iter_raw():
                said += chunk
                if len(said) > _MOST_BYTES:
                    return {}
        found = json.loads(said)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _is_size(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
