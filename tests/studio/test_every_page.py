"""The pages on every system: one path through the studio, which knows no system by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

import dialoom
from dialoom.runs.store import ScenarioQuery

from .conftest import SYSTEMS, OpenPage, RunningStudio, playwright

expect = playwright.expect


@pytest.mark.parametrize("name", ["talk", *SYSTEMS])
def test_path_from_the_runs_to_the_steps_of_a_conversation(
    studio: RunningStudio, browse: OpenPage, runs: Path, name: str
) -> None:
    run = dialoom.open_run(runs / f"{name}.db")
    page = browse(studio)
    page.locator("section.card h2").get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_text(f"{len(run)} of {len(run)} scenarios done")).to_be_visible()
    for role, usage in run.status().by_role.items():
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=role, exact=True))
        expect(row).to_contain_text(f"{usage.input_tokens:,}")
    page.get_by_role("link", name="Scenarios").click()
    position = _filter_list(page, run)
    page.locator("tbody th a").first.click()
    shown = run.conversation(position + 1)
    expect(page.locator(".message")).to_have_count(len(shown.messages))
    expect(page.locator(".bubble").first).to_be_visible()
    for line in (each.line for each in shown.messages if each.line.role in ("user", "assistant")):
        assert line.content[:60] in page.locator(".messages, .body").first.inner_text()
    if shown.outline is None:
        expect(page.get_by_role("link", name="Tree")).to_have_count(0)
    else:
        page.get_by_role("link", name="Tree", exact=True).click()
        expect(page.locator("details.step")).not_to_have_count(0)
        expect(page.locator(".branch.taken")).to_have_count(1)
    page.get_by_role("link", name="Step", exact=True).click()
    expect(page.locator(".history li").nth(2)).to_be_visible()
    page.get_by_role("link", name="← Back").click()
    expect(page).to_have_url(re.compile("at="))
    expect(page.get_by_role("link", name="Forward →")).to_be_visible()


def _filter_list(page: Any, run: dialoom.Run) -> int:
    """Filter, sort and search the list of a run; return the position of the first row."""
    facet, value = next(
        (key.removeprefix("facet:"), value)
        for key, values in run.choices().items()
        if key.startswith("facet:") and len(values) > 1
        for value in values
    )
    page.get_by_text("More filters").click()
    page.get_by_label(facet, exact=True).select_option(value)
    total = run.scenarios(ScenarioQuery(facets={facet: value})).total
    expect(page.get_by_text(f"{total} of {len(run)} scenarios match")).to_be_visible()
    page.get_by_role("link", name="tokens used").click()
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("tokens used")
    query = ScenarioQuery(facets={facet: value}, sort="tokens", is_descending=True)
    found = run.scenarios(query)
    assert _ids(page) == [row.id for row in found.rows][:50]
    text = next(
        each.line.content for each in run.conversation(found.rows[0].position + 1).messages if each.line.role == "user"
    )
    word = max(re.findall(r"\b[a-z]{4,}\b", text), key=len)
    page.get_by_label("Search messages").fill(word)
    page.get_by_label("Search messages").press("Enter")
    expect(page.locator("tbody .said mark, tbody .said").first).to_contain_text(re.compile(word, re.IGNORECASE))
    rows = run.scenarios(query, search=word).rows
    assert _ids(page) == [row.id for row in rows][:50]
    return rows[0].position


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_figure_links_to_its_conversations(
    studio: RunningStudio, browse: OpenPage, runs: Path, name: str
) -> None:
    run = dialoom.open_run(runs / f"{name}.db")
    found = run.report()
    page = browse(studio, f"/runs/{name}/report")
    for table in found.tables:
        expect(page.locator(f"section#{table.name} h2")).to_have_text(table.title)
        expect(page.locator(f"section#{table.name} tbody tr")).to_have_count(len(table.rows))
    expect(page.locator(".nicegui-echart canvas")).not_to_have_count(0)
    links = page.locator("a.cell").evaluate_all("(links) => links.map((each) => each.getAttribute('href'))")
    assert len({*links}) > (3 if name == "calls" else 0)
    assert any("where=" in each for each in links) or name == "tree"
    target = max(links, key=len)
    asked = dict(parse_qsl(urlsplit(target).query))
    facets = {key.removeprefix("facet."): value for key, value in asked.items() if key.startswith("facet.")}
    query = ScenarioQuery(state=asked.get("state", ""), ended_by=asked.get("ended_by", ""), facets=facets)
    total = run.scenarios(query, where=asked.get("where")).total
    figure = page.locator(f'a.cell[href="{target}"]').first
    if "where" in asked and (count := figure.inner_text()).isdecimal():
        assert total == int(count)  # a count, such as that of an ending, links to as many conversations
    figure.click()
    expect(page.locator("tbody tr")).to_have_count(total)


def test_calls_and_tool_outputs_are_shown(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    page = browse(studio, "/runs/calls/scenarios/1")
    outcome = dialoom.open_run(runs / "calls.db").conversation(1)
    tools = [each.line.content for each in outcome.messages if each.line.role == "tool"]
    assert tools
    shown = page.locator(".message.tool")
    expect(shown).to_have_count(len(tools))
    for place, content in enumerate(tools):
        assert content[:40] in shown.nth(place).inner_text()


def test_unrelated_talk_is_folded(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/memory/scenarios/1")
    expect(page.locator(".message.note")).to_contain_text("turns of unrelated talk")


def _ids(page: Any) -> list[str]:
    return [str(each) for each in page.locator("tbody th a").all_inner_texts()]


def test_advice_of_an_error_is_shown_once(studio: RunningStudio) -> None:
    opener = build_opener(HTTPCookieProcessor())
    opener.open(studio.address()).read()
    page = opener.open(f"{studio.url}/runs/other/scenarios/99").read().decode()
    assert page.count("list its scenarios") == 1
