"""`--max-reply`, `--param`, `--timeout`, `--turn-limit`: from flags and YAML, printed as they were taken."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from dialoom.cli.settings import settings_of
from dialoom.settings import PlayerSettings
from tests.conftest import Command
from tests.invented import write_release
from tests.server import completion, serving


@pytest.fixture
def plan(players: list[str], tmp_path: Path) -> list[object]:
    """One dialogue of quick players."""
    write_release(tmp_path / "release")
    return ["run", "personalens", "--profiles", "release", "--tasks", "single", *players]


def config_of(dialoom: Command, run: str) -> dict[str, Any]:
    """What `status --config` prints, read again."""
    return dict(yaml.safe_load(dialoom("status", run, "--config").stdout))


def test_flags_win_over_a_file_and_what_is_printed_makes_the_same_run(
    dialoom: Command, plan: list[object], tmp_path: Path
) -> None:
    """Role by role and name by name; the recipe's own limits stand where nothing is said."""
    (tmp_path / "mine.yaml").write_text(
        "max-reply: {user: 100, judge: none}\ntimeout: {judge: 40}\nturn-limit: 7\n"
        "param:\n  judge: {top_p: 0.1, stop: [END, STOP]}\n  seed: 3\n  user.top_p: 0.7\n"
    )
    flags = ["--max-reply", "user=50", "--param", "judge.top_p=1e-2", "--param", 'user.extra_body={"top_a": 1}']
    dialoom(*plan, "--config", "mine.yaml", *flags, "--timeout", 30, "-o", "a.db")
    config = config_of(dialoom, "a.db")
    assert config["max_reply"] == {"user": 50, "assistant": 800, "judge": "none"}
    assert config["param"] == {
        "user": {"extra_body": {"top_a": 1}, "seed": 3, "top_p": 0.7},
        "assistant": {"seed": 3},
        "judge": {"seed": 3, "stop": ["END", "STOP"], "top_p": 0.01},
    }
    assert config["turn_limit"] == 7
    assert json.loads(dialoom("status", "a.db", "--json").stdout)["limits"]["timeouts"] == {"": 30, "judge": 40}
    told = dialoom("status", "a.db").stdout
    assert "every role: at most 30 s a try" in told and "judge: at most 40 s a try" in told
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(config))
    dialoom("run", "personalens", "--config", "again.yaml", "-o", "b.db")
    assert config_of(dialoom, "b.db") == config
    dialoom("resume", "b.db", "--timeout", "judge=9")
    dialoom("resume", "b.db", "--timeout", "none")
    assert json.loads(dialoom("status", "b.db", "--json").stdout)["limits"]["timeouts"] == {"judge": 9}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--param", "judge.top_q=1"], "--param: judge.top_q is unknown; did you mean top_p?"),
        (["--param", "referee.top_p=1"], "--param: unknown role 'referee'; the roles are user, assistant, judge"),
        (["--param", "judge.seed=1", "--param", "judge.seed=2"], "judge.seed is given twice, as 1 and 2"),
        (["--param", "judge.model=x"], "--param: judge.model cannot be given so"),
        (["--param", "judge.top_p"], "--param 'judge.top_p' is not of the form [ROLE.]KEY=VALUE"),
        (["--param", "judge.stop=[END"], "the value is neither JSON nor YAML"),
        (["--max-reply", "judge=many"], "--max-reply 'many' is no whole number of tokens, nor 'none'"),
        (["--max-reply", "referee=3"], "--max-reply: unknown role 'referee'"),
        (["--timeout", "judge=soon"], "--timeout 'soon' is no number of seconds, nor 'none'"),
        (["--timeout", "nan"], "--timeout nan is no number of seconds"),
        (["--turn-limit", "0"], "--turn-limit 0"),
    ],
)
def test_a_wrong_one_gets_one_clear_line_and_writes_nothing(
    dialoom: Command, plan: list[object], tmp_path: Path, arguments: list[str], said: str
) -> None:
    """Before anything is planned."""
    done = dialoom(*plan, *arguments, "-o", "r.db", code=2)
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("r.db*"))


def test_a_recipe_without_turns_refuses_their_limit_by_name(dialoom: Command) -> None:
    """ALOE has rounds."""
    assert "--turn-limit" in dialoom("run", "aloe", "--turn-limit", 3, "-o", "r.db", code=2).stderr


def test_a_judge_is_told_and_so_is_whoever_goes_on_with_it(dialoom: Command, plan: list[object]) -> None:
    """The command that goes on with a set of judgements names all that makes it the same set."""
    dialoom(*plan, "-o", "r.db")
    who = ["--model", "judge=python:players:judge", "--param", "judge.stop=[A, B]", "--max-reply", 9]
    done = dialoom("judge", "r.db", *who, "--name", "second", "--max-calls", 9, code=3)
    again = "--name 'second' --model judge=python:players:judge --max-reply 9 --param 'judge.stop=[A, B]'"
    assert again in done.stdout
    dialoom("judge", "r.db", *who, "--name", "second", "--max-calls", "none")
    assert (
        "made by python:players:judge, told otherwise"
        in dialoom("judge", "r.db", *who[:2], "--name", "second", code=2).stderr
    )


def test_judges_and_reviewers_may_be_served_at_an_address_of_ones_own(dialoom: Command, plan: list[object]) -> None:
    """The other roles stay where they were."""
    dialoom(*plan, "-o", "r.db")
    answer = completion('{"score": 2, "verdict": true, "explanation": "So it is."}')
    for command in ("judge", "review"):
        with serving(lambda _body, _number: answer) as server:
            who = ["--model", "openai/house-model", "--api-base", server.url]
            dialoom(command, "r.db", *who, variables={"OPENAI_API_KEY": "sk-test"})
        assert {body["model"] for body in server.requests} == {"house-model"}


def test_the_doctor_asks_as_a_run_would(dialoom: Command) -> None:
    """With the same limit and parameters; what would be left out on the way is told."""
    structured = completion('{"verdict": true, "explanation": "it is set"}')
    answers = {1: completion("I am ready."), 2: structured, 3: structured}
    told = ["--max-reply", 60, "--param", "stop=[END]", "--timeout", 20]
    with serving(lambda _body, number: answers[number]) as server:
        where = ["--model", "openai/house", "--api-base", server.url]
        dialoom("doctor", *where, *told, variables={"OPENAI_API_KEY": "sk-test"})
        assert [(body["max_tokens"], body["stop"]) for body in server.requests] == [(60, ["END"])] * 3
    done = dialoom("doctor", "--model", "anthropic/claude-sonnet-4-5", "--param", "seed=3", code=1)
    assert "seed would be left out" in done.stdout
    for wrong in (["--param", "judge.seed=3"], ["--param", "sead=3"], ["--timeout", -1]):
        assert f"{wrong[0]}" in dialoom("doctor", "--model", "openai/house", *wrong, code=2).stderr


def test_values_are_yaml_or_json_and_names_may_be_grouped() -> None:
    """A file's mappings and a flag's text say the same, and both are merged role by role."""

    def parameters(flags: Any, file: Any = None) -> Any:
        return settings_of(PlayerSettings, {"param": flags}, {"param": file})["params"]

    assert parameters(["a.stop=END", "top_p=.5", "a.seed=2", "b.logit_bias={5: 1}"]) == {
        "a": {"stop": "END", "seed": 2},
        "": {"top_p": 0.5},
        "b": {"logit_bias": {5: 1}},
    }
    grouped = parameters([], {"a": {"stop": "END"}, "a.seed": 2, "top_p": 0.5})
    assert grouped == parameters(["a.stop=END", "a.seed=2", "top_p=0.5"])
    merged = parameters(["a.seed=2", "stop=A"], {"a": {"seed": 1, "top_k": 1}})
    assert merged == {"a": {"seed": 2, "top_k": 1}, "": {"stop": "A"}}


def test_progress_tells_which_call_has_been_under_way_for_longest(
    dialoom: Command, plan: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For people once it is long, for programs always."""
    monkeypatch.setattr("dialoom.cli.watcher._EVERY", 0.01)
    monkeypatch.setattr("dialoom.cli.progress._LONG", 0.0)
    (tmp_path / "slow.py").write_text(
        "import asyncio\nasync def assistant(messages):\n    await asyncio.sleep(0.2)\n    return 'Well.'\n"
    )
    slow = [*plan, "--model", "assistant=python:slow:assistant"]
    assert re.search(r"1 call under way for \d+m\d\ds \(assistant\)", dialoom(*slow, "-o", "a.db").stderr)
    lines = [json.loads(line) for line in dialoom(*slow, "--log-format", "json", "-o", "b.db").stderr.splitlines()]
    longest = [line["longest_call"] for line in lines if "longest_call" in line]
    assert ("assistant", "python:slow:assistant") in {(each["role"], each["model"]) for each in longest}
    assert all(each["seconds"] >= 0 for each in longest)
