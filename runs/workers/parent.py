"""A process that ends with the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1
"""See prctl(2)."""


def end_with_parent() -> None:
    """Have the system kill this process as soon as its parent is gone. Only Linux can; elsewhere this does nothing."""
    parent = os.getppid()
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:  # it went before the system was asked
        os.kill(os.getpid(), signal.SIGKILL)
