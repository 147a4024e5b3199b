"""The people of the ALOE tests."""

from tests.graphs.aloe.players import people

__all__ = ["people"]
