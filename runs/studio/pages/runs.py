"""All runs side by side, and one of them: how far they are, live while another process plays."""

from __future__ import annotations

from nicegui import ui

from dialoom.runs.studio.page import Page, View


def build(view: View) -> None:
    """All runs."""
    for run in view.studio.runs.values():
        with ui.element("section").classes("card"):
            ui.link(run.name, view.path("/runs/{run}", run=run.name))
            status = run.run.status()
            ui.label(f"{status.done:,} of {status.total:,} scenarios done")


def build_one(view: View) -> None:
    """One run."""
    status = view.run.run.status()
    ui.label(f"{status.done:,} of {status.total:,} scenarios done")


PAGE = Page("/", "Runs", "studio", build)
RUN_PAGE = Page("/runs/{run}", "Progress", "run", build_one)
