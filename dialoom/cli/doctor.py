"""Checks of the environment: Python, packages, keys, and the models to use."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from typing import Unpack

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from pydantic import BaseModel

from dialoom.graphs.capabilities import WithPrompts, WithRoles
from dialoom.prompts import ChatMessage
from dialoom.roles import BindingError, Completion, Gateway, ModelBinding, ProviderError, Verdict
from dialoom.roles.binding import OFFLINE_PREFIX, bind
from dialoom.roles.gateway import CallPlace, Request
from dialoom.roles.gateway.gateway import GatewaySettings, check_model, check_parameters, describe_changed_parameters
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.gateway.model_facts import ServedWindow, fetch_served_window, find_missing_key
from dialoom.roles.gateway.wire import RejectedForms, ReplyForm
from dialoom.roles.replies import parse_reply
from dialoom.runs.configuration.config import DEFAULT_MODEL
from dialoom.runs.configuration.recipes import find_recipe, parse_options
from dialoom.runs.gateway_setup import RunLimits
from dialoom.runs.preflight import DiscardingLedger, explain_misfit, measure_largest_requests
from dialoom.settings import LimitSettings, PlayerSettings, validate_settings
from dialoom.version import __version__

_PYTHON_VERSIONS = ">=3.11"
_KEY_PATTERN = re.compile(r"(_API_KEY|^AWS_ACCESS_KEY_ID)$")
_USER_CODE_PREFIXES = ("python:", "graph:")
_EMBED_PREFIX = "embed:"
EXTRAS_BY_PURPOSE: Mapping[str, tuple[str, ...]] = {
    "data": ("datasets", "frames", "parquet"),
    "reports and scores": ("agree", "describe", "plots", "st"),
    "viewing runs": ("notebook", "otel", "studio"),
    "more machines and servers": ("langgraph-server", "mcp", "ray"),
    "training": ("training",),
}
"""The extras for users, by purpose. The other extras are for development, or combine several, as `all` does."""
_MAX_WAIT_SECONDS = 1.0

_GREETING_PROMPT: tuple[ChatMessage, ...] = (
    {"role": "system", "content": "You answer in one short sentence."},
    {"role": "user", "content": "Say that you are ready."},
)
_JUDGE_PROMPT: tuple[ChatMessage, ...] = (
    {
        "role": "system",
        "content": "You assess one aspect of a conversation. Answer with one "
        "JSON object and nothing else.\n\n<conversation>\nuser: Please set an alarm for six.\n"
        "assistant: It is set for six.\nuser: Thank you, that was all. TERMINATE\n</conversation>",
    },
    {
        "role": "user",
        "content": "<task>\nThe user wants an alarm.\n</task>\nDid the user get what "
        'they wanted?\n\nAnswer: {"verdict": true or false, "explanation": "why, in one sentence"}',
    },
)

_CONTRARY_PROMPT: tuple[ChatMessage, ...] = (
    {"role": "system", "content": "You are a friendly person. You never write code, JSON or lists."},
    {"role": "user", "content": "Tell me in one plain sentence what you see from your window."},
)
"""A request whose text forbids a JSON object: a model replies with an object only if its server enforces the schema."""


_EMPTY_REPLY = (
    "the reply is empty, as from a base model or a model served without its chat template; serve a chat model with "
    "its template"
)


_MISSING_KEY = "there is no {}; export it, or give a file of keys with --env-file FILE"

_ROLE = "doctor"
"""The role that a checked model is bound to."""


class State(StrEnum):
    """The result of a check."""

    OK = "ok"
    CHANGED = "changed"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Check:
    """A single check.

    Attributes:
        about: The subject: `python`, `package`, `extra`, `keys`, `model`, `parameters` (what is not sent to it as
            configured), `context` (the context window that its server reports), `structured output` (the format
            requested in the prompt) or `shape` (the schema, enforced by the server even if the prompt contradicts it).
        name: The name of the package, model or other item.
        state: `missing` if the item is optional; `failed` if it is required; `changed` if parameters differ.
        detail: The finding as text for people.
        latency: The duration of a call in seconds.
    """

    about: str
    name: str
    state: State
    detail: str
    latency: float | None = None


def _build_request(
    binding: ModelBinding, messages: tuple[ChatMessage, ...], reply_type: type[BaseModel] | None
) -> Request:
    """Return a request to a model: as an assistant or, if the reply has a type, as a judge."""
    role, prompt = ("assistant", "assistant") if reply_type is None else ("judge", "judge-task-completion")
    return Request(
        role=role,
        prompt_id=f"personalens/{prompt}",
        model=binding.model,
        temperature=binding.temperature,
        seed=0,
        messages=messages,
        reply_type=reply_type,
        api_base=binding.api_base,
        max_reply=binding.max_reply,
        params=binding.params,
        structured=binding.structured,
    )


def run_checks(
    names: Iterable[str] = (),
    recipe: str | None = None,
    timeout: float | Mapping[str, float | None] | None = None,
    strict_params: bool = False,
    **players: Unpack[PlayerSettings],
) -> list[Check]:
    """Run all checks. Requests are sent only if models are given: at most three tiny ones to each model.

    Args:
        names: Names of models: LiteLLM's, or offline models.
        recipe: A recipe whose largest requests are compared with the context windows that the models' servers report.
        timeout: The time limit of an attempt in seconds.
        strict_params: Whether a model fails, without a request, if a parameter would not be sent to it as configured.
        **players: Settings of the models, as for the roles of a run.

    Raises:
        SettingError, BindingError: If the models cannot be called with these settings.
        RunError, RecipeError: If there is no such recipe, or it has no scenarios without options.
    """
    bind({_ROLE: 0.0}, OFFLINE_PREFIX, **players)  # checked here: an invalid setting is not a failure of the model
    timeouts = RunLimits().with_settings(validate_settings(LimitSettings, LimitSettings(timeout=timeout))).timeouts
    settings = GatewaySettings(concurrency=1, max_backoff=_MAX_WAIT_SECONDS, timeouts=timeouts)
    largest = {} if recipe is None else asyncio.run(_measure_largest(recipe))
    checks = [_check_python(), *_check_packages(), _check_keys()]
    for model in dict.fromkeys(names):
        checks += asyncio.run(_check_model(model, players, settings, largest, strict_params))
    return checks


async def _measure_largest(name: str) -> Mapping[str, int]:
    """Return the number of tokens of the largest request to each role of a recipe with its default options."""
    _, recipe = find_recipe(name)
    options = parse_options(recipe, None)
    used = WithRoles.of(recipe).roles_used(options).items()
    models = {role: ModelBinding(model=DEFAULT_MODEL, temperature=temperature) for role, temperature in used}
    return await measure_largest_requests(
        recipe, options.model_dump(mode="json"), 0, WithPrompts.of(recipe).library(), models
    )


def _check_python() -> Check:
    fits = SpecifierSet(_PYTHON_VERSIONS).contains(platform.python_version(), prereleases=True)
    detail = f"{platform.python_version()} at {sys.executable}" + (
        "" if fits else f"; dialoom needs {_PYTHON_VERSIONS}"
    )
    return Check("python", platform.python_implementation(), State.OK if fits else State.FAILED, detail)


def _check_packages() -> list[Check]:
    """Check dialoom, each required package, and each extra."""
    try:
        requirements = [Requirement(text) for text in metadata.requires("dialoom") or ()]
    except metadata.PackageNotFoundError:
        return [Check("package", "dialoom", State.FAILED, "not installed: pip install dialoom")]
    needed = [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    optional = [(each, each.marker) for each in requirements if each not in needed and each.marker is not None]
    extras = {
        extra: [each for each, marker in optional if marker.evaluate({"extra": extra})]
        for extra in metadata.metadata("dialoom").get_all("Provides-Extra") or ()
    }
    return [
        Check("package", "dialoom", State.OK, __version__),
        *(_check_package(each) for each in needed),
        *(_check_extra(name, extras[name]) for names in EXTRAS_BY_PURPOSE.values() for name in names if name in extras),
    ]


def _check_package(requirement: Requirement) -> Check:
    try:
        version = metadata.version(requirement.name)
        if requirement.specifier.contains(version, prereleases=True):
            return Check("package", requirement.name, State.OK, version)
    except metadata.PackageNotFoundError:
        version = "not installed"
    detail = f"{version}; dialoom needs {requirement.name}{requirement.specifier}"
    return Check("package", requirement.name, State.FAILED, detail)


def _check_extra(name: str, requirements: list[Requirement]) -> Check:
    checks = [_check_package(each) for each in requirements]
    if all(check.state is State.OK for check in checks):
        return Check("extra", name, State.OK, ", ".join(f"{check.name} {check.detail}" for check in checks))
    return Check("extra", name, State.MISSING, f"pip install 'dialoom[{name}]'")


def _check_keys() -> Check:
    """Return the names of providers' keys in the environment, and never their values."""
    names = sorted(name for name, value in os.environ.items() if value and _KEY_PATTERN.search(name))
    return Check("keys", "environment", State.OK if names else State.MISSING, ", ".join(names) or "no key is set")


async def _check_model(
    model: str, players: PlayerSettings, settings: GatewaySettings, largest: Mapping[str, int], is_strict: bool
) -> list[Check]:
    """Check a model with a greeting and, if it answers, two requests for JSON: by prompt, and by schema alone."""
    try:
        binding = bind({_ROLE: 0.0}, model, **players).by_role[_ROLE]
        if (variable := find_missing_key(binding)) is not None:  # checked first, because it needs no import of LiteLLM
            return [Check("model", model, State.FAILED, _MISSING_KEY.format(variable))]
        check_model(model)
        check_parameters({"": binding})
    except BindingError as error:
        return [Check("model", model, State.FAILED, str(error))]
    if is_strict and (changed := describe_changed_parameters({_ROLE: binding}, with_seed=False).get(_ROLE)) is not None:
        return [Check("parameters", model, State.FAILED, f"{changed}; change the configuration to what is sent")]
    if not model.startswith(_USER_CODE_PREFIXES):
        load_litellm()  # its import takes seconds, which must not count as the model's latency
    rejected_forms = RejectedForms()
    gateway = Gateway(
        DiscardingLedger(), settings.model_copy(update={"strict_params": is_strict}), shapes=rejected_forms
    )
    changes = describe_changed_parameters({_ROLE: binding})
    answered = await _check_answer(gateway, _build_request(binding, _GREETING_PROMPT, None), changes)
    checks = [Check("parameters", model, State.CHANGED, changed) for changed in changes.values()]
    checks.append(answered)
    if answered.state is State.OK and (window := await asyncio.to_thread(fetch_served_window, binding)) is not None:
        checks.append(_check_window(binding, window, largest))
    if answered.state is State.OK and not model.startswith((*_USER_CODE_PREFIXES, _EMBED_PREFIX)):
        checks.append(await _check_answer(gateway, _build_request(binding, _JUDGE_PROMPT, Verdict)))
        if not model.startswith(OFFLINE_PREFIX):
            checks.append(
                await _check_schema_enforcement(
                    gateway, _build_request(binding, _CONTRARY_PROMPT, Verdict), rejected_forms
                )
            )
    return checks


async def _check_answer(gateway: Gateway, request: Request, changes: dict[str, str] | None = None) -> Check:
    """Check that a request is answered, in the requested schema; add changes that only this request reveals."""
    check, completion = await _send_request(
        gateway, request, "model" if request.reply_type is None else "structured output"
    )
    if completion is None:
        return check
    if changes is not None and completion.changes is not None:
        changes[_ROLE] = completion.changes
    if request.reply_type is not None:
        try:
            parse_reply(completion.text, request.reply_type)
        except ValueError as error:
            detail = f"no reply in the requested form ({error}): {completion.text!r:.80}; not suitable as a judge"
            return replace(check, state=State.FAILED, detail=detail)
    elif not completion.text.strip():
        return replace(check, state=State.FAILED, detail=_EMPTY_REPLY)
    return check


async def _send_request(gateway: Gateway, request: Request, about: str) -> tuple[Check, Completion | None]:
    """Make a request; return a check that it was answered, and the reply."""
    started = time.monotonic()
    try:
        completion = await gateway.complete(request, CallPlace("doctor", request.prompt_id, 0, 0, request.seed))
    except ProviderError as error:
        return Check(about, request.model, State.FAILED, str(error)), None
    latency = time.monotonic() - started
    detail = f"answered in {latency:.2f} s{_format_usage(completion)}"
    return Check(about, request.model, State.OK, detail, latency), completion


def _check_window(binding: ModelBinding, window: ServedWindow, largest: Mapping[str, int]) -> Check:
    """Check that a recipe's largest requests fit into the context window that a server reports."""
    detail = f"context window of {window.tokens:,} tokens"
    for role, tokens in largest.items():
        if (reason := explain_misfit(role, binding, tokens, window)) is not None:
            return Check("context", binding.model, State.FAILED, reason)
    if largest:
        detail += f"; the recipe's largest request has {max(largest.values()):,}"
    return Check("context", binding.model, State.OK, detail)


async def _check_schema_enforcement(gateway: Gateway, request: Request, rejected_forms: RejectedForms) -> Check:
    """Check that the server enforces the schema even if the prompt contradicts it, so that every reply is valid.

    A schema that was explicitly requested and is not enforced is a failure; in `auto` mode it is not.
    """
    if request.structured == "prompt":
        return Check("shape", request.model, State.MISSING, "not requested; only the prompt asks for the format")
    check, completion = await _send_request(gateway, request, "shape")
    if completion is None:
        return check
    form = rejected_forms.select_form(load_litellm(), request)
    if request.structured == "json" and _is_json_object(completion.text):
        return replace(check, detail=f"the server enforces a JSON object, but no schema; requested as {form}")
    try:
        parse_reply(completion.text, Verdict)
    except ValueError:
        reason = "the model supports no structured output" if form is ReplyForm.NONE else f"requested as {form}"
        state = State.MISSING if request.structured == "auto" else State.FAILED
        return replace(check, state=state, detail=f"not enforced ({reason}); only the prompt asks for the format")
    return replace(check, detail=f"enforced, requested as {form}")


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _format_usage(completion: Completion) -> str:
    if completion.input_tokens is None or completion.output_tokens is None:
        return ", without reporting its tokens"
    price = "at an unknown price" if completion.cost is None else f"for ${completion.cost:.6f}"
    return f", {completion.input_tokens} + {completion.output_tokens} tokens {price}"
