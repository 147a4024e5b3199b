"""Replays with live roles: whether they are as recorded, and which recorded replies do not count."""

from __future__ import annotations

import asyncio
import importlib
import shutil
import sys
from pathlib import Path

import pytest

import dialoom as api
from dialoom import DialoomError, Stepper
from dialoom.runs.stepping import ReplayResult, case_of, write_case
from tests.conftest import Command, MadeOnce

SHOP = """
CANCELS = True

async def assistant(messages):
    if "17" in messages[-1]["content"]:
        return "Order 17 is cancelled." if CANCELS else "We cannot cancel that."
    return "Gladly."

async def user(messages):
    said = sum(message["role"] == "assistant" for message in messages)
    return ["Hello.", "Please cancel order 17.", "Thanks. DONE"][min(said, 2)]

async def judge(messages):
    return '{"explanation": "as told", "verdict": %s}' % str("is cancelled" in str(messages)).lower()
"""
STUDY = """
[people]
rows = [{ name = "Ann", goal = "cancel order 17" }]

[user]
brief = "You want to {{ person.goal }}."

[assistant]
system = "You help."

[[judge]]
metric = "resolved"
rubric = "The goal was reached: {{ person.goal }}"

[[check]]
metric = "cancelled"
pattern = "is cancelled"
"""


def _saved(dialoom: Command, folder: Path) -> None:
    (folder / "shop.py").write_text(SHOP)
    (folder / "shop.toml").write_text(STUDY)
    models = [part for role in ("user", "assistant", "judge") for part in ("--model", f"{role}=python:shop:{role}")]
    dialoom("run", "shop.toml", *models, "-o", "shop.db")
    dialoom("step", "shop.db", 1, input="save case.json\n")


@pytest.fixture
def shop(made_once: MadeOnce, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder: a shop whose assistant cancels orders, a study, and a saved conversation."""
    folder = made_once(_saved)
    monkeypatch.chdir(folder)
    return folder


def restore_fault(folder: Path) -> None:
    """Give the assistant its fault back."""
    (folder / "shop.py").write_text(SHOP.replace("CANCELS = True", "CANCELS = False"))


def test_fault_that_is_back_fails_only_if_the_assistant_is_live(shop: Path, dialoom: Command) -> None:
    live = ["--live", "assistant", "--live", "judge"]
    assert (
        "no role replied again (--live ROLE, and --live judge for new scores)" in dialoom("replay", "case.json").stdout
    )
    assert "case.json: the same judgements" in dialoom("replay", "case.json", *live).stdout
    restore_fault(shop)
    recorded = dialoom("replay", "case.json").stdout
    assert f"changed since the case was saved: {shop / 'shop.py'} has changed\n" in recorded
    assert recorded.count("changed since") == 1
    found = dialoom("replay", "case.json", *live, code=1, env={}).stdout.splitlines()
    assert found[:3] == [
        'messages[3].content: "Order 17 is cancelled." -> "We cannot cancel that."',
        "resolved (assistant): True -> False",
        "cancelled (assistant): True -> False",
    ]
    assert found[-2:] == [
        "case.json: new replies: assistant 2, judge 1; recorded replies: 3, 1 of them to changed requests",
        "case.json: NOT as recorded",
    ]
    required = dialoom("replay", "case.json", "resolved >= 100%", *live, code=1, env={}).stdout
    assert "NOT MET: resolved >= 100.0 %: 0.0 %" in required
    dialoom("replay", "case.json", "resolved <= 10%", *live, env={})


def test_recorded_judgement_of_another_conversation_does_not_count(shop: Path, dialoom: Command) -> None:
    assert "recorded replies: 4\ncase.json: the same" in dialoom("replay", "case.json", "--live", "assistant").stdout
    restore_fault(shop)
    found = dialoom("replay", "case.json", "--live", "assistant", code=1, env={}).stdout
    assert "resolved (assistant): no score: judge was not called, because its recorded reply " in found
    assert "; name judge among the live roles, too\n" in found
    unmet = dialoom("replay", "case.json", "resolved <= 10%", "--live", "assistant", code=1, env={}).stdout
    assert "NOT MET: resolved <= 10.0 %: no score" in unmet


def test_judgement_by_an_edited_request_does_not_count_for_another_conversation(shop: Path) -> None:
    async def save() -> None:
        async with api.step("shop.db", 1) as stepper:
            await stepper.goto_where(stepper.condition("judge_resolved_assistant"))
            await stepper.edit_request("judge", [{"role": "user", "content": "It is cancelled, is it not?"}])
            write_case(await case_of(stepper), shop / "leading.json")

    asyncio.run(save())
    assert api.replay("leading.json", live=["assistant"]).is_same
    played = api.replay("leading.json", live=["assistant"], models={"assistant": lambda _messages: "No."})
    assert any(line.startswith("resolved (assistant): no score") for line in played.scores)


def test_live_role_has_its_current_prompt_and_others_the_recorded_one(shop: Path) -> None:
    requests: list[str] = []

    async def assistant(messages: list[dict[str, str]]) -> str:
        requests.append(messages[0]["content"])
        return "Order 17 is cancelled."

    (shop / "shop.toml").write_text(STUDY.replace("You help.", "You are of help.").replace("You want", "I want"))
    played = api.replay(shop / "case.json", live=["assistant"], models={"assistant": assistant})
    assert [text[:16] for text in requests] == ["You are of help."] * 2
    assert list(played.changed) == [
        "shop.toml has changed",
        "prompt shop/assistant has changed",
        "prompt shop/user has changed",
    ]
    assert played.lines == ['messages[1].content: "Gladly." -> "Order 17 is cancelled."']
    assert not played.is_same, "the judge's recorded request was different"


def test_conversation_that_goes_on_longer_than_recorded_fails(shop: Path) -> None:
    async def user(_messages: list[dict[str, str]]) -> str:
        return "And please cancel order 17."

    played = api.replay(shop / "case.json", live=["user"], models={"user": user})
    assert list(played.departures) == [
        "step 6: assistant asked assistant more often than was recorded; name assistant among the live roles, too"
    ]
    assert played.outcome is None and not played.is_same


def test_edit_after_another_reply_fails(shop: Path) -> None:
    async def save() -> None:
        async with api.step("shop.db", 1) as stepper:
            await _edited(stepper)

    async def _edited(stepper: Stepper) -> None:
        await stepper.goto_where(stepper.condition("turn 2"))
        await stepper.edit("messages[1].content", "Hello, Ann.")
        await stepper.run()
        write_case(await case_of(stepper), shop / "edited.json")

    asyncio.run(save())
    assert api.replay("edited.json", live=["assistant", "judge"]).is_same
    played = api.replay("edited.json", live=["assistant"], models={"assistant": lambda _messages: "No."})
    assert "the state was edited here" in played.departures[0]


REFUSED = {
    "role": (["--live", "clerk"], "unknown role 'clerk'; the roles are"),
    "model": (["--live", "judge", "--model", "user=python:shop:user"], "role 'user' does not give new replies"),
    "nobody": (["--model", "user=python:shop:user"], "name at least one"),
    "requirement": (["resolved >= 1%"], "name one with --live"),
}


@pytest.mark.parametrize(("words", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_replay_is_refused(shop: Path, dialoom: Command, words: list[str], message: str) -> None:
    assert shop.is_dir()
    assert message in dialoom("replay", "case.json", *words, code=2).stderr


def test_code_of_a_live_role_needs_trust_on_another_machine(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(shop / "elsewhere"))
    with pytest.raises(DialoomError, match="names the player python:shop:assistant"):
        api.replay(shop / "case.json", live=["assistant"])
    assert api.replay(shop / "case.json", live=["assistant"], trust=True).is_same


def test_files_are_found_beside_a_copied_case_before_the_original_folder(
    shop: Path, dialoom: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = STUDY.replace('pattern = "is cancelled"', 'python = "checks.py:cancelled"')
    copy, elsewhere = shop / "copy", shop / "elsewhere"
    (shop / "shop.toml").write_text(study)
    (shop / "checks.py").write_text("def cancelled(conversation):\n    return True\n")
    models = ["--model", "offline/placeholder", "--model", "assistant=python:shop:assistant"]
    dialoom("run", "shop.toml", *models, "-o", "checked.db")
    for folder in (copy, elsewhere):
        folder.mkdir()
        dialoom("step", "checked.db", 1, input=f"save {folder / 'case.json'}\n")
    for name in ("shop.toml", "shop.py", "checks.py"):
        shutil.copy(shop / name, copy)
    (copy / "checks.py").write_text("def cancelled(conversation):\n    return False\n")
    (copy / "shop.toml").write_text(study.replace("You help.", "You help briefly."))

    monkeypatch.chdir(elsewhere)
    found = api.replay("case.json", live=["assistant"], trust=True)
    assert (found.is_same, found.scores, found.changed) == (True, [], [])
    with pytest.raises(DialoomError, match=f"would run {copy}/checks.py"):
        api.replay(copy / "case.json")
    for folder in (copy, elsewhere):
        monkeypatch.chdir(folder)
        found = api.replay(copy / "case.json", live=["assistant"], trust=True)
        assert found.scores == ["cancelled (assistant): True -> False"]
        assert f"{copy}/checks.py has changed" in found.changed
        assert "prompt shop/assistant has changed" in found.changed


def test_modules_beside_a_case_can_be_imported_during_its_replay_only(
    shop: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = "async def assistant(messages):\n    import words_beside_the_case\n    return words_beside_the_case.REPLY\n"
    beside = tmp_path_factory.mktemp("beside")
    shutil.copy(shop / "case.json", beside)
    (beside / "late_beside_the_case.py").write_text(late)
    (beside / "words_beside_the_case.py").write_text("REPLY = 'Order 17 is cancelled.'\n")
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    models = {"assistant": "python:late_beside_the_case:assistant"}

    async def replays() -> list[ReplayResult]:
        played = [api.areplay(beside / "case.json", live=["assistant"], models=models, trust=True) for _ in range(3)]
        return await asyncio.gather(*played)

    for played in asyncio.run(replays()):
        assert played.outcome is not None
        assert [line.content for line in played.outcome.messages if line.role == "assistant"] == [
            "Order 17 is cancelled."
        ] * 2
    assert str(beside) not in sys.path


def test_cases_with_modules_of_the_same_name_each_use_their_own(
    shop: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds even if another module of that name is loaded already, as pytest replays all cases in one process."""
    agent = "async def assistant(messages):\n    import same_words\n    return same_words.REPLY\n"
    folders = [tmp_path_factory.mktemp(name) for name in ("one", "other", "third")]
    for folder in folders:
        shutil.copy(shop / "case.json", folder)
        (folder / "same_agent.py").write_text(agent)
        (folder / "same_words.py").write_text(f"REPLY = {folder.name!r}\n")
    monkeypatch.syspath_prepend(str(folders[2]))
    loaded = importlib.import_module("same_words")
    models = {"assistant": "python:same_agent:assistant"}
    for folder in (*folders[:2], *folders):
        played = api.replay(folder / "case.json", live=["assistant"], models=models, trust=True).outcome
        assert played is not None
        assert {line.content for line in played.messages if line.role == "assistant"} == {folder.name}
    assert sys.modules["same_words"] is loaded and "same_agent" not in sys.modules
