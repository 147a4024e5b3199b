"""A request that is longer than its model reads: how providers say so, and what is said of it here."""

from __future__ import annotations

import re

from .calls import Request

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|context (?:window|length|size)"
    r"|(?:prompt|input|request) is too (?:long|large)|input token count",
    re.IGNORECASE,
)
_CERTAIN = re.compile(
    r"exceed\w* (?:the )?(?:available |model'?s? )?context (?:window|length|size)|maximum context length", re.IGNORECASE
)
"""So plain that even a status for trouble of the server's own (500) does not make another attempt worth while."""

_NUMBER = r"(\d[\d,]*)"
_ASKED = (
    rf"(?:resulted in|requested|input contains at least|prompt contains(?: at least)?) {_NUMBER} (?:input )?tokens",
    rf"requested tokens \({_NUMBER}\)",
    rf"request \({_NUMBER} tokens\)",
    rf"{_NUMBER} tokens > ",
    rf"token count(?: of| \()? ?{_NUMBER}",
)
_READS = (
    rf"maximum context length (?:is|of) (?:only )?{_NUMBER}",
    rf"context (?:window|size|length)(?: of| is| \()? ?{_NUMBER}",
    rf"tokens > {_NUMBER}",
    rf"maximum number of tokens allowed \(?{_NUMBER}",
)


def is_too_long(status: int | None, told: str) -> bool:
    """Whether a provider's error says that the request is longer than the model reads.

    Args:
        status: The HTTP status.
        told: All that the error says, its code included.
    """
    if status == 413:
        return True
    return bool((_TOO_LONG if status in (400, 422) else _CERTAIN).search(told))


def advice(told: str, request: Request | None) -> str:
    """What to do, with both lengths as far as they are known: the provider's figures, else our own estimate."""
    asked, reads = _figure(_ASKED, told), _figure(_READS, told)
    if asked is None and request is not None:
        asked = f"about {request.letters // 4:,}"
    return too_long(asked and f"{asked} tokens", reads, request)


def too_long(asked: str | None, reads: str | None, request: Request | None) -> str:
    """What is so, with both lengths as far as they are known, and what to do."""
    lengths = [asked] if asked else []
    lengths += [f"it reads {reads}"] if reads else []
    length = f" ({'; '.join(lengths)})" if lengths else ""
    role = f"the role {request.role}" if request else "its role"
    return (
        f"the request is longer than the model reads{length}: give {role} a model with a longer context, "
        "or make the conversation shorter"
    )


def _figure(patterns: tuple[str, ...], told: str) -> str | None:
    for pattern in patterns:
        if found := re.search(pattern, told, re.IGNORECASE):
            return f"{int(found[1].replace(',', '')):,}"
    return None
