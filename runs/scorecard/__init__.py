"""Scorecards: how an assistant comes out in all systems of a suite, on one page."""

from .card import Scorecard
from .record import AssistantRuns, CardRecord, read_record, write_record
from .standing import MADE
from .suite import Size, Suite, SuiteSystem, read_suite

__all__ = [
    "MADE",
    "AssistantRuns",
    "CardRecord",
    "Scorecard",
    "Size",
    "Suite",
    "SuiteSystem",
    "read_record",
    "read_suite",
    "write_record",
]
