"""How long a provider asks to wait, in all the ways in which providers say it."""

from __future__ import annotations

import email.utils
import math
import re
import time
from collections.abc import Mapping

LONGEST = 600.0
"""Seconds: what asks for more is wrong, hostile, or of another day; no run waits for it."""

_IN_BODY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')  # Google's APIs say it there and in no header


def retry_after(headers: Mapping[str, str], body: str = "") -> float | None:
    """Seconds to wait; `None` if nothing readable says so.

    Args:
        headers: The response's: `retry-after-ms` is the most exact, then `Retry-After` in seconds or as an HTTP date
            (RFC 9110, section 10.2.3). A date is measured by the server's own clock, if it tells the time.
        body: What the response said.
    """
    said = {name.lower(): value.strip() for name, value in headers.items() if isinstance(value, str)}
    if (milliseconds := _number(said.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    value = said.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return seconds
    if (moment := _moment(value)) is not None:
        now = _moment(said.get("date", ""))
        return max(0.0, moment - (time.time() if now is None else now))
    found = _IN_BODY.search(body)
    return float(found[1]) if found else None


def capped(seconds: float | None) -> float | None:
    """The wait that is kept to; a provider that asks for more is asked again after `LONGEST`."""
    return None if seconds is None else min(seconds, LONGEST)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return max(0.0, value) if math.isfinite(value) else None


def _moment(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
