"""The offline model as a LiteLLM custom provider, so that it takes the same way as every other model."""

import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from litellm.llms.custom_llm import CustomLLM
from litellm.types.utils import ChatCompletionMessageToolCall, Function, ModelResponse, Usage

from dialoom.prompts import ToolDefinition
from dialoom.roles import offline

ASKED: ContextVar[tuple[str, str, tuple[ToolDefinition, ...]]] = ContextVar("ASKED", default=("", "", ()))
"""Whose prompt is answered, and the role that is asked: it decides which understudy plays, not what it is shown; and
the tools that the request offers."""


class OfflineProvider(CustomLLM):
    """Answers from the request's messages alone. Tokens are counted as a quarter of the characters."""

    async def acompletion(self, *_args: Any, **call: Any) -> ModelResponse:
        """LiteLLM's door for async calls; it passes everything by name."""
        messages: list[dict[str, Any]] = call["messages"]
        options = call.get("optional_params") or {}
        system, role, tools = ASKED.get()
        turn = offline.play(call["model"], messages, seed=options.get("seed"), system=system, role=role, tools=tools)
        response: ModelResponse = call["model_response"]
        message = response.choices[0].message
        message.content = turn.words
        said = _tokens(turn.words)
        if turn.calls:
            message.tool_calls = [_call(*each) for each in turn.calls]
            said += sum(_tokens(name + arguments) for name, arguments in turn.calls)
        asked = sum(_tokens(_shown(each)) for each in messages)
        asked += _tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0
        usage = Usage(prompt_tokens=asked, completion_tokens=said, total_tokens=asked + said)
        setattr(response, "usage", usage)  # noqa: B010 - LiteLLM declares the field on no class
        return response


def _call(name: str, arguments: str) -> ChatCompletionMessageToolCall:
    return ChatCompletionMessageToolCall(id="", type="function", function=Function(name=name, arguments=arguments))


def _shown(message: Mapping[str, Any]) -> str:
    """What is read of a message, as far as it counts."""
    calls = message.get("tool_calls")
    return (message.get("content") or "") + (json.dumps(calls, ensure_ascii=False) if calls else "")


def _tokens(text: str) -> int:
    return -(-len(text) // 4)
