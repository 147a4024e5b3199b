"""Effects of faults: they are recorded, shown, reported, filtered from exports, requested again and reviewed."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import pytest

import dialoom
from dialoom import play, review
from dialoom.cli.stepping.views import build_transcript_answer
from dialoom.graphs.recipe import REVIEWED_FAULTS
from dialoom.prompts import ChatMessage
from dialoom.runs.stepping import Stop, case_of, write_case
from tests.conftest import ROOT, Command, command_in, read_jsonl
from tests.invented import write_release

Messages = Sequence[Mapping[str, str]]
OFFER = "How can I help you with that today?"
ANSWER = "Your alarm rings at a quarter to six, and it is a bell."


class Players:
    """A user and an assistant; for some people the user offers help (a fault) in its first reply to a request.

    Args:
        with_offer: Texts in the prompts of those people.
    """

    def __init__(self, *with_offer: str) -> None:
        self._with_offer = with_offer
        self._asked: defaultdict[str, int] = defaultdict(int)
        self.offers_received: list[str] = []

    @property
    def models(self) -> dict[str, Callable[[Messages], Awaitable[str]]]:
        return {"user": self.user, "assistant": self.assistant}

    async def user(self, messages: Messages) -> str:
        key = json.dumps(messages)
        self._asked[key] += 1
        if not any(message["content"] == ANSWER for message in messages):
            return "Please set an alarm."
        is_faulty = any(name in key for name in self._with_offer)
        return OFFER if is_faulty and self._asked[key] == 1 and OFFER not in key else "Good, thank you. TERMINATE"

    async def assistant(self, messages: Messages) -> str:
        self.offers_received += [message["content"] for message in messages if message["content"] == OFFER]
        return ANSWER


def played(folder: Path, players: Players, on_user_fault: str = "flag") -> dialoom.Run:
    """Return a run of two people with one task each; one of them is 65 to 74 years old."""
    write_release(folder / "release", users=2)
    profile = folder / "release/data/profile/user7/profile.json"
    profile.write_text(profile.read_text().replace("35-44", "65-74"))
    options = {"profiles": folder / "release", "tasks": "single", "setting": ["base"]}
    return dialoom.play(
        "personalens",
        path=folder / "run.db",
        models=players.models,
        options=options,
        on_user_fault=on_user_fault,
        concurrency=1,
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dialoom.Run:
    """Return a run of two dialogues; in the first, the user offers help and the assistant repeats its answer."""
    return played(tmp_path_factory.mktemp("gate"), Players("65-74"))


def test_faults_are_kept_with_their_role(run: dialoom.Run) -> None:
    found = [(episode.facets["user"], fault.role, fault.kind, fault.message) for episode, fault in run.faults()]
    assert found == [
        ("user7", "user", "swapped_role", 2),
        ("user7", "assistant", "repetition", 3),
        ("user7", "assistant", "repetition", 5),
        ("user8", "assistant", "repetition", 3),
    ]
    frame = run.frame("faults")
    assert list(frame["kind"]) == [kind for _, _, kind, _ in found] and frame["confidence"].between(0, 1).all()
    assert list(run.frame()["faults"]) == [3, 1]
    for where, users in (
        ("faults == 0", []),
        ("faults.user == 0", ["user8"]),
        ("faults.repetition > 1", ["user7"]),
        ("faults.echo == 0 and faults < 3", ["user8"]),
    ):
        assert [episode.facets["user"] for episode in run.episodes(where=where)] == users
    with pytest.raises(dialoom.DialoomError, match="no 'ekko'"):
        list(run.episodes(where="faults.ekko == 0"))


async def end_of(run: dialoom.Run) -> Stop:
    """Return the stop at the end of the first conversation."""
    async with run.step(1) as stepper:
        return await stepper.here()


def test_show_and_step_name_faults_at_the_message(dialoom: Command, run: dialoom.Run) -> None:
    lines = [" ".join(line.split()) for line in dialoom("show", run.path, "1").stdout.splitlines()]
    at = lines.index(OFFER)
    assert lines[at + 1] == "fault of the user, 90% sure: swapped_role: how can i help"
    stop = asyncio.run(end_of(run))
    assert next((fault.role, fault.message) for fault in stop.faults) == ("user", 2)
    shown = [str(line).strip() for line in build_transcript_answer(stop.transcript, stop.faults).shown]
    assert shown[3].startswith("fault of the user")
    assert [json.loads(line)["faults"] for line in dialoom("show", run.path, "--json").stdout.splitlines()] == [3, 1]


def test_ledger_names_faults_at_the_call_of_the_line(dialoom: Command, run: dialoom.Run) -> None:
    calls = run.frame("calls", where="user == 'user7'")
    said = calls[calls["role"] != "judge"].sort_values("step")
    spoken = ["user", "assistant"] * 3
    assert list(said["role"]) == spoken
    assert [faults or "" for faults in said["faults"].fillna("")] == [
        "",
        "",
        "swapped_role",
        "repetition",
        "",
        "repetition",
    ]
    shown = [" ".join(line.split()) for line in dialoom("show", run.path, "1", "--calls").stdout.splitlines()]
    assert shown[shown.index(OFFER) + 1] == "fault of the user, 90% sure: swapped_role: how can i help"
    rows = [json.loads(line) for line in dialoom("show", run.path, "1", "--calls", "--json").stdout.splitlines()]
    assert [[fault["kind"] for fault in row["faults"]] for row in rows if row["reply"] == OFFER] == [["swapped_role"]]
    assert "give SCENARIO" in dialoom("show", run.path, "--calls", code=2).stderr
    judged = dialoom("show", run.path, "1", "--calls", "--judging", "run", code=2)
    assert "leave out --judging" in " ".join(judged.stderr.split())


def test_report_counts_faults_and_has_scores_without_them(run: dialoom.Run) -> None:
    report = run.report()
    table = report["faults"]
    assert [row[:2] + row[3:] for row in map(list, table.rows)] == [
        ["assistant", "repetition", 3, 2, 1.0],
        ["user", "swapped_role", 1, 1, 0.5],
    ]
    column = report["scores"].columns.index("dialogues")
    assert [report[name].rows[0][column] for name in ("scores", "scores-sound")] == [2, 1]
    assert run.report(where="faults.user == 0").title and "scores-sound" not in str(
        run.report(where="faults.user == 0")
    )


def test_exports_leave_out_faulty_conversations_and_report_it(
    dialoom: Command, run: dialoom.Run, tmp_path: Path
) -> None:
    users = {}
    for name, more in {"all": [], "faulty": ["--only", "faulty"], "without": ["--without", "swapped_role"]}.items():
        dialoom("export", run.path, *more, "-o", f"{name}.jsonl")
        users[name] = [line["scenario"]["user"] for line in read_jsonl(tmp_path / f"{name}.jsonl")]
    assert users == {"all": ["user7", "user8"], "faulty": ["user7", "user8"], "without": ["user8"]}
    assert read_jsonl(tmp_path / "without.jsonl")[0]["faults"][0]["kind"] == "repetition"
    dialoom("export", run.path, "--format", "sft", "--without", "swapped_role", "-o", "sft.jsonl")
    card = (tmp_path / "sft.jsonl.card.md").read_text()
    assert "filters of the export: `without swapped_role`" in card
    assert "left out, because the gate found faults or did not check them: 1 dialogues" in card
    assert "* In languages with reduced coverage: 0 of 2." in card
    assert "only sound selects no row" in dialoom("export", run.path, "--only", "sound", "-o", "x.jsonl", code=2).stderr
    assert "got 'ekko'" in dialoom("export", run.path, "--without", "ekko", "-o", "x.jsonl", code=2).stderr


def test_faulty_user_line_is_requested_again_before_it_is_answered(tmp_path: Path) -> None:
    players = Players("65-74")
    run = played(tmp_path, players, on_user_fault="retry 2")
    assert OFFER not in players.offers_received
    assert {fault.role for _, fault in run.faults()} == {"assistant"}
    calls = run.frame("calls")
    rejected = calls[calls["reply"] == OFFER]
    assert list(rejected["faults"]) == ["swapped_role"]
    assert list(rejected["ask"]) == [1] and set(calls[calls["role"] == "user"]["ask"]) == {1, 3}
    shown = command_in(tmp_path)("show", run.path, "1", "--calls").stdout
    assert shown.count(", rejected") == 1 and "swapped_role: how can i help" in shown
    assert any("rejected and requested again: 1." in note for note in run.report()["faults"].notes)
    assert run.config.on_user_fault == "retry 2"
    with pytest.raises(dialoom.DialoomError, match=r"on_user_fault must be .*, got 'thrice'") as error:
        dialoom.play("personalens", path=tmp_path / "x.db", on_user_fault="thrice")
    assert error.value.setting == "on_user_fault"


def test_line_of_a_person_is_kept_and_their_request_repeated_in_spite_of_a_fault(tmp_path: Path) -> None:
    run = played(tmp_path, Players("65-74"), on_user_fault="retry 2")
    request: list[ChatMessage] = [
        {"role": "system", "content": "You are 65-74."},
        {"role": "user", "content": ANSWER},
    ]

    async def steps() -> tuple[Stop, Stop]:
        async with run.step(1) as stepper:
            await stepper.goto(3)
            said = await stepper.say("user", OFFER)
            write_case(await case_of(stepper), tmp_path / "case.json")
            await stepper.goto(3)
            return said, await stepper.edit_request("user", request)

    said, asked = asyncio.run(steps())
    assert said.state["messages"][-1].content == OFFER and [call.model for call in said.calls] == ["said"]
    assert not dialoom.replay(tmp_path / "case.json").departures
    assert [(call.reply, list(call.messages) == request) for call in asked.calls] == [
        (OFFER, True),
        ("Good, thank you. TERMINATE", True),
    ]


def test_reviewers_verdicts_are_a_separate_judgement_set(dialoom: Command, tmp_path: Path) -> None:
    run = played(tmp_path, Players("65-74"))
    output = dialoom("review", run.path).stdout
    for option in (["--name", "x"], ["--retry-failed"]):
        assert f"{option[0]} needs --model reviewer=MODEL" in dialoom("review", run.path, *option, code=2).stderr
    assert output.startswith(f"{run.path}: 4 faults in 2 of 2 dialogues")

    async def reviewer(messages: Messages) -> str:
        text = " ".join(message["content"] for message in messages)
        return json.dumps({"verdict": "drop what they" in text and "65-74" in text, "explanation": "He stops."})

    before = [table.name for table in run.report().tables]
    reviewed = review(run.path, models={"reviewer": reviewer}, name="mine")
    assert [table.name for table in reviewed.report().tables] == before
    rows = [row for row in reviewed.report()["faults"].rows if row[1] == "gives_up"]
    assert [list(row[:2]) + list(row[3:]) for row in rows] == [["user", "gives_up", 1, 1, 0.5]]
    verdicts = [(each.metric, each.target, each.score) for each in next(reviewed.episodes("mine")).outcome.judgements]
    assert verdicts == [(kind, "user", kind == "gives_up") for kind in REVIEWED_FAULTS]
    assert [each.id for each in reviewed.episodes("mine", where="gives_up == 1")] == [reviewed.scenario(1).id]
    dialoom("agree", run.path, "--judging", "mine", "--sample", 4, "-o", "people.csv")
    assert "offline/attentive" in str(reviewed.config.model_names["judge"])


def test_understudy_reviews_by_its_rules(dialoom: Command, run: dialoom.Run) -> None:
    dialoom("review", run.path, "--model", "offline/attentive")
    frame = run.frame("judgements", "review by offline/attentive")
    assert (
        set(frame["metric"]) == set(REVIEWED_FAULTS)
        and not frame["score"].any()
        and len(frame) == 2 * len(REVIEWED_FAULTS)
    )


def test_gate_checks_generated_texts(dialoom: Command, tmp_path: Path) -> None:
    whole = "She keeps two hens behind the house."
    written = [
        "He mends clocks, and sleeps on Mondays <example>.",
        "They save for a boat, which they will sail to the",
        "Sie hat zwei Katzen und sie wohnt bei der Mutter in einem Haus an der Elbe.",
        "Nine goats are his, a hut on the hill, and a radio that is never off.",
    ]
    (tmp_path / "seeds.jsonl").write_text(json.dumps({"text": "Seeds may be cut, as in the"}) + "\n")

    async def writer(messages: Messages) -> str:  # noqa: ARG001
        return json.dumps({"items": [whole, *written]})

    options = {"seeds": tmp_path / "seeds.jsonl", "target": 6, "batch": 5, "examples": 1}
    run = play("persona-pool", path=tmp_path / "run.db", options=options, models={"writer": writer})
    assert sorted((fault.role, fault.where, fault.kind) for _, fault in run.faults()) == [
        ("writer", "text 3", "prompt_leak"),
        ("writer", "text 4", "cut_line"),
        ("writer", "text 5", "other_language"),
    ]
    assert [list(row[:2]) for row in run.report()["faults"].rows] == [
        ["writer", kind] for kind in ("cut_line", "other_language", "prompt_leak")
    ]
    assert (run.status().gated, run.status().faulty, run.status().faults) == (1, 1, 3)
    assert "faults: 3 in 1 of 1 conversations checked by the gate" in dialoom("status", run.path).stdout
    assert "fault of the writer (at text 4), 90% sure: cut_line" in dialoom("show", run.path, "1").stdout
    assert list(run.frame("calls")["faults"]) == ["prompt_leak, cut_line, other_language"]


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        ("personalens", {"setting": ["all"], "users": "4", "tasks": "all", "judge": False}),
        ("aloe", {"limit": 1, "rounds": 4, "branching": 2}),
        ("aloe-eval", {"rounds": 5}),
        ("persona-pool", {"target": 60}),
        ("personalens-people", {"people": 2}),
        ("prefeval-pairs", {"topics": "pet_ownership", "per_call": 6, "calls": 1}),
    ],
)
def test_sound_dialogues_of_understudies_raise_no_fault(
    recipe: str, options: dict[str, object], tmp_path: Path
) -> None:
    """A few dialogues or texts of each recipe are checked; in 560 of them, fewer than 1 in 500 had a fault."""
    sample = 6 if recipe in ("personalens", "aloe-eval") else None
    run = dialoom.play(recipe, path=tmp_path / "run.db", options=options, sample=sample)
    assert [(episode.id, fault) for episode, fault in run.faults()] == []
    assert all(episode.outcome.faults == () for episode in run.episodes())


def test_languages_the_gate_does_not_cover_are_reported(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "cast.py").write_text(
        """
SAID = {
    "piano": "To jest coś, co jest w domu i na czym się gra.",
    "heron": "それは生き物です。鳥です。",
    "glacier": "It is not here.",
}

async def guesser(messages):
    return "Tell more?"

async def keeper(messages):
    return next(line for word, line in SAID.items() if word in str(messages))
""",
        encoding="utf-8",
    )
    players = [f"--model={role}=python:cast:{role}" for role in ("guesser", "keeper")]
    recipe = f"{ROOT}/docs/examples/twenty_questions/recipe.py:RECIPE"
    dialoom("run", recipe, "--questions", "3", *players, "-o", "words.db")
    notice = "In languages with reduced coverage: ja 1 (33.3%; not detected: swapped_role, claimed_action, no_end;"
    status = " ".join(dialoom("status", "words.db").stdout.split())
    assert (
        notice in status
        and "pl 1 (33.3%; not detected: swapped_role, claimed_action, no_end; detected less reliably:" in status
    )
    languages = json.loads(dialoom("status", "words.db", "--json").stdout)["faults"]["languages"]
    assert languages["en"] == {"gated": 1, "is_reduced": False} and languages["ja"]["is_reduced"]
    for shown in (
        dialoom("report", "words.db", "--table", "faults").stdout,
        dialoom("describe", "words.db").stdout,
        dialoom("review", "words.db").stdout,
    ):
        assert notice in " ".join(shown.split())
