"""The quick cast and the three people of the ALOE tests."""

from tests.graphs.aloe.players import people

__all__ = ["people"]
