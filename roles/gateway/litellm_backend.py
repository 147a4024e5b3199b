"""The backend for models reached through LiteLLM, including the offline ones. LiteLLM is imported on first use."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import inspect
import json
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from dialoom.importing import collection_paused
from dialoom.roles import offline
from dialoom.roles.binding import OFFLINE, ModelBinding
from dialoom.roles.errors import BindingError, PermanentProviderError, ProviderError, TransientProviderError
from dialoom.roles.parameters import TRANSLATED
from dialoom.roles.players import Session
from dialoom.settings import SessionForm

from .cache import marked, wants_markers
from .calls import Completion, Request
from .completions import completion_of, salvaged
from .exchange import Exchange, exchanging
from .failures import classified, status_of
from .families import EFFORT, SEED, THINKING, Change, Changes, family_of, fitted, own_name
from .wire import RESPONSES, Form, Shapes, form_changes, is_refused, response_format, tool_options, wire_messages

TIMEOUT = 600.0
"""Seconds after which an unanswered attempt is given up and retried. The slowest models reason for minutes, but a
broken connection must not occupy its slot for ever.
"""

_HOOKS = (
    "callbacks",
    "input_callback",
    "success_callback",
    "failure_callback",
    "_async_input_callback",
    "_async_success_callback",
    "_async_failure_callback",
    "pre_call_rules",
    "post_call_rules",
    "cache",
    "max_budget",
    "model_fallbacks",
)
"""LiteLLM's settings of hooks that log, check or replace calls; only its public function `acompletion` runs them."""


class LiteLLMBackend:
    """A backend that sends one HTTP request per attempt: the gateway retries, and LiteLLM and the SDKs do not.

    Args:
        timeout: Seconds that an attempt may take, unless the request sets another timeout.
        shapes: The forms of structured output that the models have rejected.
        is_strict: Whether to refuse requests that differ from what is configured, apart from dialoom's own seed.
    """

    def __init__(self, timeout: float = TIMEOUT, shapes: Shapes | None = None, is_strict: bool = False) -> None:
        _prepare_calls()  # here, so that it neither adds to a call's latency nor blocks the event loop
        self._timeout = timeout
        self._shapes = shapes or Shapes()
        self._is_strict = is_strict
        self._unpriced: dict[tuple[str, str | None], float | None] = {}

    async def complete(self, request: Request, key: str) -> Completion:
        """Make one attempt.

        Raises:
            TransientProviderError: For a rate limit, overload, time-out, lost connection, or an answer without a reply.
            PermanentProviderError: For any other rejection by the provider, or a request that `is_strict` refuses.
        """
        litellm = load_litellm()
        if request.model.startswith(OFFLINE):
            return await self._played(litellm, request, key)
        form = self._shapes.form(litellm, request)
        options, changes = self._options(litellm, request, form)
        _ensure_key(litellm, request)
        changes = (*changes, *form_changes(request, form))
        if self._is_strict and (refused := described_changes(changes, with_seed=False)):
            raise PermanentProviderError(f"{request.model}: strict_params: {refused}; configure what is sent")
        told = described_changes(changes)
        try:
            return replace(await self._attempted(litellm, request, form, options, key), changes=told)
        except ProviderError as failure:
            failure.changes = told
            raise

    async def _attempted(
        self, litellm: ModuleType, request: Request, form: Form, options: dict[str, Any], key: str
    ) -> Completion:
        """Send a request and return its reply."""
        exchange = Exchange()
        try:
            async with asyncio.timeout(request.timeout or self._timeout):
                with exchanging(exchange):
                    return await self._answered(litellm, options, key)
        except Exception as error:
            exchange.ensure_accepted(request.model)
            if isinstance(error, ProviderError):
                raise
            if (kept := salvaged(exchange.answer, options["model"])) is not None:
                return kept
            # Not chained, as the original error's message may contain a key.
            raise self._failure(error, request, form, exchange.answer) from None

    async def _played(self, litellm: ModuleType, request: Request, key: str) -> Completion:
        """Return the reply of an offline model, which answers in this process."""
        from .offline_provider import ASKED

        token = ASKED.set(request)
        try:
            return await self._answered(litellm, self._options(litellm, request, Form.NONE)[0], key)
        except Exception as error:  # LiteLLM would report it as a lost connection
            if isinstance(error.__context__, offline.UnderstudyError):
                raise PermanentProviderError(f"{request.model}: {error.__context__}") from None
            raise
        finally:
            ASKED.reset(token)

    async def _answered(self, litellm: ModuleType, options: dict[str, Any], key: str) -> Completion:
        """Send a request through LiteLLM and return its reply.

        `litellm.completion` prepares a request and returns the coroutine that sends it. `litellm.acompletion` wraps it
        in a thread, logging, caching and pricing, none of which is needed if no hook is set. Then the inner function is
        called directly; `docs/design/gateway.md` states the time saved.
        """
        model: str = options["model"]
        if any(getattr(litellm, name, None) for name in _HOOKS):
            response = await litellm.acompletion(**options)
            cost = (response._hidden_params or {}).get("response_cost")
            return completion_of(response, model, cost if cost or not is_guessed(litellm, model) else None)
        log, options = litellm.utils.function_setup(
            "acompletion", litellm.utils.Rules(), datetime.now(), litellm_call_id=key, **options
        )
        provider = _provider(litellm, model)
        prepare = functools.partial(litellm.completion, acompletion=True, litellm_logging_obj=log, **options)
        try:
            # The preparation for other providers may fetch a token, which would block the event loop.
            is_quick = provider in ("openai", OFFLINE.rstrip("/"))
            sending = prepare() if is_quick else await asyncio.to_thread(prepare)
            response = await sending if inspect.isawaitable(sending) else sending
        except Exception as error:
            litellm.exception_type(model, error, provider, options)  # raises LiteLLM's public exception for the error
            raise
        return completion_of(response, model, self._cost(litellm, log, response, model))

    def _cost(self, litellm: ModuleType, log: Any, response: Any, model: str) -> float | None:
        """Return a call's cost by LiteLLM's price table; `None` if it is unknown.

        A missing price is looked up once per model, as each lookup takes a quarter of a call's processing time.
        """
        models = (model, getattr(response, "model", None))  # LiteLLM uses the price of either name
        if models in self._unpriced:
            return self._unpriced[models]
        cost: float | None = log.response_cost_calculator(result=response, litellm_model_name=model)
        is_unknown = is_guessed(litellm, model)
        if not cost and (is_unknown or not any(_has_price(litellm, each) for each in models if each)):
            cost = self._unpriced[models] = None if is_unknown else cost
        return cost

    def _options(self, litellm: ModuleType, request: Request, form: Form) -> tuple[dict[str, Any], Changes]:
        """Return a request's options for LiteLLM, with the differences from the configured parameters."""
        model = routed(litellm, request, bool(request.tools))
        options: dict[str, Any] = {
            "model": model,
            "messages": wire_messages(request.messages, model),
            "drop_params": True,
            "max_retries": 0,
            "num_retries": 0,
        }
        if request.model.startswith(OFFLINE):
            told = {"seed": request.seed, "temperature": request.temperature}
            return {**options, **{name: value for name, value in told.items() if value is not None}}, ()
        options["timeout"] = request.timeout or self._timeout
        values = sampling(request.temperature, request.max_reply, request.seed, request.params)
        tools = tool_options(litellm, request.model, request.tools)
        sampled, allowed, changes = _sampled(litellm, model, values, bool(tools))
        options |= {**tools, **sampled}
        if RESPONSES in model:
            options |= _UNSTORED
        if allowed:
            options["allowed_openai_params"] = allowed
        if wants_markers(litellm, request.model):
            options["messages"] = marked(request.messages, request.model, is_growing=bool(request.tools))
        family = family_of(model)
        if family is not None and family.system != "system" and RESPONSES not in model:
            # LiteLLM would convert the system message to a user message.
            options["messages"] = [
                {**each, "role": family.system} if each["role"] == "system" else each for each in options["messages"]
            ]
        if request.api_base is not None:
            options["api_base"] = request.api_base
        if request.session is not None and request.session_form is not None:
            name_session(options, request.session, request.session_form)
        if (shape := response_format(request, form)) is not None:
            options["response_format"] = shape
        return options, changes

    def _failure(self, error: Exception, request: Request, form: Form, answer: str | None) -> ProviderError:
        """Classify an error; a rejected response format is transient, as the next attempt uses another format."""
        failure = classified(error, request.model, request, answer)
        if form is Form.NONE or not is_refused(status_of(error), str(error)):
            return failure
        self._shapes.refuse(request, form)
        said = str(failure).partition(" - ")[0]
        return TransientProviderError(f"{said} - it is not asked for a shape as {form} (response_format) from now on")


def name_session(options: dict[str, Any], session: Session, form: SessionForm) -> None:
    """Add a session to a request's options, keeping the values that the user has set.

    Args:
        options: LiteLLM's options.
        session: The session.
        form: `user` for the person's id alone; `metadata` or `headers` for all fields of the session.
    """
    values = {
        "conversation": session.conversation,
        "person": session.person,
        "session": str(session.number),
        "trial": str(session.trial),
        "turn": str(session.turn),
    }
    body = options.get("extra_body") or {}  # LiteLLM drops `user` for models that it does not know
    if form == "headers":
        headers = {f"X-Dialoom-{name.title()}": value for name, value in values.items()}
        options["extra_headers"] = {**(options.get("extra_headers") or {}), **headers}
    elif form == "user":
        options["extra_body"] = {**body, "user": session.person}
    else:
        options["extra_body"] = {**body, "metadata": {**(body.get("metadata") or {}), **values}}


def check_offline(model: str) -> None:
    """Raise an error for an unknown offline model.

    Raises:
        BindingError: If the model is unknown; the message lists the offline models.
    """
    if model.removeprefix(OFFLINE) not in offline.MODELS:
        names = ", ".join(OFFLINE + name for name in sorted(offline.MODELS))
        raise BindingError(f"unknown model {model!r}; the offline models are {names}")


def ensure_known(model: str) -> None:
    """Raise an error for a model whose provider LiteLLM does not know.

    Raises:
        BindingError: If the provider is unknown; the message states the valid forms of model names.
    """
    try:
        load_litellm().get_llm_provider(model)
    except Exception as error:
        raise BindingError(
            f"unknown model {model!r}; give PROVIDER/NAME as LiteLLM knows it (openai/gpt-4o-mini), offline/attentive, "
            "python:package.module:function or graph:path/to/file.py:name"
        ) from error


def sampling(
    temperature: float | None, max_reply: int | None, seed: int | None, params: Mapping[str, Any]
) -> dict[str, Any]:
    """Return configured sampling parameters by LiteLLM's names, without those that have no value."""
    values = {"temperature": temperature, "max_tokens": max_reply, SEED: seed, **params}
    return {name: value for name, value in values.items() if value is not None}


def _sampled(
    litellm: ModuleType, model: str, values: Mapping[str, Any], has_tools: bool
) -> tuple[Mapping[str, Any], list[str], Changes]:
    """Return the parameters to send, the names of those that LiteLLM must not omit, and the differences from `values`.

    For providers with OpenAI's parameter names, the model's family determines what is sent; a model that LiteLLM does
    not know either is sent everything. For others, all parameters are given to LiteLLM, and those that it omits are
    reported as differences.
    """
    sent, changes = fitted(model, values)
    if RESPONSES in model and SEED in sent:
        changes = (*changes, Change(SEED, sent[SEED], None, "the Responses API has no such parameter"))
        sent = {name: value for name, value in sent.items() if name != SEED}
    family, taken = family_of(model), _taken(litellm, model)
    unknown = [name for name in sent if name in _TRANSLATED_ALL and taken is not None and name not in taken]
    if has_tools and taken is not None and "tools" not in taken:
        unknown += _OF_TOOLS
    is_open = _takes_openai_names(litellm, model) if family is not None else _is_unlisted(litellm, model)
    allowed = unknown if is_open else []
    why = f"LiteLLM knows of no such parameter of {model}"
    lost = [
        Change(name, sent.get(name, "offered"), None, why) for name in unknown if name not in (*allowed, "tool_choice")
    ]
    reduced = {name: value for name, value in sent.items() if name in _TRANSLATED_ALL and name not in unknown}
    text = json.dumps(reduced | ({SEED: 0} if SEED in reduced else {}), default=str)  # equal for all seeds
    why = f"LiteLLM does not send it to {model}"
    lost += [Change(name, sent[name], None, why) for name in _left_out(litellm, model, text)]
    if EFFORT in reduced and (became := _effort_sent(litellm, model, reduced[EFFORT])) is not None:
        lost.append(Change(EFFORT, reduced[EFFORT], became, f"LiteLLM translates it so for {model}"))
    return sent, allowed, (*changes, *lost)


@functools.lru_cache(256)
def _left_out(litellm: ModuleType, model: str, values: str) -> tuple[str, ...]:
    """Return the names of the values that LiteLLM omits from a request to a model; `values` is a JSON object."""
    try:
        name, provider, _, _ = litellm.get_llm_provider(model)
        given = json.loads(values)
        if given.get(EFFORT) == "none" and not ((family := family_of(model)) and family.by_default):
            del given[EFFORT]  # these models only reason if a request asks for it

        def request(without: str | None) -> Any:
            kept = {each: value for each, value in given.items() if each != without}
            return litellm.get_optional_params(model=name, custom_llm_provider=provider, drop_params=True, **kept)

        whole = request(None)
        return tuple(each for each in given if request(each) == whole)
    except Exception:  # one of LiteLLM's exceptions: the call itself will report it
        return ()


@functools.cache
def _effort_sent(litellm: ModuleType, model: str, effort: str) -> str | None:
    """Return the effort that a model is sent in place of the given one; `None` if it is sent the given one, or none.

    For models that LiteLLM only tells to think, with any effort, return `thinking`.
    """
    try:
        name, provider, _, _ = litellm.get_llm_provider(model)

        def request(**given: Any) -> Any:
            return litellm.get_optional_params(model=name, custom_llm_provider=provider, drop_params=True, **given)

        whole = request(reasoning_effort=effort)
        others = [] if whole == request() else [each for each in _LEVELS if each != effort]
        alike = [each for each in others if request(reasoning_effort=each) == whole]
    except Exception:  # one of LiteLLM's exceptions: the call itself will report it
        return None
    if others and {effort, *alike} >= {"low", "medium", "high"}:
        return THINKING
    return alike[0] if alike and effort not in _LEVELS else None


_LEVELS = ("none", "low", "medium", "high")


@functools.cache
def _takes_openai_names(litellm: ModuleType, model: str) -> bool:
    """Return whether a model's provider is called in OpenAI's format, so that any parameter can be sent by name."""
    provider = _provider(litellm, model)
    return provider in ("azure", "openai", "openrouter") or provider in litellm.openai_compatible_providers


@functools.cache
def _is_unlisted(litellm: ModuleType, model: str) -> bool:
    """Return whether LiteLLM does not know what a model accepts, which is called in OpenAI's format."""
    is_named = any(name in litellm.model_cost for name in (model, own_name(model)))
    return _provider(litellm, model) in ("openai", "openrouter") and not is_named


def routed(litellm: ModuleType, asked: Request | ModelBinding, has_tools: bool) -> str:
    """Return the name by which LiteLLM calls a model, with `responses/` if the Responses API is used.

    OpenAI's own server is called through it for a reasoning model with tools, and wherever LiteLLM itself would use it.
    Servers at other addresses may not have that API.
    """
    model = asked.model
    if RESPONSES in model or family_of(model) is None or _provider(litellm, model) not in ("azure", "openai"):
        return model
    base = asked.api_base or litellm.api_base or _first_set("OPENAI_BASE_URL", "OPENAI_API_BASE")
    return _route(litellm, model, has_tools, asked.params.get(EFFORT), base)


def _first_set(*names: str) -> str | None:
    return next((value for name in names if (value := os.environ.get(name))), None)


@functools.lru_cache(256)
def _route(litellm: ModuleType, model: str, has_tools: bool, effort: str | None, base: str | None) -> str:
    name, provider, _, _ = litellm.get_llm_provider(model)
    family, host = family_of(model), urlsplit(base or "").hostname or ""
    is_own = provider == "openai" and (not base or f".{host}".endswith(_OPENAIS_HOST))
    tools = [{"type": "function", "function": {}}] if has_tools else None
    known, _ = litellm.main.responses_api_bridge_check(
        name, provider, tools=tools, reasoning_effort=effort, api_base=base
    )
    if known.get("mode") == "responses" or (has_tools and is_own and family is not None and family.responses):
        return f"{provider}/{RESPONSES}{name}"
    return model


_OPENAIS_HOST = ".api.openai.com"
_UNSTORED = {"store": False, "include": ["reasoning.encrypted_content"]}
"""Options of the Responses API: the provider stores nothing, and returns the reasoning in encrypted form."""

_TRANSLATED_ALL = frozenset({*TRANSLATED, "temperature", "max_tokens", "max_completion_tokens"})
_OF_TOOLS = ("tools", "tool_choice")


@functools.cache
def _taken(litellm: ModuleType, model: str) -> frozenset[str] | None:
    """Return the parameters that LiteLLM lists for a model; `None` if it does not know the provider."""
    try:
        name, provider, _, _ = litellm.get_llm_provider(model)
    except Exception:  # one of LiteLLM's exceptions: `ensure_known` reports the problem
        return None
    found = litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)
    return None if found is None else frozenset(found)


def described_changes(changes: Changes, *, with_seed: bool = True) -> str | None:
    """Return a text that describes changes, with or without the seed's; `None` if there are none."""
    return "; ".join(str(each) for each in changes if with_seed or each.name != SEED) or None


def expected_changes(binding: ModelBinding) -> Changes:
    """Return the expected differences between configured and sent parameters, ignoring tools and reply types."""
    litellm, values = load_litellm(), sampling(binding.temperature, binding.max_reply, 0, binding.params)
    return _sampled(litellm, routed(litellm, binding, False), values, False)[2]


def check_support(role: str, model: str, params: Mapping[str, Any]) -> None:
    """Raise an error for parameters that would not be sent to a model as they are given.

    Args:
        role: The role with these parameters, for the message.
        model: A model that LiteLLM knows.
        params: The parameters.

    Raises:
        BindingError: If a parameter would be dropped or changed.
    """
    litellm = load_litellm()
    changes = _sampled(litellm, model, params, False)[2]
    if (lost := next((each for each in changes if each.sent is None), None)) is None:
        return
    family, taken = family_of(model), _taken(litellm, model)
    known = TRANSLATED.keys() if taken is None else TRANSLATED.keys() & taken
    others = ", ".join(sorted(known - (family.rejects if family is not None else set())))
    more = ", and what LiteLLM does not know goes into extra_body" if _takes_openai_names(litellm, model) else ""
    raise BindingError(
        f"params: {f'{role}.' if role else ''}{lost.name} would be left out for {model}: {lost.why}; it takes "
        f"{others}{more}",
        setting="params",
    )


_CACHING = ("creation", "read")
"""Prices that LiteLLM expects besides input and output; it logs a warning if they are missing."""

_IMPORTING = threading.Lock()


def load_litellm() -> ModuleType:
    """Import LiteLLM once and quietly: no price table from the network, no telemetry, no printed advice."""
    with _IMPORTING:
        return _imported()


@functools.cache
def _imported() -> ModuleType:
    # LiteLLM reads these when it is imported. In its mode DEV, it would also load any `.env` file that it finds.
    quiet = _variables(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_LOG="ERROR", LITELLM_MODE="PRODUCTION")
    with quiet, collection_paused():
        import litellm

    from . import exchange
    from .offline_provider import OfflineProvider

    # LiteLLM copies responses unchecked, and warns of a `cost` that is a text; dialoom treats such a cost as unknown.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    exchange.install(litellm)

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    provider = OFFLINE.rstrip("/")
    litellm.custom_provider_map.append({"provider": provider, "custom_handler": OfflineProvider()})
    costs = ("input_cost_per_token", "output_cost_per_token", *(f"cache_{kind}_input_token_cost" for kind in _CACHING))
    free = {"litellm_provider": provider, "mode": "chat", **dict.fromkeys(costs, 0.0)}
    litellm.register_model({OFFLINE + name: free for name in offline.MODELS})
    _freeze_if_tuned()
    return litellm


def _prepare_calls() -> None:
    """Do in advance what LiteLLM does on its first call: it sets a variable of tiktoken's and reads a token table."""
    load_litellm()
    with _IMPORTING, _variables(TIKTOKEN_CACHE_DIR=None):
        importlib.import_module("litellm.litellm_core_utils.default_encoding")


_TUNED = threading.Event()


def tune_process() -> None:
    """Speed up model calls in this process. Only for a process that dialoom owns.

    Once LiteLLM is imported, all imported objects are excluded from garbage collection, which would otherwise take a
    tenth of a run's time.

    Example:
        >>> dialoom.tune_process()  # doctest: +SKIP
    """
    if not _TUNED.is_set():
        _TUNED.set()
        if _imported.cache_info().currsize:
            _freeze_if_tuned()


def _freeze_if_tuned() -> None:
    if _TUNED.is_set():
        gc.collect()
        gc.freeze()


@contextmanager
def _variables(**values: str | None) -> Iterator[None]:
    """Set environment variables within the block, unless they are set already; restore all of them afterwards.

    A variable with the value `None` is not set, but is restored like the others if the block changes it.
    """
    before = {name: os.environ.get(name) for name in values}
    os.environ.update({name: value for name, value in values.items() if value is not None and before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is not None:
                os.environ[name] = value
            else:
                os.environ.pop(name, None)


def _ensure_key(litellm: ModuleType, request: Request) -> None:
    """Raise an error if the key for OpenAI's own address is missing, as LiteLLM would send the request without a key.

    Raises:
        PermanentProviderError: If the key is missing; the message names the environment variable.
    """
    if request.api_base or os.environ.get("OPENAI_API_KEY") or _provider(litellm, request.model) != "openai":
        return
    if any(os.environ.get(name) for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL")) or litellm.api_base:
        return  # a user's own server may need no key
    if not (litellm.api_key or litellm.openai_key):
        raise PermanentProviderError(f"{request.model}: there is no key - a key is needed in OPENAI_API_KEY")


def _has_price(litellm: ModuleType, model: str) -> bool:
    try:
        return any(litellm.cost_per_token(model=model, prompt_tokens=1_000_000, completion_tokens=1_000_000))
    except Exception:  # of various types: the model is not in the table
        return False


@functools.cache
def is_guessed(litellm: ModuleType, model: str) -> bool:
    """Return whether LiteLLM infers a model from similar names, so that its price of 0 means an unknown price."""
    if _provider(litellm, model).startswith("ollama"):  # costs nothing, and LiteLLM would send a request to its server
        return False
    try:
        known = litellm.get_model_info(model)
    except Exception:  # of various types: LiteLLM does not know the model at all
        return False
    return known["key"] not in litellm.model_cost


@functools.cache
def _provider(litellm: ModuleType, model: str) -> str:
    """Return LiteLLM's name for a model's provider."""
    return str(litellm.get_llm_provider(model)[1])
