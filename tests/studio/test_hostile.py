"""A hostile run file: its content is shown as text, and nothing in it is executed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

import pytest

from tests.conftest import MadeOnce, command_in, write_quick_players
from tests.runs.stepping.played import dialogue

from .conftest import OpenPage, RunningStudio, StartStudio, playwright, run_studio

expect = playwright.expect

MARKUP = (
    "<script>window.hit = 1</script><img src=x onerror='window.hit = 2'><svg onload=window.hit=3></svg>"
    "[link](javascript:window.hit=4) {{ window.hit = 5 }} ${window.hit = 6} `${window.hit = 7}` </textarea></script>"
    "<style>body { display: none }</style><a href='https://evil.example/'>a</a> javascript:alert(1) &lt;b&gt; \\u003cb>"
)
BIDI = "\u202egnp.\u202d \u2066right\u2067 to left\u2069 \u200f\u200b\x00\x1b[2J\x07"
LONG = "x" * 1_000_000
SPACES = " " * 1_000_000
PATHS = [
    "/",
    "/runs/{run}",
    "/runs/{run}/scenarios",
    "/runs/{run}/scenarios?search=window",
    "/runs/{run}/scenarios?sort=ended_by&where=turns > 0",
    "/runs/{run}/report",
    "/runs/{run}/scenarios/1",
    "/runs/{run}/scenarios/2",
    "/runs/{run}/scenarios/3",
    "/runs/{run}/scenarios/1/step?at=3&branch=main&break=" + quote(MARKUP),
    "/runs/{run}/scenarios/1?as=" + quote(MARKUP),
    "/runs/{run}/scenarios?labels=labelled&as=" + quote(MARKUP + BIDI),
]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """Run a studio on a run in which every text is an attack."""
    folder = tmp_path_factory.mktemp("hostile")
    command_in(folder)("run", "personalens", *write_quick_players(folder), "--limit", 4, "-o", "r.db")
    with (
        closing(sqlite3.connect(folder / "r.db")) as connection,
        connection,
    ):  # closed, so that nothing remains in its write-ahead log
        _insert_attacks(connection)
    path = (folder / "r.db").rename(folder / "<b onclick=x>&'\".db")
    with run_studio([path], folder, "--trust") as served:
        yield served


def _insert_attacks(connection: sqlite3.Connection) -> None:
    spoken = connection.execute(
        "SELECT position, messages FROM scenarios JOIN outcomes ON position = scenario"
    ).fetchall()
    for text, (_, messages) in zip((MARKUP + BIDI, LONG, SPACES + "end", MARKUP), spoken, strict=True):
        ids = [each[1] for each in json.loads(messages)]
        connection.execute("UPDATE kept_texts SET content = ?, parts = NULL WHERE id = ?", (text, ids[1]))
    connection.execute(
        "UPDATE scenarios SET content = json_set(content, '$.demographics.age', ?, '$.goal', ?)", (MARKUP, BIDI)
    )
    for position, _ in spoken:
        facets = json.loads(
            connection.execute("SELECT facets FROM scenarios WHERE position = ?", (position,)).fetchone()[0]
        )
        facets |= {MARKUP: MARKUP + str(position % 2), "turned": BIDI}
        connection.execute("UPDATE scenarios SET facets = ? WHERE position = ?", (json.dumps(facets), position))
    connection.execute("UPDATE scenarios SET id = id || ?", (MARKUP,))
    connection.execute(
        "UPDATE scenarios SET state = 'failed', error = ?, fault = ? WHERE position = 3", (MARKUP + LONG, MARKUP)
    )
    connection.execute("UPDATE outcomes SET ended_by = ?", (MARKUP,))
    connection.execute(
        "UPDATE outcomes SET faults = ?", (json.dumps([{"role": MARKUP, "kind": MARKUP, "excerpt": MARKUP}]),)
    )
    connection.execute("UPDATE judgements SET explanation = ?", (MARKUP + BIDI,))
    connection.execute("UPDATE kinds SET model = ? WHERE role = 'judge'", (MARKUP,))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("width", [1280, 390])
def test_hostile_run_executes_nothing(hostile: RunningStudio, browse: OpenPage, path: str, width: int) -> None:
    page = browse(hostile, path.format(run="%3Cb%20onclick%3Dx%3E%26'%22"), width)
    page.wait_for_timeout(300)
    assert page.evaluate("window.hit") is None
    assert page.locator("#content img, #content script, #content svg[onload], #content style").count() == 0
    assert _external_links(page) == []
    assert page.locator("body").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_hostile_text_is_shown_unchanged(hostile: RunningStudio, browse: OpenPage) -> None:
    page = browse(hostile, "/runs/%3Cb%20onclick%3Dx%3E%26'%22/scenarios?state=failed")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("tbody tr")).to_contain_text("<script>window.hit = 1</script>")
    expect(page.locator("header")).to_contain_text("<b onclick=x>&'\"")


def test_person_is_shown_as_text(hostile: RunningStudio, browse: OpenPage) -> None:
    page = browse(hostile, "/runs/%3Cb%20onclick%3Dx%3E%26'%22/scenarios/1")
    page.get_by_text("Scenario data").click()
    expect(page.locator("aside")).to_contain_text("<script>window.hit = 1</script>")
    assert page.evaluate("window.hit") is None
    assert _external_links(page) == []


def test_name_of_the_annotator_is_shown_as_text(hostile: RunningStudio, browse: OpenPage) -> None:
    page = browse(hostile, "/runs/%3Cb%20onclick%3Dx%3E%26'%22/scenarios/1?as=" + quote(MARKUP[:60]))
    choice = page.locator(".judgement").first.get_by_role("button", name="yes", exact=True)
    choice.click()
    expect(choice).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(choice).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("window.hit") is None


def test_text_in_the_fields_of_a_step_is_shown_as_text(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage
) -> None:
    page = browse(serve(dialogue(made_once)), "/runs/run/scenarios/1/step?at=3", 390)
    for field, press in (("A new branch from here", "Fork"), ("Place", "Set"), ("Where", "Break there")):
        page.get_by_label(field, exact=True).fill(MARKUP + BIDI.replace("\x00", ""))
        page.get_by_role("button", name=press, exact=True).click()
        page.locator(".status .problem").wait_for()
        page.reload()
    page.get_by_text("Write this reply").click()
    page.get_by_label("Reply of user").fill(MARKUP + SPACES[:20_000] + LONG[:20_000])
    page.get_by_role("button", name="Use this reply", exact=True).click()
    page.get_by_text("written by a person as user").wait_for()
    expect(page.locator(".so-far .spoken.user .said").last).to_contain_text("<script>window.hit = 1</script>")
    assert page.evaluate("window.hit") is None
    assert page.locator("#content img, #content script, #content svg[onload], #content style").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def _external_links(page: Any) -> list[str]:
    """Return the links that lead out of the studio."""
    hrefs = page.eval_on_selector_all("a", "links => links.map(link => link.href)")
    return [href for href in hrefs if not href.startswith(page.url.split("/runs")[0].rstrip("/"))]


def test_megabyte_in_a_field_is_accepted_or_refused(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/scenarios")
    field = page.get_by_label("Search messages")
    _paste(field, "word " * 210_000)
    field.press("Enter")
    assert field.evaluate("(field) => field.validationMessage").startswith("This text is too long for an address")
    _paste(field, "word")
    field.press("Enter")
    page.wait_for_url("**search=word")

    page.goto(f"{studio.url}/runs/talk/scenarios/2/step?at=3")
    for label, words in (("Model", "offline/" * 110_000), ("A new branch from here", "word " * 210_000)):
        field = page.get_by_label(label)
        _paste(field, words)
        message = field.evaluate("(field) => field.validationMessage")
        page.get_by_role("button", name="Change model" if label == "Model" else "Fork").click()
        page.locator(".status .problem").wait_for()
        message_below = page.locator(".status .problem").inner_text()
        assert (
            message.startswith("This text has more than")
            is message_below.endswith("shorten it")
            is (len(words) > 900_000)
        )
        assert len(message_below) < 5_000
        page.reload()


def _paste(field: Any, words: str) -> None:
    field.wait_for()
    field.evaluate("(field, words) => { field.value = words; }", words)
    for kind in ("input", "change"):
        field.dispatch_event(kind)
