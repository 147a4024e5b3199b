"""The page of a conversation's steps: its changes are stored in the file, and nothing else is."""

from __future__ import annotations

import json
import re
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

import dialoom
from dialoom import open_run
from dialoom.runs.stepping import read_case
from dialoom.runs.store.connections import WriteLock
from tests.conftest import ROOT, Command, MadeOnce, command_in
from tests.runs.stepping.played import dialogue, play

from .conftest import OpenPage, StartStudio, playwright

STEP = "/runs/run/scenarios/1/step"


def test_dialogue_is_rewound_changed_forked_compared_and_promoted(
    made_once: MadeOnce, tmp_path: Path, serve: StartStudio, browse: OpenPage
) -> None:
    path = dialogue(made_once)
    original = [line.content for line in dialoom.open_run(path).conversation(1).episode.outcome.messages]
    studio = serve(path)
    page = browse(studio, f"{STEP}?at=3")
    page.get_by_label("A new branch from here").fill("by-hand")
    page.get_by_role("button", name="Fork").click()
    page.wait_for_selector("h1:text('by-hand 3')")

    page.get_by_text("Write this reply").click()
    playwright.expect(page.get_by_label("Reply of user")).to_have_value(original[2])
    page.get_by_label("Reply of user").fill("A quiet place <b>by</b> the river, please.")
    page.get_by_role("button", name="Use this reply", exact=True).click()
    page.wait_for_selector("text=written by a person as user")

    page.get_by_label("Place", exact=True).fill("messages[1].content")
    page.keyboard.press("Tab")
    page.wait_for_function(
        "(text) => [...document.querySelectorAll('textarea')].some((each) => each.value === text)", arg=original[1]
    )
    page.get_by_label("Value").fill("With pleasure. Near the water?")
    page.get_by_role("button", name="Set").click()
    page.wait_for_selector("text=the state was edited")

    page.get_by_role("button", name="Play to the end").click()
    page.wait_for_selector("text=The end: no further steps")
    page.get_by_role("link", name="Compare by-hand with this branch").click()
    page.wait_for_selector(".versus")
    assert page.locator(".versus .side-name").all_inner_texts() == ["main", "by-hand"]
    assert "With pleasure. Near the water?" in page.locator(".versus .theirs").all_inner_texts()[0]
    assert page.locator(".versus b").count() == 0  # what a person wrote is shown as text

    head = page.locator(".side-head", has_text="by-hand")
    head.get_by_text("Make by-hand the outcome …").click()
    head.get_by_text("instead of that of main. From then on, lists, reports, exports").wait_for()
    assert dialoom.open_run(path).conversation(1).episode.branch is None  # the change needs a confirmation
    head.get_by_role("button", name="Yes, make by-hand the outcome").click()
    page.wait_for_selector(".branches li:has(a[aria-current]) >> text=the outcome")
    page.wait_for_selector(".side-head:has-text('main') >> text=Make main the outcome …")
    run = dialoom.open_run(path)
    run.export("dialogues", tmp_path / "out.jsonl")
    exported = json.loads((tmp_path / "out.jsonl").read_text())
    texts = [message["content"] for message in exported["messages"]]
    if (earlier := page.locator(".so-far summary")).count():
        earlier.first.click()
    lines = page.locator(".so-far .spoken .said")
    playwright.expect(lines).to_have_count(len(texts))
    assert sorted(lines.all_inner_texts()) == sorted(texts)
    assert exported["branch"]["name"] == "by-hand" and exported["branch"]["edits"] == exported["branch"]["said"] == 1


def test_every_other_command_of_the_debugger(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    path = dialogue(made_once)
    studio = serve(path)
    page = browse(studio, STEP)
    end = page.locator("h1").inner_text()
    page.get_by_role("link", name="← Back").click()
    page.wait_for_url("**at=*")
    page.get_by_role("link", name="Forward →").click()
    page.wait_for_selector(f"h1:text('{end}')")

    page.locator(".history a", has_text="2").first.click()
    page.wait_for_selector("h1:text('main 2')")
    page.get_by_role("button", name="Next step").click()
    page.wait_for_selector("h1:text('main 3')")
    page.get_by_label("Where", exact=True).fill("turn 2")
    page.get_by_role("button", name="Play until there").click()
    page.wait_for_selector(".head >> text=turn 2")
    assert page.locator(".branches li").count() == 1  # recorded steps need no new branch
    stop = page.locator("h1").inner_text()
    page.get_by_label("Where", exact=True).fill("turn 2")
    page.get_by_role("button", name="Break there").click()
    page.get_by_text("breakpoint: turn 2").wait_for()
    page.get_by_label("Where", exact=True).fill("turn 1")
    page.get_by_role("button", name="Go there").click()
    page.wait_for_selector(".head >> text=turn 1")
    page.get_by_role("button", name="Play to a breakpoint").click()
    page.wait_for_selector(f"h1:text('{stop}')")
    page.get_by_label("Where", exact=True).fill("turn of fate")
    page.get_by_role("button", name="Break there").click()
    page.get_by_text("is not a condition").wait_for()
    page.get_by_role("button", name="Clear breakpoint 1").click()
    page.get_by_role("button", name="Play to the end").wait_for()

    playwright.expect(page.get_by_label("Role").locator("option")).to_have_count(3)
    page.get_by_label("Model").fill("python:os:system")
    page.get_by_role("button", name="Change model").click()
    page.wait_for_selector("text=is code on this machine")
    page.get_by_label("Model").fill("offline/attentive")
    page.get_by_role("button", name="Change model").click()
    page.wait_for_selector("h1:text('b1')")
    page.get_by_text("Edit prompt").click()
    page.locator("details.form[open] textarea").last.fill("Say one word.")
    page.get_by_role("button", name="Send this request and play the step").click()
    page.wait_for_selector("text=with a request edited by a person")
    page.get_by_role("button", name="Regenerate from here").click()
    page.wait_for_selector(".branches li:has-text('b1') >> text=sample")
    page.get_by_text("The whole state").click()
    page.wait_for_selector("summary:text('messages')")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as a case").click()
    case = read_case(Path(download.value.path()))
    assert any(call.is_edited for step in case.steps for call in step.calls)


def test_file_played_by_another_process_can_be_viewed(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage
) -> None:
    path = play(made_once, "aloe")
    before = sha256(path.read_bytes()).digest()
    studio = serve(path)
    lock = WriteLock(path)
    page = browse(studio, f"{STEP}?at=4")
    page.wait_for_selector("text=Another process is using this run")
    assert page.get_by_role("button", name="Next step").count() == 0
    assert page.locator(".history li").count() > 10
    lock.close()
    page.get_by_role("button", name="Next step").wait_for()
    assert sha256(path.read_bytes()).digest() == before


def test_states_of_a_player_and_an_environment_are_shown(tmp_path: Path, serve: StartStudio, browse: OpenPage) -> None:
    (tmp_path / "counting.py").write_text(
        "class Counting:\n"
        "    def __init__(self):\n"
        "        self.had = 0\n"
        "    def __call__(self, messages):\n"
        "        self.had += len(messages)\n"
        "        return f'I have had {self.had}.'\n"
        "    def snapshot(self):\n"
        "        return {'had': self.had}\n"
        "    def restore(self, snapshot):\n"
        "        self.had = snapshot['had']\n"
    )
    (tmp_path / "desk.json").write_text('{"lamp": "on the desk"}')
    (tmp_path / "desk.toml").write_text(
        '[people]\nrows = [{ name = "Ann" }]\n[tasks]\nrows = [{ goal = "a lamp" }]\n'
        '[assistant]\nenvironment = "desk.json"\n[dialogue]\nmax_turns = 2\nends = []\n'
    )
    players = ("--model", "assistant=graph:counting.py:Counting", "--stateful", "assistant", "--no-judge")
    command_in(tmp_path)("run", "desk.toml", *players, "-o", "run.db")
    page = browse(serve(tmp_path / "run.db"), STEP)
    page.locator(".changes", has_text="players.assistant.had").wait_for()
    page.get_by_text("State of assistant").click()
    page.locator(".block", has_text='"had": ').wait_for()
    page.get_by_text("State of the environment").click()
    page.locator(".block", has_text='"lamp": "on the desk"').wait_for()


def test_two_browsers_see_the_same_changes(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    path = dialogue(made_once)
    studio = serve(path)
    one, other = browse(studio, f"{STEP}?at=3"), browse(studio, STEP)
    one.get_by_label("A new branch from here").fill("mine")
    one.get_by_role("button", name="Fork").click()
    other.wait_for_selector(".branches li:has-text('mine')")


def _tree_and_calls(dialoom: Command, _folder: Path) -> None:
    dialoom("run", "aloe", "--limit", 1, "--rounds", 2, "--seed", 3, "-o", "tree.db")
    dialoom("run", "apollo", "--limit", 1, "--seed", 3, "-o", "calls.db")


@pytest.mark.parametrize(
    ("run", "at", "node", "who", "message"),
    [
        ("tree", 2, "user", "user", "Something quite different, please."),
        (
            "calls",
            1,
            "agent",
            "assistant",
            '<tool_call>{"name": "get_weather", "arguments": {"city": "<b>Vellin</b>"}}</tool_call>',
        ),
    ],
)
def test_trees_and_tool_calls_can_be_stepped_as_dialogues(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage, run: str, at: int, node: str, who: str, message: str
) -> None:
    path = made_once(_tree_and_calls) / f"{run}.db"
    page = browse(serve(path), f"/runs/{run}/scenarios/1/step?at={at}")
    page.get_by_label("Where", exact=True).fill(node)
    page.get_by_role("button", name="Play until there").click()
    page.get_by_role("heading", name=re.compile(f"Next call: {who}")).wait_for()
    start = page.locator("h1").inner_text()
    page.get_by_label("A new branch from here").fill("mine")
    page.get_by_role("button", name="Fork").click()
    page.wait_for_selector(f"h1:text('{start.replace('main', 'mine')}')")
    page.get_by_text("Write this reply").first.click()
    field = page.get_by_label(f"Reply of {who}").first
    playwright.expect(field).not_to_have_value("")  # the recorded reply
    field.fill(message)
    page.get_by_role("button", name="Use this reply", exact=True).first.click()
    page.get_by_text(f"written by a person as {who}").wait_for()
    assert page.locator(".stop b").count() == 0
    page.get_by_role("button", name="Next step").click()
    page.get_by_text(f"written by a person as {who}").wait_for(state="hidden")
    page.get_by_role("button", name="Play to the end").click()
    page.get_by_text("The end: no further steps").wait_for()
    page.get_by_role("link", name="← Back").click()
    page.get_by_text("The end: no further steps").wait_for(state="hidden")
    page.get_by_role("link", name="Compare mine with this branch").click()
    page.locator(".side-head", has_text="mine").get_by_text("Make mine the outcome …").click()
    page.get_by_role("button", name="Yes, make mine the outcome").first.click()
    page.wait_for_selector(".branches li:has(a[aria-current]) >> text=the outcome")
    taken = open_run(path).conversation(1).episode
    assert taken.branch is not None and taken.branch.name == "mine" and taken.branch.said == 1


def test_clicks_on_buttons_that_have_just_appeared_are_not_lost(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage
) -> None:
    page = browse(serve(made_once(_tree_and_calls) / "calls.db"), "/runs/calls/scenarios/1/step?at=1")
    page.get_by_label("A new branch from here").fill("quick")
    page.get_by_role("button", name="Fork").click()
    page.wait_for_selector(".branches li:has(a[aria-current]):has-text('quick')")
    page.evaluate(
        """() => {
            const clicked = new Set();
            const click = () => {
                const next = [...document.querySelectorAll("button")].find(each => each.innerText === "Next step");
                if (next && !clicked.has(next)) { clicked.add(next); next.click(); }
            };
            new MutationObserver(click).observe(document.body, {childList: true, subtree: true});
            click();
        }"""
    )
    page.get_by_text("The end: no further steps").wait_for()


def test_typed_text_is_used_as_it_is_and_never_overwritten(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage
) -> None:
    studio = serve(dialogue(made_once))
    page = browse(studio, f"{STEP}?at=2")
    page.get_by_label("Where", exact=True).click()
    page.keyboard.type("turn 2")  # faster than the studio answers
    page.keyboard.press("Enter")
    page.wait_for_selector(".head >> text=turn 2")
    page.get_by_label("Value").fill("typed first")
    page.get_by_label("Place", exact=True).fill("messages[0].nothing")
    page.keyboard.press("Tab")
    page.get_by_text("has no 'nothing'").wait_for()
    playwright.expect(page.get_by_label("Value")).to_have_value("typed first")

    other = browse(studio, f"{STEP}?at=3")
    other.get_by_label("A new branch from here").fill("mine")
    other.get_by_role("button", name="Fork").click()
    page.get_by_text("Another process has changed this conversation.").wait_for()
    playwright.expect(page.get_by_label("Value")).to_have_value("typed first")
    page.get_by_role("button", name="Show the change").click()
    page.wait_for_selector(".branches li:has-text('mine')")


def test_typed_text_survives_actions_at_the_same_position(
    made_once: MadeOnce, serve: StartStudio, browse: OpenPage
) -> None:
    page = browse(serve(dialogue(made_once)), f"{STEP}?at=3")
    page.get_by_text("Edit prompt").click()
    page.get_by_text("Write this reply").click()
    prompt = page.locator("details.form[open] textarea").last
    typed = {prompt: "Say one word.", page.get_by_label("Reply of user"): "Rather not."}
    typed |= {page.get_by_label(name, exact=True): f"some {name}" for name in ("Where", "Value")}
    for field, words in typed.items():
        field.fill(words)
    name, model = page.get_by_label("A new branch from here"), page.get_by_label("Model")
    name.fill("mine")
    name.press("Enter")
    page.wait_for_selector("h1:text('mine 3')")
    playwright.expect(name).to_have_value("")
    model.fill("offline/attentive")
    model.press("Enter")
    page.get_by_text("user: offline/attentive").wait_for()
    for field, words in typed.items():
        playwright.expect(field).to_have_value(words)
        playwright.expect(field).to_be_visible()
    page.get_by_role("button", name="Use this reply", exact=True).click()
    page.wait_for_selector("text=written by a person as user")
    playwright.expect(page.get_by_label("Value")).to_have_value("")  # the position is another one


def test_steps_are_played_with_the_keyboard(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    page = browse(serve(dialogue(made_once)), f"{STEP}?at=1")
    next_step = page.get_by_role("button", name="Next step")
    page.get_by_role("link", name="Step", exact=True).focus()
    for _ in ("Back", "Forward", "Next step"):  # before the checkpoints, of which there may be hundreds
        page.keyboard.press("Tab")
    playwright.expect(next_step).to_be_focused()
    for number in (2, 3, 4):
        page.keyboard.press("Enter")
        page.wait_for_selector(f"h1:text('main {number}')")
        playwright.expect(next_step).to_be_focused()  # although the button is a new one
    page.get_by_role("button", name="Play to the end").press("Enter")
    page.get_by_text("The end: no further steps").wait_for()
    playwright.expect(page.get_by_role("link", name="← Back")).to_be_focused()


def test_clicks_count_in_their_order(made_once: MadeOnce, serve: StartStudio, browse: OpenPage) -> None:
    page = browse(serve(dialogue(made_once)), f"{STEP}?at=5")
    page.get_by_label("Where", exact=True).fill("turn 1")
    page.evaluate(
        """() => {
            for (const name of ["Go there", "Next step"])
                [...document.querySelectorAll("button")].find(each => each.innerText === name).click();
        }"""
    )
    page.wait_for_selector("h1:text('main 3')")  # the step after that position


def test_keys_in_errors_of_a_recipe_are_not_shown(tmp_path: Path, serve: StartStudio, browse: OpenPage) -> None:
    shutil.copytree(ROOT / "docs/examples/larder", tmp_path / "game")
    recipe = tmp_path / "game" / "larder.py"
    command_in(tmp_path)("run", "game/larder.py:RECIPE", "--larders", 1, "-o", "run.db")
    changed = recipe.read_text().replace('utterances(state["messages"])', 'utterances(state["sk-0123456789abcdef"])')
    recipe.write_text(changed)
    page = browse(serve(tmp_path / "run.db"), f"{STEP}?at=2")
    page.get_by_role("button", name="Regenerate from here").click()
    page.wait_for_selector("h1:text('b1 2')")
    page.get_by_role("button", name="Play to the end").click()
    page.get_by_text("unexpected KeyError: '[key]'").wait_for()
    assert "0123456789" not in page.content()
