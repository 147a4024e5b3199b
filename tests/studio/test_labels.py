"""Labelling from one conversation to the next, and labels of an earlier version of a conversation."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from dialoom import open_run
from dialoom.runs.agreement import default_labels_path
from tests.conftest import Command, MadeOnce, write_quick_players
from tests.invented import write_release
from tests.programs import START_TIMEOUT_SECONDS

from .conftest import OpenPage, RunningStudio, StartStudio, playwright

expect = playwright.expect
LIST = "/runs/run/scenarios"


def _three_dialogues(dialoom: Command, folder: Path) -> None:
    write_release(folder / "release", users=3)
    dialoom(
        "run",
        "personalens",
        "--profiles",
        "release",
        "--setting",
        "base",
        "--limit",
        3,
        *write_quick_players(folder),
        "-o",
        "run.db",
    )


def test_second_click_takes_a_label_back_however_fast(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage
) -> None:
    path = made_once(_three_dialogues) / "run.db"
    page = browse(serve(path), f"{LIST}/1?as=anna")
    yes = page.locator(".judgement").first.get_by_role("button", name="yes", exact=True)
    yes.evaluate("(button) => { button.click(); button.click(); }")
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not default_labels_path(path).exists() or open_run(path).given_labels("anna", 1):
        assert time.monotonic() < deadline, "the second click has set the label again"
        time.sleep(0.05)
    expect(yes).to_have_attribute("aria-pressed", "false")


@pytest.mark.parametrize(
    ("path", "score"),
    [
        ("/runs/talk/scenarios", "personalization"),
        ("/runs/talk/scenarios/1/step", "task_completion"),
        ("/runs/tree/scenarios/1/tree", "preferred"),
    ],
)
def test_labeller_sees_no_scores_beside_a_conversation(studio: RunningStudio, path: str, score: str) -> None:
    visit = build_opener(HTTPCookieProcessor()).open
    visit(studio.address())
    shown = [visit(f"{studio.url}{path}{query}").read().decode() for query in ("", "?as=anna&blind=0", "?as=anna")]
    assert [score in page for page in shown] == [True, True, False]


def test_labelling_goes_from_one_conversation_to_the_next(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage, dialoom: Command
) -> None:
    path = made_once(_three_dialogues) / "run.db"
    page = browse(serve(path), f"{LIST}?sort=number&order=desc&metrics=task_completion")
    page.get_by_label("Label as").fill("anna")
    page.get_by_role("button", name="Start labelling").click()
    expect(page).to_have_url(re.compile("as=anna"))
    expect(page.get_by_text("number 3")).to_be_visible()
    expect(page.locator(".judgement")).to_have_count(1)
    expect(page.locator(".judgement .word")).to_have_count(0)  # the judge's score is hidden by default
    page.get_by_role("link", name="Show the judge's scores").click()
    expect(page.locator(".judgement .word")).to_have_count(1)
    page.get_by_role("link", name="Hide the judge's scores").click()
    page.locator(".judgement").first.get_by_role("button", name="yes").click()
    expect(page.locator(".choice[aria-pressed=true]")).to_have_count(1)
    page.keyboard.press("l")
    expect(page.get_by_text("number 2")).to_be_visible()
    page.get_by_role("link", name="Back to list").click()
    expect(page.locator("tbody tr .accent", has_text="labelled")).to_have_count(1)
    page.get_by_label("Labels of anna").select_option("not yet")
    expect(page.locator("tbody tr")).to_have_count(2)
    run = open_run(path)
    assert run.labelled("anna", metrics=["task_completion"])[2].is_complete
    assert tuple(run.labelled("anna")[2]) == (1, 6)
    page.get_by_role("button", name="Start labelling").click()
    expect(page.get_by_text("1 of 2 selected, number 2")).to_be_visible()
    page.locator(".judgement").first.get_by_role("button", name="no").click()
    expect(page.locator(".choice[aria-pressed=true]")).to_have_count(1)
    page.get_by_role("link", name="Next to label").click()
    expect(page.get_by_text("number 1")).to_be_visible()
    expect(page.get_by_text("You have labelled all later conversations")).to_be_visible()
    output = dialoom("show", path, "--unlabelled-by", "anna").stdout.splitlines()
    assert [line.split()[0] for line in output if "done" in line] == ["1", "2", "3"]  # one of six metrics is labelled


def test_labels_of_another_branch_are_shown_and_not_counted(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage, dialoom: Command
) -> None:
    path = made_once(_three_dialogues) / "run.db"
    page = browse(serve(path), f"{LIST}/1?as=anna&blind=0")
    yes = page.locator(".judgement").first.get_by_role("button", name="yes")
    yes.click()
    expect(yes).to_have_attribute("aria-pressed", "true")
    page.goto(page.url.replace("/1?", "/1/step?at=3&"))
    page.get_by_text("Write this reply").click()
    page.get_by_label("Reply of user").fill("Something else, please.")
    page.get_by_role("button", name="Use this reply", exact=True).click()
    page.get_by_text("written by a person as user").wait_for()
    page.get_by_role("button", name="Play to the end").click()
    page.get_by_text("The end: no further steps").wait_for()
    _promote(page)
    page.get_by_role("link", name="Conversation", exact=True).click()
    expect(page.get_by_text("given to an earlier conversation, so not counted: yes")).to_be_visible()
    expect(page.locator(".choice[aria-pressed=true]")).to_have_count(0)
    assert "left out: 1, of 1 scenario" in dialoom("agree", path, "--labels", default_labels_path(path)).stdout
    page.get_by_text("Agreement so far").click()
    expect(page.get_by_text("Labels given to an earlier conversation, left out: 1")).to_be_visible()
    page.get_by_role("link", name="Step", exact=True).click()
    _promote(page)
    page.get_by_role("link", name="Conversation", exact=True).click()
    expect(page.locator(".choice[aria-pressed=true]")).to_have_count(1)
    page.goto(page.url.split("/scenarios")[0] + "/report")
    page.get_by_text("Agreement of judge and people").click()
    expect(page.locator("table", has_text="judge, anna")).to_be_visible()


def _promote(page: Any) -> None:
    page.get_by_text(re.compile("^Make .* the outcome …")).first.click()
    page.get_by_role("button", name=re.compile("^Yes, make")).first.click()
    page.locator(".branches li:has(a[aria-current])", has_text="the outcome").wait_for()
