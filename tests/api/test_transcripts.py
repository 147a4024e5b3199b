"""Conversations from elsewhere: imported, judged, reported, exported, described and continued."""

from __future__ import annotations

import datetime
import json
import re
import time
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.errors import DialoomError
from dialoom.inputs import DataError
from dialoom.runs.stepping import case_of
from tests.conftest import ROOT, command_in
from tests.processes import CommandProcess

JUDGES = """
[[judge]]
metric = "resolved"
rubric = "The goal was reached: {{ task.goal }}"
[[check]]
metric = "polite"
pattern = "(?i)please"
target = "user"
"""
KETTLE = {
    "id": "kettle",
    "goal": "return a kettle",
    "messages": [
        {"role": "user", "content": "Hello, I want to return a kettle, please."},
        {"role": "assistant", "content": "What is your order number?"},
        {"role": "user", "content": "It is 4711."},
        {"role": "assistant", "content": "The label is in your mail."},
    ],
}
CANCEL = {
    "task": "cancel an order",
    "messages": [
        {"role": "system", "content": "You are a shop."},
        {"role": "user", "content": "Cancel order 5"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "cancel", "arguments": '{"n": 5}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": [{"type": "text", "text": "Cancelled."}]},
    ],
    "tools": [{"type": "function", "function": {"name": "cancel"}}],
}
SHAREGPT = {
    "conversations": [{"from": "human", "value": "Where is my parcel?"}, {"from": "gpt", "value": "On its way."}],
    "goal": "find a parcel",
}


def _written(path: Path, *rows: Mapping[str, Any] | str) -> Path:
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
    return path


def _imported(folder: Path, *rows: Mapping[str, Any] | str, **settings: Any) -> dialoom.ImportResult:
    return dialoom.import_transcripts(_written(folder / "talks.jsonl", *rows), path=folder / "talks.db", **settings)


def _judges(folder: Path, text: str = JUDGES) -> Path:
    (folder / "judges.toml").write_text(text)
    return folder / "judges.toml"


async def answer(messages: list[dict[str, Any]]) -> str:
    """Reply as the user's own assistant."""
    return f"live: {messages[-1]['content']}"


def test_rows_of_three_programs_become_conversations(tmp_path: Path) -> None:
    found = _imported(tmp_path, KETTLE, SHAREGPT, CANCEL)
    assert (found.added, found.known, found.broken) == (3, 0, 0)
    first, second, third = found.run.episodes()
    assert [line.role for line in first.outcome.messages] == ["user", "assistant"] * 2
    assert first.facets == {"goal": "return a kettle"} and first.id.startswith("kettle-")
    assert [(line.role, line.content) for line in second.outcome.messages] == [
        ("user", "Where is my parcel?"),
        ("assistant", "On its way."),
    ]
    assert [line.role for line in third.outcome.messages] == ["system", "user", "assistant", "tool", "assistant"]
    (call,) = third.outcome.messages[2].tool_calls
    assert (call["name"], call["arguments"], third.outcome.messages[4].content) == ("cancel", '{"n": 5}', "Cancelled.")
    assert third.facets == {"goal": "cancel an order"}
    assert first.outcome.counts["turns"] == 2 and first.outcome.ended_by == "recorded"
    assert first.outcome.faults == ()  # it was checked by the gate


def _roles(*names: str) -> dict[str, Any]:
    return {"messages": [{"role": name, "content": f"{name} says please"} for name in names]}


def test_usual_names_of_user_and_assistant_are_read_and_other_roles_are_reported(tmp_path: Path) -> None:
    pairs = [("User", "Assistant"), ("Human", "GPT"), ("USER", "ai"), ("human", "chatbot"), ("user", "Bot")]
    found = _imported(tmp_path, *(_roles(*pair) for pair in pairs), _roles("customer", "agent"), _roles("user"))
    *read, foreign, single = [[line.role for line in each.outcome.messages] for each in found.run.episodes()]
    assert read == [["user", "assistant"]] * 5
    assert (foreign, single) == (["customer", "agent"], ["user"])
    assert (found.silent, found.other_roles) == ({"user": 1, "assistant": 2}, {"customer": 1, "agent": 1})
    errors = command_in(tmp_path)("import", "talks.jsonl", "-o", "new.db").stderr
    assert "2 of 7 conversations have no message of the role 'assistant'" in errors
    assert "agent (in 1 of 7 conversations)" in errors
    assert not command_in(tmp_path)("import", _written(tmp_path / "k.jsonl", KETTLE, CANCEL), "-o", "k.db").stderr


INSTRUCTED = {
    "goal": "greet",
    "conversations": [
        {"from": "system", "value": "You are nice."},
        {"from": "human", "value": "Hello."},
        {"from": "gpt", "value": "Good day."},
        {"from": "Developer", "value": "Now be brief."},
        {"from": "human", "value": "How are you?"},
        {"from": "gpt", "value": "Well."},
    ],
}
SAID = [("user", "Hello."), ("assistant", "Good day."), ("user", "How are you?"), ("assistant", "Well.")]


def _exported(run: dialoom.Run, format_: str, path: Path, **options: Any) -> Any:
    run.export(format_, path, **options)
    return json.loads(path.read_text())


def test_system_and_developer_messages_are_system_messages_in_training_sets(tmp_path: Path) -> None:
    """They keep their places; `--system` replaces or omits all of them."""
    found = _imported(tmp_path, INSTRUCTED)
    assert not found.other_roles
    whole = [("system", "You are nice."), *SAID[:2], ("system", "Now be brief."), *SAID[2:]]
    for system, expected in ((None, whole), ("none", SAID), ("Be short.", [("system", "Be short."), *SAID])):
        options = {} if system is None else {"system": system}
        row = _exported(found.run, "sft", tmp_path / "sft.jsonl", options=options)
        assert [(each["role"], each["content"]) for each in row["messages"]] == expected
        row = _exported(found.run, "sharegpt", tmp_path / "sharegpt.jsonl", options=options)
        names = {"system": "system", "user": "human", "assistant": "gpt"}
        assert [(each["from"], each["value"]) for each in row["conversations"]] == [
            (names[role], content) for role, content in expected
        ]


def test_training_sets_of_recorded_conversations_lack_what_a_study_gives_its_assistant(tmp_path: Path) -> None:
    """The study judges the conversations; its assistant has not taken part in them."""
    run = _imported(tmp_path, INSTRUCTED).run
    before = _exported(run, "sft", tmp_path / "sft.jsonl")
    (tmp_path / "tools.py").write_text('def seek(what: str) -> str:\n    """Seek."""\n    return what\n')
    study = _judges(tmp_path, '[assistant]\nsystem = "You are a shop."\ntools = ["tools.py:seek"]\n' + JUDGES)
    dialoom.judge(run.path, "offline/placeholder", judges=study)
    assert _exported(run, "sft", tmp_path / "sft.jsonl") == before
    row = _exported(run, "sharegpt", tmp_path / "sharegpt.jsonl")
    assert row["conversations"][0] == {"from": "system", "value": "You are nice."}


@pytest.mark.parametrize("reused", [False, True])
def test_tool_results_are_paired_with_their_calls_by_id(tmp_path: Path, reused: bool) -> None:
    """Later calls may reuse the ids of earlier ones."""

    def called(first: str, second: str, tools: Sequence[str], *answers: str) -> list[dict[str, Any]]:
        calls = [(first, tools[0], "x"), (second, tools[1], "y")]
        made = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps({"of": value})}}
            for id_, name, value in calls
        ]
        results = [{"role": "tool", "tool_call_id": id_, "content": f"{tools[0]} {id_}"} for id_ in answers]
        return [{"role": "assistant", "content": "", "tool_calls": made}, *results]

    again = ("c1", "c2") if reused else ("c3", "c4")
    messages = [
        {"role": "user", "content": "Look."},
        *called("c1", "c2", ("look", "seek"), "c2", "c1"),
        *called(*again, ("find", "open"), *reversed(again)),
    ]
    run = _imported(tmp_path, {"messages": [*messages, {"role": "assistant", "content": "Done."}]}).run
    results = ["look c1", "look c2", *(f"find {id_}" for id_ in again)]
    row = _exported(run, "sft", tmp_path / "sft.jsonl")
    assert [(each["name"], each["content"]) for each in row["messages"] if each["role"] == "tool"] == [
        *zip(("look", "seek", "find", "open"), results, strict=True)
    ]
    row = _exported(run, "sharegpt", tmp_path / "sharegpt.jsonl")
    observed = [json.loads(each["value"]) for each in row["conversations"] if each["from"] == "observation"]
    assert observed == [results[:2], results[2:]]
    (episode,) = run.episodes()
    assert [line.content for line in episode.outcome.messages if line.role == "tool"] == results
    assert [result for _, result in episode.outcome.tool_results] == results


def test_tools_of_conversations_are_exported_and_imported_again(tmp_path: Path) -> None:
    run = _imported(tmp_path, CANCEL, KETTLE).run
    for format_ in ("dialogues", "sft", "sharegpt"):
        path = tmp_path / f"{format_}.jsonl"
        run.export(format_, path)
        first, second = map(json.loads, path.read_text().splitlines())
        tools = first["tools"]
        assert (json.loads(tools) if isinstance(tools, str) else tools) == CANCEL["tools"], format_
        assert "tools" not in second
        again = dialoom.import_transcripts(path, path=tmp_path / f"{format_}.db").run
        again.export("sft", tmp_path / "again.jsonl")
        assert json.loads((tmp_path / "again.jsonl").read_text().splitlines()[0])["tools"] == json.dumps(
            CANCEL["tools"]
        )


async def test_system_messages_reach_the_assistant_and_judges_but_no_simulated_user(tmp_path: Path) -> None:
    asked: dict[str, list[dict[str, Any]]] = {}

    async def assistant(messages: list[dict[str, Any]]) -> str:
        asked["assistant"] = messages
        return "Fine."

    async def user(messages: list[dict[str, Any]]) -> str:
        asked["user"] = messages
        return "Thanks."

    async def judge(messages: list[dict[str, Any]]) -> str:
        asked["judge"] = messages
        return '{"explanation": "x", "verdict": true}'

    source, models = _written(tmp_path / "talks.jsonl", INSTRUCTED), {"assistant": assistant, "user": user}
    found = await dialoom.aimport_transcripts(source, path=tmp_path / "talks.db", models=models)
    async with found.run.step(1, models=models) as stepper:
        await stepper.goto(6)
        branch = await stepper.fork("mine")
        await branch.step()
        assert [(each["role"], each["content"]) for each in asked["assistant"]] == [
            ("system", "You are nice."),
            *SAID[:2],
            ("system", "Now be brief."),
            SAID[2],
        ]
        await branch.step()
        assert not any(line in str(asked["user"]) for line in ("You are nice.", "Now be brief."))
        await stepper.goto(2)
        opened = await stepper.fork("opened")
        await opened.step()
        assert [each["role"] for each in asked["user"]] == ["system", "user"]
        assert "Write your first message" in asked["user"][-1]["content"]
    await dialoom.ajudge(found.run.path, judge, judges=_judges(tmp_path))
    assert "<system>You are nice.</system>" in str(asked["judge"])


def test_conversations_without_the_target_are_not_scored(tmp_path: Path) -> None:
    judges = _judges(tmp_path, JUDGES + '[[check]]\nmetric = "replied"\npattern = "please"\n')
    rows = [{"goal": "x", **_roles("user", role)} for role in ("agent", "assistant")]
    run = _imported(tmp_path, *rows).run
    dialoom.judge(run.path, "offline/placeholder", judges=judges)
    other, usual = ({each.metric for each in episode.outcome.judgements} for episode in run.episodes())
    assert (other, usual) == ({"polite"}, {"polite", "resolved", "replied"})


def test_exports_of_an_imported_run_can_be_imported_again(tmp_path: Path) -> None:
    run = _imported(tmp_path, KETTLE, CANCEL).run
    dialoom.judge(run.path, "offline/placeholder", judges=_judges(tmp_path))
    scores = [{each.metric: each.score for each in episode.outcome.judgements} for episode in run.episodes()]
    assert [score["polite"] for score in scores] == [True, False]
    assert all(isinstance(score["resolved"], bool) for score in scores)
    (judged,) = [each for each in run.judgement_sets if each.model_names]
    assert judged.model_names == {"judge": "offline/placeholder"}
    tables = str(run.report())
    assert "resolved" in tables and "user, assistant" not in tables  # no model played these roles
    assert "user" not in run.models()
    run.export("sharegpt", tmp_path / "shared.jsonl")
    (card,) = tmp_path.glob("shared*.md")
    assert "Made with an offline model (judge), a scripted stand-in" in card.read_text()
    assert "These texts are for testing" not in card.read_text() and "| user |" not in card.read_text()
    note = "Made with an offline model"
    assert all(
        note not in each for each in dialoom.describe(run.path, like=tmp_path / "shared.jsonl")["likeness"].notes
    )
    run.export("dialogues", tmp_path / "out.jsonl")
    again = dialoom.import_transcripts(tmp_path / "out.jsonl", path=tmp_path / "again.db")
    assert [each.outcome.messages for each in again.run.episodes()] == [
        each.outcome.messages for each in run.episodes()
    ]


def _talk(number: int, **columns: Any) -> dict[str, Any]:
    said = [("user", f"Hello {number}{', please' if number % 3 else ''}."), ("assistant", "Good day.")]
    return {**columns, "messages": [{"role": role, "content": content} for role, content in said]}


PAT = {"name": "Pat", "age": 3}
OF_PEOPLE = [
    *(_talk(number, id=f"x{number}", name="Zoe", city="Rom", person=PAT) for number in range(2)),
    *(
        _talk(number, id=f"y{number}", user_id=f"u{number // 2}", task={"name": "return", "goal": "x"}, user_model="m")
        for number in range(12)
    ),
    *(_talk(number, person="a nurse", task="greet", tools=CANCEL["tools"]) for number in range(2)),
    *(_talk(number, name="Zoe", scores={"a": 1}, facets={"b": 2}) for number in range(20, 22)),
]


def test_people_columns_tools_and_scores_are_the_same_after_an_export_and_an_import(tmp_path: Path) -> None:
    """Importing the export again adds nothing, even if it was made with facets and scores."""
    judges = _judges(tmp_path, JUDGES.replace(": {{ task.goal }}", ""))
    run = _imported(tmp_path, *OF_PEOPLE).run
    dialoom.judge(run.path, "offline/placeholder", judges=judges)
    run.export("dialogues", tmp_path / "out.jsonl", include=["facets", "scores"])
    again = dialoom.import_transcripts(tmp_path / "out.jsonl", path=tmp_path / "again.db").run
    dialoom.judge(again.path, "offline/placeholder", judges=judges)
    assert [(each.id, each.facets) for each in again.episodes()] == [(each.id, each.facets) for each in run.episodes()]
    assert [again.scenario(place + 1) for place in range(18)] == [run.scenario(place + 1) for place in range(18)]
    means, repeated = (each.report()["scores"].rows for each in (run, again))
    assert means == repeated
    assert any(getattr(cell, "low", None) is not None for cell in means[0])
    assert run.export("dialogues", tmp_path / "second.jsonl") == {"all": 18}
    assert dialoom.import_transcripts(tmp_path / "second.jsonl", path=run.path).added == 0


def test_the_id_of_a_conversation_replaces_no_column(tmp_path: Path) -> None:
    run = _imported(tmp_path, *OF_PEOPLE[:3]).run
    run.export("dialogues", tmp_path / "out.jsonl")
    first, _, third = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    assert (first["name"], first["scenario"]) == ("x0", {"name": "Zoe", "city": "Rom"})
    assert (first["person"], third["task"]) == (PAT, {"name": "return", "goal": "x"})
    assert "person" not in third
    facets = next(run.episodes()).facets
    assert facets == {"person": "Pat", "name": "Zoe", "city": "Rom", "person_name": "Pat", "age": 3}
    shown = command_in(tmp_path)("show", "talks.db", 1).stdout
    values = {"name": "Zoe", "age": 3, "conversation": "x0", "city": "Rom", "person_name": "Pat"}
    assert [f"  {name}: {value}" for name, value in values.items()] == shown.splitlines()[1:6]
    described = dialoom.describe(tmp_path / "out.jsonl")["facets"]
    assert {"city", "age", "goal"} <= {row[0] for row in described.rows}


@pytest.mark.parametrize("format_", ["sft", "sharegpt"])
def test_conversations_that_a_format_leaves_out_are_counted_with_the_reason(tmp_path: Path, format_: str) -> None:
    run = _imported(tmp_path, KETTLE, _roles("user"), CANCEL, _roles("user", "agent")).run
    notice = "2 of 4 scenarios left out: no message of the role 'assistant'"
    written = run.export(format_, tmp_path / "out.jsonl")
    assert (written, written.notices) == ({"all": 2}, [notice])
    assert f"* {notice}" in (tmp_path / "out.jsonl.card.md").read_text()
    assert command_in(tmp_path)("export", "talks.db", "--format", format_, "-o", "-").stderr.splitlines()[1] == notice
    assert run.export("dialogues", tmp_path / "all.jsonl").notices == []
    assert run.export(format_, tmp_path / "out.jsonl", where="id.startswith('kettle')").notices == []


def test_changed_judges_make_a_separate_set(tmp_path: Path) -> None:
    run = _imported(tmp_path, KETTLE).run
    dialoom.judge(run.path, "offline/placeholder", judges=_judges(tmp_path))
    changed = JUDGES.replace("The goal was reached", "The goal was reached at once")
    dialoom.judge(run.path, "offline/placeholder", judges=_judges(tmp_path, changed), name="second")
    assert {each.name for each in run.judgement_sets} >= {"offline/placeholder", "second"}


@pytest.mark.parametrize("kind", ["check", "judge"])
def test_a_target_must_be_a_role_of_the_study_or_speak(tmp_path: Path, kind: str) -> None:
    """This is checked on import, also into an existing run, and when imported conversations are judged."""
    clerk = {"messages": [{"role": "user", "content": "Hi."}, {"role": "clerk", "content": "Hello."}]}

    def judges(target: str) -> Path:
        mediator = "[[role]]\nname = 'mediator'\nbrief = 'Mediate.'\n"
        text = f"{mediator}[[judge]]\nmetric = 'tone'\nrubric = 'Polite.'\n[[check]]\nmetric = 'words'\npattern = '.'\n"
        return _judges(tmp_path, text.replace(f"[[{kind}]]\n", f"[[{kind}]]\ntarget = '{target}'\n"))

    refused = r"has the target 'clark', which is not a role; the roles are user, assistant, mediator, clerk"
    refused = rf"judges.toml:\d: \[\[{kind}\]\] '\w+' {refused}"
    for broken in ("refuse", "skip"):
        with pytest.raises(DataError, match=refused):
            _imported(tmp_path, clerk, study=judges("clark"), broken=broken)
    run = _imported(tmp_path, clerk).run
    assert run.status().done == 1
    with pytest.raises(DataError, match=refused):
        _imported(tmp_path, KETTLE, study=judges("clark"))
    with pytest.raises(DataError, match=refused):
        dialoom.judge(run.path, "offline/placeholder", judges=judges("clark"))
    for target in ("clerk", "mediator"):
        dialoom.judge(run.path, "offline/placeholder", judges=judges(target), name=target)


def test_a_judging_that_failed_at_once_does_not_reserve_its_name(tmp_path: Path) -> None:
    run = _imported(tmp_path, KETTLE).run
    with pytest.raises(dialoom.DialoomError, match=r"uses task\.wish, which 1 of 1 conversations lack"):
        dialoom.judge(
            run.path, "offline/placeholder", judges=_judges(tmp_path, JUDGES.replace("task.goal", "task.wish"))
        )
    dialoom.judge(run.path, "offline/placeholder", judges=_judges(tmp_path))
    with pytest.raises(dialoom.DialoomError, match="was made by offline/placeholder with other prompts"):
        dialoom.judge(run.path, "offline/placeholder", judges=_judges(tmp_path, JUDGES.replace("reached", "met")))


def test_columns_that_a_rubric_uses_are_checked_before_the_first_call(tmp_path: Path) -> None:
    """Also nested ones; conversations in which the judge's target says nothing are not asked about."""
    line = {"role": "user", "content": "Hello."}
    reply = {"role": "assistant", "content": "Hi."}
    rows: list[dict[str, Any]] = [
        {"id": "x1", "name": "Ann", "city": "Rome", "messages": [line, reply]},
        {"id": "x2", "name": "Bo", "goal": "tea", "home": {"zip": 1}, "messages": [line, reply]},
        {"id": "x3", "name": "Cy", "city": "Oslo", "messages": [line, reply, {**line, "content": "Bye."}]},
        {"id": "x4", "name": "Di", "messages": [line]},
    ]
    run = _imported(tmp_path, *rows).run
    dialoom_in = command_in(tmp_path)
    judge = ("judge", run.path, "--model", "offline/placeholder", "--judges")

    def rubric(text: str) -> Path:
        return _judges(tmp_path, f"[[judge]]\nmetric = 'ok'\nrubric = '{text}'\n")

    told = dialoom_in(*judge, rubric("{{ person.name }} {{ task.goal }}"), code=2).stderr
    assert re.search(
        r"judges.toml:3: the rubric of 'ok' uses task\.goal, which 2 of 4 conversations lack \(first: x1-[0-9a-f]+, "
        r"which has name, city\); add it, or write \{\{ task\.goal \| default\('unknown'\) \}\}; or leave these "
        r"conversations out with --where EXPR",
        " ".join(told.split()),
    ), told
    with pytest.raises(DataError, match=r"task\.home\.street, which 1 of 1 conversations lack \(first: x2.* has zip\)"):
        dialoom.judge(run.path, "offline/placeholder", judges=rubric("{{ task.home.street }}"), where="name == 'Bo'")
    assert not len(run.frame("calls"))
    dialoom_in(*judge, rubric("{{ task.goal }}"), "--where", "goal == 'tea'")
    dialoom_in(*judge, rubric('{{ task.goal | default("unknown") }}'), "--name", "second")
    dialoom_in(*judge, rubric('{% if task.get("goal") %}{{ task.goal }}{% else %}-{% endif %}'), "--name", "third")
    assert [each.name for each in run.judgement_sets] == ["offline/placeholder", "second", "third"]


def test_other_runs_take_no_judges_of_a_study(tmp_path: Path) -> None:
    study = _judges(tmp_path)
    run = dialoom.play("personalens-people", path=tmp_path / "run.db", options={"people": 1})
    with pytest.raises(dialoom.DialoomError, match="only runs of imported conversations"):
        dialoom.judge(run.path, "offline/placeholder", judges=study)
    with pytest.raises(dialoom.DialoomError, match="is a run of"):
        dialoom.import_transcripts(_written(tmp_path / "t.jsonl", KETTLE), path=run.path)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("{", "not JSON"),
        ({"text": "hello"}, "there is no conversation"),
        ({"messages": []}, "at least one message"),
        ({"messages": [{"content": "x"}]}, r"messages\[1\] has no role"),
        ({"messages": [{"role": "user"}]}, r"messages\[1\] has no text"),
        (
            {"messages": [{"role": "tool", "content": "x", "tool_call_id": "c9"}]},
            "'c9', which is not the id of any tool call",
        ),
        ({"messages": [{"role": "tool", "content": "x"}]}, "neither tool_call_id nor a call before it"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, r"messages\[1\] content .* is not text"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c"}]}]}, "without name or arguments"),
        ({"messages": [{"user": "x", "assistant": {"a": "y"}}]}, "no chosen reply of the assistant"),
        ({"messages": [{"role": "user", "content": "x"}], "tools": ["x"]}, "'tools' must be a list of objects"),
    ],
)
def test_broken_rows_are_refused_or_skipped_with_file_and_line(tmp_path: Path, row: Any, expected: str) -> None:
    with pytest.raises(dialoom.DialoomError, match=rf"(?s)talks.jsonl.*2.*{expected}.*nothing was imported"):
        _imported(tmp_path, KETTLE, row, CANCEL)
    assert not (tmp_path / "talks.db").exists()
    found = _imported(tmp_path, KETTLE, row, CANCEL, broken="skip")
    assert (found.added, found.broken) == (2, 1)
    assert "talks.jsonl" in found.errors[0] and "2" in found.errors[0]


def test_a_second_import_adds_new_rows_only(tmp_path: Path) -> None:
    _imported(tmp_path, KETTLE, KETTLE)
    found = _imported(tmp_path, KETTLE, SHAREGPT, {**KETTLE, "id": "other"})
    assert (found.added, found.known) == (2, 1)
    assert [each.id.split("-")[0] for each in found.run.episodes()] == ["kettle", "Where", "other"]
    dialoom.judge(found.run.path, "offline/placeholder", judges=_judges(tmp_path))
    more = _imported(tmp_path, {**KETTLE, "id": "third"})
    judged = dialoom.judge(more.run.path, "offline/placeholder")
    assert judged.ended is not None and judged.ended.done == 1


async def test_the_users_own_assistant_continues_from_any_line(tmp_path: Path) -> None:
    found = await dialoom.aimport_transcripts(
        _written(tmp_path / "talks.jsonl", KETTLE),
        path=tmp_path / "talks.db",
        study=_judges(tmp_path),
        models={"assistant": answer},
    )
    async with found.run.step(1, models={"assistant": answer}) as stepper:
        assert (await stepper.here()).is_end
        assert len(stepper.state["messages"]) == 4
        replayed = await dialoom.areplay(await case_of(stepper), trust=True)
        assert (replayed.is_same, replayed.changed) == (True, [])
        await stepper.rewind(3)
        branch = await stepper.fork("mine")
        await branch.step()
        assert branch.state["messages"][1].content == "live: Hello, I want to return a kettle, please."
        await branch.run()
        assert len(branch.state["messages"]) > 4  # the simulated user has continued, too
        outcome = await branch.promote()
    (episode,) = found.run.episodes()
    assert episode.outcome.messages == outcome.messages


async def test_later_lines_of_a_continued_conversation_can_be_replayed_live(tmp_path: Path) -> None:
    study = _judges(tmp_path, JUDGES + '[user]\nbrief = "Get it: {{ task.goal }}"\nopening = "I open."\n')
    source = _written(tmp_path / "talks.jsonl", KETTLE)
    models = {"assistant": answer}
    found = await dialoom.aimport_transcripts(source, path=tmp_path / "talks.db", study=study, models=models)
    async with found.run.step(1, models=models) as stepper:
        imported = await case_of(stepper)
        await stepper.goto(4)
        await stepper.say("assistant", "It is on its way.")
        await stepper.say("user", "Thank you. DONE")
        continued = await case_of(stepper)
        await stepper.goto(1)
        await stepper.fork("opened")
        opened = await stepper.switch("opened")
        await opened.run([opened.condition("turn 2")])
        restarted = await case_of(opened)
    played = await dialoom.areplay(continued, trust=True)
    assert (played.is_same, played.departures, played.steps, played.calls) == (True, [], 5, 2)
    played = await dialoom.areplay(continued, live=["assistant"], models=models, trust=True)
    assert played.outcome is not None and played.live == {"assistant": 1}
    assert [line.content for line in played.outcome.messages] == [
        "Hello, I want to return a kettle, please.",
        "What is your order number?",
        "It is 4711.",
        "live: It is 4711.",
        "Thank you.",
    ]
    assert (await dialoom.areplay(restarted, trust=True)).is_same
    assert restarted.outcome.messages[0].content == "I open."  # this line needs no call
    with pytest.raises(dialoom.DialoomError, match=r"'judge'; the roles are user, assistant; judges score imported"):
        await dialoom.areplay(continued, live=["judge"], models=models, trust=True)
    with pytest.raises(dialoom.DialoomError, match="only imported lines"):
        await dialoom.areplay(imported, live=["assistant"], trust=True)


def test_a_player_named_at_the_import_needs_no_further_trust(tmp_path: Path) -> None:
    command = command_in(tmp_path)
    (tmp_path / "shop_of_import.py").write_text("def reply(messages):\n    return 'It is cancelled.'\n")
    _written(tmp_path / "talks.jsonl", KETTLE)
    command("import", "talks.jsonl", "--model", "assistant=python:shop_of_import:reply", "-o", "talks.db")
    (tmp_path / "lines.txt").write_text("goto 4\nfork mine\nswitch mine\nnext\n")
    done = command("step", "talks.db", 1, "--script", "lines.txt")
    assert "assistant (python:shop_of_import:reply)" in done.stdout


def test_a_custom_format_is_a_function_from_a_path_to_rows(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("U: hello\nA: good day\n\nU: bye\nA: see you\n")

    def read(path: Path) -> Any:
        for number, block in enumerate(path.read_text().split("\n\n"), 1):
            lines = [line.split(": ", 1) for line in block.strip().splitlines()]
            yield (
                number,
                {"messages": [{"role": {"U": "user", "A": "assistant"}[who], "content": say} for who, say in lines]},
            )

    found = dialoom.import_transcripts(tmp_path / "chat.txt", path=tmp_path / "talks.db", reader=read)
    assert [each.outcome.messages[1].content for each in found.run.episodes()] == ["good day", "see you"]


def _span(conversation: str, inputs: list[Any], reply: str, **more: Any) -> dict[str, Any]:
    out = [{"role": "assistant", "parts": [{"type": "text", "content": reply}], "finish_reason": "stop"}]
    messages = {"gen_ai.input.messages": json.dumps(inputs), "gen_ai.output.messages": json.dumps(out)}
    about = {"gen_ai.operation.name": "chat", "gen_ai.conversation.id": conversation}
    return {"name": "chat m", "context": {"trace_id": "0x1"}, "attributes": {**about, **messages, **more}}


def test_the_longest_span_of_a_conversation_is_imported(tmp_path: Path) -> None:
    hello = {"role": "user", "parts": [{"type": "text", "content": "Cancel order 5"}]}
    called = {
        "role": "assistant",
        "parts": [{"type": "tool_call", "id": "c1", "name": "cancel", "arguments": {"n": 5}}],
    }
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"ok": True}}]}
    first, second = _span("a", [hello], "Sure"), _span("a", [hello, called, result], "Cancelled.")
    other = {"name": "GET", "context": {}, "attributes": {"http.method": "GET"}}
    found = _imported(tmp_path, other, first, second, _span("b", [hello], "No."))
    one, two = found.run.episodes()
    assert [line.role for line in one.outcome.messages] == ["user", "assistant", "tool", "assistant"]
    assert one.outcome.messages[2].content == '{"ok": true}' and one.outcome.messages[3].content == "Cancelled."
    assert [line.content for line in two.outcome.messages] == ["Cancel order 5", "No."]
    values = [{"key": key, "value": {"stringValue": value}} for key, value in first["attributes"].items()]
    otlp = {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "1", "attributes": values}]}]}]}
    (tmp_path / "otlp.json").write_text(json.dumps(otlp))
    again = dialoom.import_transcripts(tmp_path / "otlp.json", path=tmp_path / "otlp.db")
    (episode,) = again.run.episodes()
    assert [line.content for line in episode.outcome.messages] == ["Cancel order 5", "Sure"]


def test_spans_and_conversations_in_one_file_are_all_imported(tmp_path: Path) -> None:
    """A column `attributes` makes no span of a conversation. A file of other spans only is refused."""
    hello = {"role": "user", "parts": [{"type": "text", "content": "Cancel order 5"}]}
    assert _imported(tmp_path, _span("a", [hello], "Sure"), KETTLE, SHAREGPT).added == 3
    again = _written(tmp_path / "more.jsonl", {**KETTLE, "attributes": {"lang": "en"}}, CANCEL)
    assert dialoom.import_transcripts(again, path=tmp_path / "more.db").added == 2
    other = _written(tmp_path / "other.jsonl", {"name": "GET", "context": {}, "attributes": {"http.method": "GET"}})
    with pytest.raises(dialoom.DialoomError, match="no span is a model call"):
        dialoom.import_transcripts(other, path=tmp_path / "other.db")


def test_columns_named_like_those_of_exports_are_columns(tmp_path: Path) -> None:
    names = (
        "turns",
        "dialogue",
        "recipe",
        "models",
        "prompts",
        "faults",
        "judgements",
        "scenario",
        "trial",
        "languages",
    )
    own = {name: f"own {name}" for name in names}
    run = _imported(tmp_path, {**KETTLE, "id": 0, "person": 17, **own}, {**KETTLE, "turns": 3}).run
    first, second = run.episodes()
    assert first.facets == {"person": 17, "goal": "return a kettle", "description": 17, **own}
    assert first.id.startswith("0-") and second.facets["turns"] == 3
    run.export("dialogues", tmp_path / "out.jsonl")
    again = dialoom.import_transcripts(tmp_path / "out.jsonl", path=tmp_path / "again.db").run
    assert [(each.id, each.facets) for each in again.episodes()] == [(each.id, each.facets) for each in run.episodes()]


def test_the_system_text_of_sharegpt_is_the_first_message(tmp_path: Path) -> None:
    run = _imported(tmp_path, {**SHAREGPT, "system": "You are a shop."}, {**KETTLE, "system": "kettle 3000"}).run
    first, second = run.episodes()
    assert [line.role for line in first.outcome.messages] == ["system", "user", "assistant"]
    assert "system" not in first.facets and second.facets["system"] == "kettle 3000"


def test_equal_values_of_person_and_task_are_both_facets(tmp_path: Path) -> None:
    rows = [
        _talk(n, person={"name": "Pat", "state": "CA"}, task={"state": state}) for n, state in enumerate(("CA", "NY"))
    ]
    facets = [(each.facets["state"], each.facets["task_state"]) for each in _imported(tmp_path, *rows).run.episodes()]
    assert facets == [("CA", "CA"), ("CA", "NY")]


def test_one_broken_row_is_reported_as_one(tmp_path: Path) -> None:
    with pytest.raises(dialoom.DialoomError, match="\n1 broken row; nothing was imported"):
        _imported(tmp_path, {"messages": []}, KETTLE)


def test_a_span_without_messages_is_broken(tmp_path: Path) -> None:
    empty = _span("a", [], "x", **{"gen_ai.output.messages": "[]"})
    with pytest.raises(dialoom.DialoomError, match=r"has no gen_ai.input.messages"):
        _imported(tmp_path, empty)
    unnamed = _span("", [{"role": "user", "parts": []}], "x") | {"context": None}
    with pytest.raises(dialoom.DialoomError, match=r"neither gen_ai\.conversation\.id nor a trace id"):
        _imported(tmp_path, unnamed)
    with pytest.raises(dialoom.DialoomError, match="not a span of OpenTelemetry"):
        _imported(tmp_path, {"resourceSpans": [{"scopeSpans": [{"spans": [{"attributes": [{"value": 1}]}]}]}]})


def test_samples_of_inspect_logs_are_conversations(tmp_path: Path) -> None:
    messages = [
        {"role": "user", "content": "What is 2 + 2?", "source": "input"},
        {"role": "assistant", "content": [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "4"}]},
    ]
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as log:
        log.writestr("header.json", "{}")
        log.writestr("samples/s_epoch_1.json", json.dumps({"id": "s", "epoch": 1, "messages": messages, "target": "4"}))
        log.writestr("samples/t_epoch_1.json", json.dumps({"id": "t", "epoch": 1}))
    found = dialoom.import_transcripts(tmp_path / "log.eval", path=tmp_path / "talks.db", broken="skip")
    (episode,) = found.run.episodes()
    assert [line.content for line in episode.outcome.messages] == ["What is 2 + 2?", "4"]
    assert episode.facets["target"] == "4" and "not a sample" in found.errors[0]
    (tmp_path / "LOG.JSON").write_text(
        json.dumps({"eval": {}, "samples": [{"id": "s", "epoch": 1, "messages": messages}]}, indent=1)
    )
    again = dialoom.import_transcripts(tmp_path / "LOG.JSON", path=tmp_path / "json.db")
    assert [each.outcome.messages for each in again.run.episodes()] == [episode.outcome.messages]


def test_exported_folder_with_its_card_is_imported(tmp_path: Path) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", sample=4)
    run.export("sft", tmp_path / "rows", test_share=0.5)
    (tmp_path / "rows" / ".cache").mkdir()
    (tmp_path / "rows" / ".cache" / "state").write_text("not a row")
    assert (tmp_path / "rows" / "README.md").exists()
    assert dialoom.import_transcripts(tmp_path / "rows", path=tmp_path / "talks.db").added == 4


def test_dialogues_of_the_personalens_release_come_from_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "output" / "dialogue" / "user7" / "claude"
    folder.mkdir(parents=True)
    messages = [{"role": "user", "content": "Book a table"}, {"role": "assistant", "content": "Done"}]
    content = {"user_id": 7, "task_id": "SD-1", "task_description": "a table", "dialogue": messages}
    (folder / "SD-1_dialogue.json").write_text(json.dumps(content))
    found = dialoom.import_transcripts(tmp_path / "output", path=tmp_path / "talks.db")
    (episode,) = found.run.episodes()
    assert episode.id.startswith("7-SD-1-") and len(episode.outcome.messages) == 2


def test_a_killed_import_resumes_without_loss_or_duplicates(tmp_path: Path) -> None:
    rows = [{**KETTLE, "id": f"talk {number}"} for number in range(1500)]
    _written(tmp_path / "talks.jsonl", *rows)
    with CommandProcess(tmp_path, "import", "talks.jsonl", "-o", "talks.db") as process:
        while process.poll() is None and not _imported_so_far(tmp_path / "talks.db"):
            time.sleep(0.01)
        process.kill()
    before = _imported_so_far(tmp_path / "talks.db")
    found = dialoom.import_transcripts(tmp_path / "talks.jsonl", path=tmp_path / "talks.db")
    assert (found.added, found.known) == (1500 - before, before) and before
    assert [each.facets["goal"] for each in found.run.episodes()] == ["return a kettle"] * 1500
    assert found.run.status().done == 1500


def _imported_so_far(path: Path) -> int:
    try:
        return dialoom.open_run(path).status().done
    except dialoom.DialoomError:  # the file does not exist yet
        return 0


def test_a_stopped_import_keeps_what_it_added_and_is_incomplete(tmp_path: Path) -> None:
    control = dialoom.Control()

    def rows(_: Path) -> Any:
        for number in range(500):
            if number == 450 and passes == ["checked"]:
                control.stop()
            yield number, {**KETTLE, "id": f"talk {number}"}
        passes.append("checked")

    passes: list[str] = []
    (tmp_path / "talks").write_text("")
    found = dialoom.import_transcripts(tmp_path / "talks", path=tmp_path / "talks.db", reader=rows, control=control)
    assert not found.is_complete and found.added == 450
    again = dialoom.import_transcripts(tmp_path / "talks", path=tmp_path / "talks.db", reader=rows)
    assert again.is_complete and (again.added, again.known) == (50, 450)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        dialoom.import_transcripts(tmp_path / "none.jsonl", path=tmp_path / "talks.db")


@pytest.mark.parametrize(
    ("rows", "broken", "message"),
    [
        ((), "refuse", r"talks\.jsonl: there are no conversations; a row has the form"),
        ((), "skip", r"talks\.jsonl: there are no conversations"),
        (({"messages": 5}, {}), "skip", r":1: .*\n.*:2: .*\n2 broken rows and no others; nothing was imported"),
    ],
)
def test_a_file_without_conversations_makes_no_run(
    tmp_path: Path, rows: tuple[Any, ...], broken: Any, message: str
) -> None:
    with pytest.raises(dialoom.DialoomError, match=message):
        _imported(tmp_path, *rows, broken=broken)
    assert not (tmp_path / "talks.db").exists()


@pytest.mark.parametrize("broken", ["refuse", "skip"])
def test_a_file_that_cannot_be_read_is_found_before_anything_is_imported(tmp_path: Path, broken: Any) -> None:
    (tmp_path / "talks").mkdir()
    _written(tmp_path / "talks" / "a.jsonl", *(_talk(number) for number in range(201)))
    (tmp_path / "talks" / "b.json").write_text("[")
    with pytest.raises(DataError, match=r"b\.json:1: not JSON"):
        dialoom.import_transcripts(tmp_path / "talks", path=tmp_path / "talks.db", broken=broken)
    assert not (tmp_path / "talks.db").exists()


def test_examples_of_the_page_on_transcripts_work(tmp_path: Path) -> None:
    command = command_in(tmp_path)
    text = (ROOT / "docs" / "transcripts.md").read_text(encoding="utf-8")
    for name, kind in (("talks.jsonl", "json"), ("support.toml", "toml"), ("chat.py", "python"), ("chat.txt", "text")):
        block = re.search(rf"```{kind}\n(.*?)```", text, re.DOTALL)
        assert block is not None
        (tmp_path / name).write_text(block[1])
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ dialoom ", block, flags=re.MULTILINE)[1:]:
            line, _, expected = part.partition("\n")
            assert expected in command(*line.split()).stdout


CALLS = [
    {"role": "user", "content": "Cancel orders 5 and 6."},
    {
        "role": "assistant",
        "content": "One moment.",
        "tool_calls": [
            {"id": f"c{order}", "type": "function", "function": {"name": "cancel", "arguments": f'{{"n": {order}}}'}}
            for order in (5, 6)
        ],
    },
    {"role": "tool", "tool_call_id": "c6", "content": "[6]"},
    {"role": "tool", "tool_call_id": "c5", "content": "ok"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c9", "type": "function", "function": {"name": "log", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c9", "content": '["a", "b"]'},
    {"role": "assistant", "content": "Both are cancelled."},
]


@pytest.mark.parametrize("format_", ["sft", "sharegpt"])
def test_tool_calls_without_ids_are_the_same_after_an_import_and_an_export(tmp_path: Path, format_: str) -> None:
    run = _imported(tmp_path, {"id": "both", "messages": CALLS}).run
    expected = _exported(run, "sft", tmp_path / "sft.jsonl")
    assert [each["role"] for each in expected["messages"]].count("tool") == 3
    run.export(format_, tmp_path / "first.jsonl")
    again = dialoom.import_transcripts(tmp_path / "first.jsonl", path=tmp_path / "again.db")
    assert again.other_roles == {}
    assert _exported(again.run, "sft", tmp_path / "again.jsonl")["messages"] == expected["messages"]


def test_messages_that_were_cut_off_are_still_so_after_an_export_and_an_import(tmp_path: Path) -> None:
    reply = {"role": "assistant", "content": "The label is in your mail.", "finish_reason": "length"}
    complete = {"role": "assistant", "content": "Print it, please.", "finish_reason": "stop"}
    run = _imported(tmp_path, {"messages": [KETTLE["messages"][0], reply, complete]}).run
    run.export("dialogues", tmp_path / "out.jsonl")
    again = dialoom.import_transcripts(tmp_path / "out.jsonl", path=tmp_path / "again.db").run
    for (episode,) in (run.episodes(), again.episodes()):
        assert [line.finish_reason for line in episode.outcome.messages] == [None, "length", None]
        assert [(fault.kind, fault.message) for fault in episode.outcome.faults or ()] == [("cut_line", 1)]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "The label"}], "finish_reason": "length"}]
    hello = {"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}
    span = _span("a", [hello], "", **{"gen_ai.output.messages": json.dumps(said)})
    source = _written(tmp_path / "spans.jsonl", span)
    (episode,) = dialoom.import_transcripts(source, path=tmp_path / "spans.db").run.episodes()
    assert [line.finish_reason for line in episode.outcome.messages] == [None, "length"]


@pytest.mark.parametrize("value", [{"bytes": b"\xff\xd8"}, object()])
def test_a_value_that_json_cannot_hold_makes_a_row_broken(tmp_path: Path, value: Any) -> None:
    """Images in Parquet files are bytes. Dates become texts, as in JSON, and missing numbers are missing values."""
    (tmp_path / "talks.txt").touch()

    def read(_path: Path) -> Any:
        yield 1, {**KETTLE, "day": datetime.date(2025, 1, 2), "score": float("nan"), "turns": (1, 2)}
        yield 2, {**KETTLE, "photo": value}
        yield 3, [KETTLE]

    with pytest.raises(dialoom.DialoomError, match=r"(?s):2: 'photo' holds .*:3: each row must be an object, got"):
        dialoom.import_transcripts(tmp_path / "talks.txt", path=tmp_path / "talks.db", reader=read)
    found = dialoom.import_transcripts(tmp_path / "talks.txt", path=tmp_path / "talks.db", reader=read, broken="skip")
    (episode,) = found.run.episodes()
    assert episode.facets == {"goal": "return a kettle", "day": "2025-01-02"} and found.broken == 2
    found.run.export("dialogues", tmp_path / "out.jsonl", include=["facets"])
    (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(line)["scenario"]["turns"] == [1, 2] and "NaN" not in line


def test_results_that_are_json_values_stay_json(tmp_path: Path) -> None:
    """One message of ShareGPT may have the results of several calls, which other programs do not write as texts."""
    calls: list[dict[str, Any]] = [{"name": name, "arguments": {}} for name in ("price", "stock", "note")]
    said = [
        {"from": "human", "value": "A kettle?"},
        {"from": "function_call", "value": json.dumps(calls)},
        {"from": "observation", "value": json.dumps([{"euro": 5, "is_new": True}, None, "höher"])},
        {"from": "gpt", "value": "5 euros."},
    ]
    (episode,) = _imported(tmp_path, {"conversations": said}).run.episodes()
    contents = [line.content for line in episode.outcome.messages if line.role == "tool"]
    assert contents == ['{"euro": 5, "is_new": true}', "null", "höher"]


def test_function_calls_of_earlier_chat_messages_are_tool_calls(tmp_path: Path) -> None:
    said = [
        {"role": "user", "content": "Cancel order 5"},
        {"role": "assistant", "content": "", "function_call": {"name": "cancel", "arguments": '{"n": 5}'}},
        {"role": "function", "name": "cancel", "content": "ok"},
        {"role": "assistant", "content": "Cancelled.", "function_call": None},
    ]
    found = _imported(tmp_path, {"messages": said})
    assert found.other_roles == {}
    call, result = _exported(found.run, "sft", tmp_path / "sft.jsonl")["messages"][1:3]
    assert call["tool_calls"][0]["function"] == {"name": "cancel", "arguments": {"n": 5}}
    assert result == {"role": "tool", "content": "ok", "name": "cancel"}


def test_trials_with_equal_messages_are_all_imported(tmp_path: Path) -> None:
    played = dialoom.simulate(["Ann"], assistant=answer, max_turns=1, trials=3, path=tmp_path / "played.db")
    for format_ in ("sft", "dialogues"):
        played.export(format_, tmp_path / f"{format_}.jsonl")
        found = dialoom.import_transcripts(tmp_path / f"{format_}.jsonl", path=tmp_path / f"{format_}.db")
        assert (found.added, found.known) == (3, 0), format_
        assert len({each.repeated for each in found.run.episodes()}) == 1, format_


def test_a_set_is_continued_after_another_study_has_judged(tmp_path: Path) -> None:
    """The prompts of another study do not make it another set."""
    run = _imported(tmp_path, KETTLE).run
    first, second = _judges(tmp_path), tmp_path / "second.toml"
    second.write_text('[[judge]]\nmetric = "kind"\nrubric = "The assistant is kind."\n')
    dialoom.judge(run.path, "offline/placeholder", judges=first, name="first")
    dialoom.judge(run.path, "offline/placeholder", judges=second, name="second")
    dialoom.judge(run.path, "offline/placeholder", judges=first, name="first")
    assert [each.name for each in run.judgement_sets if each.name != "run"] == ["first", "second"]


@pytest.mark.parametrize(
    ("rubric", "model", "name"),
    [
        ("The goal was reached: {{ person.email }}", "offline/placeholder", "second"),
        ("The goal was reached at once", "offline/plcaeholder", "second"),
        ("The goal was reached at once", "offline/placeholder", "first"),
    ],
)
def test_a_study_that_is_refused_does_not_replace_that_of_the_run(
    tmp_path: Path, rubric: str, model: str, name: str
) -> None:
    """A column that is missing, an unknown model, or a name of other judgements."""
    run = _imported(tmp_path, KETTLE).run
    dialoom.judge(run.path, "offline/placeholder", judges=_judges(tmp_path), name="first")
    before, scores = dialoom.open_run(run.path).config, run.report(tables=["scores"])["scores"].columns
    refused = _judges(
        tmp_path, f'{JUDGES.replace("The goal was reached", rubric)}\n[[check]]\nmetric = "new"\npattern = "x"'
    )
    with pytest.raises(DialoomError):
        dialoom.judge(run.path, model, judges=refused, name=name)
    run = dialoom.open_run(run.path)
    assert (run.config, run.report(tables=["scores"])["scores"].columns) == (before, scores)
    dialoom.judge(run.path, "offline/placeholder", name="first")


def test_a_file_of_another_format_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("Caller: Are you open?\nAgent: Until four.\n")
    errors = command_in(tmp_path)("import", "chat.txt", "-o", "chats.db", code=2).stderr
    assert "2 broken rows; nothing was imported; read files of another format with --reader FILE.py:FUNCTION" in errors
    (tmp_path / "chat.jsonl").write_text("Caller: Are you open?\n")
    assert "--reader" not in command_in(tmp_path)("import", "chat.jsonl", "-o", "chats.db", code=2).stderr
