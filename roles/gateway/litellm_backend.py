"""The backend for models reached through LiteLLM, including the offline ones. LiteLLM is imported on first use."""

from __future__ import annotations

import asyncio
import functools
import gc
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

from dialoom.importing import pause_garbage_collection
from dialoom.roles import offline
from dialoom.roles.binding import OFFLINE_PREFIX, ModelBinding
from dialoom.roles.errors import BindingError, PermanentProviderError, ProviderError, TransientProviderError
from dialoom.roles.parameters import DEPLOYMENT, TRANSLATED_PARAMETERS
from dialoom.roles.players import Session
from dialoom.settings import SessionForm

from .cache import add_cache_markers, needs_cache_markers
from .calls import Completion, Request
from .completions import describe_model_mismatch, discard_estimates, parse_billed_usage, parse_response, recover_reply
from .exchange import Exchange, use_exchange
from .failures import classify_error, get_status
from .families import EFFORT, SEED, Changes, find_family
from .sampling import (
    CUSTOM_NAME_PROVIDERS,
    SamplingParameters,
    accepts_openai_names,
    apply_deployment,
    collect_parameters,
    describe_changes,
    get_provider_name,
    get_supported_parameters,
    resolve_parameters,
)
from .wire import (
    RESPONSES_ROUTE,
    RejectedForms,
    ReplyForm,
    build_response_format,
    build_tool_options,
    convert_messages,
    find_form_changes,
    is_form_rejected,
)

TIMEOUT_SECONDS = 600.0
"""Seconds after which an unanswered attempt is given up and retried. The slowest models reason for minutes, but a
broken connection must not occupy its slot for ever.
"""

_HOOK_SETTINGS = (
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
"""LiteLLM's settings for hooks that log, check or replace calls; only its public function `acompletion` runs them."""

_INERT_HOOKS = ["cache"]
"""The hooks that LiteLLM's code for Gemini sets when it is imported. Without `litellm.cache` they do nothing."""

_WINDOW_EXCEEDED = '"model_context_window_exceeded"'
"""Claude's reason for a reply that is cut off at the end of its context window. LiteLLM reports it as complete."""


class LiteLLMBackend:
    """A backend that sends one HTTP request per attempt: the gateway retries, and LiteLLM and the SDKs do not.

    Args:
        timeout: Seconds that an attempt may take, unless the request sets another timeout.
        shapes: The forms of structured output that the models have rejected.
        is_strict: Whether to refuse requests that differ from the configuration, apart from the seed that dialoom sets.
    """

    def __init__(
        self, timeout: float = TIMEOUT_SECONDS, shapes: RejectedForms | None = None, is_strict: bool = False
    ) -> None:
        # Here, so that it neither adds to a call's latency nor blocks the event loop.
        main = load_litellm().main
        if "encoding" not in vars(main):  # else it has been read already
            main.encoding = _LazyEncoding()
        self._timeout = timeout
        self._shapes = shapes or RejectedForms()
        self._is_strict = is_strict
        self._unpriced: dict[tuple[str, str | None], float | None] = {}
        self._missing: dict[str, Changes] = {}  # by kind of request: LiteLLM treats all requests of a kind alike

    async def complete(self, request: Request, key: str) -> Completion:
        """Make one attempt.

        Raises:
            TransientProviderError: For a rate limit, overload, time-out, lost connection, or an answer without a reply.
            PermanentProviderError: For any other rejection by the provider, or a request that `is_strict` refuses.
        """
        litellm = load_litellm()
        if request.model.startswith(OFFLINE_PREFIX):
            return await self._play_offline(litellm, request, key)
        form = self._shapes.select_form(litellm, request)
        options, parameters = self._build_options(litellm, request, form)
        _ensure_key(litellm, request)
        changes = (*parameters.changes, *find_form_changes(request, form))
        kind = repr((request.model, request.api_base, form, bool(request.tools), {**parameters.expected, SEED: 0}))
        exchange = Exchange()
        if kind not in self._missing:
            exchange.check_body = functools.partial(self._check_body, kind, parameters)
        if refused := self._find_refusal((*changes, *self._missing.get(kind, ()))):
            raise PermanentProviderError(f"{request.model}: {refused}")
        try:
            completion = await self._send(litellm, request, form, options, key, exchange)
        except ProviderError as failure:
            failure.changes = describe_changes((*changes, *self._missing.get(kind, ())))
            failure.billed = failure.billed or parse_billed_usage(exchange.response_text)
            raise
        described = describe_changes((*changes, *self._missing.get(kind, ()))), completion.changes
        return replace(completion, changes="; ".join(filter(None, described)) or None)

    def _check_body(self, kind: str, parameters: SamplingParameters, body: Mapping[str, Any]) -> str | None:
        """Note the parameters that are missing in a request's body; return the reason to refuse the request, if any."""
        self._missing[kind] = parameters.find_missing(body)
        return self._find_refusal(self._missing[kind])

    def _find_refusal(self, changes: Changes) -> str | None:
        """Return the reason to refuse a request with changes; `None` to send it."""
        refused = describe_changes(changes, with_seed=False) if self._is_strict else None
        return None if refused is None else f"strict_params: {refused}; change the configuration to what is sent"

    async def _send(
        self,
        litellm: ModuleType,
        request: Request,
        form: ReplyForm,
        options: dict[str, Any],
        key: str,
        exchange: Exchange,
    ) -> Completion:
        """Send a request and return its reply."""
        try:
            async with asyncio.timeout(request.timeout or self._timeout):
                with use_exchange(exchange):
                    reply = await self._call_litellm(litellm, options, key)
            body = exchange.response_text or ""
            reply = discard_estimates(reply, request.model, body)
            is_cut = reply.finish_reason == "stop" and _WINDOW_EXCEEDED in body
            return replace(reply, finish_reason="length") if is_cut else reply
        except Exception as error:
            exchange.ensure_accepted(request.model)
            if isinstance(error, ProviderError):
                raise
            if (completion := recover_reply(exchange.response_text, options["model"])) is not None:
                return completion
            # The error is not chained, because the original error's message may contain a key.
            raise self._classify_failure(error, request, form, exchange.response_text) from None

    async def _play_offline(self, litellm: ModuleType, request: Request, key: str) -> Completion:
        """Return the reply of an offline model, which answers in this process."""
        from .offline_provider import CURRENT_REQUEST

        token = CURRENT_REQUEST.set(request)
        try:
            return await self._call_litellm(litellm, self._build_options(litellm, request, ReplyForm.NONE)[0], key)
        except Exception as error:  # LiteLLM would report it as a lost connection
            if isinstance(error.__context__, offline.UnderstudyError):
                raise PermanentProviderError(f"{request.model}: {error.__context__}") from None
            raise
        finally:
            CURRENT_REQUEST.reset(token)

    async def _call_litellm(self, litellm: ModuleType, options: dict[str, Any], key: str) -> Completion:
        """Send a request through LiteLLM and return its reply.

        `litellm.completion` prepares a request and returns the coroutine that sends it. `litellm.acompletion` wraps it
        in a thread, logging, caching and pricing, none of which is needed if no hook is set. In that case, the inner
        function is called directly; `docs/design/gateway.md` states the time saved.
        """
        model: str = options["model"]
        options = apply_deployment(litellm, options)
        if any(hooks and hooks != _INERT_HOOKS for hooks in (getattr(litellm, name, None) for name in _HOOK_SETTINGS)):
            response = await litellm.acompletion(**options)
            cost = (response._hidden_params or {}).get("response_cost")
            cost = cost if cost or not is_inferred_model(litellm, model) else None
            return parse_response(response, model, options["model"], cost)
        log, options = litellm.utils.function_setup(
            "acompletion", litellm.utils.Rules(), datetime.now(), litellm_call_id=key, **options
        )
        provider = get_provider_name(litellm, model)
        prepare = functools.partial(litellm.completion, acompletion=True, litellm_logging_obj=log, **options)
        try:
            # The preparation for other providers may fetch a token, which would block the event loop.
            is_quick = provider in ("openai", OFFLINE_PREFIX.rstrip("/"))
            sending = prepare() if is_quick else await asyncio.to_thread(prepare)
            response = await sending if inspect.isawaitable(sending) else sending
        except Exception as error:
            litellm.exception_type(model, error, provider, options)  # raises LiteLLM's public exception for the error
            raise
        served: str = options["model"]
        return parse_response(response, model, served, self._compute_cost(litellm, log, response, model, served))

    def _compute_cost(self, litellm: ModuleType, log: Any, response: Any, model: str, served: str) -> float | None:
        """Return a call's cost by LiteLLM's price table; `None` if it is unknown.

        A missing price is looked up once per model, because each lookup takes a quarter of a call's processing time.
        """
        models = (model, getattr(response, "model", None))  # LiteLLM uses the price of either name
        if models in self._unpriced:
            return self._unpriced[models]
        if describe_model_mismatch(models[1], model, served) is not None:
            response, priced = response.model_copy(update={"model": model}), [model]
        else:
            priced = [each for each in models if each]
        cost: float | None = log.response_cost_calculator(result=response, litellm_model_name=model)
        is_unknown = is_inferred_model(litellm, model)
        if not cost and (is_unknown or not any(_has_price(litellm, each) for each in priced)):
            cost = self._unpriced[models] = None if is_unknown else cost
        return cost

    def _build_options(
        self, litellm: ModuleType, request: Request, form: ReplyForm
    ) -> tuple[dict[str, Any], SamplingParameters]:
        """Return a request's options for LiteLLM, and the sampling parameters among them."""
        model = resolve_route(litellm, request, bool(request.tools))
        options: dict[str, Any] = {
            "model": model,
            "messages": convert_messages(request.messages, model),
            "drop_params": True,
            "max_retries": 0,
            "num_retries": 0,
        }
        if request.model.startswith(OFFLINE_PREFIX):
            explicit = {"seed": request.seed, "temperature": request.temperature}
            return {
                **options,
                **{name: value for name, value in explicit.items() if value is not None},
            }, SamplingParameters()
        options["timeout"] = request.timeout or self._timeout
        values = collect_parameters(request.temperature, request.max_reply, request.seed, request.params)
        tools = build_tool_options(litellm, request.model, request.tools)
        parameters = resolve_parameters(litellm, model, values, bool(tools))
        options |= {**tools, **parameters.sent}
        if RESPONSES_ROUTE in model:
            options |= _STATELESS_OPTIONS
        if parameters.allowed:
            options["allowed_openai_params"] = parameters.allowed
        if needs_cache_markers(litellm, request.model):
            options["messages"] = add_cache_markers(request.messages, request.model, is_growing=bool(request.tools))
        family = find_family(model)
        if family is not None and family.system != "system" and RESPONSES_ROUTE not in model:
            # LiteLLM would convert the system message to a user message.
            options["messages"] = [
                {**each, "role": family.system} if each["role"] == "system" else each for each in options["messages"]
            ]
        if request.api_base is not None:
            options["api_base"] = request.api_base
        if request.session is not None and request.session_form is not None:
            add_session(options, request.session, request.session_form)
        if (shape := build_response_format(request, form)) is not None:
            options["response_format"] = shape
        return options, parameters

    def _classify_failure(
        self, error: Exception, request: Request, form: ReplyForm, answer: str | None
    ) -> ProviderError:
        """Classify an error; a rejected response format is transient, because the next attempt uses another format."""
        failure = classify_error(error, request.model, request, answer)
        if form is ReplyForm.NONE or not is_form_rejected(get_status(error), str(error)):
            return failure
        self._shapes.add(request, form)
        reason = str(failure).partition(" - ")[0]
        return TransientProviderError(f"{reason} - from now on, replies are not requested as {form} (response_format)")


class EmbeddingBackend:
    """A backend for an embedding model; like `LiteLLMBackend`, it sends one HTTP request per attempt.

    The messages of a request are the texts to embed. The reply's text is `{"vectors": [...]}`; each vector is the
    base64 of its little-endian float32 values. As with other calls, a run that is killed and resumed does not pay twice
    for an embedding.

    Args:
        model: The model, as LiteLLM names it.

    Raises:
        BindingError: If LiteLLM does not know the provider.
    """

    def __init__(self, model: str) -> None:
        if model.startswith(OFFLINE_PREFIX):
            raise BindingError(
                f"'embed:{model}': offline models make no embeddings; use 'lexical', which needs no model"
            )
        check_provider(model)
        self.model = model

    async def complete(self, request: Request, key: str) -> Completion:  # noqa: ARG002
        """Request embeddings once.

        Raises:
            TransientProviderError: For a rate limit, overload, time-out, or lost connection.
            PermanentProviderError: For any other rejection by the provider, or a response without embeddings.
        """
        exchange = Exchange()
        try:
            return await self._embed(request, exchange)
        except ProviderError as failure:
            failure.billed = parse_billed_usage(exchange.response_text, output_tokens=0)
            raise

    async def _embed(self, request: Request, exchange: Exchange) -> Completion:
        """Send a request and return the embeddings as a reply."""
        from dialoom.personas.similarity import (  # imported here, as few runs use embeddings
            encode_vector,
            normalize_vector,
        )

        texts = [message["content"] for message in request.messages]
        try:
            with use_exchange(exchange):
                response = await load_litellm().aembedding(
                    model=self.model,
                    input=texts,
                    encoding_format="float",
                    api_base=request.api_base,
                    timeout=request.timeout or TIMEOUT_SECONDS,
                    drop_params=True,
                    max_retries=0,
                    num_retries=0,
                )
        except Exception as error:
            exchange.ensure_accepted(self.model)
            raise classify_error(error, self.model, request, exchange.response_text) from None
        try:
            vectors = {each["index"]: each["embedding"] for each in response.data}
            sizes = {normalize_vector(vector).size for vector in vectors.values()}
        except (TypeError, KeyError, ValueError) as error:
            raise PermanentProviderError(f"{self.model}: the response contains no embeddings ({error})") from error
        if len(vectors) != len(texts) or len(sizes) > 1:
            raise PermanentProviderError(
                f"{self.model}: {len(vectors)} embeddings of {len(sizes)} sizes were returned for {len(texts)} texts"
            )
        input_tokens = getattr(getattr(response, "usage", None), "prompt_tokens", None) or None  # 0 if it is missing
        cost = (response._hidden_params or {}).get("response_cost") if input_tokens else None
        if cost and describe_model_mismatch(getattr(response, "model", None), self.model) is not None:
            cost = None  # it is the price of the other model
        return Completion(
            text=json.dumps({"vectors": [encode_vector(vectors[index]) for index in sorted(vectors)]}),
            input_tokens=input_tokens,
            output_tokens=0,
            cost=cost,
        )


def add_session(options: dict[str, Any], session: Session, form: SessionForm) -> None:
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


def check_offline_model(model: str) -> None:
    """Raise an error for an unknown offline model.

    Raises:
        BindingError: If the model is unknown; the message lists the offline models.
    """
    if model.removeprefix(OFFLINE_PREFIX) not in offline.MODELS:
        names = ", ".join(OFFLINE_PREFIX + name for name in sorted(offline.MODELS))
        raise BindingError(f"unknown model {model!r}; the offline models are {names}")


def check_provider(model: str) -> None:
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


def resolve_route(litellm: ModuleType, request: Request | ModelBinding, has_tools: bool) -> str:
    """Return the name by which LiteLLM calls a model, with `responses/` if the Responses API is used.

    OpenAI's own server is called through this API for a reasoning model with tools, and wherever LiteLLM itself would
    use it. Servers at other addresses may not have that API.
    """
    model = request.model
    if (
        RESPONSES_ROUTE in model
        or find_family(model) is None
        or get_provider_name(litellm, model) not in ("azure", "openai")
    ):
        return model
    addresses = (request.api_base, litellm.api_base, *map(os.environ.get, _ADDRESS_VARIABLES))
    return _resolve_route(litellm, model, has_tools, request.params.get(EFFORT), next(filter(None, addresses), None))


@functools.lru_cache(256)
def _resolve_route(litellm: ModuleType, model: str, has_tools: bool, effort: str | None, base: str | None) -> str:
    name, provider, _, _ = litellm.get_llm_provider(model)
    family, host = find_family(model), urlsplit(base or "").hostname or ""
    is_own = provider == "openai" and (not base or f".{host}".endswith(_OPENAI_HOST))
    tools = [{"type": "function", "function": {}}] if has_tools else None
    known, _ = litellm.main.responses_api_bridge_check(
        name, provider, tools=tools, reasoning_effort=effort, api_base=base
    )
    if known.get("mode") == "responses" or (has_tools and is_own and family is not None and family.responses):
        return f"{provider}/{RESPONSES_ROUTE}{name}"
    return model


_OPENAI_HOST = ".api.openai.com"
_ADDRESS_VARIABLES = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
_STATELESS_OPTIONS = {"store": False, "include": ["reasoning.encrypted_content"]}
"""Options of the Responses API: the provider stores nothing, and returns the reasoning in encrypted form."""


def predict_changes(binding: ModelBinding) -> Changes:
    """Return the expected differences between configured and sent parameters, ignoring tools and reply types."""
    litellm, values = load_litellm(), collect_parameters(binding.temperature, binding.max_reply, 0, binding.params)
    return resolve_parameters(litellm, resolve_route(litellm, binding, False), values, False).changes


def check_support(role: str, model: str, params: Mapping[str, Any]) -> None:
    """Raise an error for parameters that would not be sent to a model as they are given.

    Args:
        role: The role with these parameters, for the message.
        model: A model that LiteLLM knows.
        params: The parameters.

    Raises:
        BindingError: If a parameter would be dropped or changed.
    """
    litellm, prefix = load_litellm(), f"params: {f'{role}.' if role else ''}"
    if DEPLOYMENT in params and (provider := get_provider_name(litellm, model)) not in CUSTOM_NAME_PROVIDERS:
        raise BindingError(
            f"{prefix}{DEPLOYMENT}: {provider} has no deployment names; leave it out, or use one of the providers "
            f"{', '.join(CUSTOM_NAME_PROVIDERS)}",
            setting="params",
        )
    changes = resolve_parameters(litellm, model, params, False).changes
    if (dropped := next((each for each in changes if each.sent is None), None)) is None:
        return
    family, supported = find_family(model), get_supported_parameters(litellm, model, model)
    known = TRANSLATED_PARAMETERS.keys() if supported is None else TRANSLATED_PARAMETERS.keys() & supported
    accepted = ", ".join(sorted(known - (family.rejects if family is not None else set())))
    hint = "; put parameters that LiteLLM does not know into extra_body" if accepts_openai_names(litellm, model) else ""
    raise BindingError(
        f"{prefix}{dropped.name} would not be sent to {model}: {dropped.reason}; it accepts {accepted}{hint}",
        setting="params",
    )


_CACHING = ("creation", "read")
"""Prices that LiteLLM expects besides those of input and output; it logs a warning if they are missing."""

_IMPORT_LOCK = threading.Lock()


def load_litellm() -> ModuleType:
    """Import LiteLLM once and quietly: no price table from the network, no telemetry, no printed advice."""
    with _IMPORT_LOCK:
        return _import_litellm()


@functools.cache
def _import_litellm() -> ModuleType:
    # LiteLLM reads these when it is imported. In its mode DEV, it would also load any `.env` file that it finds.
    quiet = _set_variables(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_LOG="ERROR", LITELLM_MODE="PRODUCTION")
    with quiet, pause_garbage_collection():
        import litellm

    from . import exchange
    from .offline_provider import OfflineProvider

    # LiteLLM copies responses without validation, and warns if `cost` is a string; dialoom treats such a cost as
    # unknown.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    exchange.install(litellm)

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    provider = OFFLINE_PREFIX.rstrip("/")
    litellm.custom_provider_map.append({"provider": provider, "custom_handler": OfflineProvider()})
    costs = ("input_cost_per_token", "output_cost_per_token", *(f"cache_{kind}_input_token_cost" for kind in _CACHING))
    free = {"litellm_provider": provider, "mode": "chat", **dict.fromkeys(costs, 0.0)}
    litellm.register_model({OFFLINE_PREFIX + name: free for name in offline.MODELS})
    _freeze_if_tuned()
    return litellm


class _LazyEncoding:
    """LiteLLM's token table, which is read when it is used for the first time.

    LiteLLM reads it at the first call and hands it to the provider's code. Few providers use it, and none with OpenAI's
    format. It takes 39 MB and a tenth of a second.
    """

    def __getattr__(self, name: str) -> Any:
        with _IMPORT_LOCK, _set_variables(TIKTOKEN_CACHE_DIR=None):  # LiteLLM's import sets this variable
            from litellm.litellm_core_utils.default_encoding import encoding

        return getattr(encoding, name)


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
        if _import_litellm.cache_info().currsize:
            _freeze_if_tuned()


def _freeze_if_tuned() -> None:
    if _TUNED.is_set():
        gc.collect()
        gc.freeze()


@contextmanager
def _set_variables(**values: str | None) -> Iterator[None]:
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
    """Raise an error if the key for OpenAI's own address is missing: LiteLLM would send the request without a key.

    Raises:
        PermanentProviderError: If the key is missing; the message names the environment variable.
    """
    # A user's own server may need no key.
    settings = (request.api_base, litellm.api_base, *map(os.environ.get, ("OPENAI_API_KEY", *_ADDRESS_VARIABLES)))
    is_set = any(settings) or litellm.api_key or litellm.openai_key
    if not is_set and get_provider_name(litellm, request.model) == "openai":
        raise PermanentProviderError(f"{request.model}: no API key - set OPENAI_API_KEY")


def _has_price(litellm: ModuleType, model: str) -> bool:
    try:
        return any(litellm.cost_per_token(model=model, prompt_tokens=1_000_000, completion_tokens=1_000_000))
    except Exception:  # of various types: the model is not in the table
        return False


@functools.cache
def is_inferred_model(litellm: ModuleType, model: str) -> bool:
    """Return whether LiteLLM infers a model from similar names, so that its price of 0 means an unknown price."""
    if get_provider_name(litellm, model).startswith(
        "ollama"
    ):  # costs nothing, and LiteLLM would send a request to its server
        return False
    try:
        return litellm.get_model_info(model)["key"] not in litellm.model_cost
    except Exception:  # of various types: LiteLLM does not know the model
        return False
