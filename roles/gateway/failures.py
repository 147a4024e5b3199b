"""Provider errors: their classification as transient or permanent, advice, and descriptions of unanswered requests."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from dialoom.roles.errors import (
    ContextError,
    OutageEvidence,
    PermanentProviderError,
    PolicyError,
    ProviderError,
    TransientProviderError,
    UnansweredError,
)

from .calls import Request
from .retries import MAX_RETRY_AFTER_SECONDS, parse_retry_after
from .secrets import redact

_CONTEXT_EXCEEDED = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:window|length|size)"
    r"|(?:prompt|input|request) is too (?:long|large)|input token count|input length should be"
    r"|request_too_large",
    re.IGNORECASE,
)
_CONTEXT_CERTAINLY_EXCEEDED = re.compile(
    r"exceed\w* (?:the )?(?:available |model'?s? )?context (?:window|length|size)|maximum context length", re.IGNORECASE
)
"""Messages that certainly report a too long request, so that a retry is useless even after a server error (500)."""

_NUMBER = r"(\d[\d,]*)"
_REQUEST_LENGTHS = (
    rf"(?:resulted in|requested|input contains at least|prompt contains(?: at least)?) {_NUMBER} (?:input )?tokens",
    rf"requested tokens \({_NUMBER}\)",
    rf"request \({_NUMBER} tokens\)",
    rf"{_NUMBER} tokens > ",
    rf"token count(?: of| \()? ?{_NUMBER}",
)
_WINDOW_LENGTHS = (
    rf"maximum context length (?:is|of) (?:only )?{_NUMBER}",
    rf"context (?:window|size|length)(?: of| is| \()? ?{_NUMBER}",
    rf"tokens > {_NUMBER}",
    rf"maximum number of tokens allowed \(?{_NUMBER}",
)


def describe_context_error(text: str, request: Request | None) -> str:
    """Return advice with the sizes of window and request as far as known, from the provider or estimated by dialoom."""
    needed, window = _find_number(_REQUEST_LENGTHS, text), _find_number(_WINDOW_LENGTHS, text)
    if needed is None and request is not None:
        needed = f"about {request.character_count // 4:,}"
    return format_too_long(needed and f"{needed} tokens", window, request)


def format_too_long(needed: str | None, window: str | None, request: Request | None) -> str:
    """Return a message about a request that is too long: the known lengths of window and request, and advice."""
    lengths = [needed] if needed else []
    lengths += [f"its context window is {window}"] if window else []
    length = f" ({'; '.join(lengths)})" if lengths else ""
    role = f"the role {request.role}" if request else "its role"
    return (
        f"the request exceeds the model's context window{length}: give {role} a model with a longer context, "
        "or make the conversation shorter"
    )


def _find_number(patterns: tuple[str, ...], text: str) -> str | None:
    for pattern in patterns:
        if match := re.search(pattern, text, re.IGNORECASE):
            return f"{int(match[1].replace(',', '')):,}"
    return None


_REASONS_BY_ERRNO = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.ENETUNREACH: "network unreachable",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ETIMEDOUT: "no answer to the connection",
}
_UNAVAILABLE_STATUSES = frozenset({502, 503, 504})
# Exceptions are compared by name: LiteLLM's HTTP client depends on the provider and the settings, and no client is
# imported here.
_NO_CONNECTION_ERRORS = frozenset({"ClientConnectorError", "ConnectError", "ConnectTimeout", "ConnectionTimeoutError"})
_LOST_CONNECTION_ERRORS = frozenset(
    {"ServerDisconnectedError", "ClientOSError", "ClientPayloadError", "RemoteProtocolError", "ReadError", "WriteError"}
)
_TIMEOUT_ERRORS = frozenset({"Timeout", "TimeoutException", "APITimeoutError"})
_TLS_CODE = re.compile(r"\[SSL: (\w+)\]")


@dataclass(frozen=True, slots=True)
class UnansweredRequest:
    """An unanswered request.

    Attributes:
        evidence: The strength of the evidence that the provider is unavailable.
        reason: The cause, as in `connection refused`.
        host: The host to which no connection could be established; `None` if there was a connection, or if the host is
            unknown.
    """

    evidence: OutageEvidence
    reason: str
    host: str | None = None


def describe_unanswered(error: BaseException, status: int | None) -> UnansweredRequest | None:
    """Describe an error that did not come from the provider's server; return `None` for one that the server reported.

    Args:
        error: The exception that LiteLLM raised.
        status: The exception's HTTP status, which LiteLLM may have invented.
    """
    causes = list(_iter_causes(error))
    class_names = {kind.__name__ for each in causes for kind in type(each).__mro__}
    is_lost = bool(class_names & _LOST_CONNECTION_ERRORS)
    if "ClientConnectorError" in class_names or (class_names & _NO_CONNECTION_ERRORS and not is_lost):
        host = next((str(host) for each in causes if isinstance(host := getattr(each, "host", None), str)), None)
        return UnansweredRequest(OutageEvidence.STRONG, _find_reason(causes) or "no connection", host)
    if is_lost:
        return UnansweredRequest(OutageEvidence.WEAK, _find_reason(causes) or "connection closed before an answer")
    if 504 in [getattr(each, "status_code", None) for each in causes]:
        status = 504  # LiteLLM reports it as its own timeout
    elif class_names & _TIMEOUT_ERRORS or isinstance(error, TimeoutError):
        return UnansweredRequest(OutageEvidence.NONE, "no answer in time")
    if status in _UNAVAILABLE_STATUSES:
        return UnansweredRequest(OutageEvidence.WEAK, f"status {status}")
    return None


def _iter_causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _find_reason(causes: list[BaseException]) -> str | None:
    """Return a description of the cause, from the innermost exception that has one."""
    for error in reversed(causes):
        if isinstance(error, socket.gaierror):
            return "its host name cannot be resolved (DNS)"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted ({error.verify_message})"
        if isinstance(error, ssl.SSLError):
            code = _TLS_CODE.search(str(error))
            return "TLS handshake failed" + (f" ({code[1].lower().replace('_', ' ')})" if code else "")
        if isinstance(error, OSError) and error.errno in _REASONS_BY_ERRNO:
            return _REASONS_BY_ERRNO[error.errno]
    return None


_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_OVERLOAD_STATUSES = frozenset({429, 503, 529})
_MAX_MESSAGE_CHARACTERS = 600
_TRACEBACK_START = "Traceback (most recent call last)"
_POLICY = re.compile(
    r"content_policy_violation|content management policy|content_filter|responsible_?ai|safety system"
    r"|data_inspection_failed|flagged_input",
    re.IGNORECASE,
)
# The SDKs raise this before anything is sent; LiteLLM reports it as status 500.
_NO_KEY = re.compile(r"missing credentials|api_key client option must be set|missing .{0,40}api key", re.IGNORECASE)
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance", re.IGNORECASE)  # OpenAI with 429, Anthropic with 400
# LiteLLM's proxy reports an unknown key and an unknown model with status 400; without a database, it accepts only its
# master key.
_UNKNOWN_KEY = re.compile(r"no connected db|no_db_connection", re.IGNORECASE)
_UNKNOWN_MODEL = re.compile(r"invalid model name|model_not_found", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"support\w* (?:tool|function)|tool use|tool choice requires|tools param requires", re.IGNORECASE
)
_ERROR = re.compile(r'"error"\s*:\s*(?!null)')
_NOISE = re.compile(r"^(?:litellm\.\w+: |\w+(?:Error|Exception|Timeout): |Timeout Error: |\w+(?:Exception|Error) - )+")


def classify_error(
    error: Exception, model: str, request: Request | None = None, response_text: str | None = None
) -> ProviderError:
    """Convert an exception to a `ProviderError` whose message contains no API key.

    Args:
        error: The exception that LiteLLM raised.
        model: The model that was called.
        request: The request, for advice.
        response_text: The body of a successful response that LiteLLM could not parse, if there was one.
    """
    error_text, status, name = str(error), get_status(error), type(error).__name__
    bodies = (body for each in _iter_causes(error) if isinstance(body := getattr(each, "body", None), dict))
    code = next((body.get("code") or body.get("type") for body in bodies), None)
    text = f"{error_text} {code}"
    message = ": ".join(filter(None, (model, f"{name} ({status})" if status else name, _clean_message(error_text))))
    if response_text is not None:
        message = f"{model}: the response contains no reply: {_clean_message(response_text) or 'it is empty'}"
        if not _ERROR.search(response_text):
            return TransientProviderError(message)
    if _NO_KEY.search(error_text):
        return PermanentProviderError(f"{message} - a key is needed in {_format_key_variables(model)}")
    if status == 402 or (status in (400, 429) and _NO_CREDIT.search(text)):
        return PermanentProviderError(f"{message} - the account has no credit left: top it up, then retry the run")
    context_pattern = _CONTEXT_EXCEEDED if status in (400, 422) else _CONTEXT_CERTAINLY_EXCEEDED
    if name == "ContextWindowExceededError" or status == 413 or context_pattern.search(text):
        return ContextError(f"{message} - {describe_context_error(text, request)}")
    if name == "ContentPolicyViolationError" or (status in (400, 403) and _POLICY.search(text)):
        return PolicyError(
            f"{message} - the provider's content policy rejects the request: it rules out this scenario with this model"
        )
    if status is not None and 400 <= status < 500 and status not in _TRANSIENT_STATUSES:
        advice = _find_advice(text, status, model, request)
        return PermanentProviderError(f"{message} - {advice}" if advice else message)
    if status is None and not isinstance(error, (OSError, TimeoutError)):
        return PermanentProviderError(message)
    is_overload = status in _OVERLOAD_STATUSES or "overloaded" in error_text.lower()
    # LiteLLM attaches the headers to the exception; the exception's own response has none.
    headers = getattr(error, "litellm_response_headers", None)
    headers = headers if headers is not None else getattr(getattr(error, "response", None), "headers", None)
    requested_pause = parse_retry_after(headers or {}, error_text)
    pause = None if requested_pause is None else min(requested_pause, MAX_RETRY_AFTER_SECONDS)
    if (unanswered := describe_unanswered(error, status)) is None:
        return TransientProviderError(message, is_overload, pause)
    location = (request.api_base if request else None) or unanswered.host or model.partition("/")[0]
    plain_message = f"{model}: {location}: {unanswered.reason}"
    if unanswered.evidence is OutageEvidence.STRONG:  # there are no names of library objects in these messages
        plain_message = f"{model}: cannot connect to {location}: {unanswered.reason}"
    elif unanswered.reason.startswith("status"):
        plain_message = message
    raw_message = message if error_text else plain_message
    return UnansweredError(
        plain_message,
        is_overload,
        pause,
        evidence=unanswered.evidence,
        reason=unanswered.reason,
        raw_message=raw_message,
    )


def get_status(error: Exception) -> int | None:
    """Return the HTTP status that LiteLLM has assigned to an exception; `None` if there is none."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _clean_message(message: str) -> str:
    """Return a message without LiteLLM's prefixes and traceback.

    Keys are redacted first, while they are still whole.
    """
    text = " ".join(_NOISE.sub("", redact(message).partition(_TRACEBACK_START)[0]).split())
    return text if len(text) <= _MAX_MESSAGE_CHARACTERS else text[:_MAX_MESSAGE_CHARACTERS] + "..."


def _find_advice(text: str, status: int, model: str, request: Request | None) -> str:
    role = f"the role {request.role}" if request else "its role"
    if request and request.tools and _NO_TOOLS.search(text):
        return (
            f"the model, as served, accepts no tools: give {role} a model that does, or use calls written as text if "
            "the recipe supports that"
        )
    if status == 401 or (status == 400 and _UNKNOWN_KEY.search(text)):
        return f"a key that the provider accepts is needed in {_format_key_variables(model)}"
    if status == 403:
        return f"the key in {_format_key_variables(model)} may not use this model: check the account's access to it"
    if status == 404 or (status == 400 and _UNKNOWN_MODEL.search(text)):
        location = f" at {request.api_base}" if request and request.api_base else ""
        return (
            f"there is no such model{location}: check the name given for {role} (PROVIDER/NAME) and the address "
            "(api_base)"
        )
    if request and request.temperature is not None and re.search(r"\btemperature\b", text, re.IGNORECASE):
        return f"give {role} another temperature, or 'none' to send none"
    for name in request.params if request else ():
        if re.search(rf"\b{name}\b", text):
            return f"give {role} another value of {name}, or leave it out (params)"
    return "" if status != 400 else "the provider rejects this request, so it is not sent again"


def _format_key_variables(model: str) -> str:
    """Return the environment variables from which the model's provider reads its key."""
    import litellm

    try:
        missing = litellm.validate_environment(model)["missing_keys"]
        provider = litellm.get_llm_provider(model)[1]
    except Exception:
        missing, provider = [], ""
    if keys := [name for name in missing if "KEY" in name] or missing:
        return " or ".join(keys)
    candidates = [name for name in sorted(os.environ) if name.startswith(provider.upper()) and name.endswith("API_KEY")]
    return " or ".join(candidates) or f"{provider.upper() or 'PROVIDER'}_API_KEY"
