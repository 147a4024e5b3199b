"""The offline models as a LiteLLM custom provider, so that their calls take the same path as all others."""

import json
import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from litellm.exceptions import BadRequestError
from litellm.llms.custom_llm import CustomLLM
from litellm.types.utils import ChatCompletionMessageToolCall, Function, ModelResponse, Usage

from dialoom.roles import offline

from .calls import Request

CURRENT_REQUEST: ContextVar[Request | None] = ContextVar("CURRENT_REQUEST", default=None)
"""The current request, with the data that messages do not contain: role, prompt, inputs and tools."""

_ROLE_NUMBER = re.compile(r"-\d+\Z")
"""Number at the end of a role that has the same understudy as the role without it: `answerer-2`."""


class OfflineProvider(CustomLLM):
    """A LiteLLM provider whose models are understudies. Tokens are estimated as a quarter of the characters."""

    def completion(self, *_args: Any, **call: Any) -> ModelResponse:
        """Reject synchronous calls, which dialoom never makes.

        Raises:
            BadRequestError: Always.
        """
        raise _foreign_call_error(call["model"])

    async def acompletion(self, *_args: Any, **call: Any) -> ModelResponse:
        """Answer a call; LiteLLM passes all arguments by name.

        Raises:
            BadRequestError: If the call was not made by dialoom.
            UnderstudyError: If no understudy can answer it.
        """
        messages: list[dict[str, Any]] = call["messages"]
        options = call.get("optional_params") or {}
        if (request := CURRENT_REQUEST.get()) is None:
            raise _foreign_call_error(call["model"])
        role, tools = _ROLE_NUMBER.sub("", request.role), request.tools
        turn = offline.play(
            call["model"],
            messages,
            request.prompt_id,
            role,
            seed=options.get("seed"),
            inputs=request.inputs,
            tools=tools,
            reply_type=request.reply_type,
        )
        response: ModelResponse = call["model_response"]
        message = response.choices[0].message
        message.content = turn.words
        output_tokens = _estimate_tokens(turn.words)
        if turn.calls:
            functions = [Function(name=name, arguments=arguments) for name, arguments in turn.calls]
            message.tool_calls = [
                ChatCompletionMessageToolCall(id="", type="function", function=each) for each in functions
            ]
            output_tokens += sum(_estimate_tokens(name + arguments) for name, arguments in turn.calls)
        input_tokens = sum(_estimate_tokens(_format_message(each)) for each in messages)
        input_tokens += _estimate_tokens(json.dumps(tools, ensure_ascii=False)) if tools else 0
        usage = Usage(
            prompt_tokens=input_tokens, completion_tokens=output_tokens, total_tokens=input_tokens + output_tokens
        )
        setattr(response, "usage", usage)  # noqa: B010 - LiteLLM declares the field on no class
        return response


def _foreign_call_error(model: str) -> BadRequestError:
    """Return the error for a call not made by dialoom; LiteLLM re-raises its type unchanged."""
    return BadRequestError(
        f"offline/{model} can only be called by dialoom, which passes it the role and the prompt; use it as a role's "
        "model in dialoom, or call another model here",
        model,
        "offline",
    )


def _format_message(message: Mapping[str, Any]) -> str:
    """Return the text of a message that is counted as tokens."""
    calls = message.get("tool_calls")
    return (message.get("content") or "") + (json.dumps(calls, ensure_ascii=False) if calls else "")


def _estimate_tokens(text: str) -> int:
    return -(-len(text) // 4)
