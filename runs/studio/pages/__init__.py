"""The studio's pages, in the order of their tabs."""

from __future__ import annotations

from collections.abc import Sequence

from dialoom.runs.studio.page import Page

from . import report, runs, scenarios

PAGES: Sequence[Page] = (runs.PAGE, runs.RUN_PAGE, scenarios.PAGE, report.PAGE)
