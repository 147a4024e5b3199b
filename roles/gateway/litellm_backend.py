"""Models that LiteLLM reaches, the offline ones among them. It takes seconds to import: the first call does that."""

from __future__ import annotations

import functools
import gc
import os
from types import ModuleType
from typing import Any

from dialoom.prompts import ChatMessage
from dialoom.roles import offline
from dialoom.roles.errors import BindingError, PermanentProviderError, ProviderError, TransientProviderError

from .calls import Completion, Request
from .secrets import redacted

OFFLINE = "offline/"
_TRANSIENT_STATUS = frozenset({408, 409, 425, 429})


class LiteLLMBackend:
    """One attempt per call: retrying is the gateway's, so LiteLLM's and the SDKs' own is off."""

    async def complete(self, request: Request, key: str) -> Completion:  # noqa: ARG002
        """One attempt.

        Raises:
            TransientProviderError: Rate limit, overload, time-out, lost connection.
            PermanentProviderError: Anything else that the provider refused.
        """
        litellm = load_litellm()
        try:
            response = await litellm.acompletion(
                model=request.model,
                messages=alternating(request.messages),
                temperature=request.temperature,
                seed=request.seed,
                drop_params=True,
                max_retries=0,
                num_retries=0,
            )
        except Exception as error:
            raise classified(error, request.model) from error
        return _completion(response)


def alternating(messages: tuple[ChatMessage, ...]) -> list[dict[str, str]]:
    """The messages with neighbours of the same role joined: some providers refuse them apart."""
    joined: list[dict[str, str]] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1]["content"] += "\n\n" + message["content"]
        else:
            joined.append({"role": message["role"], "content": message["content"]})
    return joined


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


@functools.cache
def load_litellm() -> ModuleType:
    """LiteLLM, imported once and made quiet: no price table from the network, no telemetry, no printed advice."""
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    os.environ.setdefault("LITELLM_LOG", "ERROR")
    import litellm

    from .offline_provider import OfflineProvider

    litellm.telemetry = False
    litellm.suppress_debug_info = True
    provider = OFFLINE.rstrip("/")
    litellm.custom_provider_map.append({"provider": provider, "custom_handler": OfflineProvider()})
    free = {"litellm_provider": provider, "mode": "chat", "input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
    litellm.register_model({OFFLINE + name: free for name in offline.MODELS})
    # What was imported stays: the garbage collector need not walk those hundreds of thousands of objects again and
    # again, which took a tenth of a run's time.
    gc.collect()
    gc.freeze()
    return litellm


def _completion(response: Any) -> Completion:
    choice, usage = response.choices[0], getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    cost = (response._hidden_params or {}).get("response_cost")
    return Completion(
        text=choice.message.content or "",
        input_tokens=getattr(usage, "prompt_tokens", None),
        output_tokens=getattr(usage, "completion_tokens", None),
        cached_tokens=getattr(details, "cached_tokens", None),
        cost=None if cost is None else float(cost),
        finish_reason=choice.finish_reason,
    )


def classified(error: Exception, model: str) -> ProviderError:
    """What a provider's exception is to us: worth another attempt or not, without any key in its message."""
    status = getattr(error, "status_code", None)
    message = redacted(f"{model}: {type(error).__name__}: {error}")
    if isinstance(status, int) and 400 <= status < 500 and status not in _TRANSIENT_STATUS:
        return PermanentProviderError(message)
    if isinstance(status, int) or isinstance(error, (OSError, TimeoutError)):
        return TransientProviderError(message)
    return PermanentProviderError(message)
