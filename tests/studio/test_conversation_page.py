"""The pages of a conversation and of a tree."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import dialoom
from dialoom import open_run
from dialoom.runs.agreement import default_labels_path
from tests.conftest import Command, MadeOnce, command_in
from tests.runs.stepping.played import dialogue, play

from .conftest import OpenPage, StartStudio, playwright

expect = playwright.expect
SCENARIO = "/runs/run/scenarios/1"

_LONG_CAST = """
async def user(messages):
    return f"Line {sum(message['role'] == 'assistant' for message in messages)} of <b>mine</b>, [a link](http://x)."

async def assistant(messages):
    return f"Reply to: {messages[-1]['content']}"

async def judge(messages):
    if "Was this goal reached" in messages[-1]["content"]:
        return '{"verdict": true, "explanation": "<script>document.title = 1</script>"}'
    return '{"score": 3, "explanation": "fair"}'
"""


def _long_dialogues(dialoom: Command, folder: Path) -> None:
    (folder / "sixty.py").write_text(_LONG_CAST)
    cast = [part for role in ("user", "assistant", "judge") for part in ("--model", f"{role}=python:sixty:{role}")]
    dialoom("run", "personalens", "--limit", 2, "--turn-limit", 30, *cast, "-o", "run.db")


def test_long_conversation_is_read_with_the_keyboard(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    run = dialoom.open_run(made_once(_long_dialogues) / "run.db")
    page = browse(serve(run.path), SCENARIO)
    messages = page.locator(".message")
    texts = [line.content for line in run.conversation(1).episode.outcome.messages]
    assert len(texts) > 60
    expect(messages).to_have_count(len(texts))
    assert page.locator(".bubble > .said").all_inner_texts() == texts
    assert page.locator(".message b, .message script, .message a[href^=http]").count() == 0
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("j")
    expect(messages.nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(messages.nth(1).locator("details.call .block")).to_have_text(texts[1])
    expect(messages.nth(1)).to_contain_text("python:sixty:assistant")
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile("/scenarios/2"))
    expect(page).not_to_have_title("1")


def test_request_shows_what_is_new(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    run = dialoom.open_run(dialogue(made_once))
    page = browse(serve(run.path), SCENARIO)
    fourth = page.locator(".message").nth(3)
    fourth.get_by_text("View call").click()
    new = fourth.locator(".asked.new .said")
    expect(new.last).to_have_text(run.conversation(1).messages[2].line.content)
    expect(fourth.get_by_text(re.compile("messages? unchanged"))).to_be_visible()
    side = page.locator("aside")
    side.get_by_text("First request to assistant").click()
    expect(side.locator(".asked").first).to_contain_text("system")


def test_message_links_to_its_step(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    run = dialoom.open_run(dialogue(made_once))
    page = browse(serve(run.path), SCENARIO)
    page.locator(".message").nth(3).get_by_role("link", name="edit").click()
    page.get_by_role("heading", name="Next call: assistant").wait_for()
    expect(page.locator(".so-far .spoken")).to_have_count(3)
    expect(page.get_by_label("Reply of assistant")).to_be_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_person_and_task_are_visible_without_a_click(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage, width: int
) -> None:
    run = dialoom.open_run(dialogue(made_once))
    page = browse(serve(run.path), SCENARIO, width)
    about = page.get_by_label("Scenario")
    expect(about.get_by_text(run.scenario(1).portrait()["person"]["age"])).to_be_in_viewport()
    expect(about.get_by_text(run.scenario(1).described()["description"])).to_be_in_viewport()
    for name, value in run.scenario(1).preferences().items():
        expect(about).to_contain_text(f"{name}{value}")
    first = page.locator(".message").first.bounding_box()
    box = about.bounding_box()
    assert first is not None and box is not None
    assert box["y"] + box["height"] <= first["y"] if width == 390 else box["x"] > first["x"] + first["width"]


def test_next_follows_the_order_of_the_list(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    run = dialoom.open_run(made_once(_long_dialogues) / "run.db")
    page = browse(serve(run.path), "/runs/run/scenarios?sort=number&order=desc&state=done")
    page.locator("tbody th a").first.click()
    expect(page.get_by_text("1 of 2 selected, number 2")).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_text("2 of 2 selected, number 1")).to_be_visible()
    expect(page.get_by_role("link", name="Next →")).to_have_count(0)
    page.get_by_role("link", name="Back to list").click()
    expect(page).to_have_url(re.compile(r"scenarios\?.*order=desc"))


def test_blind_labels_become_kappas(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage, dialoom: Command
) -> None:
    path = play(made_once, "aloe-eval")
    served = serve(path)
    page = browse(served, f"{SCENARIO}?blind=1")
    page.get_by_label("Label as").fill("anna")
    page.get_by_label("Label as").press("Enter")
    expect(page).to_have_url(re.compile("as=anna"))
    words = {item.judgement.explanation for each in open_run(path).conversation(1).messages for item in each.judged}
    assert words and not any(word in page.content() for word in words if word)
    for turn, label in enumerate(("4", "3", "5")):
        choice = page.locator(".judgement").nth(turn).get_by_role("button", name=label, exact=True)
        choice.click()
        expect(choice).to_have_attribute("aria-pressed", "true")
    output = dialoom("agree", path, "--labels", default_labels_path(path)).stdout
    assert "judge, anna" in output
    page.get_by_role("link", name="Show the judge's scores").click()
    page.get_by_text("Agreement so far").click()
    expect(page.locator("table.data")).to_contain_text("judge, anna")
    expect(page.locator(".choice[aria-pressed=true]")).to_have_count(3)


def test_tree_is_drawn_with_forks_and_the_followed_path(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage
) -> None:
    path = play(made_once, "aloe")
    page = browse(serve(path), f"{SCENARIO}/tree")
    expect(page.locator(".branch")).to_have_count(2)
    expect(page.locator(".branch.taken")).to_have_count(1)
    step = page.locator("details.step").first
    step.locator("summary").click()
    boxes = [option.bounding_box() for option in step.locator(".option").all()]
    assert len(boxes) == 2 and all(boxes)
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]
    page.get_by_role("button", name="Open or fold all").click()
    expect(page.locator("details.step[open]")).to_have_count(page.locator("details.step").count())


def _others(dialoom: Command, _folder: Path) -> None:
    dialoom("run", "prefeval", "--limit", 1, "-o", "run.db")
    dialoom("run", "apollo", "--limit", 1, "-o", "calls.db")


def test_other_systems_are_shown_as_their_recipes_define(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage
) -> None:
    folder = made_once(_others)
    studio = serve(folder / "run.db", folder / "calls.db")
    page = browse(studio, SCENARIO)
    expect(page.locator(".message.note")).to_contain_text("turns of unrelated talk")
    expect(page.locator(".message.right").first).to_be_visible()
    page = browse(studio, "/runs/calls/scenarios/1", width=390)
    expect(page.locator(".message.tool").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_text_from_right_to_left_is_shown_in_its_direction(
    tmp_path: Path, serve: StartStudio, browse: OpenPage
) -> None:
    messages = [{"role": "user", "content": "מה שלומך 👩‍👩‍👧?"}, {"role": "assistant", "content": "Fine, and you?"}]
    (tmp_path / "talk.jsonl").write_text(json.dumps({"messages": messages}))
    command_in(tmp_path)("import", "talk.jsonl", "-o", "run.db")
    page = browse(serve(tmp_path / "run.db"), SCENARIO)
    said = page.locator(".bubble .said")
    expect(said.first).to_have_text(messages[0]["content"])
    places = """(each) => [0, each.textContent.length - 1].map((at) => {
        const range = document.createRange();
        range.setStart(each.firstChild, at);
        range.setEnd(each.firstChild, at + 1);
        return range.getBoundingClientRect().left;
    })"""
    (first, last), (first_too, last_too) = said.nth(0).evaluate(places), said.nth(1).evaluate(places)
    assert last < first and first_too < last_too
