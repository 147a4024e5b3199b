"""Calls that were sent and are not answered yet."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A call that is under way.

    Attributes:
        role: Who is asked.
        model: The role's model.
        began: When it was sent first, on the monotonic clock.
    """

    role: str
    model: str
    began: float = field(default_factory=time.monotonic)

    @property
    def age(self) -> float:
        """Seconds since it was sent first; attempts that failed and the pauses between them count."""
        return time.monotonic() - self.began
