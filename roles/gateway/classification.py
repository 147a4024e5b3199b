"""What a provider's failure is to us: worth another attempt, or final, and then with advice."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from dialoom.roles.errors import (
    Absence,
    ContextError,
    PermanentProviderError,
    PolicyError,
    ProviderError,
    TransientProviderError,
    UnansweredError,
)

from . import context
from .calls import Request
from .retry_after import capped, retry_after
from .secrets import redacted
from .unanswered import Unanswered, unanswered

_TRANSIENT = frozenset({408, 409, 425, 429})
_OVERLOAD = frozenset({429, 503, 529})
_LONGEST = 600
_TRACE = "Traceback (most recent call last)"
_POLICY = re.compile(
    r"content_policy_violation|content management policy|content_filter|responsible_?ai|safety system", re.IGNORECASE
)
# Said before anything is sent, by the SDKs; LiteLLM makes a status 500 of it.
_NO_KEY = re.compile(r"missing credentials|api_key client option must be set|missing .{0,40}api key", re.IGNORECASE)
# LiteLLM's proxy says these two with status 400; without a database, it knows no key but its master key.
_UNKNOWN_KEY = re.compile(r"no connected db|no_db_connection", re.IGNORECASE)
_UNKNOWN_MODEL = re.compile(r"invalid model name|model_not_found", re.IGNORECASE)
_NO_TOOLS = re.compile(
    r"support\w* (?:tool|function)|tool use|tool choice requires|tools param requires", re.IGNORECASE
)
_ERROR = re.compile(r'"error"\s*:\s*(?!null)')
_NOISE = re.compile(r"^(?:litellm\.\w+: |\w+(?:Error|Exception|Timeout): |Timeout Error: |\w+(?:Exception|Error) - )+")


def classified(
    error: Exception, model: str, request: Request | None = None, answer: str | None = None
) -> ProviderError:
    """Return a provider's exception as one of ours, without any key in its message.

    Args:
        error: What LiteLLM raised.
        model: The model that was asked.
        request: What it was asked, for advice.
        answer: The body of an answer with a status of success that LiteLLM could not read, if one came.
    """
    said = str(error)
    status = status_of(error)
    kind = f"{type(error).__name__}{f' ({status})' if status else ''}"
    message = ": ".join(filter(None, (model, kind, _shown(said))))
    if answer is not None:
        message = f"{model}: the answer holds no reply: {_shown(answer) or 'it is empty'}"
        if not _ERROR.search(answer):
            return TransientProviderError(message)
    if _NO_KEY.search(said):
        return PermanentProviderError(f"{message} - a key is needed in {_key_names(model)}")
    if _is_out_of_money(error, status, said):
        return PermanentProviderError(f"{message} - the account has no credit left: top it up, then retry the run")
    if (told := _too_long(error, status)) is not None:
        return ContextError(f"{message} - {context.advice(told, request)}")
    if _is_policy(error, status):
        return PolicyError(
            f"{message} - the provider refuses what it says: its content policy stands against this scenario with this "
            "model"
        )
    if status is not None and 400 <= status < 500 and status not in _TRANSIENT:
        advice = _advice(error, status, model, request)
        return PermanentProviderError(f"{message} - {advice}" if advice else message)
    if status is None and not isinstance(error, (OSError, TimeoutError)):
        return PermanentProviderError(message)
    is_overload = status in _OVERLOAD or "overloaded" in said.lower()
    pause = capped(retry_after(_headers(error), said))
    if (found := unanswered(error, status)) is None:
        return TransientProviderError(message, is_overload, pause)
    plain = _plain(found, model, request) or message
    raw = message if said else plain
    return UnansweredError(plain, is_overload, pause, absence=found.absence, reason=found.reason, raw=raw)


def _plain(found: Unanswered, model: str, request: Request | None) -> str | None:
    """What happened below HTTP, without the names of those libraries' objects; `None` where a status says it."""
    at = (request.api_base if request else None) or found.host or model.partition("/")[0]
    if found.absence is Absence.CERTAIN:
        return f"{model}: cannot connect to {at}: {found.reason}"
    return None if found.reason.startswith("status") else f"{model}: {at}: {found.reason}"


def status_of(error: Exception) -> int | None:
    """The HTTP status that LiteLLM has found or chosen for an exception."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _shown(said: str) -> str:
    """Return what was said without LiteLLM's preface and trace; keys go first, or a part of one could be left."""
    text = " ".join(_NOISE.sub("", redacted(said).partition(_TRACE)[0]).split())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def _headers(error: Exception) -> Mapping[str, str]:
    """LiteLLM puts the response's headers beside it: the response that it makes up itself has none."""
    headers = getattr(error, "litellm_response_headers", None)
    return headers if headers is not None else getattr(getattr(error, "response", None), "headers", None) or {}


def _is_out_of_money(error: Exception, status: int | None, said: str) -> bool:
    """OpenAI says that with the status of a rate limit, and LiteLLM leaves the code to the exception's cause."""
    if status == 402:
        return True
    return status == 429 and ("insufficient_quota" in said or _body_code(error) == "insufficient_quota")


def _body_code(error: BaseException | None) -> Any:
    while error is not None:
        if isinstance(body := getattr(error, "body", None), dict):
            return body.get("code") or body.get("type")
        error = error.__cause__ or error.__context__
    return None


def _too_long(error: Exception, status: int | None) -> str | None:
    """All that the error says, if that is that the request is too long; LiteLLM knows it for some providers only."""
    told = f"{error} {_body_code(error)}"
    is_so = type(error).__name__ == "ContextWindowExceededError" or context.is_too_long(status, told)
    return told if is_so else None


def _is_policy(error: Exception, status: int | None) -> bool:
    """Whether a content policy refuses the request; LiteLLM knows it for some providers only."""
    if type(error).__name__ == "ContentPolicyViolationError":
        return True
    return status in (400, 403) and bool(_POLICY.search(f"{error} {_body_code(error)}"))


def _advice(error: Exception, status: int, model: str, request: Request | None) -> str:
    role = f"the role {request.role}" if request else "its role"
    told = f"{error} {_body_code(error)}"
    if request and request.tools and _NO_TOOLS.search(told):
        return (
            f"it takes no tools as it is served: give {role} a model that does, or have calls written as text, if the "
            "recipe can"
        )
    if status == 401 or (status == 400 and _UNKNOWN_KEY.search(told)):
        return f"a key that the provider accepts is needed in {_key_names(model)}"
    if status == 403:
        return f"the key in {_key_names(model)} may not use this model: check the account's access to it"
    if status == 404 or (status == 400 and _UNKNOWN_MODEL.search(told)):
        at = f" at {request.api_base}" if request and request.api_base else ""
        return f"there is no such model{at}: check the name given for {role} (PROVIDER/NAME) and the address (api_base)"
    if request and request.temperature is not None and re.search(r"\btemperature\b", told, re.IGNORECASE):
        return f"give {role} another temperature, or 'none' to send none"
    for name in request.params if request else ():
        if re.search(rf"\b{name}\b", told):
            return f"give {role} another value of {name}, or leave it out (params)"
    return "" if status != 400 else "the provider will not take this request as it is; the same one is not sent again"


def _key_names(model: str) -> str:
    """The environment variables that the model's provider reads its key from."""
    import litellm

    try:
        missing = litellm.validate_environment(model)["missing_keys"]
        provider = litellm.get_llm_provider(model)[1]
    except Exception:
        missing, provider = [], ""
    if missing:
        return " or ".join(missing)
    likely = [name for name in sorted(os.environ) if name.startswith(provider.upper()) and name.endswith("API_KEY")]
    return " or ".join(likely) or f"{provider.upper() or 'PROVIDER'}_API_KEY"
