"""Models that LiteLLM reaches, the offline ones among them. It takes seconds to import: the first call does that."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import os
import threading
import warnings
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from dialoom.roles import offline
from dialoom.roles.binding import OFFLINE
from dialoom.roles.errors import BindingError, PermanentProviderError, ProviderError, TransientProviderError
from dialoom.roles.parameters import TRANSLATED

from .cache import marked, wants_markers
from .calls import Completion, Request
from .completions import completion_of, salvaged
from .exchange import Exchange, exchanging
from .failures import classified, status_of
from .litellm_tuning import AdmissionGate, Unpriced, prepared_inline, pricing_only
from .structure import Form, Shapes, is_refused, response_format
from .tool_wire import tool_options, wire_messages

TIMEOUT = 600.0
"""Seconds after which an attempt that has not been answered is given up, and made again: the slowest models think for
minutes, and a connection that is dead without saying so must not hold its place for ever."""

_LISTENERS = (
    "callbacks",
    "success_callback",
    "failure_callback",
    "_async_success_callback",
    "_async_failure_callback",
)
"""Where LiteLLM keeps those who want to be told of calls."""


class LiteLLMBackend:
    """One HTTP request per attempt: retrying is the gateway's, so LiteLLM's and the SDKs' own is off.

    Args:
        timeout: Seconds that an attempt may take, if its request does not say.
        shapes: What is known of the shapes that models can be held to.
    """

    def __init__(self, timeout: float = TIMEOUT, shapes: Shapes | None = None) -> None:
        _prepare_calls()  # now, so that no call's latency counts it, and no event loop is held up by it
        self._timeout = timeout
        self._shapes = shapes or Shapes()
        self._unpriced = Unpriced()
        self._admission = AdmissionGate()

    async def complete(self, request: Request, key: str) -> Completion:  # noqa: ARG002
        """One attempt.

        Raises:
            TransientProviderError: Rate limit, overload, time-out, lost connection, an answer that is none.
            PermanentProviderError: Anything else that the provider refused.
        """
        litellm = load_litellm()
        form = Form.NONE if request.model.startswith(OFFLINE) else self._shapes.form(litellm, request)
        options = self._options(litellm, request, form)
        if request.model.startswith(OFFLINE):  # answers at once, by code of our own
            from .offline_provider import ASKED

            token = ASKED.set(request)
            try:
                with prepared_inline(True):
                    return completion_of(await self._unlogged(litellm, litellm.acompletion(**options)), request.model)
            except Exception as error:  # LiteLLM takes it for a lost connection
                if isinstance(error.__context__, offline.UnderstudyError):
                    raise PermanentProviderError(f"{request.model}: {error.__context__}") from None
                raise
            finally:
                ASKED.reset(token)
        _ensure_key(litellm, request)
        exchange = Exchange()
        try:
            async with self._admission.passing() as sent, asyncio.timeout(request.timeout or self._timeout):
                options["logger_fn"] = lambda _details: sent()  # called before the request is sent
                with prepared_inline(_provider(litellm, request.model) == "openai"), exchanging(exchange):
                    response = await self._unlogged(litellm, litellm.acompletion(**options))
        except Exception as error:
            exchange.ensure_accepted(request.model)
            if (kept := salvaged(exchange.answer, request.model)) is not None:
                return kept
            # Not chained: the original's message may hold a key.
            raise self._failure(error, request, form, exchange.answer) from None
        return completion_of(response, request.model)

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
            options["max_tokens"] = request.max_reply  # LiteLLM's name for it; it knows whose is another
        options |= tool_options(litellm, request.model, request.tools)
        options |= request.params
        if wants_markers(litellm, request.model):
            options["messages"] = marked(request.messages, request.model, is_growing=bool(request.tools))
        if request.api_base is not None:
            options["api_base"] = request.api_base
        if (shape := response_format(request, form)) is not None:
            options["response_format"] = shape
        return options

    async def _unlogged(self, litellm: ModuleType, call: Awaitable[Any]) -> Any:
        """The call's answer, without what LiteLLM does for those who listen to it, unless somebody does.

        Its log takes a sixth of a call's time, and looking in vain for a price a quarter.
        """
        is_heard = any(getattr(litellm, name, None) for name in _LISTENERS)
        context = importlib.import_module("litellm._internal_context")
        token = context.is_internal_call.set(not is_heard)
        try:
            with pricing_only(None if is_heard else self._unpriced):
                return await call
        finally:
            context.is_internal_call.reset(token)

    def _failure(self, error: Exception, request: Request, form: Form, answer: str | None) -> ProviderError:
        """What the error is; the refusal of a shape is passing, since the next attempt asks for it in another form."""
        failure = classified(error, request.model, request, answer)
        if form is Form.NONE or not is_refused(status_of(error), str(error)):
            return failure
        self._shapes.refuse(request, form)
        said = str(failure).partition(" - ")[0]
        return TransientProviderError(f"{said} - it is not asked for a shape as {form} (response_format) from now on")


def check_offline(model: str) -> None:
    """Refuse an offline model that there is not.

    Raises:
        BindingError: Naming the ones that there are.
    """
    if model.removeprefix(OFFLINE) not in offline.MODELS:
        names = ", ".join(OFFLINE + name for name in sorted(offline.MODELS))
        raise BindingError(f"unknown model {model!r}; the offline models are {names}")


def ensure_known(model: str) -> None:
    """Refuse a model whose provider LiteLLM does not know.

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
    """Refuse parameters that LiteLLM would leave out for a model without a word.

    Args:
        role: Whose they are, for the message.
        model: One that LiteLLM knows.
        params: The parameters.

    Raises:
        BindingError: Naming one, and what the model takes.
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
"""What LiteLLM wants a price for besides input and output; it warns where there is none."""

_IMPORTING = threading.Lock()


def load_litellm() -> ModuleType:
    """LiteLLM, imported once and made quiet: no price table from the network, no telemetry, no printed advice."""
    with _IMPORTING:
        return _imported()


@functools.cache
def _imported() -> ModuleType:
    # It reads them while it is imported. In its mode DEV it would also load a file `.env` that it finds.
    with _variables(LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_LOG="ERROR", LITELLM_MODE="PRODUCTION"):
        import litellm

    from . import exchange
    from .litellm_tuning import install_price_lookup
    from .offline_provider import OfflineProvider

    # LiteLLM copies answers as they came, and warns of a `cost` that is a text; here such a figure is unknown.
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
    exchange.install()
    install_price_lookup(litellm)

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
    """What LiteLLM's first call would do: it reads a table of tokens, and sets a variable of tiktoken's for it."""
    load_litellm()
    with _IMPORTING, _variables(TIKTOKEN_CACHE_DIR=None):
        importlib.import_module("litellm.litellm_core_utils.default_encoding")


_TUNED = threading.Event()


def tune_process() -> None:
    """Make this process fast at calling models. For a process that is dialoom's own; nothing else calls this.

    LiteLLM's own HTTP handler is chosen for OpenAI-compatible servers, by an environment variable of LiteLLM's (a third
    less of the processor for each call); and once LiteLLM is imported, what was imported is taken from the garbage
    collector's rounds, which took a tenth of a run's time.
    """
    os.environ.setdefault("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER", "True")
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
    """Environment variables that are set as long as the block lasts, where they are not set already.

    Afterwards they are as they were, whatever the block made of them; `None` only says that.
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
    """OpenAI's own address takes nothing without a key: LiteLLM's handler would send it all the same.

    Raises:
        PermanentProviderError: Naming the variable.
    """
    if request.api_base or os.environ.get("OPENAI_API_KEY") or _provider(litellm, request.model) != "openai":
        return
    if any(os.environ.get(name) for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL")) or litellm.api_base:
        return  # a server of the user's own may want none
    if not (litellm.api_key or litellm.openai_key):
        raise PermanentProviderError(f"{request.model}: there is no key - a key is needed in OPENAI_API_KEY")


@functools.cache
def _provider(litellm: ModuleType, model: str) -> str:
    """LiteLLM's word for who serves a model."""
    return str(litellm.get_llm_provider(model)[1])
