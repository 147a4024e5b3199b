"""Sampling parameters, and estimated numbers of tokens."""

from __future__ import annotations

import base64
import importlib.util
import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BindingError

if TYPE_CHECKING:
    from tiktoken import Encoding

_NUMBER, _INTEGER, _TEXT = ((int, float), "a number"), ((int,), "a whole number"), ((str,), "a string")
_MAPPING = ((dict,), "a mapping")

TRANSLATED_PARAMETERS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "frequency_penalty": _NUMBER,
    "logit_bias": _MAPPING,
    "presence_penalty": _NUMBER,
    "reasoning_effort": _TEXT,
    "seed": _INTEGER,
    "service_tier": _TEXT,
    "stop": ((str, list), "a string or a list of strings"),
    "thinking": _MAPPING,
    "top_p": _NUMBER,
    "verbosity": _TEXT,
}
"""Parameters that LiteLLM translates for each provider, and omits if it knows that the provider has no equivalent."""

DEPLOYMENT = "deployment"
"""Name of the parameter for a deployment, the name under which a server offers a model."""

_PASSTHROUGH_PARAMETERS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "extra_body": _MAPPING,
    "min_p": _NUMBER,
    "num_ctx": _INTEGER,
    "repetition_penalty": _NUMBER,
    "top_k": _INTEGER,
}
"""Parameters that are passed to the provider unchanged."""

_PARAMETER_TYPES = {**TRANSLATED_PARAMETERS, **_PASSTHROUGH_PARAMETERS, DEPLOYMENT: _TEXT}
_SEPARATE_OPTION = "it is a separate option, {}"
_RESERVED: Mapping[str, str] = {
    **dict.fromkeys(("temperature",), _SEPARATE_OPTION.format("temperature")),
    **dict.fromkeys(("max_tokens", "max_completion_tokens"), _SEPARATE_OPTION.format("max_reply")),
    **dict.fromkeys(("timeout", "request_timeout"), _SEPARATE_OPTION.format("timeout")),
    **dict.fromkeys(("api_base", "base_url"), _SEPARATE_OPTION.format("api_base")),
    **dict.fromkeys(("model", "custom_llm_provider"), "a role's model is set in models"),
    **dict.fromkeys(("messages", "prompt", "tools", "functions"), "a role's messages follow from its prompt"),
    **dict.fromkeys(("api_key", "headers", "extra_headers"), "keys belong in environment variables, not in files"),
    **dict.fromkeys(("n", "stream", "stream_options"), "each call has one reply, which is not streamed"),
    "response_format": "the form of a reply follows from its prompt",
    **dict.fromkeys(("max_retries", "num_retries", "drop_params"), "dialoom itself retries calls"),
}


def validate_parameters(params: Mapping[str, Any], role: str = "") -> dict[str, Any]:
    """Return the parameters that may be sent, sorted by name.

    Args:
        params: Values by name.
        role: The role to which the parameters belong, for the message; empty for all roles.

    Raises:
        BindingError: If a name is unknown or reserved, or a value has the wrong type.
    """
    prefix = f"{role}." if role else ""
    for name, value in params.items():
        if (reason := _RESERVED.get(str(name))) is not None:
            raise _params_error(f"{prefix}{name} cannot be set here: {reason}")
        if name not in _PARAMETER_TYPES:
            similar = get_close_matches(str(name), _PARAMETER_TYPES, 1)
            hint = (
                f"did you mean {similar[0]}?"
                if similar
                else f"the parameters are {', '.join(sorted(_PARAMETER_TYPES))}"
            )
            raise _params_error(
                f"{prefix}{name} is unknown; {hint} (put parameters that only your provider knows into extra_body)"
            )
        types, type_name = _PARAMETER_TYPES[name]
        if isinstance(value, bool) or not isinstance(value, types) or not _is_json(value):
            raise _params_error(f"{prefix}{name} {value!r:.60} is not {type_name}")
        if name == "extra_body" and (reserved := sorted(_RESERVED.keys() & params["extra_body"].keys())):
            raise _params_error(f"{prefix}extra_body.{reserved[0]} cannot be set here: {_RESERVED[reserved[0]]}")
    return {name: params[name] for name in sorted(params)}


def _is_json(value: Any) -> bool:
    """Return whether a value survives a round trip through JSON."""
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError):
        return False


def _params_error(message: str) -> BindingError:
    return BindingError(f"params: {message}", setting="params")


TOKENIZER = "cl100k_base"

_TOKEN_TABLE = Path("litellm_core_utils", "tokenizers", "9b5ad71b2ce5302211f9c61530b329a4922fc6a4")
_TOKEN_PATTERN = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)


def count_tokens(text: str) -> int:
    """Return the number of tokens in a text."""
    return len(_load_encoding().encode_ordinary(text))


@cache
def _load_encoding() -> Encoding:
    """Return the encoding. Its table is read from LiteLLM's package, because tiktoken's loader may use the network."""
    import tiktoken  # deferred: slow to import and rarely needed

    spec = importlib.util.find_spec("litellm")
    assert spec is not None and spec.submodule_search_locations
    rows = (Path(spec.submodule_search_locations[0]) / _TOKEN_TABLE).read_bytes().splitlines()
    ranks = {base64.b64decode(token): int(rank) for token, rank in (row.split() for row in rows)}
    return tiktoken.Encoding(TOKENIZER, pat_str=_TOKEN_PATTERN, mergeable_ranks=ranks, special_tokens={})
