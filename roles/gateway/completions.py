"""Reading a provider's answer: its text, its reasoning, why it ended, and what it took, as far as that can be so."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from dialoom.roles.errors import PolicyError, TransientProviderError

from .calls import Completion, is_count
from .reply_size import ensure_short
from .thinking import without_thinking
from .tool_wire import carried_of, read_calls


def completion_of(response: Any, model: str) -> Completion:
    """LiteLLM's response as a completion.

    Raises:
        TransientProviderError: If it holds no choice.
        PolicyError: If the provider's content filter has taken all of it.
        PermanentProviderError: If it is too long.
    """
    if not response.choices:
        raise TransientProviderError(f"{model}: the answer holds no choice")
    choice = response.choices[0]
    message = choice.message
    details = getattr(message, "provider_specific_fields", None) or {}
    completion = _completion(
        message.content,
        getattr(message, "reasoning_content", None),
        details.get("refusal"),
        choice.finish_reason,
        model,
    )
    completion = _calling(completion, message, model)
    cost = (response._hidden_params or {}).get("response_cost")
    return _booked(completion, getattr(response, "usage", None), cost)


def salvaged(answer: str | None, model: str) -> Completion | None:
    """Return the reply in an answer that LiteLLM cannot read, such as one whose usage holds words.

    It has been paid for, so it is used; what it took is unknown. Without a reply, return `None`.

    Args:
        answer: The answer's body, if one came.
        model: The model that gave it.
    """
    try:
        choice = json.loads(answer or "")["choices"][0]
        message = choice["message"]
        content, reasoning, refusal = (message.get(key) for key in ("content", "reasoning_content", "refusal"))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
    said = _completion(_text(content), _text(reasoning), _text(refusal), _text(choice.get("finish_reason")), model)
    return _calling(said, message, model)


def _completion(
    content: str | None, reasoning: str | None, refusal: str | None, finish_reason: str | None, model: str
) -> Completion:
    ensure_short(model, content, reasoning, refusal)
    text, thoughts = without_thinking(content or "")
    if not text.strip() and refusal:
        text, finish_reason = refusal, "refusal"  # that is what it said
    if not text.strip() and finish_reason == "content_filter":
        raise PolicyError(
            f"{model}: the reply was taken by the provider's content filter (finish reason content_filter) - its "
            "policy stands against this scenario with this model"
        )
    known = [part for part in (reasoning, thoughts) if part]
    return Completion(text=text, finish_reason=finish_reason, reasoning="\n\n".join(known) or None)


def _calling(completion: Completion, message: Any, model: str) -> Completion:
    """With the calls of a reply, and what the provider will want back with them."""
    given = message.get("tool_calls") if isinstance(message, dict) else getattr(message, "tool_calls", None)
    if not (calls := read_calls(given)):
        return completion
    carried = carried_of(message, model)
    thoughts = "" if carried is None else json.dumps(carried)
    ensure_short(
        model, completion.text, thoughts, *(text for call in calls for text in (call["name"], call["arguments"]))
    )
    return replace(completion, tool_calls=calls, carried=carried)


def _booked(completion: Completion, usage: Any, cost: Any) -> Completion:
    """With tokens and cost, where the figures can be true; a provider that says nothing has LiteLLM say 0."""
    asked, said = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    if asked == 0:
        asked = None
    if said == 0 and (asked is None or completion.text or completion.reasoning or completion.tool_calls):
        said = None
    cached = _cached(usage)
    is_consistent = cached is None or 0 <= cached <= (asked or 0)
    is_priced = isinstance(cost, int | float) and cost >= 0 and asked is not None and said is not None and is_consistent
    return replace(
        completion,
        input_tokens=asked,
        output_tokens=said,
        cached_tokens=cached if is_consistent else None,
        cost=float(cost) if is_priced else None,
    )


def _cached(usage: Any) -> int | None:
    """Tokens read from a prompt cache, as stated; LiteLLM keeps them in the first place, or only in the second."""
    details = getattr(usage, "prompt_tokens_details", None)
    for value in (getattr(details, "cached_tokens", None), getattr(usage, "cache_read_input_tokens", None)):
        if isinstance(value, int):
            return value
    return None


def _count(holder: Any, name: str) -> int | None:
    value = getattr(holder, name, None)
    return value if is_count(value) else None


def _text(value: object) -> str | None:
    """A text, also one that comes in parts."""
    if isinstance(value, list):
        return "".join(str(part.get("text", "")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else None
