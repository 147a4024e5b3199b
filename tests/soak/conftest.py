"""Fixtures that the soak tests share with the suite."""

from tests.hostile.conftest import damaged, finished
from tests.hostile.test_fuzzed import provider, runner

__all__ = ["damaged", "finished", "provider", "runner"]
