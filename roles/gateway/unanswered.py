"""What happened to a request that no model answered, in plain words, and whether it shows that nobody is there.

LiteLLM makes an "internal server error" of everything below HTTP. What really happened is an exception that this one
was raised from, several layers down: the HTTP client's, and below it the operating system's.
"""

from __future__ import annotations

import errno
import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

from dialoom.roles.errors import Absence

_BY_NUMBER = {
    errno.ECONNREFUSED: "connection refused",
    errno.ECONNRESET: "connection reset",
    errno.ENETUNREACH: "network unreachable",
    errno.EHOSTUNREACH: "host unreachable",
    errno.ETIMEDOUT: "no answer to the connection",
}
_UNAVAILABLE = frozenset({502, 503, 504})
# By name: which HTTP client LiteLLM uses differs by provider and setting, and none is imported for this.
_NO_CONNECTION = frozenset({"ClientConnectorError", "ConnectError", "ConnectTimeout", "ConnectionTimeoutError"})
_LOST = frozenset(
    {"ServerDisconnectedError", "ClientOSError", "ClientPayloadError", "RemoteProtocolError", "ReadError", "WriteError"}
)
_TIMED_OUT = frozenset({"Timeout", "TimeoutException", "APITimeoutError"})
_TLS_CODE = re.compile(r"\[SSL: (\w+)\]")


@dataclass(frozen=True, slots=True)
class Unanswered:
    """What is known of it.

    Attributes:
        absence: What it says of whether anybody is there.
        reason: What happened, as in `connection refused`.
        host: Who was not to be connected with; `None` if there was a connection, or nobody says.
    """

    absence: Absence
    reason: str
    host: str | None = None


def unanswered(error: BaseException, status: int | None) -> Unanswered | None:
    """What happened, if an error is none that the provider's server itself has told of.

    Args:
        error: What LiteLLM raised.
        status: The HTTP status that it gives, which may be of its own making.
    """
    chain = list(_chain(error))
    kinds = {kind.__name__ for each in chain for kind in type(each).__mro__}
    is_lost = bool(kinds & _LOST)
    if "ClientConnectorError" in kinds or (kinds & _NO_CONNECTION and not is_lost):
        host = next((str(host) for each in chain if isinstance(host := getattr(each, "host", None), str)), None)
        return Unanswered(Absence.CERTAIN, _reason(chain) or "no connection", host)
    if is_lost:
        return Unanswered(Absence.POSSIBLE, _reason(chain) or "connection closed before an answer came")
    if kinds & _TIMED_OUT or isinstance(error, TimeoutError):
        return Unanswered(Absence.UNKNOWN, "no answer in time")
    if status in _UNAVAILABLE:
        return Unanswered(Absence.POSSIBLE, f"status {status}")
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _reason(chain: list[BaseException]) -> str | None:
    """In words, from the layer that knows best: the last."""
    for error in reversed(chain):
        if isinstance(error, socket.gaierror):
            return "its name is not known (DNS)"
        if isinstance(error, ssl.SSLCertVerificationError):
            return f"its certificate is not accepted ({error.verify_message})"
        if isinstance(error, ssl.SSLError):
            code = _TLS_CODE.search(str(error))
            return "TLS handshake failed" + (f" ({code[1].lower().replace('_', ' ')})" if code else "")
        if isinstance(error, OSError) and error.errno in _BY_NUMBER:
            return _BY_NUMBER[error.errno]
    return None
