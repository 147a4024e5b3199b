"""Scorecards: the results of assistants in all systems of a suite, on one page."""

from .card import Scorecard
from .figures import PROVENANCE_TABLES
from .suite import (
    DEFAULT_SUITE,
    AssistantRuns,
    CardRecord,
    Size,
    Suite,
    SuiteSystem,
    read_record,
    read_suite,
    shipped_suites,
    write_record,
)

__all__ = [
    "DEFAULT_SUITE",
    "PROVENANCE_TABLES",
    "AssistantRuns",
    "CardRecord",
    "Scorecard",
    "Size",
    "Suite",
    "SuiteSystem",
    "read_record",
    "read_suite",
    "shipped_suites",
    "write_record",
]
