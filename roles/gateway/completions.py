"""Parsing of providers' replies into text, reasoning, finish reason and usage; their size limit; their stored form."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, NotRequired

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dialoom.prompts import FunctionCall
from dialoom.roles.errors import PermanentProviderError, PolicyError, ProviderError, TransientProviderError

from .calls import Completion, is_count
from .families import own_name
from .secrets import redact
from .wire import carried_of, part_of, read_calls

_TAG = "(?:think|thinking|thought|reasoning)"
_BLOCK = re.compile(rf"<({_TAG})>(.*?)(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_END = re.compile(rf"</{_TAG}\s*>", re.IGNORECASE)


def without_thinking(text: str) -> tuple[str, str | None]:
    """Split a reply into its text and the reasoning embedded in it.

    A block without a closing tag extends to the end, because the reply was cut off during the reasoning. A block
    without an opening tag starts at the beginning, because some servers put the opening tag into the request.
    """
    if "<" not in text:
        return text, None
    thoughts = [match[2].strip() for match in _BLOCK.finditer(text)]
    rest = _BLOCK.sub("", text)
    *unopened, answer = _END.split(rest)
    thoughts = [*(part.strip() for part in unopened), *thoughts]
    if rest == text and not unopened:
        return text, None
    return answer.strip(), "\n\n".join(thought for thought in thoughts if thought) or None


MOST_LETTERS = 1_000_000
"""Maximum length of an accepted reply in characters: several times the longest reply of any model."""


def ensure_short(model: str, *texts: str | None) -> None:
    """Reject a reply that is too long.

    Raises:
        PermanentProviderError: If the reply is too long; the message states the model and the length.
    """
    if (letters := sum(len(text) for text in texts if text)) > MOST_LETTERS:
        raise PermanentProviderError(f"{model}: the reply has {letters:,} characters; the maximum is {MOST_LETTERS:,}")


def completion_of(response: Any, model: str, served: str, cost: Any) -> Completion:
    """Convert LiteLLM's response to a completion.

    Args:
        response: The response.
        model: The model.
        served: The name by which it was called, such as its deployment's.
        cost: The cost by LiteLLM's table.

    Raises:
        TransientProviderError: If the response contains no choices.
        PolicyError: If the provider's content filter has removed the whole reply.
        PermanentProviderError: If the reply is too long.
    """
    failure: ProviderError | None = None
    try:
        completion = _read_choice(response, model)
    except ProviderError as error:
        completion, failure = Completion(""), error
    # LiteLLM's 0 for missing figures counts as unknown.
    usage = getattr(response, "usage", None)
    read, written = _count(usage, "prompt_tokens") or None, _count(usage, "completion_tokens")
    if written == 0 and (read is None or completion.text or completion.reasoning or completion.tool_calls):
        written = None
    in_prompt = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    possible = (in_prompt, getattr(usage, "cache_read_input_tokens", None))  # LiteLLM uses either field
    cached = next((value for value in possible if isinstance(value, int)), None)
    is_consistent = cached is None or 0 <= cached <= (read or 0)
    thought = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    is_priced = (
        isinstance(cost, int | float)
        and cost >= 0
        and read is not None
        and written is not None
        and is_consistent
        and (not isinstance(thought, int) or 0 <= thought <= written)
    )
    completion = replace(
        completion,
        input_tokens=read,
        output_tokens=written,
        cached_tokens=cached if is_consistent else None,
        reasoning_tokens=thought,
        cost=float(cost) if is_priced else None,
        changes=other_model(getattr(response, "model", None), model, served),
    )
    if failure is None:
        return completion
    if read is not None and written is not None:
        failure.billed = completion
    raise failure


def _read_choice(response: Any, model: str) -> Completion:
    """Return the first choice of a response, without its usage."""
    if not response.choices:
        raise TransientProviderError(f"{model}: the response contains no choices")
    choice = response.choices[0]
    message = choice.message
    details = getattr(message, "provider_specific_fields", None) or {}
    reasoning = getattr(message, "reasoning_content", None)
    return _completion(message, model, message.content, reasoning, details.get("refusal"), choice.finish_reason)


_EDITION = re.compile(r"(?:[-:](?:latest|free|\d{3,8}|\d{4}-\d\d-\d\d))+$")


def other_model(named: object, *names: str) -> str | None:
    """Return a text with the model that a reply names; `None` for the requested one, or a dated edition of it."""
    if not isinstance(named, str) or not named.strip():
        return None
    replied, *asked = (own_name(each.lower()).replace("@", "-") for each in (named, *names))
    for name in asked:
        newest = name.removesuffix(":free").removesuffix(":latest").removesuffix("-latest")
        if replied in (name, _EDITION.sub("", name)) or newest == _EDITION.sub("", replied):
            return None
    return f"replies name another model, {redact(named)!r:.80}".replace(";", ",")


def salvaged(answer: str | None, model: str) -> Completion | None:
    """Return the reply in an answer that LiteLLM cannot parse, such as one with text in its usage figures.

    The reply has been paid for, so it is used, with its token counts if they are plausible. Return `None` if the answer
    has no reply.

    Args:
        answer: The answer's body, if an answer arrived.
        model: The model that answered.
    """
    try:
        parsed = json.loads(answer or "")
        choice = parsed["choices"][0]
        message = choice["message"]
        content, reasoning, refusal = (message.get(key) for key in ("content", "reasoning_content", "refusal"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    said = (_text(each) for each in (content, reasoning, refusal, choice.get("finish_reason")))
    usage = parsed.get("usage")
    read, written = (part_of(usage, f"{kind}_tokens") or None for kind in ("prompt", "completion"))
    return replace(_completion(message, model, *said), input_tokens=read, output_tokens=written)


def billed(answer: str | None, written: int | None = None) -> Completion | None:
    """Return the tokens that an answer without a usable reply reports; `None` if it does not report them.

    Args:
        answer: The answer's body, if an answer arrived.
        written: The tokens of the reply, if the answer does not report them.
    """
    try:
        usage = json.loads(answer or "")["usage"]
        cached = part_of(part_of(usage, "prompt_tokens_details"), "cached_tokens")
        known = Completion("", usage["prompt_tokens"], usage.get("completion_tokens", written), cached)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return known if known.input_tokens and known.output_tokens is not None else None


def _completion(
    message: Any, model: str, content: str | None, reasoning: str | None, refusal: str | None, finish_reason: str | None
) -> Completion:
    ensure_short(model, content, reasoning, refusal)
    text, thoughts = without_thinking(content or "")
    if not text.strip() and refusal:
        text, finish_reason = refusal, "refusal"  # the text of the refusal is used as the reply
    if not text.strip() and finish_reason == "content_filter":
        raise PolicyError(
            f"{model}: the provider's content filter removed the reply (finish reason content_filter) - its policy "
            "rules out this scenario with this model"
        )
    known = "\n\n".join(part for part in (reasoning, thoughts) if part)
    calls = read_calls(part_of(message, "tool_calls"))
    carried = carried_of(message, model) if calls else None  # what must be sent back with the calls
    if calls:
        in_calls = (each for call in calls for each in (call["name"], call["arguments"]))
        ensure_short(model, text, json.dumps(carried) if carried else "", *in_calls)
    return Completion(
        text=text, finish_reason=finish_reason, reasoning=known or None, tool_calls=calls, carried=carried
    )


def _count(holder: Any, name: str) -> int | None:
    value = getattr(holder, name, None)
    return value if is_count(value) else None


def _text(value: object) -> str | None:
    """Return a string unchanged, or the joined texts of a list of parts; `None` for any other value."""
    if isinstance(value, list):
        return "".join(str(part.get("text", "")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else None


_BEGINNING = '{"content":'


class _StoredReply(TypedDict):
    content: str
    tool_calls: tuple[FunctionCall, ...]
    outputs: NotRequired[tuple[str, ...]]
    carried: NotRequired[dict[str, Any]]


_STORED_REPLY = TypeAdapter(_StoredReply)


def kept_text(completion: Completion) -> str:
    """Serialize a reply to the text that is stored."""
    rest = {"outputs": completion.outputs, "carried": completion.carried}
    known = {name: value for name, value in rest.items() if value}
    return _json_text({"content": completion.text, "tool_calls": completion.tool_calls, **known})


def read_reply(completion: Completion) -> Completion:
    """Restore a reply from its stored text.

    Args:
        completion: A completion whose `text` is the stored text.
    """
    if (stored := _read(completion.text)) is None:
        return completion
    return replace(
        completion,
        text=stored["content"],
        tool_calls=stored["tool_calls"],
        outputs=stored.get("outputs", ()),
        carried=stored.get("carried"),
    )


def _read(text: str) -> _StoredReply | None:
    """Parse a stored text; return `None` if it is plain text, or if `kept_text` cannot have produced it."""
    if not text.startswith(_BEGINNING):
        return None
    try:
        stored = _STORED_REPLY.validate_json(text)
    except (ValidationError, ValueError, RecursionError):
        return None
    return stored if _json_text(dict(stored)) == text else None


def _json_text(stored: dict[str, Any]) -> str:
    content: str = stored["content"]
    if not stored["tool_calls"] and _read(content) is None:
        return content
    return json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
