"""The sets of judgements that an address may ask for."""

from __future__ import annotations

from collections.abc import Sequence

from dialoom.runs.store.errors import StoreError

from .page import View
from .parts import element, link, text


def metrics_of(view: View) -> Sequence[str] | None:
    """The metrics of the judgements that the address asks for; `None` if there are no such judgements.

    A panel counts as one of the sets, though it is none that anybody judged.
    """
    try:
        return view.run.run.metrics(view.one("judging") or None)
    except StoreError:
        return None


def lacks_its_judgements(view: View) -> bool:
    """Whether the address asks for judgements that there are not; it is said then, and which there are."""
    wanted = view.one("judging")
    if not wanted or metrics_of(view) is not None:
        return False
    known = [each.name for each in view.run.run.judgement_sets]
    with element("div", "problem stack", role="alert"):
        text("div", f"{view.run.name} has no judgements named {wanted!r:.80}.")
        with element("div", "row-of"):
            text("span", "There are:" if known else "It has none:")
            for name in known:
                link(name, view.here({**view.query, "judging": name, "page": None}), "chip")
            link("the same without them" if known else "show it without", view.here({**view.query, "judging": None}))
    return True
