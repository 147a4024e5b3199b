"""`dialoom new study --from-transcripts`: users are inferred from transcripts and then simulated."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom as api
from tests.conftest import ROOT, Command, MadeOnce, read_jsonl

NEW = ["new", "study", "shop", "--from-transcripts", "talks.jsonl"]
SECRETS = ("ada.lovelace@gmail.com", "650 253 0000", "4111 1111 1111 1111")


def talk(*lines: str, **columns: Any) -> str:
    """Return a JSONL row of a conversation that the user opens."""
    messages = [{"role": ("user", "assistant")[place % 2], "content": line} for place, line in enumerate(lines)]
    return json.dumps({**columns, "messages": messages}) + "\n"


TALKS = (
    talk(
        "Hello, I want to return a kettle. Its order is 5512.",
        "Is it damaged?",
        "No, that's not what I said. I'm on holiday, so write to ada.lovelace@gmail.com please.",
        "The label is in your mail, ada.lovelace@gmail.com.",
        "Thanks",
        id="ada.lovelace@gmail.com",
    ),
    talk("Where is my parcel?", "On its way."),
    json.dumps(
        {
            "conversations": [
                {"from": "system", "value": "Call +1 650 253 0000."},
                {"from": "human", "value": "Please ring me at +1 650 253 0000 about the lamp."},
                {"from": "gpt", "value": "About which?"},
                {"from": "human", "value": "The blue one, paid with 4111 1111 1111 1111."},
            ]
        }
    )
    + "\n",
    talk("Cancel order 7.", "It is cancelled.", "And order 8, too, if you please.", "Done."),
)
OPENINGS = [
    "Hello, I want to return a kettle. Its order is 5512.",
    "Where is my parcel?",
    "Please ring me at [telephone number] about the lamp.",
    "Cancel order 7.",
]


def requests(run: Path) -> str:
    """Return all requests of a run."""
    opened = api.open_run(run)
    calls = [call["call"] for place in range(1, len(opened) + 1) for call in opened.calls(place)]
    return "\n".join(str(opened.request(call).messages) for call in calls)


def seed_study(dialoom: Command, folder: Path) -> None:
    """Make a study of the conversations, and play it."""
    (folder / "talks.jsonl").write_text("".join(TALKS))
    dialoom(*NEW, "--model", "offline/attentive")
    dialoom("run", "shop/study.toml", "-o", "shop.db")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return the working folder with the conversations."""
    (tmp_path / "talks.jsonl").write_text("".join(TALKS))
    return tmp_path


def test_users_open_like_the_real_ones_and_are_compared_with_them(dialoom: Command, made_once: MadeOnce) -> None:
    folder = made_once(seed_study)
    run = api.open_run(folder / "shop.db")
    assert [episode.outcome.messages[0].content for episode in run.episodes()] == OPENINGS
    assert all(len(episode.outcome.messages) > 2 for episode in run.episodes())
    asked = [call for place in range(1, 5) for call in run.calls(place) if call["role"] == "user"]
    assert not any(call["step"] < 2 for call in asked)  # a given opening needs no call
    assert "Distance of the simulated users from those of talks.jsonl" in (
        dialoom("describe", "shop.db", "--like", "talks.jsonl").stdout
    )


def test_statements_traits_and_evidence_are_written(dialoom: Command, made_once: MadeOnce) -> None:
    folder = made_once(seed_study)
    people, tasks, evidence = (
        read_jsonl(folder / "shop" / f"{name}.jsonl") for name in ("people", "tasks", "evidence")
    )
    assert [len(rows) for rows in (people, tasks, evidence)] == [4, 4, 4]
    assert people[0]["traits"] == "is polite; objects to what is wrong"
    assert people[1]["description"] == "You say of yourself: Where is my parcel?"
    assert people[3]["description"] == ""  # this user says nothing about themselves
    measured = ("length", "directness", "patience", "corrections")
    assert [people[3][name] for name in measured] == [5.0, 75.0, 2.0, 0.0]
    assert [people[1][name] for name in measured] == [4.0, "", 1.0, ""]
    sent = requests(folder / "shop.db")
    for words in ("about 5 words.", "about 2 messages in all", "tells about 75 %", "You do not object"):
        assert words in sent
    assert evidence[0]["goal"][0]["evidence"] == ["Hello, I want to return a kettle."]
    assert evidence[3]["person"][0]["result"] == "not shown"
    shown = dialoom("show", "shop.run.db", 1).stdout
    assert "traits, inferred: objects to what is wrong" in shown and "“No, that's not what I said.”" in shown
    study = (folder / "shop" / "study.toml").read_text()
    assert 'opens = "user"' in study and "max_turns = 4" in study


def test_personal_data_is_neither_sent_nor_stored(made_once: MadeOnce) -> None:
    folder = made_once(seed_study)
    sent = requests(folder / "shop.run.db")
    assert "Where is my parcel?" in sent
    with closing(sqlite3.connect(folder / "shop.run.db")) as connection:
        kept = "\n".join(connection.iterdump())
    files = "".join(path.read_text() for path in (folder / "shop").iterdir())
    for text in (sent, kept, files):
        assert "[mail address]" in text and "[telephone number]" in text
        assert not any(secret in text for secret in SECRETS)
    assert "[card number]" in sent


ANALYST = """
import json, os, signal
from pathlib import Path

def reply(person, quote):
    return json.dumps({
        "person": {"statement": person, "evidence": [quote]},
        "goal": {"statement": "You want help.", "evidence": []},
        "traits": [{"statement": "", "evidence": []}, {"statement": "is brief", "evidence": ["Thanks", "Thank"]}],
    })

async def invents(messages):
    return reply("You are a nurse.", "I am a nurse")

async def quotes_the_assistant(messages):
    return reply("You have a damaged kettle.", "Is it damaged?")

async def quotes(messages):
    return reply("You have a parcel.", " \\u201cWhere is  my parcel?\\u201d")

async def babbles(messages):
    return "Sure, what a nice conversation!"

async def dies_once(messages):
    if "Cancel order" in messages[0]["content"] and not Path("died").exists():
        Path("died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with open("asked", "a") as file:
        file.write(messages[0]["content"][-80:])
    said = messages[0]["content"].split("<user>")[1].split("</user>")[0]
    return reply("You say something.", said)
"""


@pytest.mark.parametrize(
    ("player", "results"),
    [
        ("invents", ["unparsed"] * 4),
        ("quotes_the_assistant", ["unparsed"] * 4),
        ("quotes", ["unparsed", "inferred", "unparsed", "unparsed"]),
    ],
)
def test_evidence_that_the_user_did_not_write_is_unparsed(
    dialoom: Command, folder: Path, player: str, results: list[str]
) -> None:
    (folder / "players.py").write_text(ANALYST)
    dialoom(*NEW, "--model", f"python:players:{player}", code=None)
    episodes = list(api.open_run(folder / "shop.run.db").episodes())
    assert [episode.outcome.details["person"][0]["result"] for episode in episodes] == results
    assert {episode.outcome.details["goal"][0]["reason"] for episode in episodes} == {"without evidence"}
    assert episodes[0].outcome.details["traits"][0]["result"] == "not shown"
    assert episodes[0].outcome.details["traits"][1]["reason"] == "not the user's words: Thank"  # only a part of a word
    report = dialoom("report", "shop.run.db").stdout
    assert "Unparsed, without evidence: 4." in report
    if player == "quotes":
        rows = read_jsonl(folder / "shop" / "people.jsonl")
        assert [row["description"] for row in rows] == ["", "You have a parcel.", "", ""]
        assert all(row["goal"] == "" for row in read_jsonl(folder / "shop" / "tasks.jsonl"))
        dialoom("run", "shop/study.toml", "-o", "shop.db")  # users without a description have conversations, too


def test_a_quote_of_chinese_need_not_begin_at_a_punctuation_mark(dialoom: Command, folder: Path) -> None:
    (folder / "talks.jsonl").write_text(talk("我想退货，谢谢。", "好的。"))
    (folder / "players.py").write_text(ANALYST.replace("I am a nurse", "想退"))
    dialoom(*NEW, "--model", "python:players:invents", code=None)
    (episode,) = api.open_run(folder / "shop.run.db").episodes()
    assert episode.outcome.details["person"][0]["result"] == "inferred"


def test_no_study_is_made_from_unreadable_replies(dialoom: Command, folder: Path) -> None:
    (folder / "players.py").write_text(ANALYST)
    done = dialoom(*NEW, "--model", "python:players:babbles", code=1)
    assert "nothing could be inferred from any of the 4 conversations" in done.stderr
    assert not (folder / "shop").exists()
    assert "Unparsed, the reply could not be read: 12." in dialoom("report", "shop.run.db").stdout


def test_a_killed_inference_resumes_without_repeated_calls(dialoom: Command, folder: Path) -> None:
    (folder / "players.py").write_text(ANALYST)
    command = [*NEW, "--model", "python:players:dies_once", "--concurrency", 1]
    assert dialoom(*command, env=dict(os.environ), code=None).returncode == -signal.SIGKILL
    assert not (folder / "shop").exists()
    before = (folder / "asked").read_text()
    assert before
    assert "shop is written: 4 users" in dialoom(*command).stdout
    after = (folder / "asked").read_text()
    assert after.startswith(before) and after.count("parcel?") == 1
    whole = {path.name: path.read_bytes() for path in (folder / "shop").iterdir()}
    for name in ("shop.run.db", "asked"):
        (folder / name).unlink()
    (folder / "shop").rename(folder / "killed")
    dialoom(*command)
    assert {path.name: path.read_bytes() for path in (folder / "shop").iterdir()} == whole


def test_inference_stopped_by_its_budget_continues_with_a_higher_one(dialoom: Command, folder: Path) -> None:
    done = dialoom(*NEW, "--max-calls", 2, "--concurrency", 1, code=3)
    assert "shop is not written yet; the same 'dialoom new study' command continues" in done.stdout
    assert not (folder / "shop").exists()
    other = dialoom(*NEW[:-1], "others.jsonl", code=2)
    assert "made with another configuration" in other.stderr and "others.jsonl" in other.stderr
    assert "shop is written: 4 users" in dialoom(*NEW, "--max-calls", "none").stdout
    assert json.loads(dialoom("status", "shop.run.db", "--json").stdout)["calls"] == 4
    assert "shop exists already" in dialoom(*NEW, code=2).stderr


def test_unusable_conversations_are_named_with_their_line(dialoom: Command, folder: Path) -> None:
    broken = '{"messages": [{"role": "agent", "content": "Hello"}]}\n{"a": 1}\nno JSON\n'
    (folder / "talks.jsonl").write_text(broken + "".join(TALKS) + TALKS[1])
    errors = dialoom(*NEW, code=2).stderr
    assert "talks.jsonl:1: has no line with text of the role 'user'; its roles are agent" in errors
    assert "talks.jsonl:2: there is no conversation" in errors and "talks.jsonl:3: not JSON" in errors
    assert "3 unusable conversations; nothing was sent" in errors
    assert [path.name for path in folder.iterdir()] == ["talks.jsonl"]
    (folder / "more").mkdir()
    (folder / "talks.jsonl").rename(folder / "more" / "talks.jsonl")
    assert "more/talks.jsonl:1: has no line" in dialoom(*NEW[:-1], "more", code=2).stderr
    (folder / "more" / "talks.jsonl").rename(folder / "talks.jsonl")
    done = dialoom(*NEW, "--skip-broken").stdout
    assert "3 unusable conversations left out, the first: " in done
    assert "1 equal conversation left out" in done
    assert "4 conversations; personal data was masked in 2" in done


@pytest.mark.parametrize("content", ["", "\n"])
def test_a_file_without_conversations_is_refused(dialoom: Command, tmp_path: Path, content: str) -> None:
    (tmp_path / "talks.jsonl").write_text(content)
    assert "talks.jsonl: contains no usable conversation; give at least one" in dialoom(*NEW, code=2).stderr
    assert not (tmp_path / "shop.run.db").exists()


def test_conflicting_options_are_refused(dialoom: Command, folder: Path) -> None:
    assert "there is no such file" in dialoom(*NEW[:-1], "none.jsonl", code=2).stderr
    assert "not both" in dialoom(*NEW, "--from", "talks.jsonl", code=2).stderr
    assert "--model needs --from-transcripts" in dialoom("new", "study", "x", "--model", "a/b", code=2).stderr
    assert "nothing was sent or written" in dialoom(*NEW, "--dry-run").stdout
    assert [path.name for path in folder.iterdir()] == ["talks.jsonl"]


STUDY = """
[people]
rows = ["a nurse"]
[tasks]
rows = [{{ goal = "a kettle", first = "Hi, I am DONE with this kettle." }}]
[dialogue]
max_turns = 3
opens = "assistant"
[user]
opening = '{opening}'
"""


def test_a_given_first_line_is_used_unchanged(dialoom: Command, tmp_path: Path) -> None:
    """This also holds after an assistant's greeting, and if it contains a keyword that would end the conversation."""
    (tmp_path / "study.toml").write_text(STUDY.format(opening="{{ task.first }}"))
    dialoom("run", "study.toml", "-o", "s.db")
    messages = api.open_run(tmp_path / "s.db").conversation(1).messages
    assert [message.line.role for message in messages][:3] == ["assistant", "user", "assistant"]
    assert messages[1].line.content == "Hi, I am DONE with this kettle."


@pytest.mark.parametrize(
    ("opening", "message"),
    [
        ("{{ task.last }}", "there is no column 'last', which [user] opening uses"),
        ("{{ taks.first }}", "study.toml:10: [user] opening uses 'taks'; it can use 'person' and 'task'"),
        ("{{ task.first", "study.toml:10: [user] opening is not a template"),
    ],
)
def test_a_wrong_first_line_is_named(dialoom: Command, tmp_path: Path, opening: str, message: str) -> None:
    (tmp_path / "study.toml").write_text(STUDY.format(opening=opening))
    assert message in dialoom("run", "study.toml", "-o", "s.db", code=2).stderr


def test_commands_on_the_page_print_what_it_shows(dialoom: Command, tmp_path: Path) -> None:
    """Each command of docs/seeding.md is run; its output contains the lines below it."""
    text = (ROOT / "docs" / "seeding.md").read_text(encoding="utf-8")
    (talks,) = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    (console,) = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    (tmp_path / "talks.jsonl").write_text(talks)
    for part in console.split("$ dialoom ")[1:]:
        command, _, shown = part.partition("\n")
        done = dialoom(*command.split()).stdout
        assert all(line.removesuffix(" ...") in done for line in shown.splitlines() if line != "..."), done
