"""Every page of the studio on other systems than PersonaLens, beside what the Python door says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dialoom
from dialoom.graphs import Estimate
from dialoom.runs.store import ScenarioQuery
from tests.conftest import command_in

from .conftest import Open, Served, playwright, serving

expect = playwright.expect

SYSTEMS = {"tree": "aloe", "tools": "apollo", "kept": "prefeval"}
each_system = pytest.mark.parametrize("name", SYSTEMS)


@pytest.fixture(scope="module")
def of_all(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each system, by the name that it has in the studio."""
    folder = tmp_path_factory.mktemp("others")
    dialoom = command_in(folder)
    dialoom("run", "apollo", "--length", "2k", "--limit", 12, "--seed", 3, "-o", "tools.db")
    turns = ["--turns", 2, "--turns", 5]
    dialoom("run", "prefeval", *turns, "--limit", 8, "--seed", 3, "-o", "kept.db")
    paths = [runs / "tree.db", folder / "tools.db", folder / "kept.db"]
    return {path.stem: path for path in paths}


@pytest.fixture(scope="module")
def everything(of_all: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A studio of all of them; nothing here changes them."""
    with serving([*of_all.values()], tmp_path_factory.mktemp("everything")) as served:
        yield served


@each_system
def test_a_run_stands_among_the_others_and_tells_what_it_took(
    name: str, of_all: dict[str, Path], everything: Served, browse: Open
) -> None:
    """How far it is, and its calls by role, as `status` has them."""
    page = browse(everything)
    card = page.locator("section.card").filter(has=page.get_by_role("link", name=name, exact=True))
    status = dialoom.open_run(of_all[name]).status()
    expect(card).to_contain_text(f"{status.done} of {status.total} scenarios done")
    expect(card).to_contain_text(f"{SYSTEMS[name]} · seed")
    page = browse(everything, f"/runs/{name}")
    for role, usage in status.by_role.items():
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=role, exact=True))
        expect(row).to_contain_text(f"{usage.calls:,}")


@each_system
def test_its_scenarios_are_listed_chosen_sorted_and_searched(
    name: str, of_all: dict[str, Path], everything: Served, browse: Open
) -> None:
    """By one of its own facets, the other way round, and by words that were said."""
    run = dialoom.open_run(of_all[name])
    facets = [row.facets for row in run.scenarios(ScenarioQuery(), limit=1000).rows]
    facet = next(each for each in facets[0] if len({str(row.get(each)) for row in facets}) > 1)
    query = ScenarioQuery(facets={facet: str(facets[-1][facet])}, sort="number", is_descending=True)
    wanted = [row.id for row in run.scenarios(query).rows]
    assert wanted
    page = browse(everything, f"/runs/{name}/scenarios?facet.{facet}={facets[-1][facet]}&sort=number&order=desc")
    assert page.locator("tbody th a").all_inner_texts() == wanted[:50]
    said = next(line for line in run.conversation(1).episode.outcome.messages if line.content).content
    words = " ".join(re.findall(r"[A-Za-z]{2,}", said)[:3])
    found = {row.id for row in run.scenarios(said=f'"{words}"', limit=1000).rows}
    page = browse(everything, f'/runs/{name}/scenarios?said="{words}"')
    shown = page.locator("tbody th a").all_inner_texts()
    assert shown and set(shown) <= found and len(shown) == min(50, len(found))


@each_system
def test_its_conversation_is_shown_whole(name: str, of_all: dict[str, Path], everything: Served, browse: Open) -> None:
    """Every line in its place, what was said to be read at once; its calls, and beside it who it is about."""
    shown = dialoom.open_run(of_all[name]).conversation(1)
    page = browse(everything, f"/runs/{name}/scenarios/1")
    messages = page.locator(".message")
    expect(messages).to_have_count(len(shown.messages))
    for place, each in enumerate(shown.messages):
        begun = each.line.content.split("\n")[0]
        expect(messages.nth(place)).to_contain_text(begun)
        if each.line.role in ("user", "assistant") and begun:
            expect(messages.nth(place).get_by_text(begun).first).to_be_visible()
    expect(page.locator("aside")).to_be_visible()
    expect(page.locator("details.call").first).to_be_attached()


@each_system
def test_its_outline_has_a_page_if_it_has_one(
    name: str, of_all: dict[str, Path], everything: Served, browse: Open
) -> None:
    """A tree is drawn, calls and folded middles are lines, and one conversation says that it is one."""
    outline = dialoom.open_run(of_all[name]).conversation(1).outline
    page = browse(everything, f"/runs/{name}/scenarios/1/tree")
    if outline is None:
        expect(page.locator(".empty")).to_contain_text("one conversation, and no tree")
    else:
        expect(page.locator("h1")).to_have_text(outline.text)
    expect(page.locator("section.tree-scroll")).to_have_count(1 if outline and outline.is_tree else 0)


@each_system
def test_its_steps_can_be_gone_through(name: str, everything: Served, browse: Open) -> None:
    """Checkpoints have places in the tree; back and forward lead along it."""
    page = browse(everything, f"/runs/{name}/scenarios/1/step")
    end = page.locator("h1").inner_text()
    assert page.locator(".history a").count() > 2
    page.get_by_role("link", name="← Back").click()
    page.wait_for_url("**at=*")
    assert page.locator("h1").inner_text() != end
    page.get_by_role("link", name="Forward →").click()
    page.wait_for_selector(f"h1:text('{end}')")


@each_system
def test_its_report_has_the_tables_and_charts_of_the_terminal(
    name: str, of_all: dict[str, Path], everything: Served, browse: Open
) -> None:
    """Each table with its title and rows; a figure with an interval says of how many it is."""
    report = dialoom.open_run(of_all[name]).report()
    page = browse(everything, f"/runs/{name}/report")
    for table in report.tables:
        section = page.locator(f"section#{table.name}")
        expect(section.get_by_role("heading", name=table.title, exact=True)).to_be_visible()
        expect(section.locator("tbody tr")).to_have_count(len(table.rows))
    estimates = [(table, cell) for table in report.tables for row in table.rows for cell in row]
    table, cell = next((table, cell) for table, cell in estimates if isinstance(cell, Estimate) and cell.n)
    expect(page.locator(f"section#{table.name} td.number .of").filter(has_text=f"n={cell.n}").first).to_be_visible()
