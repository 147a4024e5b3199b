"""Keys of a page: a script of the studio's own, which goes from one element to the next."""

from __future__ import annotations

from nicegui import ui

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
    """Let the keys j and k (or the arrows on a message) go through the messages, n and p through the conversations.

    With l to the next that is to be labelled.
    """
    # Not a script that is sent when the page is there: keys come before.
    ui.add_head_html(f"<script>{_LISTEN}</script>")
