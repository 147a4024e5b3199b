"""The frame of every page: location, tabs, theme, keyboard shortcuts, and error pages."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Sequence
from typing import Any

from nicegui import ui

from dialoom.errors import DialoomError

from .page import Page, View
from .queries import get_navigation_query

_MAX_ERROR_CHARACTERS = 2_000
"""Maximum number of characters of an error that are shown; an error may quote a long pasted text."""
_TOGGLE_THEME_SCRIPT = """
window.dialoomToggleTheme = () => {
  Quasar.Dark.set(!document.body.classList.contains("body--dark"));
  const isDark = document.body.classList.contains("body--dark");
  localStorage.setItem("dialoom-shade", isDark ? "dark" : "light");
};
"""
"""A script that switches between light and dark, and stores the choice in the browser."""
_APPLY_THEME_SCRIPT = """
(() => {
  const theme = localStorage.getItem("dialoom-shade");
  if (theme) Quasar.Dark.set(theme === "dark");
})()
"""
"""A script that applies the browser's last choice; needs Quasar, which is loaded after the head."""


async def build_page(page: Page, view: View, pages: Sequence[Page], style_url: str) -> None:
    """Build a page in its frame.

    Args:
        page: The page.
        view: The view that the page shows.
        pages: All pages, for the tabs.
        style_url: The address of the style sheet.
    """
    ui.add_head_html(f'<link rel="stylesheet" href="{style_url}">')
    # The button may be clicked before the page is connected.
    ui.add_head_html(f"<script>{_TOGGLE_THEME_SCRIPT}</script>")
    ui.run_javascript(_APPLY_THEME_SCRIPT)
    location = [view.path_parameters[name] for name in ("scenario", "run") if name in view.path_parameters]
    ui.page_title(" · ".join([page.title, *location, "dialoom"]))
    ui.link("Skip to the content", "#content").classes("skip")
    with ui.element("header").classes("bar").props('role="banner"'):
        _add_breadcrumbs(view)
        toggle = (
            ui.element("button")
            .classes("shade")
            .props('type="button" aria-label="Light or dark" title="Light or dark"')
        )
        toggle.on("click", js_handler="() => window.dialoomToggleTheme()")
    with contextlib.suppress(DialoomError):  # the page shows the error
        _add_tabs(page, view, pages)
    with ui.element("div").classes("page wide" if page.is_wide else "page").props('id="content"'):
        body = ui.element("div").classes("body")
        try:
            with body:
                result: Any = page.build(view)
                if inspect.isawaitable(result):
                    await result
        except DialoomError as error:
            body.clear()
            with body:
                show_error(error)


def show_error(error: DialoomError) -> None:
    """Show an error, and the advice for it."""
    with ui.element("div").classes("problem").props('role="alert"'):
        message = error.message
        ui.label(message if len(message) <= _MAX_ERROR_CHARACTERS else f"{message[:_MAX_ERROR_CHARACTERS]} …")
        if error.advice is not None:
            ui.label(error.advice.text).classes("quiet")


def _add_breadcrumbs(view: View) -> None:
    """Add the breadcrumbs: studio, run, scenario."""
    with ui.element("nav").classes("trail").props('aria-label="Where you are"'):
        ui.link("dialoom", "/").classes("brand")
        if "run" in view.path_parameters:
            ui.link(view.path_parameters["run"], view.url_for("/runs/{run}"))
        if "scenario" in view.path_parameters:
            ui.link("Scenarios", view.url_for("/runs/{run}/scenarios")).classes("of-scenario")
            ui.link(view.scenario, view.url_for("/runs/{run}/scenarios/{scenario}")).classes("of-scenario")


def _add_tabs(page: Page, view: View, pages: Sequence[Page]) -> None:
    """Add the tabs of the run or scenario."""
    siblings = [each for each in pages if each.scope == page.scope and each.has_tab(view)]
    if len(siblings) < 2:
        return
    with ui.element("nav").classes("tabs").props('aria-label="Pages"'):
        for each in siblings:
            link = ui.link(
                each.title, view.url_for(each.path, get_navigation_query(view) if page.scope == "scenario" else None)
            )
            if each is page:
                link.props('aria-current="page"')


_SHORTCUTS_SCRIPT = """
(() => {
  if (window.dialoomKeys) return;
  window.dialoomKeys = true;
  const linkByKey = {n: "next", p: "prev", l: "label"};
  const moveFocus = (offset) => {
    const messages = [...document.querySelectorAll(".message")];
    const focused = messages.indexOf(document.activeElement.closest(".message"));
    const firstVisible = messages.findIndex((each) => each.getBoundingClientRect().bottom > 80);
    const index = focused < 0 ? firstVisible : Math.min(focused + offset, messages.length - 1);
    const next = messages[Math.max(index, 0)];
    if (next) { next.focus({preventScroll: true}); next.scrollIntoView({block: "nearest"}); }
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (target.closest("input, textarea, select, [contenteditable]")) return;
    const isOnMessage = target.classList.contains("message");
    if (event.key === "j" || (isOnMessage && event.key === "ArrowDown")) moveFocus(1);
    else if (event.key === "k" || (isOnMessage && event.key === "ArrowUp")) moveFocus(-1);
    else if (isOnMessage && event.key === "Enter") target.querySelector("details.call > summary")?.click();
    else if (event.key in linkByKey) document.querySelector(`a[rel=${linkByKey[event.key]}]`)?.click();
    else return;
    event.preventDefault();
  });
})()
"""


def add_keyboard_shortcuts() -> None:
    """Let the keys j and k (or the arrow keys on a message) move between messages, and n and p between conversations.

    The key l leads to the next conversation to label.
    """
    # The script is in the head, because keys may be pressed before the page is loaded.
    ui.add_head_html(f"<script>{_SHORTCUTS_SCRIPT}</script>")
