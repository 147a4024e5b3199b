"""The scenarios of a run."""

from __future__ import annotations

from itertools import islice

from nicegui import ui

from dialoom.runs.studio.page import Page, View


def build(view: View) -> None:
    """The first finished ones."""
    for episode in islice(view.run.run.episodes(), 50):
        ui.link(episode.id, view.path("/runs/{run}/scenarios/{scenario}", scenario=episode.id))


PAGE = Page("/runs/{run}/scenarios", "Scenarios", "run", build)
