"""Errors of trust."""

from __future__ import annotations

from dialoom.errors import DialoomError


class TrustError(DialoomError):
    """Code, an address or a file that only a file's author has named, so that it is not used."""
