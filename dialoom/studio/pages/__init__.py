"""The studio's pages, in the order of their tabs."""

from __future__ import annotations

from collections.abc import Sequence

from dialoom.studio.page import Page

from . import conversation, report, runs, scenarios, step, tree

PAGES: Sequence[Page] = (
    runs.PAGE,
    runs.RUN_PAGE,
    scenarios.PAGE,
    report.PAGE,
    conversation.PAGE,
    tree.PAGE,
    step.PAGE,
)
