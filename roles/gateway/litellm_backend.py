"""The backend for models reached through LiteLLM, including the offline ones. Its slow import is deferred."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import inspect
import os
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import ModuleType
from typing import Any

from dialoom.importing import collection_paused
from dialoom.roles import offline
from dialoom.roles.binding import OFFLINE
from dialoom.roles.errors import BindingError, PermanentProviderError, ProviderError, TransientProviderError
from dialoom.roles.parameters import TRANSLATED
from dialoom.roles.session import Session
from dialoom.settings import SessionForm

from .cache import marked, wants_markers
from .calls import Completion, Request
from .completions import completion_of, salvaged
from .exchange import Exchange, exchanging
from .failures import classified, status_of
from .structure import Form, Shapes, is_refused, response_format
from .tool_wire import tool_options, wire_messages

TIMEOUT = 600.0
"""Seconds after which an attempt without an answer is given up and retried: the slowest models reason for minutes, and
a connection that died silently must not occupy its slot for ever.
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
"""LiteLLM's settings for which only its public function `acompletion` cares: who logs, checks or replaces calls."""


class LiteLLMBackend:
    """A backend that sends one HTTP request per attempt: the gateway retries, and LiteLLM and the SDKs do not.

    Args:
        timeout: Seconds that an attempt may take, unless its request sets them.
        shapes: What is known of the models' support for structured output.
    """

    def __init__(self, timeout: float = TIMEOUT, shapes: Shapes | None = None) -> None:
        _prepare_calls()  # now, so that it does not add to a call's latency or block the event loop
        self._timeout = timeout
        self._shapes = shapes or Shapes()
        self._unpriced: dict[tuple[str, str | None], float | None] = {}

    async def complete(self, request: Request, key: str) -> Completion:
        """Make one attempt.

        Raises:
            TransientProviderError: For a rate limit, overload, time-out, lost connection, or an answer without a reply.
            PermanentProviderError: For any other rejection by the provider.
        """
        litellm = load_litellm()
        if request.model.startswith(OFFLINE):
            return await self._played(litellm, request, key)
        form = self._shapes.form(litellm, request)
        options = self._options(litellm, request, form)
        _ensure_key(litellm, request)
        exchange = Exchange()
        try:
            async with asyncio.timeout(request.timeout or self._timeout):
                with exchanging(exchange):
                    return await self._answered(litellm, options, key)
        except Exception as error:
            exchange.ensure_accepted(request.model)
            if isinstance(error, ProviderError):
                raise
            if (kept := salvaged(exchange.answer, request.model)) is not None:
                return kept
            # Not chained: the original's message may hold a key.
            raise self._failure(error, request, form, exchange.answer) from None

    async def _played(self, litellm: ModuleType, request: Request, key: str) -> Completion:
        """Return the reply of an offline model, which answers in this process."""
        from .offline_provider import ASKED

        token = ASKED.set(request)
        try:
            return await self._answered(litellm, self._options(litellm, request, Form.NONE), key)
        except Exception as error:  # LiteLLM reports it as a lost connection
            if isinstance(error.__context__, offline.UnderstudyError):
                raise PermanentProviderError(f"{request.model}: {error.__context__}") from None
            raise
        finally:
            ASKED.reset(token)

    async def _answered(self, litellm: ModuleType, options: dict[str, Any], key: str) -> Completion:
        """Send a request through LiteLLM and return its reply.

        `litellm.acompletion` wraps `litellm.completion`, which prepares a request and returns the coroutine that sends
        it, in a thread, logging, caching and pricing. Where no hook is set all of that is idle, so the inner function
        is called: `docs/design/gateway.md` gives the difference.
        """
        model: str = options["model"]
        if any(getattr(litellm, name, None) for name in _HOOKS):
            response = await litellm.acompletion(**options)
            return completion_of(response, model, (response._hidden_params or {}).get("response_cost"))
        log, options = litellm.utils.function_setup(
            "acompletion", litellm.utils.Rules(), datetime.now(), litellm_call_id=key, **options
        )
        provider = _provider(litellm, model)
        prepare = functools.partial(litellm.completion, acompletion=True, litellm_logging_obj=log, **options)
        try:
            # Other providers may fetch a token first, which would block the event loop.
            is_quick = provider in ("openai", OFFLINE.rstrip("/"))
            sending = prepare() if is_quick else await asyncio.to_thread(prepare)
            response = await sending if inspect.isawaitable(sending) else sending
        except Exception as error:
            litellm.exception_type(model, error, provider, options)  # raises the error as LiteLLM's users know it
            raise
        return completion_of(response, model, self._cost(litellm, log, response, model))

    def _cost(self, litellm: ModuleType, log: Any, response: Any, model: str) -> float | None:
        """Return a call's cost by LiteLLM's table; `None` if it is unknown.

        A missing price is looked up once, as that takes LiteLLM a quarter of a call's time.
        """
        models = (model, getattr(response, "model", None))  # LiteLLM uses the price of either
        if models in self._unpriced:
            return self._unpriced[models]
        cost: float | None = log.response_cost_calculator(result=response, litellm_model_name=model)
        if not cost and not any(_has_price(litellm, each) for each in models if each):
            self._unpriced[models] = cost
        return cost

    def _options(self, litellm: ModuleType, request: Request, form: Form) -> dict[str, Any]:
        options: dict[str, Any] = {
            "model": request.model,
            "messages": wire_messages(request.messages, request.model),
            "seed": request.seed,
            "drop_params": True,
            "max_retries": 0,
            "num_retries": 0,
        }
        if request.temperature is not None:
            options["temperature"] = request.temperature
        if request.model.startswith(OFFLINE):
            return options
        options["timeout"] = request.timeout or self._timeout
        if request.max_reply is not None:
            options["max_tokens"] = (
                request.max_reply
            )  # LiteLLM's name for it; it translates it for providers with another name
        options |= tool_options(litellm, request.model, request.tools)
        options |= request.params
        if wants_markers(litellm, request.model):
            options["messages"] = marked(request.messages, request.model, is_growing=bool(request.tools))
        if request.api_base is not None:
            options["api_base"] = request.api_base
        if request.session is not None and request.session_form is not None:
            name_session(options, request.session, request.session_form)
        if (shape := response_format(request, form)) is not None:
            options["response_format"] = shape
        return options

    def _failure(self, error: Exception, request: Request, form: Form, answer: str | None) -> ProviderError:
        """Classify an error; a rejected response format is transient, since the next attempt uses another one."""
        failure = classified(error, request.model, request, answer)
        if form is Form.NONE or not is_refused(status_of(error), str(error)):
            return failure
        self._shapes.refuse(request, form)
        said = str(failure).partition(" - ")[0]
        return TransientProviderError(f"{said} - it is not asked for a shape as {form} (response_format) from now on")


def name_session(options: dict[str, Any], session: Session, form: SessionForm) -> None:
    """Add a session to a request's options, beside what the user has put there.

    Args:
        options: LiteLLM's options.
        session: The session.
        form: `user` for the person's id; `metadata` or `headers` for all of it.
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
        BindingError: With the known ones.
    """
    if model.removeprefix(OFFLINE) not in offline.MODELS:
        names = ", ".join(OFFLINE + name for name in sorted(offline.MODELS))
        raise BindingError(f"unknown model {model!r}; the offline models are {names}")


def ensure_known(model: str) -> None:
    """Raise an error for a model whose provider LiteLLM does not know.

    Raises:
        BindingError: With the form that is needed.
    """
    try:
        load_litellm().get_llm_provider(model)
    except Exception as error:
        raise BindingError(
            f"unknown model {model!r}; give PROVIDER/NAME as LiteLLM knows it (openai/gpt-4o-mini), offline/attentive, "
            "python:package.module:function or graph:path/to/file.py:name"
        ) from error


def check_support(role: str, model: str, params: Mapping[str, Any]) -> None:
    """Raise an error for parameters that LiteLLM would silently drop for a model.

    Args:
        role: The role they belong to, for the message.
        model: A model that LiteLLM knows.
        params: The parameters.

    Raises:
        BindingError: With a dropped one, and those that the model takes.
    """
    litellm = load_litellm()
    name, provider, _, _ = litellm.get_llm_provider(model)
    taken = litellm.get_supported_openai_params(model=name, custom_llm_provider=provider)
    for each in params:
        if taken is not None and each in TRANSLATED and each not in taken:
            others = ", ".join(sorted(TRANSLATED.keys() & set(taken)))
            is_openai_like = provider == "openai" or provider in litellm.openai_compatible_providers
            more = ", and what LiteLLM does not know goes into extra_body" if is_openai_like else ""
            raise BindingError(
                f"params: {f'{role}.' if role else ''}{each} would be left out, as LiteLLM knows of no such parameter "
                f"of {model}; it takes {others}{more}",
                setting="params",
            )


_CACHING = ("creation", "read")
"""Prices that LiteLLM expects besides input and output; it warns where they are missing."""

_IMPORTING = threading.Lock()


def load_litellm() -> ModuleType:
    """Import LiteLLM once and quietly: no price table from the network, no telemetry, no printed advice."""
    with _IMPORTING:
        return _imported()


@functools.cache
def _imported() -> ModuleType:
    # Read at import time. In its mode DEV it would also load a file `.env` that it finds.
    quiet = _variables(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_LOG="ERROR", LITELLM_MODE="PRODUCTION")
    with quiet, collection_paused():
        import litellm

    from . import exchange
    from .offline_provider import OfflineProvider

    # LiteLLM copies answers unchecked, and warns of a `cost` that is a text; here such a figure is unknown.
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
    """Do the work of LiteLLM's first call: it reads a token table, for which it sets a variable of tiktoken's."""
    load_litellm()
    with _IMPORTING, _variables(TIKTOKEN_CACHE_DIR=None):
        importlib.import_module("litellm.litellm_core_utils.default_encoding")


_TUNED = threading.Event()


def tune_process() -> None:
    """Speed up model calls in this process. Only for a process that dialoom owns.

    Once LiteLLM is imported, all imported objects are excluded from garbage collection, which takes a tenth of a run's
    time otherwise.
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
    """Set environment variables within the block, unless they are set already.

    Afterwards they are restored, whatever the block changed; `None` sets nothing and only restores.
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
    """Require a key for OpenAI's own address: LiteLLM's handler would send the request without one.

    Raises:
        PermanentProviderError: With the environment variable's name.
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
    except Exception:  # of several kinds: the model is not in the table
        return False


@functools.cache
def _provider(litellm: ModuleType, model: str) -> str:
    """Return LiteLLM's name of a model's provider."""
    return str(litellm.get_llm_provider(model)[1])
