"""APOLLO's samples: axes, offered tools, unusable sources and a killed run."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import ValidationError

import dialoom
from benchmarks.apollo_size import count_text_bytes, plan_samples, read_table_sizes
from dialoom import Scenario
from dialoom.graphs import Estimate, RecipeError
from dialoom.graphs.apollo import RECIPE
from dialoom.graphs.apollo.scenario import SAMPLE, ApolloOptions, ApolloScenario
from dialoom.graphs.scenario import ByHash, SharedValueCache
from dialoom.personas.apollo.source import build_history
from tests.conftest import Command
from tests.graphs.apollo.invented import source, write
from tests.graphs.apollo.players import FINISH, episodes, played
from tests.runs.test_kill_anywhere import killed
from tests.server import completion, serving

MADE = source(["music", "food"], sets=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the source to a folder."""
    return write(tmp_path_factory.mktemp("apollo") / "source", MADE)


def planned(folder: Path, **options: Any) -> list[ApolloScenario]:
    """Return the samples of a run with these options."""
    chosen = ApolloOptions(source=folder, **options)
    return list(RECIPE.scenarios(chosen, random.Random(0), lambda _line: None))


def test_every_pair_has_every_length_and_framework(folder: Path) -> None:
    samples = planned(folder, length=("2k", "3000"), framework=("rag", "reminder"))
    assert [(each.pair.id, each.length, each.played.framework) for each in samples] == [
        (pair, length, framework) for pair in MADE.pairs for length in (2000, 3000) for framework in ("rag", "reminder")
    ]
    assert len({each.id for each in samples}) == len(samples)
    assert len({id(each.who.value) for each in samples}) == 1
    assert len({id(each.case.value) for each in samples}) == len(MADE.pairs)
    for sample in samples[::2]:
        made = build_history(MADE, sample.pair, length=sample.length)
        assert tuple(sample.history.values()) == made.sessions
        assert (sample.place, sample.tokens, sample.case.value.tools) == (made.place, made.tokens, made.tools)
    assert {each.played.embedder for each in samples} == {"lexical", ""}


def test_plan_stores_shared_parts_once(tmp_path: Path) -> None:
    path = tmp_path / "plan.db"
    assert plan_samples(SAMPLE, path, length=("2k",)) == 54
    assert dict(read_table_sizes(path))["documents"] < 1.3 * count_text_bytes(SAMPLE)


def test_sample_read_from_a_file_is_equal(folder: Path) -> None:
    (sample,) = planned(folder, length=("2k",), evolving="yes", limit=1)
    documents: dict[str, str] = {}
    row = sample.model_dump(mode="json", context=ByHash(documents.__setitem__))
    assert set(row) == {"who", "case", "setting", "length", "tokens", "order"}
    again: Scenario = ApolloScenario.model_validate(
        row, context=SharedValueCache(lambda hash_: json.loads(documents[hash_]))
    )
    assert (again.id, again) == (sample.id, sample)


def test_places_and_changed_preferences_are_axes(folder: Path) -> None:
    at = planned(folder, history_sessions=(4,), position=("all",), limit=4)
    assert [(each.place, len(each.order), each.length) for each in at] == [(place, 4, 0) for place in (1, 2, 3, 4)]
    assert [each.place for each in planned(folder, history_sessions=(4,), position=("3",))] == [3] * 4
    both = planned(folder, length=("2k",), evolving="both")
    assert [each.is_evolving for each in both[:2]] == [False, True]
    for sample in both[1::2]:
        *earlier, last = sample.places
        assert len(earlier) == len(sample.case.value.stale) == 1 and earlier[0] < last
        assert sample.history[last].id == sample.pair.session


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"users": "nobody"}, "users: there is no 'nobody'; the names are u1"),
        ({"history_sessions": (400,)}, "history_sessions: "),
        ({"history_sessions": (4,), "position": ("5",)}, "position 5: there are 4 sessions"),
        ({"length": ("900k",)}, "length: "),
    ],
)
def test_option_the_source_cannot_meet_is_named(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as error:
        planned(folder, **options)
    assert str(error.value).startswith(message)
    assert error.value.setting == message.split()[0].rstrip(":")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length": ("2 miles",)}, "must be a number of tokens"),
        ({"length": ("0k",)}, "must be a number of tokens"),
        ({"history_sessions": (0,)}, "give numbers of at least 1"),
        ({"history_sessions": (4,), "position": ("first",)}, "must be a number from 1, or all, got 'first'"),
        ({"position": ("1",)}, "position needs history_sessions"),
        ({"length": ("2k",), "history_sessions": (4,)}, "give one of them"),
        ({"history_sessions": (4,), "position": ("1",), "evolving": "yes"}, "position and evolving exclude each other"),
        ({"framework": ()}, "give at least one value"),
    ],
)
def test_invalid_options_are_refused_before_reading_a_source(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ApolloOptions(**options)


def test_shipped_sample_is_played_without_a_source() -> None:
    samples = list(RECIPE.scenarios(ApolloOptions(limit=4), random.Random(0), lambda _line: None))
    assert [each.length for each in samples] == [2000, 4000, 8000, 12000]
    assert all(0.9 * each.length <= each.tokens <= each.length for each in samples)


def test_unseen_users_are_a_facet_of_their_samples(folder: Path) -> None:
    assert all("split" not in each.facets() for each in planned(folder, length=("2k",)))
    (user,) = MADE.users
    assert {each.facets()["split"] for each in planned(folder, length=("2k",), test_users=user)} == {"test"}
    with pytest.raises(RecipeError, match=f"test_users: there is no 'u9'; the names are {user}"):
        planned(folder, test_users="u9")


OFFERED = source()
PAIR = OFFERED.pairs["commute-rule-1"]
CALLS = PAIR.calls()


def turn(messages: list[Any], tools: list[Any]) -> Mapping[str, Any]:
    """Return the next gold call if tools are offered and one is left, else the end."""
    done = sum(bool(each.get("tool_calls")) for each in messages)
    left = CALLS[done:] if tools else []
    return {"content": "" if left else FINISH, "tool_calls": left[:1]}


async def agent(messages: list[Any], tools: list[Any]) -> Mapping[str, Any]:
    """Play an agent that takes tools."""
    return turn(messages, tools)


async def plain(messages: list[Any]) -> Mapping[str, Any]:
    """Play an agent that takes no tools."""
    return turn(messages, [])


class ToolModel(FakeListChatModel):
    """A chat model that takes tools."""

    def bind_tools(self, tools: Any, **_: Any) -> Runnable[Any, Any]:
        """Return the model with tools."""

        def reply(messages: list[Any]) -> AIMessage:
            made = turn(messages, tools)
            calls = [{"name": c["name"], "args": c["arguments"], "id": c["name"]} for c in made["tool_calls"]]
            return AIMessage(made["content"], tool_calls=calls)

        return RunnableLambda(reply)


def graph(name: str | None = None) -> Any:
    """Return a compiled graph that finds the tools in its configuration."""

    def work(_: MessagesState, config: RunnableConfig) -> dict[str, Any]:
        tools = {tool.name: tool for tool in config["configurable"].get("tools", ())}
        for call in CALLS if tools else ():
            tools[call["name"]].invoke(call["arguments"])
        return {"messages": [AIMessage("All is arranged.")]}

    node: Any = work
    return StateGraph(MessagesState).add_node("work", node).add_edge(START, "work").compile(name=name)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return the path of a suite of one sample, that of `PAIR`."""
    made = type(OFFERED).of(OFFERED.users.values(), OFFERED.sessions.values(), [PAIR], OFFERED.meta)
    system = {
        "recipe": "apollo",
        "options": {"source": str(write(tmp_path / "source", made)), "length": ["2k"]},
        "headlines": [{"name": "accuracy %", "table": "accuracy", "column": "2k %"}],
        "contrasts": [{"name": "accuracy", "metric": "accuracy"}],
    }
    path = tmp_path / "ours.yaml"
    path.write_text(yaml.safe_dump({"suite": "ours", "version": 1, "systems": [system]}), encoding="utf-8")
    return path


def test_scorecard_offers_tools_to_players_that_take_them(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-of-nobody")
    with serving(lambda _body, _number: completion(FINISH)) as server:
        takers: list[Any] = [agent, dialoom.Model(graph(), name="graph"), ToolModel(responses=["-"], name="chat")]
        others: list[Any] = [plain, dialoom.Model("openai/gpt-4o-mini", api_base=server.url)]
        card = dialoom.scorecard(tmp_path / "card", suite=suite, models={"assistant": [*takers, *others]})
    own = f"python:{__name__}"
    names = [f"{own}:agent", "object:graph", "object:chat", f"{own}:plain", "openai/gpt-4o-mini"]
    assert card.assistants == names
    means = [each.value.mean for each in card.figures if isinstance(each.value, Estimate)]
    assert means == [1.0, 1.0, 1.0, 0.0, 0.0]
    warnings = card["apollo"].warnings
    assert [each.partition(", so")[0] for each in warnings] == [
        f"{name} made no tool call in any sample, although 1 of 1 right answers contain calls" for name in names[3:]
    ]
    assert "It was offered no tools: they were only described in its prompt" in warnings[0]
    assert "It was offered the tools (protocol native)" in warnings[1]
    assert card["differences"].warnings == warnings
    shown = json.loads((tmp_path / "card" / "scorecard.json").read_text())["tables"]["apollo"]
    assert shown["warnings"] == warnings
    for name in ("index.html", "scorecard.md"):
        text = (tmp_path / "card" / name).read_text()
        assert text.index("offered no tools") < text.index("n=1")


def test_report_warns_of_players_that_made_no_call(dialoom: Command, tmp_path: Path) -> None:
    silent, busy = (played(tmp_path / each.__name__, each, limit=1, users="u1") for each in (plain, agent))
    for runs in ([silent.path], [busy.path, silent.path]):
        shown = dialoom("report", *runs).stdout
        assert shown.index("Warning: ") < shown.index("n=1") and "offered no tools" in shown
        assert "agent made no tool call" not in shown
    assert "Warning" not in dialoom("report", busy.path).stdout
    assert all(chart.notes[0].startswith("Warning: ") for chart in silent.report().charts)


def test_player_without_tool_support_fails(tmp_path: Path) -> None:
    for number, player in enumerate((plain, FakeListChatModel(responses=["-"]))):
        run = played(tmp_path / str(number), player, limit=1, users="u1", protocol="native")
        (episode,) = run.episodes()
        assert episode.state == "failed" and "accepts no tools, but is offered 8" in (episode.error or "")
    run = played(tmp_path / "text", FakeListChatModel(responses=[FINISH]), limit=1, users="u1")
    assert {each.outcome.details["protocol"] for each in episodes(run).values()} == {"text"}


def test_two_graphs_of_one_name_need_names(suite: Path, tmp_path: Path) -> None:
    with pytest.raises(dialoom.DialoomError) as error:
        dialoom.scorecard(tmp_path / "card", suite=suite, models={"assistant": [graph(), graph()]})
    assert str(error.value) == (
        "models: two assistants are named object:LangGraph; give each a different name: "
        "dialoom.Model(LangGraph, name=...)"
    )
    named = [dialoom.Model(graph(), name="one"), graph("other")]
    card = dialoom.scorecard(tmp_path / "card", suite=suite, models={"assistant": named})
    assert card.assistants == ["object:one", "object:other"]


Row = dict[str, Any]
Edit = Callable[[list[Row]], object]

WRITTEN = source(["music", "food"])


def with_rows(path: Path, edit: Edit) -> None:
    """Edit the rows of a file of JSON lines."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    edit(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def refusal(dialoom: Command, folder: Path) -> str:
    """Return the error message for a source, which is one line; no run is created."""
    output = dialoom("run", "apollo", "--source", folder, "--length", "2k", "-o", "r.db", code=2).stderr
    assert output.count("\n") == 1
    assert not folder.with_name("r.db").exists()
    return output


@pytest.mark.parametrize(
    ("file", "edit", "message"),
    [
        ("sessions", lambda rows: rows[1].update(turns=[]), "sessions.jsonl:2: session s-food-1: it has no turns"),
        (
            "pairs",
            lambda rows: rows[1]["gold"][0].update(name="get_wether"),
            'pairs.jsonl:2: pair food-1: there is no tool "get_wether"',
        ),
        ("meta", lambda rows: rows[0].update(world="ab" * 32), "meta.jsonl:1: made in the world abababababab..., but"),
        (
            "sessions",
            lambda rows: rows.__delitem__(slice(4, None)),
            "--length: length 2,000: the history of pair music-1 comes to",
        ),
        (
            "pairs",
            lambda rows: rows[1].update(id="music-1"),
            "pairs.jsonl:2: the id 'music-1' is already used on line 1",
        ),
        ("pairs", lambda rows: rows[1].update(user="u9"), "pairs.jsonl:2: pair food-1: there is no user 'u9'"),
        ("pairs", lambda rows: rows[1].update(session="s9"), "pairs.jsonl:2: pair food-1: user u1 has no session 's9'"),
    ],
)
def test_unusable_source_is_refused(dialoom: Command, tmp_path: Path, file: str, edit: Edit, message: str) -> None:
    folder = write(tmp_path / "source", WRITTEN)
    with_rows(folder / f"{file}.jsonl", edit)
    assert message in refusal(dialoom, folder)


def test_truncated_line_is_named(dialoom: Command, tmp_path: Path) -> None:
    folder = write(tmp_path / "source", WRITTEN)
    path = folder / "pairs.jsonl"
    path.write_text(path.read_text()[:-40])
    assert "pairs.jsonl:2: not JSON: " in refusal(dialoom, folder)


def test_user_without_requests_is_named(dialoom: Command, tmp_path: Path) -> None:
    folder = write(tmp_path / "source", WRITTEN)
    with_rows(folder / "users.jsonl", lambda rows: rows.append({**rows[0], "id": "u9"}))
    plan = ("run", "apollo", "--source", folder, "--length", "2k", "-o", "r.db")
    output = dialoom(*plan, "--limit", 1)
    assert "2 pairs of 1 users" in output.stderr + output.stdout
    assert "no pairs of u9\n" in output.stderr + output.stdout
    alone = dialoom(*plan[:-1], "alone.db", "--users", "u9", code=2).stderr
    assert alone == "dialoom: --users: the source has no pairs of u9\n"


OPTIONS = {"limit": 2, "length": "2k", "framework": "memory"}


def test_run_killed_near_its_end_and_resumed_gives_the_same_bytes(tmp_path: Path) -> None:
    whole = dialoom.play(
        "apollo", path=tmp_path / "whole.db", options={**OPTIONS, "length": ["2k"], "framework": ["memory"]}
    )
    whole.export("apollo", tmp_path / "whole.jsonl")
    broken = killed(tmp_path, "INSERT INTO outcomes", 2, "run", "apollo", **OPTIONS)
    dialoom.resume(broken).export("apollo", tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
