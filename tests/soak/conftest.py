"""What the soak tests share with those of the suite."""

from tests.hostile.conftest import damaged, kept

__all__ = ["damaged", "kept"]
