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

from .calls import Completion, is_token_count
from .families import strip_prefixes
from .secrets import redact
from .wire import extract_carried, get_field, parse_calls

_TAG = "(?:think|thinking|thought|reasoning)"
_THINKING_BLOCK = re.compile(rf"<({_TAG})>(.*?)(?:</\1\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_THINKING_END = re.compile(rf"</{_TAG}\s*>", re.IGNORECASE)


def split_reasoning(text: str) -> tuple[str, str | None]:
    """Split a reply into its text and the reasoning embedded in it.

    A block without a closing tag extends to the end, because the reply was cut off during the reasoning. A block
    without an opening tag starts at the beginning, because some servers put the opening tag into the request.
    """
    if "<" not in text:
        return text, None
    thoughts = [match[2].strip() for match in _THINKING_BLOCK.finditer(text)]
    rest = _THINKING_BLOCK.sub("", text)
    *unopened, answer = _THINKING_END.split(rest)
    thoughts = [*(part.strip() for part in unopened), *thoughts]
    if rest == text and not unopened:
        return text, None
    return answer.strip(), "\n\n".join(thought for thought in thoughts if thought) or None


MAX_REPLY_CHARACTERS = 1_000_000
"""Maximum length of an accepted reply in characters: several times the longest reply of any model."""


def check_length(model: str, *texts: str | None) -> None:
    """Reject a reply that is too long.

    Raises:
        PermanentProviderError: If the reply is too long; the message states the model and the length.
    """
    if (characters := sum(len(text) for text in texts if text)) > MAX_REPLY_CHARACTERS:
        raise PermanentProviderError(
            f"{model}: the reply has {characters:,} characters; the maximum is {MAX_REPLY_CHARACTERS:,}"
        )


def parse_response(response: Any, model: str, served: str, cost: Any) -> Completion:
    """Convert LiteLLM's response to a completion.

    Args:
        response: The response.
        model: The model.
        served: The name by which it was called, such as its deployment's.
        cost: The cost by LiteLLM's table.

    Raises:
        TransientProviderError: If the response contains no choices, or an error in its choice.
        PolicyError: If the provider's content filter has removed the whole reply.
        PermanentProviderError: If the reply is too long.
    """
    failure: ProviderError | None = None
    try:
        completion = _parse_choice(response, model)
    except ProviderError as error:
        completion, failure = Completion(""), error
    # LiteLLM's 0 for missing figures counts as unknown.
    usage = getattr(response, "usage", None)
    input_tokens, output_tokens = _get_count(usage, "prompt_tokens") or None, _get_count(usage, "completion_tokens")
    if output_tokens == 0 and (
        input_tokens is None or completion.text or completion.reasoning or completion.tool_calls
    ):
        output_tokens = None
    in_prompt = getattr(getattr(usage, "prompt_tokens_details", None), "cached_tokens", None)
    possible = (in_prompt, getattr(usage, "cache_read_input_tokens", None))  # LiteLLM uses either field
    cached_tokens = next((value for value in possible if isinstance(value, int)), None)
    is_consistent = cached_tokens is None or 0 <= cached_tokens <= (input_tokens or 0)
    reasoning_tokens = getattr(getattr(usage, "completion_tokens_details", None), "reasoning_tokens", None)
    is_priced = (
        isinstance(cost, int | float)
        and cost >= 0
        and input_tokens is not None
        and output_tokens is not None
        and is_consistent
        and (not isinstance(reasoning_tokens, int) or 0 <= reasoning_tokens <= output_tokens)
    )
    completion = replace(
        completion,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cached_tokens=cached_tokens if is_consistent else None,
        reasoning_tokens=reasoning_tokens,
        cost=float(cost) if is_priced else None,
        changes=describe_model_mismatch(getattr(response, "model", None), model, served),
    )
    if failure is None:
        return completion
    if input_tokens is not None and output_tokens is not None:
        failure.billed = completion
    raise failure


def _parse_choice(response: Any, model: str) -> Completion:
    """Return the first choice of a response, without its usage."""
    if not response.choices:
        raise TransientProviderError(f"{model}: the response contains no choices")
    choice = response.choices[0]
    extra = getattr(choice, "provider_specific_fields", None) or {}
    # OpenRouter reports a provider's failure during the reply like this, with status 200.
    if failure := getattr(choice, "error", None) or extra.get("error"):
        text = get_field(failure, "message") or failure
        raise TransientProviderError(f"{model}: the provider failed during the reply: {redact(str(text)):.600}")
    message = choice.message
    details = getattr(message, "provider_specific_fields", None) or {}
    reasoning = getattr(message, "reasoning_content", None)
    return _build_completion(message, model, message.content, reasoning, details.get("refusal"), choice.finish_reason)


_VERSION_SUFFIX = re.compile(r"(?:[-:](?:latest|free|\d{3,8}|\d{4}-\d\d-\d\d))+$")


def describe_model_mismatch(replied_name: object, *names: str) -> str | None:
    """Return a text with the model that a reply names; `None` for the requested one, or a dated edition of it."""
    if not isinstance(replied_name, str) or not replied_name.strip():
        return None
    replied, *requested = (strip_prefixes(each.lower()).replace("@", "-") for each in (replied_name, *names))
    for name in requested:
        newest = name.removesuffix(":free").removesuffix(":latest").removesuffix("-latest")
        if replied in (name, _VERSION_SUFFIX.sub("", name)) or newest == _VERSION_SUFFIX.sub("", replied):
            return None
    return f"replies name another model, {redact(replied_name)!r:.80}".replace(";", ",")


def recover_reply(body: str | None, model: str) -> Completion | None:
    """Return the reply in an answer that LiteLLM cannot parse, such as one with text in its usage figures.

    The reply has been paid for, so it is used, with its token counts if they are plausible. Return `None` if the answer
    has no reply.

    Args:
        body: The answer's body, if an answer arrived.
        model: The model that answered.
    """
    try:
        parsed = json.loads(body or "")
        choice = parsed["choices"][0]
        message = choice["message"]
        content, reasoning, refusal = (message.get(key) for key in ("content", "reasoning_content", "refusal"))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    texts = (_join_text(each) for each in (content, reasoning, refusal, choice.get("finish_reason")))
    usage = parsed.get("usage")
    input_tokens, output_tokens = (get_field(usage, f"{kind}_tokens") or None for kind in ("prompt", "completion"))
    return replace(_build_completion(message, model, *texts), input_tokens=input_tokens, output_tokens=output_tokens)


def parse_billed_usage(body: str | None, output_tokens: int | None = None) -> Completion | None:
    """Return the tokens that an answer without a usable reply reports; `None` if it does not report them.

    Args:
        body: The answer's body, if an answer arrived.
        output_tokens: The tokens of the reply, if the answer does not report them.
    """
    try:
        answer = json.loads(body or "")
        usage = answer.get("usage") or answer.get("usageMetadata") or answer  # Ollama has its figures in the answer
        inputs, outputs = next(form for form in _USAGE_FORMS if form[0][0] in usage)
        details = get_field(usage, "prompt_tokens_details") or get_field(usage, "input_tokens_details")
        cached = (get_field(details, "cached_tokens"), *(usage.get(name) for name in _CACHED_FIELDS))
        usage_only = Completion(
            "",
            sum(usage.get(name) or 0 for name in inputs),
            sum(usage[name] for name in outputs if name in usage) if usage.keys() & outputs else output_tokens,
            next((each for each in cached if each is not None), None),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, StopIteration):
        return None
    return usage_only if usage_only.input_tokens and usage_only.output_tokens is not None else None


_USAGE_FORMS = (
    (("prompt_tokens",), ("completion_tokens",)),
    (("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"), ("output_tokens",)),
    (("promptTokenCount",), ("candidatesTokenCount", "thoughtsTokenCount")),
    (("prompt_eval_count",), ("eval_count",)),
)
"""The fields whose sums are the input tokens and the output tokens: of chat completions, of Anthropic and OpenAI's
Responses API, of Gemini, and of Ollama.
"""

_CACHED_FIELDS = ("cache_read_input_tokens", "cachedContentTokenCount")

_REPORTED_REASONING = re.compile(r'"(?:reasoning_tokens|thinking_tokens|thoughtsTokenCount)"')


def discard_estimates(completion: Completion, model: str, body: str) -> Completion:
    """Return a completion without the token counts that LiteLLM estimates because the answer does not report them.

    Args:
        completion: The completion.
        model: The model that answered.
        body: The answer's body.
    """
    if completion.reasoning_tokens and not _REPORTED_REASONING.search(body):  # estimated from Claude's visible thinking
        completion = replace(completion, reasoning_tokens=None)
    if model.startswith("ollama") and '"prompt_eval_count"' not in body:
        completion = replace(completion, input_tokens=None, cost=None)
    if model.startswith("ollama") and '"eval_count"' not in body:
        completion = replace(completion, output_tokens=None, cost=None)
    return completion


def _build_completion(
    message: Any, model: str, content: str | None, reasoning: str | None, refusal: str | None, finish_reason: str | None
) -> Completion:
    check_length(model, content, reasoning, refusal)
    text, thoughts = split_reasoning(content or "")
    if not text.strip() and refusal:
        text, finish_reason = refusal, "refusal"  # the text of the refusal is used as the reply
    if not text.strip() and finish_reason == "content_filter":
        raise PolicyError(
            f"{model}: the provider's content filter removed the reply (finish reason content_filter) - its policy "
            "rules out this scenario with this model"
        )
    all_reasoning = "\n\n".join(part for part in (reasoning, thoughts) if part)
    calls = parse_calls(get_field(message, "tool_calls"))
    carried = extract_carried(message, model) if calls else None  # what must be sent back with the calls
    if calls:
        call_texts = (each for call in calls for each in (call["name"], call["arguments"]))
        check_length(model, text, json.dumps(carried) if carried else "", *call_texts)
    return Completion(
        text=text, finish_reason=finish_reason, reasoning=all_reasoning or None, tool_calls=calls, carried=carried
    )


def _get_count(holder: Any, name: str) -> int | None:
    value = getattr(holder, name, None)
    return value if is_token_count(value) else None


def _join_text(value: object) -> str | None:
    """Return a string unchanged, or the joined texts of a list of parts; `None` for any other value."""
    if isinstance(value, list):
        return "".join(str(part.get("text", "")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else None


_STORED_PREFIX = '{"content":'


class _StoredReply(TypedDict):
    content: str
    tool_calls: tuple[FunctionCall, ...]
    outputs: NotRequired[tuple[str, ...]]
    carried: NotRequired[dict[str, Any]]


_STORED_REPLY = TypeAdapter(_StoredReply)


def serialize_reply(completion: Completion) -> str:
    """Serialize a reply to the text that is stored."""
    rest = {"outputs": completion.outputs, "carried": completion.carried}
    known = {name: value for name, value in rest.items() if value}
    return _dump_stored({"content": completion.text, "tool_calls": completion.tool_calls, **known})


def deserialize_reply(completion: Completion) -> Completion:
    """Restore a reply from its stored text.

    Args:
        completion: A completion whose `text` is the stored text.
    """
    if (stored := _parse_stored(completion.text)) is None:
        return completion
    return replace(
        completion,
        text=stored["content"],
        tool_calls=stored["tool_calls"],
        outputs=stored.get("outputs", ()),
        carried=stored.get("carried"),
    )


def _parse_stored(text: str) -> _StoredReply | None:
    """Parse a stored text; return `None` if it is plain text, or if `serialize_reply` cannot have produced it."""
    if not text.startswith(_STORED_PREFIX):
        return None
    try:
        stored = _STORED_REPLY.validate_json(text)
    except (ValidationError, ValueError, RecursionError):
        return None
    return stored if _dump_stored(dict(stored)) == text else None


def _dump_stored(stored: dict[str, Any]) -> str:
    content: str = stored["content"]
    if not stored["tool_calls"] and _parse_stored(content) is None:
        return content
    return json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
