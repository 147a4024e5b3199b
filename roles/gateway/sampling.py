"""The sampling parameters of requests: the values sent, by the model's family and LiteLLM, for the configured ones."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from dialoom.roles.parameters import DEPLOYMENT, TRANSLATED_PARAMETERS

from .families import EFFORT, SEED, THINKING, Change, Changes, find_family, fit_parameters, strip_prefixes
from .wire import RESPONSES_ROUTE

CUSTOM_NAME_PROVIDERS = ("azure", "hosted_vllm", "litellm_proxy", "openai", "openrouter")
"""Providers with OpenAI's format whose model names are chosen by users."""

_LITELLM_PARAMETERS = frozenset({*TRANSLATED_PARAMETERS, "temperature", "max_tokens", "max_completion_tokens"})
_TOOL_PARAMETERS = ("tools", "tool_choice")

_EFFORTS = ("none", "low", "medium", "high", "minimal", "xhigh", "max")
"""Reasoning efforts; every model that has efforts knows the first four."""

_TEXT_FIELDS = frozenset({"contents", "input", "messages", "tools"})
"""The parts of a request's body that hold no parameters."""


class SamplingParameters(NamedTuple):
    """The sampling parameters of a request.

    Attributes:
        sent: The parameters for LiteLLM.
        allowed: The names of parameters that LiteLLM must pass on although it does not list them for the model.
        changes: The differences from the configured values that are known before the request.
        expected: The values that the request must contain.
    """

    sent: Mapping[str, Any] = {}
    allowed: Sequence[str] = ()
    changes: Changes = ()
    expected: Mapping[str, Any] = {}

    def find_missing(self, body: Mapping[str, Any]) -> Changes:
        """Return the differences between a request's body and the expected values."""
        read = {name: value for name, value in body.items() if name not in _TEXT_FIELDS}
        return tuple(
            Change(name, self.sent[name], None, "LiteLLM's request does not contain it")
            for name, value in self.expected.items()
            if not _contains(read, name, value)
        )


def collect_parameters(
    temperature: float | None, max_reply: int | None, seed: int | None, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return configured sampling parameters by LiteLLM's names, without those that have no value."""
    values = {"temperature": temperature, "max_tokens": max_reply, SEED: seed, **params}
    return {name: value for name, value in values.items() if value is not None}


def resolve_parameters(
    litellm: ModuleType, model: str, values: Mapping[str, Any], has_tools: bool
) -> SamplingParameters:
    """Return the sampling parameters of a request.

    For providers with OpenAI's parameter names, the model's family determines what is sent; if neither the table of
    families nor LiteLLM knows the model, all parameters are sent. For other providers, all parameters are given to
    LiteLLM, and those that it omits are reported as differences.

    Args:
        litellm: LiteLLM.
        model: The model's name, with `responses/` if it is called through the Responses API.
        values: The configured values by LiteLLM's names, without those that are `None`.
        has_tools: Whether tools are offered.
    """
    sent, changes = fit_parameters(model, values)
    if RESPONSES_ROUTE in model and SEED in sent:
        changes = (*changes, Change(SEED, sent[SEED], None, "the Responses API has no such parameter"))
        sent = {name: value for name, value in sent.items() if name != SEED}
    served = get_served_name(litellm, model, values)
    supported = get_supported_parameters(litellm, served, model)
    unlisted = [
        name for name in sent if name in _LITELLM_PARAMETERS and supported is not None and name not in supported
    ]
    if has_tools and supported is not None and "tools" not in supported:
        unlisted += _TOOL_PARAMETERS
    allowed = [name for name in unlisted if _is_sent_anyway(litellm, model, name)]
    reason = f"LiteLLM lists no such parameter for {model}"
    dropped = [
        Change(name, sent.get(name, "offered"), None, reason)
        for name in unlisted
        if name not in (*allowed, "tool_choice")
    ]
    reduced = {name: value for name, value in sent.items() if name in _LITELLM_PARAMETERS and name not in unlisted}
    text = json.dumps(reduced | ({SEED: 0} if SEED in reduced else {}), default=str)  # equal for all seeds
    translated, effort = _translate(litellm, model, served, text)
    changes = (*changes, *dropped, *translated)
    changed = {DEPLOYMENT, *(change.name for change in changes)}
    expected = {name: effort if name == EFFORT and effort else value for name, value in sent.items()}
    return SamplingParameters(
        sent, allowed, changes, {name: value for name, value in expected.items() if name not in changed}
    )


def _is_sent_anyway(litellm: ModuleType, model: str, name: str) -> bool:
    """Return whether a parameter that LiteLLM does not list for a model is sent anyway."""
    if name == THINKING and get_provider_name(litellm, model) == "azure":
        return False  # called by OpenAI's client, which has no such parameter
    if find_family(model) is not None:
        return accepts_openai_names(litellm, model)
    is_named = any(each in litellm.model_cost for each in (model, strip_prefixes(model)))
    return get_provider_name(litellm, model) in CUSTOM_NAME_PROVIDERS and not is_named


@functools.lru_cache(256)
def _translate(litellm: ModuleType, model: str, served: str, values: str) -> tuple[Changes, Mapping[str, Any]]:
    """Compare each value with LiteLLM's translation of it, found by translating with and without the value.

    Args:
        litellm: LiteLLM.
        model: The model's name.
        served: The name by which it is called.
        values: The values as a JSON object.

    Returns:
        The differences, and the parameters that LiteLLM sends in place of the reasoning effort; these are empty if the
        effort is sent unchanged, or if its translation is among the differences.
    """
    configured_values: dict[str, Any] = json.loads(values)
    changes, effort = list[Change](), dict[str, Any]()
    try:
        name, provider, _, _ = litellm.get_llm_provider(served)
        model_options = {"model": name, "custom_llm_provider": provider, "base_model": model, "drop_params": True}

        def parameters(configured: Mapping[str, Any]) -> dict[str, Any]:
            return dict(litellm.get_optional_params(**model_options, **configured))

        def part(of: str, value: Any) -> dict[str, Any]:
            rest = parameters({name: each for name, each in configured_values.items() if name != of})
            whole = parameters({**configured_values, of: value})
            return {name: each for name, each in whole.items() if each != rest.get(name) or (name, each) == (of, value)}

        for each, value in configured_values.items():
            translated = part(each, value)
            if _contains(translated, each, value):
                continue
            if each == EFFORT and _keeps_effort(model, value, translated, part):
                effort = translated
                continue
            reason = f"LiteLLM translates it for {served}" if translated else f"LiteLLM does not send it to {served}"
            changes.append(Change(each, value, translated.get(each, translated) or None, reason))
        added = {
            each: value
            for each, value in parameters({}).items()
            if each in _LITELLM_PARAMETERS - configured_values.keys()
        }
    except Exception:  # one of LiteLLM's exceptions: the call itself will report it
        return (), {}
    reason = f"LiteLLM adds it for {served}"
    return (*changes, *(Change(each, None, value, reason) for each, value in added.items())), effort


def _contains(parameters: Mapping[str, Any], name: str, value: Any) -> bool:
    """Return whether parameters contain a value, under any name."""
    if name == THINKING:
        kind = value.get("type")
        value = kind if kind == "disabled" else value.get("budget_tokens", kind)
    leaves = [
        (each, isinstance(each, bool)) for each in _iter_leaves(parameters)
    ]  # False equals 0 in Python, but is another value in JSON
    return all((each, isinstance(each, bool)) in leaves for each in _iter_leaves(value))


def _keeps_effort(model: str, effort: str, translation: Mapping[str, Any], part: Callable[[str, str], object]) -> bool:
    """Return whether LiteLLM's translation of an effort means this effort: a number of tokens, or no thinking.

    A translation does not mean the effort if it names another effort, or if another effort has the same translation.
    """
    if not translation:  # these models reason only on request
        return effort == "none" and (family := find_family(model)) is not None and not family.by_default
    is_named = any(each in _EFFORTS for each in _iter_leaves(translation))
    return not is_named and all(part(EFFORT, each) != translation for each in _EFFORTS[:4] if each != effort)


def _iter_leaves(value: Any) -> Iterator[Any]:
    """Yield the values in nested lists and mappings."""
    if isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _iter_leaves(each)
    else:
        yield value


def accepts_openai_names(litellm: ModuleType, model: str) -> bool:
    """Return whether a model's provider is called in OpenAI's format, so that any parameter can be sent by name."""
    provider = get_provider_name(litellm, model)
    return provider in ("azure", "openai", "openrouter") or provider in litellm.openai_compatible_providers


def get_served_name(litellm: ModuleType, model: str, params: Mapping[str, Any]) -> str:
    """Return the name by which a model is called; it contains the deployment's name if the parameters give one."""
    if (deployment := params.get(DEPLOYMENT)) is None:
        return model
    return f"{model.rpartition('/')[0] or get_provider_name(litellm, model)}/{deployment}"


def apply_deployment(litellm: ModuleType, options: dict[str, Any]) -> dict[str, Any]:
    """Return options that call a model's deployment, and state to LiteLLM which model it serves."""
    if (served := get_served_name(litellm, options["model"], options)) == options["model"]:
        return options
    rest = {name: value for name, value in options.items() if name != DEPLOYMENT}
    return {**rest, "model": served, "base_model": options["model"].replace(RESPONSES_ROUTE, "")}


@functools.cache
def get_supported_parameters(litellm: ModuleType, served: str, model: str) -> frozenset[str] | None:
    """Return the parameters that LiteLLM lists for a served model; `None` if it does not know the provider."""
    try:
        name, provider, _, _ = litellm.get_llm_provider(served)
    except Exception:  # one of LiteLLM's exceptions: `ensure_known` reports the problem
        return None
    supported = litellm.get_supported_openai_params(model=name, custom_llm_provider=provider, base_model=model)
    return None if supported is None else frozenset(supported)


@functools.cache
def get_provider_name(litellm: ModuleType, model: str) -> str:
    """Return LiteLLM's name for a model's provider."""
    return str(litellm.get_llm_provider(model)[1])


def describe_changes(changes: Changes, *, with_seed: bool = True) -> str | None:
    """Return a text that describes changes, with or without the seed's; `None` if there are none."""
    return "; ".join(str(each) for each in changes if with_seed or each.name != SEED) or None
