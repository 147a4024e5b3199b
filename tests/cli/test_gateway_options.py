"""Options of the gateway: keys, rates, reply settings and the cache."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from dialoom.cli.setting_flags import build_settings
from dialoom.settings import PlayerSettings
from tests.conftest import ROOT, Command, replace_model
from tests.invented import write_release
from tests.server import Answer, ChatServer, completion, serving

KEY = "planted+5d1c/9e8f=7a6b"
"""It does not look like a key: only its place in the env file marks it as one."""

MODEL = "openai/house"


@pytest.fixture
def plan(tmp_path: Path) -> list[object]:
    """Return the arguments of a run of one dialogue in which one model plays all roles."""
    write_release(tmp_path / "release")
    return ["run", "personalens", "--profiles", "release", "--tasks", "single", "--model", MODEL, "-o", "run.db"]


def answer(body: dict[str, Any], number: int) -> Answer:
    """Answer as a user who ends after three lines, as an assistant that numbers its replies, and as a judge."""
    text = "\n".join(message["content"] for message in body["messages"])
    if "assess one aspect" in text:
        verdict = "Was this goal reached" in text
        return completion(f'{{"{"verdict" if verdict else "score"}": {"true" if verdict else 3}, "explanation": "so"}}')
    lines = sum(message["role"] == "assistant" for message in body["messages"])
    return completion(f"Line {number} is mine." + (" TERMINATE" if lines >= 2 else ""))


def environment(server: ChatServer | None = None, **more: str) -> Mapping[str, str]:
    """Return an environment without OpenAI keys, with the address of a server."""
    bare = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return {**bare, **({} if server is None else {"OPENAI_API_BASE": server.url}), **more}


def status_of(dialoom: Command, run: str = "run.db") -> dict[str, Any]:
    """Return the run's status."""
    return dict(json.loads(dialoom("status", run, "--json").stdout))


def ensure_key_is_hidden(folder: Path, done: subprocess.CompletedProcess[str]) -> None:
    """Check that the key is in no file but its own, and not in the output."""
    assert KEY not in done.stdout + done.stderr
    for path in folder.rglob("*"):
        assert not path.is_file() or path.name == "keys.env" or KEY.encode() not in path.read_bytes(), path


def test_key_from_env_file_reaches_the_provider_only(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    (tmp_path / "keys.env").write_text(f"# mine\nexport OPENAI_API_KEY='{KEY}'\n")
    keyed = ["--env-file", "keys.env"]
    with serving(answer) as server:
        ensure_key_is_hidden(tmp_path, dialoom(*plan, *keyed, "--max-calls", 3, code=3, env=environment(server)))
        resumed = dialoom(
            "resume", "run.db", *keyed, "--log-format", "json", "--max-calls", "none", env=environment(server)
        )
        assert set(server.keys) == {f"Bearer {KEY}"}
        ensure_key_is_hidden(tmp_path, resumed)
    assert status_of(dialoom)["scenarios"]["done"] == 1
    refusal = 401, {"error": {"message": f"Incorrect API key provided: {KEY}", "type": "error", "code": "401"}}
    with serving(lambda _body, _number: refusal) as server:
        refused = dialoom(*plan[:-1], "other.db", *keyed, code=1, env=environment(server))
        assert server.keys == [f"Bearer {KEY}"]
    assert "Incorrect API key provided" in refused.stderr
    ensure_key_is_hidden(tmp_path, refused)


def test_environment_overrides_env_file(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    (tmp_path / "keys.env").write_text(f"OPENAI_API_KEY={KEY}\n")
    with serving(answer) as server:
        dialoom(*plan, "--env-file", "keys.env", env=environment(server, OPENAI_API_KEY="sk-of-this-shell"))
        assert set(server.keys) == {"Bearer sk-of-this-shell"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"A=1\n{KEY}\n", "line 2: "),
        (f"OPENAI_API_KEY: {KEY}\n", "line 1: "),
        (f"\nOPENAI_API_KEY='{KEY}\n", "line 2: not of the form NAME=VALUE"),
        ("OPENAI_API_KEY=\n", "line 1: OPENAI_API_KEY has no value; write NAME=VALUE"),
        (None, "keys.env: there is no such file"),
    ],
)
def test_malformed_env_file_gives_one_message(
    dialoom: Command, plan: list[object], tmp_path: Path, text: str | None, expected: str
) -> None:
    """The message names the line and the remedy without the content; the exit code is 2, and nothing is written."""
    if text is not None:
        (tmp_path / "keys.env").write_text(text)
    refused = dialoom(*plan, "--env-file", "keys.env", code=2)
    assert "keys.env" in refused.stderr
    assert expected in refused.stderr
    assert len(refused.stderr.strip().splitlines()) == 1
    ensure_key_is_hidden(tmp_path, refused)
    assert not list(tmp_path.glob("run.db*"))


@pytest.mark.parametrize("flag", ["--rpm", "--tpm"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0", " must be at least 1, got 0"),
        ("x", " must be a whole number, got 'x'"),
        ("-5", " must be at least 1, got -5"),
        ("1.5", " must be a whole number, got 1.5"),
        ("", " must be a whole number, got ''"),
        (f"{MODEL}=0", f" of {MODEL} must be at least 1, got 0"),
        (f"{MODEL}=", f" of {MODEL} must be a whole number, got ''"),
    ],
)
def test_wrong_rate_gives_one_message(
    dialoom: Command, plan: list[object], tmp_path: Path, flag: str, value: str, message: str
) -> None:
    assert dialoom(*plan, flag, value, code=2).stderr == f"dialoom: {flag}{message}\n"
    (tmp_path / "mine.yaml").write_text(f"{flag[2:]}: {{m: 0}}\n")
    in_file = dialoom(*plan, "--config", "mine.yaml", code=2).stderr
    assert in_file == f"dialoom: mine.yaml: {flag[2:]} of m must be at least 1, got 0\n"
    assert not list(tmp_path.glob("run.db*"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trials: true", "trials must be a whole number, got True"),
        ("max-calls: true", "max-calls must be a whole number, got True"),
        ("rpm: {m: true}", "rpm of m must be a whole number, got True"),
        ("limit: true", "limit must be a whole number, got True"),
        ("takes-tools: 3", "takes-tools must be a list, got 3"),
        ("trails: 2", "trails is not an option; did you mean trials?"),
        ("max_cals: 2", "max_cals is not an option; did you mean max-calls?"),
    ],
)
def test_wrong_line_of_a_settings_file_gives_one_message(
    dialoom: Command, tmp_path: Path, line: str, message: str
) -> None:
    (tmp_path / "mine.yaml").write_text(line)
    refused = dialoom("run", "personalens", "--config", "mine.yaml", "-o", "run.db", code=2).stderr
    assert refused == f"dialoom: mine.yaml: {message}\n"


def test_rates_are_stored_and_all_calls_are_made(dialoom: Command, plan: list[object]) -> None:
    rates = ["--rpm", f"{MODEL}=1500", "--tpm", 60_000]
    with serving(answer) as server:
        keyed = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none"}
        dialoom(*plan, *rates, "--max-calls", 5, code=3, variables=keyed)
        limits = status_of(dialoom)["limits"]
        assert (limits["rpm"], limits["tpm"]) == ({MODEL: 1500}, {"": 60_000})
        assert f"{MODEL}: at most 1,500 requests per minute" in dialoom("status", "run.db").stdout
        assert "every model: at most 60,000 tokens per minute" in dialoom("status", "run.db").stdout
        dialoom("resume", "run.db", "--max-calls", "none", "--tpm", 6_000, variables=keyed)
        sent = len(server.requests)
    status = status_of(dialoom)
    assert (status["limits"]["rpm"], status["limits"]["tpm"]) == ({MODEL: 1500}, {"": 6_000})
    assert status["scenarios"]["done"] == 1
    assert status["calls"] == sent
    assert status["failed_calls"] == 0


def test_rates_do_not_change_the_export(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    exports = []
    for name, rates in (("free", []), ("bound", ["--rpm", 3000, "--tpm", 100_000])):
        with serving(lambda body, _number: answer(body, 0)) as server:
            keyed = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none"}
            dialoom(*plan[:-1], f"{name}.db", *rates, variables=keyed)
        dialoom("export", f"{name}.db", "-o", f"{name}.jsonl")
        exports.append((tmp_path / f"{name}.jsonl").read_bytes())
    assert exports[0] == exports[1]


@pytest.fixture
def reply_plan(players: list[str], tmp_path: Path) -> list[object]:
    """Return the arguments of a run of one dialogue with fast players."""
    write_release(tmp_path / "release")
    return ["run", "personalens", "--profiles", "release", "--tasks", "single", *players]


def config_of(dialoom: Command, run: str) -> dict[str, Any]:
    """Return the settings printed by `status --config`."""
    return dict(yaml.safe_load(dialoom("status", run, "--config").stdout))


def test_options_override_a_file_and_printed_settings_give_the_same_run(
    dialoom: Command, reply_plan: list[object], tmp_path: Path
) -> None:
    (tmp_path / "mine.yaml").write_text(
        "max-reply: {user: 100, judge: none}\ntimeout: {judge: 40}\nturn-limit: 7\nturn-scores: yes\n"
        "param:\n  judge: {top_p: 0.1, stop: [END, no]}\n  seed: 3\n  user.top_p: 0.7\n"
    )
    flags = ["--max-reply", "user=50", "--param", "judge.top_p=1e-2", "--param", 'user.extra_body={"top_a": 1}']
    dialoom(*reply_plan, "--config", "mine.yaml", *flags, "--timeout", 30, "-o", "a.db")
    config = config_of(dialoom, "a.db")
    assert config["max_reply"] == {"user": 50, "assistant": 800, "judge": "none"}
    assert config["param"] == {
        "user": {"extra_body": {"top_a": 1}, "seed": 3, "top_p": 0.7},
        "assistant": {"seed": 3},
        "judge": {"seed": 3, "stop": ["END", "no"], "top_p": 0.01},
    }
    assert config["turn_limit"] == 7 and config["turn_scores"] is True
    assert json.loads(dialoom("status", "a.db", "--json").stdout)["limits"]["timeouts"] == {"": 30, "judge": 40}
    output = dialoom("status", "a.db").stdout
    assert "every role: at most 30 s per attempt" in output and "judge: at most 40 s per attempt" in output
    (tmp_path / "again.yaml").write_text(yaml.safe_dump(config))
    dialoom("run", "personalens", "--config", "again.yaml", "-o", "b.db")
    assert config_of(dialoom, "b.db") == config
    dialoom("resume", "b.db", "--timeout", "judge=9")
    dialoom("resume", "b.db", "--timeout", "none")
    assert json.loads(dialoom("status", "b.db", "--json").stdout)["limits"]["timeouts"] == {"judge": 9}


def test_printed_settings_of_the_whole_run_give_the_same_run(
    dialoom: Command, reply_plan: list[object], tmp_path: Path
) -> None:
    """Trials, a sample, prompts, repeated user messages, several users and judges, and the settings of each role."""
    (tmp_path / "mine").mkdir()
    shutil.copy(ROOT / "prompts" / "personalens" / "assistant.md", tmp_path / "mine")
    several = [
        "--model",
        "user=offline/generic",
        "--model",
        "user=offline/attentive",
        "--model",
        "judge=offline/generic",
    ]
    roles = ["--temperature", "user=0.3", "--structured", "judge=json", "--session", "assistant=user"]
    whole = [
        "--trials",
        2,
        "--sample",
        2,
        "--seed",
        5,
        "--on-user-fault",
        "retry 2",
        "--prompts",
        "small",
        "--prompts",
        "mine",
    ]
    dialoom(*reply_plan, *several, *roles, *whole, "--setting", "base", "--setting", "I", "-o", "a.db")
    printed = dialoom("status", "a.db", "--config").stdout
    assert config_of(dialoom, "a.db")["trials"] == 2
    (tmp_path / "again.yaml").write_text(printed)
    dialoom("run", "personalens", "--config", "again.yaml", "-o", "b.db")
    assert dialoom("status", "b.db", "--config").stdout == printed
    stored = "SELECT value FROM run WHERE key = 'config'"
    one, other = (sqlite3.connect(tmp_path / name).execute(stored).fetchone() for name in ("a.db", "b.db"))
    assert json.loads(one[0]) == json.loads(other[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--param", "judge.top_q=1"], "--param: judge.top_q is unknown; did you mean top_p?"),
        (["--param", "referee.top_p=1"], "--param: unknown role 'referee'; the roles are user, assistant, judge"),
        (["--param", "judge.seed=1", "--param", "judge.seed=2"], "judge.seed is given twice, as 1 and 2"),
        (["--param", "judge.model=x"], "--param: judge.model cannot be set here"),
        (["--param", "judge.top_p"], "--param must be [ROLE.]KEY=VALUE, got 'judge.top_p'"),
        (["--param", "judge.stop=[END"], "--param must have a value in JSON or YAML, got 'judge.stop=[END'"),
        (["--max-reply", "judge=many"], "--max-reply of judge must be a whole number, got 'many'"),
        (["--max-reply", "referee=3"], "--max-reply: unknown role 'referee'"),
        (["--timeout", "judge=soon"], "--timeout of judge must be a number, got 'soon'"),
        (["--timeout", "nan"], "--timeout must be a finite number, got nan"),
        (["--turn-limit", "0"], "--turn-limit must be at least 1, got 0"),
    ],
)
def test_wrong_reply_setting_gives_one_line_and_writes_nothing(
    dialoom: Command, reply_plan: list[object], tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = dialoom(*reply_plan, *arguments, "-o", "r.db", code=2)
    assert message in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert not list(tmp_path.glob("r.db*"))


def test_turn_limit_is_refused_by_a_recipe_without_turns(dialoom: Command) -> None:
    assert "--turn-limit" in dialoom("run", "aloe", "--turn-limit", 3, "-o", "r.db", code=2).stderr


def test_judge_settings_are_stored_and_printed_for_continuing(dialoom: Command, reply_plan: list[object]) -> None:
    dialoom(*reply_plan, "-o", "r.db")
    who = ["--model", "judge=python:players:judge", "--param", "judge.stop=[A, B]", "--max-reply", 9]
    done = dialoom("judge", "r.db", *who, "--name", "second", "--max-calls", 9, code=3)
    again = (
        "dialoom judge r.db --model judge=python:players:judge --param 'judge.stop=[A, B]' --max-reply 9 --name second"
    )
    assert again in done.stdout
    dialoom("judge", "r.db", *who, "--name", "second", "--max-calls", "none")
    assert (
        "made by python:players:judge with other prompts"
        in dialoom("judge", "r.db", *who[:2], "--name", "second", code=2).stderr
    )


def test_judges_and_reviewers_may_have_their_own_address(dialoom: Command, reply_plan: list[object]) -> None:
    dialoom(*reply_plan, "-o", "r.db")
    answer = completion('{"score": 2, "verdict": true, "explanation": "So it is."}')
    for command in ("judge", "review"):
        with serving(lambda _body, _number: answer) as server:
            who = ["--model", "openai/house-model", "--api-base", server.url]
            dialoom(command, "r.db", *who, variables={"OPENAI_API_KEY": "sk-test"})
        assert {body["model"] for body in server.requests} == {"house-model"}


def test_doctor_calls_a_model_with_the_settings_of_a_run(dialoom: Command) -> None:
    structured = completion('{"verdict": true, "explanation": "it is set"}')
    answers = {1: completion("I am ready."), 2: structured, 3: structured}
    options = ["--max-reply", 60, "--param", "stop=[END]", "--timeout", 20]
    with serving(lambda _body, number: answers[number]) as server:
        where = ["--model", "openai/house", "--api-base", server.url]
        dialoom("doctor", *where, *options, variables={"OPENAI_API_KEY": "sk-test"})
        assert [(body["max_tokens"], body["stop"]) for body in server.requests] == [(60, ["END"])] * 3
    options = ["--model", "anthropic/claude-sonnet-4-5", "--param", "seed=3"]
    done = dialoom("doctor", *options, code=1, variables={"ANTHROPIC_API_KEY": "sk-test"})
    assert "seed would not be sent" in done.stdout
    for wrong in (["--param", "judge.seed=3"], ["--param", "sead=3"], ["--timeout", -1]):
        assert f"{wrong[0]}" in dialoom("doctor", "--model", "openai/house", *wrong, code=2).stderr


def test_values_are_yaml_or_json_and_names_may_be_grouped() -> None:
    def parameters(flags: Any, file: Any = None) -> Any:
        return build_settings(PlayerSettings, {"param": flags}, {"param": file})["params"]

    assert parameters(["a.stop=END", "top_p=.5", "a.seed=2", "b.logit_bias={5: 1}"]) == {
        "a": {"stop": "END", "seed": 2},
        "": {"top_p": 0.5},
        "b": {"logit_bias": {5: 1}},
    }
    grouped = parameters([], {"a": {"stop": "END"}, "a.seed": 2, "top_p": 0.5})
    assert grouped == parameters(["a.stop=END", "a.seed=2", "top_p=0.5"])
    merged = parameters(["a.seed=2", "stop=A"], {"a": {"seed": 1, "top_k": 1}})
    assert merged == {"a": {"seed": 2, "top_k": 1}, "": {"stop": "A"}}


def test_progress_names_the_longest_running_call(
    dialoom: Command, reply_plan: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dialoom.cli.watcher._REPORT_INTERVAL_SECONDS", 0.01)
    monkeypatch.setattr("dialoom.cli.progress._SLOW_CALL_SECONDS", 0.0)
    (tmp_path / "slow.py").write_text(
        "import asyncio\nasync def assistant(messages):\n    await asyncio.sleep(0.2)\n    return 'Well.'\n"
    )
    slow = replace_model(reply_plan, "assistant=python:slow:assistant")
    assert re.search(r"1 call in flight for \d+m\d\ds \(assistant\)", dialoom(*slow, "-o", "a.db").stderr)
    lines = [json.loads(line) for line in dialoom(*slow, "--log-format", "json", "-o", "b.db").stderr.splitlines()]
    longest = [line["longest_call"] for line in lines if "longest_call" in line]
    assert ("assistant", "python:slow:assistant") in {(each["role"], each["model"]) for each in longest}
    assert all(each["seconds"] >= 0 for each in longest)


@pytest.fixture
def cache_plan(tmp_path: Path) -> list[object]:
    """Return the arguments of a run of one dialogue whose roles are all played through a server."""
    write_release(tmp_path / "release")
    return ["run", "personalens", "--profiles", "release", "--tasks", "single", "--cache", "replies.db"]


def cached_answer(body: dict[str, Any], number: int) -> Any:
    """Answer as a user who ends after three lines, as an assistant that numbers its replies, and as a judge."""
    text = "\n".join(message["content"] for message in body["messages"])
    if "assess one aspect" in text:
        verdict = "Was this goal reached" in text
        return completion(f'{{"{"verdict" if verdict else "score"}": {"true" if verdict else 3}, "explanation": "so"}}')
    lines = sum(message["role"] == "assistant" for message in body["messages"])
    return completion(f"Line {number} is mine." + (" TERMINATE" if lines >= 2 else ""))


def command(dialoom: Command, server: ChatServer, *arguments: object, code: int = 0) -> Any:
    """Run a command with the server as the provider of all models."""
    variables = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none"}
    return dialoom(*arguments, code=code, variables=variables)


def dialogues(dialoom: Command, folder: Path, run: str) -> bytes:
    """Return the export of a run's dialogues."""
    dialoom("export", run, "-o", f"{run}.jsonl")
    return (folder / f"{run}.jsonl").read_bytes()


def test_second_run_with_cache_is_the_same_and_sends_nothing(
    dialoom: Command, cache_plan: list[str], tmp_path: Path
) -> None:
    models = ["--model", "openai/house", "--price", "openai/house=1,2"]
    with serving(cached_answer) as server:
        command(dialoom, server, *cache_plan, *models, "-o", "one.db")
        sent = len(server.requests)
        command(dialoom, server, *cache_plan, *models, "--max-calls", 0, "-o", "two.db")
        command(dialoom, server, *cache_plan, *models, "--replay-only", "-o", "three.db")
        assert len(server.requests) == sent
        command(dialoom, server, *cache_plan, *models, "--seed", 9, "-o", "four.db")
        assert len(server.requests) > sent, "another seed is another sample"
    exports = [dialogues(dialoom, tmp_path, name) for name in ("one.db", "two.db", "three.db")]
    assert exports[0] == exports[1] == exports[2]
    one, two = (json.loads(dialoom("status", name, "--json").stdout) for name in ("one.db", "two.db"))
    assert one["cost"] > 0
    assert two["cost"] == 0
    assert two["tokens"] == {"input": 0, "output": 0}
    assert two["calls"] == one["calls"] == sent
    with sqlite3.connect(tmp_path / "two.db") as connection:
        assert connection.execute("SELECT DISTINCT attempts FROM calls").fetchall() == [(0,)]


def test_stopped_run_resumes_with_the_cache(dialoom: Command, cache_plan: list[str], tmp_path: Path) -> None:
    models = ["--model", "openai/house"]
    with serving(cached_answer) as server:
        command(dialoom, server, *cache_plan, *models, "--max-calls", 3, "-o", "one.db", code=3)
        command(dialoom, server, "resume", "one.db", "--max-calls", "none", "--cache", "replies.db")
        sent = len(server.requests)
        command(dialoom, server, *cache_plan, *models, "--max-calls", 0, "-o", "two.db")
        assert len(server.requests) == sent
    assert dialogues(dialoom, tmp_path, "one.db") == dialogues(dialoom, tmp_path, "two.db")


def test_invalid_cache_file_stops_before_the_run_is_created(
    dialoom: Command, cache_plan: list[str], tmp_path: Path
) -> None:
    """The exit code is 2, and the message names the file."""
    (tmp_path / "replies.db").write_text("a diary\n" * 500)
    assert "replies.db" in dialoom(*cache_plan, "-o", "r.db", code=2).stderr
    assert not list(tmp_path.glob("r.db*"))
