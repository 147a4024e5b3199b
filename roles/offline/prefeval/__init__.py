"""Understudies of PrefEval: an assistant whose memory fades by a stated rule, and checkers that go by words."""

from . import assistant, judges

__all__ = ["assistant", "judges"]
