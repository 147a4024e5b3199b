"""Fixtures that the soak tests share with the suite."""

from tests.hostile.conftest import damaged, kept
from tests.hostile.test_fuzzed import provider, runner

__all__ = ["damaged", "kept", "provider", "runner"]
