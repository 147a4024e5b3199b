"""The frame of every page: location, tabs, theme, keyboard shortcuts, and error pages."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from typing import Any

from nicegui import ui

from dialoom.errors import DialoomError

from .page import Page, View
from .wording import list_parameters

_MOST_LETTERS = 2_000
"""Maximum number of characters of an error that are shown; an error may quote a long pasted text."""
_TOGGLE = """
window.dialoomShade = () => {
  Quasar.Dark.set(!document.body.classList.contains("body--dark"));
  const isDark = document.body.classList.contains("body--dark");
  localStorage.setItem("dialoom-shade", isDark ? "dark" : "light");
};
"""
"""A script that switches between light and dark, and stores the choice in the browser."""
_APPLY = """
(() => {
  const kept = localStorage.getItem("dialoom-shade");
  if (kept) Quasar.Dark.set(kept === "dark");
})()
"""
"""A script that applies the browser's last choice; needs Quasar, which is loaded after the head."""


async def show(page: Page, view: View, pages: Sequence[Page], style: str) -> None:
    """Build a page in its frame.

    Args:
        page: The page.
        view: The view that the page shows.
        pages: All pages, for the tabs.
        style: The address of the style sheet.
    """
    ui.add_head_html(f'<link rel="stylesheet" href="{style}">')
    ui.add_head_html(f"<script>{_TOGGLE}</script>")  # the button may be clicked before the page is connected
    ui.run_javascript(_APPLY)
    where = [view.names[name] for name in ("scenario", "run") if name in view.names]
    ui.page_title(" · ".join([page.title, *where, "dialoom"]))
    ui.link("Skip to the content", "#content").classes("skip")
    with ui.element("header").classes("bar").props('role="banner"'):
        _trail(view)
        shade = (
            ui.element("button")
            .classes("shade")
            .props('type="button" aria-label="Light or dark" title="Light or dark"')
        )
        shade.on("click", js_handler="() => window.dialoomShade()")
    with contextlib.suppress(DialoomError):  # the page shows the error
        _tabs(page, view, pages)
    with ui.element("div").classes("page wide" if page.is_wide else "page").props('id="content"'):
        body = ui.element("div").classes("body")
        try:
            with body:
                built: Any = page.build(view)
                if inspect.isawaitable(built):
                    await built
        except DialoomError as error:
            body.clear()
            with body:
                problem(error)


def problem(error: DialoomError) -> None:
    """Show an error, and the advice for it."""
    with ui.element("div").classes("problem").props('role="alert"'):
        words = error.message
        ui.label(words if len(words) <= _MOST_LETTERS else f"{words[:_MOST_LETTERS]} …")
        if error.advice is not None:
            ui.label(error.advice.text).classes("quiet")


def _trail(view: View) -> None:
    """Add the breadcrumbs: studio, run, scenario."""
    with ui.element("nav").classes("trail").props('aria-label="Where you are"'):
        ui.link("dialoom", "/").classes("brand")
        if "run" in view.names:
            ui.link(view.names["run"], view.path("/runs/{run}"))
        if "scenario" in view.names:
            ui.link("Scenarios", view.path("/runs/{run}/scenarios")).classes("of-scenario")
            ui.link(view.scenario, view.path("/runs/{run}/scenarios/{scenario}")).classes("of-scenario")


def _tabs(page: Page, view: View, pages: Sequence[Page]) -> None:
    """Add the tabs of the run or scenario."""
    beside = [each for each in pages if each.scope == page.scope and each.has_tab(view)]
    if len(beside) < 2:
        return
    with ui.element("nav").classes("tabs").props('aria-label="Pages"'):
        for each in beside:
            link = ui.link(
                each.title, view.path(each.path, list_parameters(view) if page.scope == "scenario" else None)
            )
            if each is page:
                link.props('aria-current="page"')


_LISTEN = """
(() => {
  if (window.dialoomKeys) return;
  window.dialoomKeys = true;
  const links = {n: "next", p: "prev", l: "label"};
  const step = (by) => {
    const all = [...document.querySelectorAll(".message")];
    const at = all.indexOf(document.activeElement.closest(".message"));
    const seen = all.findIndex((each) => each.getBoundingClientRect().bottom > 80);
    const next = all[at < 0 ? Math.max(seen, 0) : Math.min(Math.max(at + by, 0), all.length - 1)];
    if (next) { next.focus({preventScroll: true}); next.scrollIntoView({block: "nearest"}); }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target;
    if (on.closest("input, textarea, select, [contenteditable]")) return;
    const isOnMessage = on.classList.contains("message");
    if (event.key === "j" || (isOnMessage && event.key === "ArrowDown")) step(1);
    else if (event.key === "k" || (isOnMessage && event.key === "ArrowUp")) step(-1);
    else if (isOnMessage && event.key === "Enter") on.querySelector("details.call > summary")?.click();
    else if (event.key in links) document.querySelector(`a[rel=${links[event.key]}]`)?.click();
    else return;
    event.preventDefault();
  });
})()
"""


def listen() -> None:
    """Let the keys j and k (or the arrow keys on a message) move between messages, and n and p between conversations.

    The key l leads to the next conversation to label.
    """
    # The script is in the head, because keys may be pressed before the page is loaded.
    ui.add_head_html(f"<script>{_LISTEN}</script>")
