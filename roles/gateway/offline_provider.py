"""The offline model as a LiteLLM custom provider, so that it takes the same way as every other model."""

from contextvars import ContextVar
from typing import Any

from litellm.llms.custom_llm import CustomLLM
from litellm.types.utils import ModelResponse, Usage

from dialoom.roles import offline

ASKED: ContextVar[tuple[str, str]] = ContextVar("ASKED", default=("", ""))
"""Whose prompt is answered, and the role that is asked: it decides which understudy plays, not what it is shown."""


class OfflineProvider(CustomLLM):
    """Answers from the request's messages alone. Tokens are counted as a quarter of the characters."""

    async def acompletion(self, *_args: Any, **call: Any) -> ModelResponse:
        """LiteLLM's door for async calls; it passes everything by name."""
        messages: list[dict[str, str]] = call["messages"]
        options = call.get("optional_params") or {}
        system, role = ASKED.get()
        text = offline.answer(call["model"], messages, seed=options.get("seed"), system=system, role=role)
        response: ModelResponse = call["model_response"]
        response.choices[0].message.content = text
        asked, said = sum(_tokens(message["content"]) for message in messages), _tokens(text)
        usage = Usage(prompt_tokens=asked, completion_tokens=said, total_tokens=asked + said)
        setattr(response, "usage", usage)  # noqa: B010 - LiteLLM declares the field on no class
        return response


def _tokens(text: str) -> int:
    return -(-len(text) // 4)
