"""The pages of runs, scenarios and reports."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

import dialoom
from dialoom.graphs import Estimate
from dialoom.runs.store import ScenarioQuery
from dialoom.runs.store.connections import WriteLock
from tests.conftest import MadeOnce
from tests.runs.stepping.played import dialogue

from .conftest import OpenPage, RunningStudio, StartStudio, playwright

expect = playwright.expect


def test_runs_are_listed(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio)
    cards = page.locator("section.card")
    expect(cards).to_have_count(5)
    expect(cards.nth(0)).to_contain_text("60 of 60 scenarios done")
    expect(cards.nth(2)).to_contain_text("aloe · seed 7")
    cards.nth(2).get_by_role("link", name="Scenarios").click()
    expect(page).to_have_url(re.compile("/runs/tree/scenarios$"))


def test_run_shows_the_usage_of_its_calls(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    page = browse(studio, "/runs/talk")
    status = dialoom.open_run(runs / "talk.db").status()
    for role, usage in status.by_role.items():
        row = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=role, exact=True))
        expect(row).to_contain_text(f"{usage.calls:,}")
        expect(row).to_contain_text(f"{usage.input_tokens:,}")
    expect(page.get_by_role("rowheader", name="offline/attentive")).to_be_visible()


def test_scenarios_are_shown_a_page_at_a_time(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/scenarios")
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("link", name="Later").first.click()
    expect(page.locator("tbody tr")).to_have_count(10)
    assert _query(page) == {"page": "2"}


def test_filters_and_order_are_in_the_address(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    page = browse(studio, "/runs/talk/scenarios")
    page.get_by_label("State").select_option("done")
    expect(page).to_have_url(re.compile("state=done"))
    page.get_by_text("More filters").click()
    page.get_by_label("setting").select_option("I")
    expect(page).to_have_url(re.compile("facet.setting=I"))
    page.get_by_label("personalization at least").fill("3")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile("min.personalization=3"))
    page.get_by_role("link", name="personalization").click()
    expect(page).to_have_url(re.compile("order=desc"))
    query = ScenarioQuery(
        state="done",
        facets={"setting": "I"},
        at_least={"personalization": 3.0},
        sort="score:personalization",
        is_descending=True,
    )
    found = dialoom.open_run(runs / "talk.db").scenarios(query)
    assert 0 < found.total < 30
    assert _ids(page) == [row.id for row in found.rows]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("personalization")
    path = page.url.removeprefix(studio.url)
    assert _ids(browse(studio, path)) == _ids(page)


def test_fields_stay_when_their_values_are_counted(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    page = browse(serve(dialogue(made_once)))
    page.add_init_script(
        """new MutationObserver(() => {
            const field = document.querySelector("select[name=state]:not(.mine)");
            if (field) { field.classList.add("mine"); window.met = (window.met ?? 0) + 1; field.value = "failed"; }
        }).observe(document, {childList: true, subtree: true});"""
    )
    page.goto(page.url + "runs/run/scenarios?facet.kind=single")
    expect(page.get_by_label("State").locator("option")).to_have_text(
        ["all", "pending (0)", "done (1)", "failed (0)"], use_inner_text=True
    )
    expect(page.get_by_label("State")).to_have_value("failed")
    assert page.evaluate("window.met") == 1
    expect(page.get_by_label("kind")).to_have_value("single")


def test_messages_can_be_searched(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    episodes = [*dialoom.open_run(runs / "talk.db").episodes()]
    one, two = re.findall(r"\b([a-z]{4,}) ([a-z]{4,})\b", episodes[5].outcome.messages[0].content)[0]
    phrase = re.compile(rf"\b{one}\W+{two}\b", re.IGNORECASE)
    matching = [each.id for each in episodes if any(phrase.search(line.content) for line in each.outcome.messages)]
    assert 0 < len(matching) < 50
    page = browse(studio, "/runs/talk/scenarios")
    page.get_by_label("Search messages").fill(f'"{one} {two}"')
    page.get_by_label("Search messages").press("Enter")
    expect(page).to_have_url(re.compile("search="))
    expect(page.locator("tbody tr").first).to_contain_text(phrase)
    assert _ids(page) == matching


def test_typed_text_is_kept_when_the_page_changes(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/scenarios?where=turns > 4&min.personalization=2")
    values = {
        "Search messages": "alarm",
        "Filter expression": "turns > 3",
        "personalization at least": "3",
        "Label as": "anna",
    }
    for label, words in values.items():
        page.get_by_label(label, exact=True).fill(words)
    page.evaluate("mounted_app.$forceUpdate()")
    page.wait_for_timeout(200)
    assert {label: page.get_by_label(label, exact=True).input_value() for label in values} == values


def test_expression_filters_as_on_the_command_line(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    page = browse(studio, "/runs/talk/scenarios?where=turns > 4")
    wanted = [each.id for each in dialoom.open_run(runs / "talk.db").episodes(where="turns > 4")]
    assert 0 < len(wanted) < 60
    assert _ids(page) == wanted[:50]
    expect(page.get_by_text(f"{len(wanted)} of 60 scenarios match", exact=True)).to_be_visible()


@pytest.mark.parametrize("what", ["scenarios", "report"])
def test_wrong_expression_is_corrected_in_its_field(studio: RunningStudio, browse: OpenPage, what: str) -> None:
    page = browse(studio, f"/runs/talk/{what}?where=tunrs > 4&judging=run")
    field = page.locator("input[name=where]")
    expect(field).to_have_value("tunrs > 4")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".field").filter(has=field).get_by_role("alert")).to_contain_text("did you mean turns?")
    field.fill("turns >")
    field.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("'turns >' is not a valid expression")
    field.fill("turns > 4")
    field.press("Enter")
    expect(page.get_by_text(re.compile(r"\d+ (of 60 scenarios match|selected)$"))).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator("table.data tbody tr").first).to_be_visible()


def test_unknown_judgements_are_named_with_the_known_ones(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/scenarios/1?judging=strict&state=done")
    for name in ("scenarios/1", "report", "scenarios"):
        page.goto(f"{studio.url}/runs/talk/{name}?judging=strict&state=done")
        expect(page.get_by_role("alert")).to_contain_text("talk has no judgements named 'strict'")
        expect(page.locator(".tabs a[aria-current=page]")).to_be_visible()
        assert page.locator("input[name=where]").count() == (name != "scenarios/1")
    page.get_by_role("alert").get_by_role("link", name="run", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(50)
    assert _query(page) == {"judging": "run", "state": "done"}


def test_malformed_filters_are_reported_and_kept(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/scenarios?min.personalization=much&setting=I")
    expect(page.get_by_role("alert")).to_contain_text("must be a number, got 'much'")
    expect(page.get_by_label("personalization at least")).to_have_value("much")
    page = browse(studio, "/runs/talk/scenarios?search=*")
    expect(page.locator(".field").filter(has=page.locator("input[name=search]")).get_by_role("alert")).to_be_visible()


def test_columns_are_the_properties_in_which_scenarios_differ(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/scenarios")
    heads = page.locator("thead th").all_inner_texts()
    assert page.locator(".scroll").evaluate("(each) => each.scrollWidth <= each.clientWidth"), "it must not scroll"
    assert {"task", "domains", "setting", "kind", "turns", "tokens used"} <= {*heads}
    assert "user" not in heads, "the run has only one person"
    heads = browse(studio, "/runs/talk/scenarios?facet.setting=I").locator("thead th").all_inner_texts()
    assert "setting" not in heads
    assert "persona" in browse(studio, "/runs/tree/scenarios").locator("thead th").all_inner_texts()


def test_figure_of_the_report_links_to_its_conversations(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    page = browse(studio, "/runs/talk/report")
    row = page.locator("section#scores tbody tr").filter(has_text="single-domain").filter(has_text="base")
    row.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("facet.kind=single"))
    assert _query(page) == {"facet.setting": "base", "facet.kind": "single"}
    run = dialoom.open_run(runs / "talk.db")
    shown = run.scenarios(ScenarioQuery(facets={"setting": "base", "kind": "single"}))
    assert shown.total == next(row[2] for row in run.report()["scores"].rows if row[:2] == ["base", "single-domain"])
    expect(page.locator("tbody tr")).to_have_count(shown.total)


def test_chart_shows_n_and_interval(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    page = browse(studio, "/runs/talk/report")
    chart = page.locator("figure").filter(has_text="TCR %").locator(".nicegui-echart")
    expect(chart.locator("canvas")).to_be_visible()
    tooltip = chart.evaluate(_TOOLTIP, 0)
    row = dialoom.open_run(runs / "talk.db").report()["scores"].rows[0]
    assert isinstance(row[3], Estimate)
    assert f"n={row[3].n}" in tooltip
    assert "[" in tooltip
    assert f"{row[0]} · {row[1]}" in tooltip
    chart.scroll_into_view_if_needed()
    box, at = chart.bounding_box(), chart.evaluate(_PLACE, 0)
    page.mouse.move(box["x"] + at[0], box["y"] + at[1])
    page.wait_for_function(_DRAWN, arg=[chart.element_handle(), f"n={row[3].n}"])


def test_chart_shows_the_whole_scale(studio: RunningStudio, browse: OpenPage) -> None:
    """The axis goes from 1 to 5, or to 4 if that is the scale, in steps of 1."""
    page = browse(studio, "/runs/talk/report")
    for name, high in (("P", 4), ("Nat. user", 5)):
        caption = page.get_by_text(name, exact=True).first
        chart = page.locator("section#scores figure").filter(has=caption).locator(".nicegui-echart")
        axis = chart.evaluate(_AXIS)
        assert (axis["min"], axis["max"], axis["interval"]) == (1, high, 1)


def test_rows_of_small_charts_are_named_by_what_differs(studio: RunningStudio, browse: OpenPage) -> None:
    chart = browse(studio, "/runs/calls/report").locator("figure .nicegui-echart").first
    expect(chart.locator("canvas")).to_be_visible()
    names = chart.evaluate(f"(element) => {_CHART}(element).getOption().yAxis[0].data")
    assert len(names) > 1
    assert not any("offline/attentive" in name for name in names)


def test_common_notes_of_tables_are_shown_once(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    page = browse(studio, "/runs/talk/report")
    tables = dialoom.open_run(runs / "talk.db").report().tables
    for note in {note for table in tables for note in table.notes}:
        expect(page.get_by_text(note, exact=True)).to_have_count(1)
    offline = page.get_by_text("Made with an offline model")
    assert offline.bounding_box()["y"] < page.locator("section#scores").bounding_box()["y"]


def test_scores_of_a_judge_that_fails_a_check_are_marked(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/report")
    expect(page.locator("section#scores tbody")).to_contain_text("100.0†")
    page.goto(page.url.replace("/report", "/scenarios/1"))
    reason = page.get_by_text("This judge fails a check: the same score every time").first
    while not reason.is_visible():  # on a busy machine only a later request has it
        page.reload()
    expect(page.locator(".judgement", has_text="task completion").locator(".word")).to_have_text("yes†")
    page.goto(page.url.partition("?")[0] + "/step")
    expect(page.locator(".stop .judgement", has_text="task completion").locator(".word")).to_have_text("yes†")
    expect(
        page.locator(".stop").get_by_text("This judge fails a check: the same score every time").first
    ).to_be_visible()


def test_runs_of_one_recipe_are_compared(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/report")
    beside = page.locator("a.chip")
    expect(beside).to_have_text(["other"])
    beside.click()
    expect(page).to_have_url(re.compile("with=other"))
    expect(page.locator("section#scores thead")).to_contain_text("run")
    for name in ("talk", "other"):  # a figure links to the conversations of its own run
        expect(page.locator(f"section#scores a.cell[href^='/runs/{name}/scenarios']").first).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/runs/talk", "/runs/talk/scenarios", "/runs/talk/report", "/runs/tree/report"])
def test_pages_fit_a_narrow_window(studio: RunningStudio, browse: OpenPage, path: str) -> None:
    page = browse(studio, path, 390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_fields_of_a_narrow_page_are_as_high_as_their_content(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/scenarios/1/step", 390)
    field = page.locator(".field").filter(has=page.get_by_label("A new branch from here"))
    assert field.bounding_box()["height"] < 80


def test_light_and_dark_are_the_readers_choice(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/", shade="dark")
    expect(page.locator("body")).to_have_class(re.compile("body--dark"))
    page.get_by_role("button", name="Light or dark").click()
    expect(page.locator("body")).to_have_class(re.compile("body--light"))
    page.goto(f"{studio.url}/runs/talk")
    page.wait_for_selector("#content .body > *")
    expect(page.locator("body")).to_have_class(re.compile("body--light"))


def test_titles_name_the_page_and_its_subject(studio: RunningStudio, browse: OpenPage) -> None:
    page = browse(studio, "/runs/talk/scenarios/2")
    expect(page).to_have_title("Conversation · 2 · talk · dialoom")
    page.get_by_role("link", name="Step", exact=True).click()
    expect(page).to_have_title("Step · 2 · talk · dialoom")
    page.get_by_role("link", name="talk", exact=True).click()
    expect(page).to_have_title("Progress · talk · dialoom")


def test_missing_page_is_reported(studio: RunningStudio, browse: OpenPage) -> None:
    expect(browse(studio, "/runs/nobody").get_by_role("alert")).to_contain_text("there is no run 'nobody'")


def test_viewing_leaves_the_run_unchanged(studio: RunningStudio, browse: OpenPage, runs: Path) -> None:
    files = sorted(runs.glob("*.db"))
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    for path in ("/", "/runs/talk", "/runs/talk/scenarios?search=alarm&sort=cost", "/runs/tree/report"):
        browse(studio, path)
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in files] == before
    assert sorted(runs.glob("*.db*")) == files


_CHART = """((node) => {
    const found = window.getElement(parseInt(node.id.replace("c", "")));
    return found.chart ?? found.$data?.chart;
})"""
_TOOLTIP = f"(element, place) => {_CHART}(element).getOption().series[0].data[place].tooltip.formatter"
_AXIS = f"(element) => {_CHART}(element).getOption().xAxis[0]"
_PLACE = f"""(element, place) => {{
    const chart = {_CHART}(element);
    return chart.convertToPixel({{seriesIndex: 0}}, chart.getOption().series[0].data[place].value);
}}"""
_DRAWN = f"""([element, words]) => {_CHART}(element).getZr().storage.getDisplayList(true).some(
    (each) => String(each.style?.text ?? "").includes(words))"""


def test_calls_in_flight_in_workers_are_unknown(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    path = dialogue(made_once)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("INSERT INTO run VALUES ('leased 0', '[1, \"thread\"]')")
    page = browse(serve(path), "/runs/run")
    in_flight = page.locator("dl.figures > div").filter(has_text="in flight").locator("dd")
    expect(in_flight).to_have_text(["–", "1 scenario in workers, not counted yet"])
    with closing(WriteLock(path)):
        path.touch()
        expect(in_flight).to_have_text(["unknown", "1 scenario in workers, not counted yet"])
        expect(page.locator(".badge").first).to_have_text("in use")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE scenarios SET state = 'failed'")
    expect(page.locator(".badge").first).to_have_text("all failed")


def test_figures_of_a_moved_file_are_marked(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    path = dialogue(made_once)
    other = shutil.copy(path, path.with_name("other.db"))
    studio = serve(path, other)
    pages = [browse(studio, "/"), browse(studio, "/runs/run")]
    conversation = browse(studio, "/runs/run/scenarios/1")
    moved = path.rename(path.with_name("moved.db"))
    expect(browse(studio, "/").get_by_role("alert")).to_contain_text(["there is no run file"])
    for page in pages:
        expect(page.get_by_role("alert").first).to_contain_text(
            "The figures of run are not updated: there is no run file"
        )
    expect(pages[0].get_by_text("are not updated")).to_have_count(1)  # and not for the other run
    conversation.get_by_text("View call").first.click()
    expect(conversation.locator("details.call[open]").first).to_contain_text("there is no run file")
    moved.rename(path)
    for page in pages:
        expect(page.get_by_text("are not updated")).to_have_count(0)
        expect(page.get_by_text("1 of 1 scenarios done").first).to_be_visible()


def _ids(page: Any) -> list[str]:
    return [str(each) for each in page.locator("tbody th a").all_inner_texts()]


def _query(page: Any) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(urlsplit(page.url).query).items()}
