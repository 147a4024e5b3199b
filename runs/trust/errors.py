"""What is raised when a file names what may not be used."""

from __future__ import annotations

from dialoom.errors import DialoomError


class TrustError(DialoomError):
    """Code, an address or a file that only a file's author has named: what it is, and what would happen."""
