"""Settings that were not sent as configured are reported, and refused with `--strict-params`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dialoom.roles.gateway.families import MAX_TOKENS
from tests.cli.test_gateway_options import answer
from tests.conftest import ROOT, Command
from tests.invented import write_release
from tests.roles.gateway.test_sent import answer as provider
from tests.roles.gateway.test_sent import sent_of
from tests.runs.workers.local_cluster import local_cluster
from tests.server import Answer, error, serving

MODEL, CLAUDE = "openai/gpt-5-mini", "anthropic/claude-sonnet-4-5"
CHANGE = "temperature 0.7 not sent (OpenAI's reasoning models accept only 1)"
ASSISTANT = ("--temperature", "0.7", "--temperature", "judge=none")


@pytest.fixture
def plan(tmp_path: Path) -> list[object]:
    """Return the arguments of a run of one dialogue in which one reasoning model plays all roles."""
    write_release(tmp_path / "release")
    single = ["--profiles", "release", "--tasks", "single", "--model", MODEL, *ASSISTANT]
    return ["run", "personalens", *single, "-o", "run.db"]


def test_changes_are_announced_once_and_shown_everywhere(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    with serving(answer) as server:
        done = dialoom(*plan, "--api-base", server.url, variables={"OPENAI_API_KEY": "k"})
        assert all("temperature" not in body for body in server.requests)
    notices = [line for line in done.stdout.splitlines() if "not sent as configured" in line]
    assert len(notices) == 2 and all(CHANGE in line for line in notices)  # the user and the assistant
    line = f"not sent as configured, assistant: {CHANGE} in "
    assert line in dialoom("status", "run.db").stdout
    assert f"# {line}" in dialoom("status", "run.db", "--config").stdout
    changes = json.loads(dialoom("status", "run.db", "--json").stdout)["not_sent_as_configured"]
    assert changes.keys() == {"user", "assistant"} and changes["assistant"].keys() == {CHANGE}
    dialoom("report", "run.db", "--table", "scores", "-o", "report")
    report = dialoom("report", "run.db").stdout
    assert f"Not sent as configured: assistant: {CHANGE} in " in report
    written = [(tmp_path / "report" / f"report.{kind}").read_text(encoding="utf-8") for kind in ("md", "html", "tex")]
    assert [text.count("Not sent as configured") for text in (report, *written)] == [1, 1, 1, 1]
    dialoom("export", "run.db", "--format", "sharegpt", "-o", "out.jsonl")
    card = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("out*.md"))
    assert "not sent as configured, assistant: temperature 0.7 not sent" in card
    again = dialoom("resume", "run.db")
    assert "not sent as configured" not in again.stdout


def test_server_that_answers_with_another_model_is_reported(dialoom: Command, plan: list[object]) -> None:
    def other(body: dict[str, Any], number: int) -> Answer:
        status, content = answer(body, number)
        return status, {**content, "model": "tiny-1b"}

    with serving(other) as server:
        done = dialoom(*plan, "--api-base", server.url, variables={"OPENAI_API_KEY": "k"})
    text = "replies name another model, 'tiny-1b'"
    lines = [line for line in done.stdout.splitlines() if text in line]
    assert [line.partition(" (")[0] for line in lines] == [
        f"not sent as configured, {role}" for role in ("assistant", "judge", "user")
    ]
    assert text in dialoom("status", "run.db").stdout
    assert text in " ".join(dialoom("report", "run.db").stdout.split())


def test_two_workers_show_the_same_as_one_process(
    dialoom: Command, plan: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    local_cluster(monkeypatch)
    shown = []
    with serving(answer) as server:
        flags = ["--api-base", server.url]
        for workers in ((), ("--workers", "2")):
            name = f"workers-{len(workers)}.db"
            dialoom(*plan[:-1], name, *flags, *workers, variables={"OPENAI_API_KEY": "k"})
            config, report = (dialoom(*command).stdout for command in (("status", name, "--config"), ("report", name)))
            shown.append([line for text in (config, report) for line in text.splitlines() if CHANGE in line])
    assert shown[0] == shown[1] != []


def test_failed_and_cached_calls_record_changes(dialoom: Command, plan: list[object]) -> None:
    def recorded(run: str) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = json.loads(dialoom("status", run, "--json").stdout)["not_sent_as_configured"]
        return found

    keys = {"OPENAI_API_KEY": "k"}
    with serving(answer) as server:
        flags = [*plan[:-1], "first.db", "--api-base", server.url, "--cache", "cache.db"]
        dialoom(*flags, variables=keys)
        asked = len(server.requests)
        dialoom(*flags, "-o", "second.db", variables=keys)
        assert len(server.requests) == asked and recorded("first.db") == recorded("second.db") != {}
    with serving(lambda _body, _number: error(400, "no")) as server:
        dialoom(*plan, "--api-base", server.url, variables=keys, code=1)
    assert recorded("run.db") == {"user": {CHANGE: 1}}


def test_strict_refuses_before_the_first_call(dialoom: Command, plan: list[object], tmp_path: Path) -> None:
    with serving(answer) as server:
        flags = ["--api-base", server.url, "--strict-params"]
        refused = dialoom(*plan, *flags, variables={"OPENAI_API_KEY": "k"}, code=2)
        assert not server.requests and not (tmp_path / "run.db").exists()
        assert refused.stderr.count("\n") == 1 and refused.stderr.count(CHANGE) == 2
        assert "--strict-params: " in refused.stderr
        dialoom(*plan, *flags, "--temperature", "1", variables={"OPENAI_API_KEY": "k"})
    assert json.loads(dialoom("status", "run.db", "--json").stdout)["not_sent_as_configured"] == {}


def test_strict_refuses_a_change_that_is_found_during_the_run(dialoom: Command, plan: list[object]) -> None:
    def without_schemas(body: dict[str, Any], number: int) -> Answer:
        form = body.get("response_format", {}).get("type")
        return (
            error(400, "response_format: json_schema is not supported")
            if form == "json_schema"
            else provider_answer(body, number)
        )

    flags = ["--temperature", "none", "--structured", "judge=schema"]
    plan = ["openai/house" if each == MODEL else each for each in plan]
    with serving(without_schemas) as server:
        flags += ["--api-base", server.url, "--strict-params"]
        refused = dialoom(*plan, *flags, variables={"OPENAI_API_KEY": "k"}, code=1)
        sent = [body["response_format"] for body in server.requests if "response_format" in body]
    change = "structured 'schema' sent as 'JSON mode with a schema' (the server refuses a JSON schema alone)"
    assert f"strict_params: {change}; change the configuration to what is sent" in refused.stderr
    assert {each["type"] for each in sent} == {"json_schema"}


def test_doctor_lists_changes(dialoom: Command) -> None:
    with serving(answer) as server:
        flags = ["--model", MODEL, "--api-base", server.url, "--temperature", "0.7", "--json"]
        checks = json.loads(dialoom("doctor", *flags, variables={"OPENAI_API_KEY": "k"}, code=None).stdout)["checks"]
    (found,) = [check for check in checks if check["about"] == "parameters"]
    assert found == {"about": "parameters", "name": MODEL, "state": "changed", "detail": CHANGE, "latency": None}


def test_what_litellms_request_lacks_is_shown_everywhere_and_refused(
    dialoom: Command, plan: list[object], tmp_path: Path
) -> None:
    change = "min_p 0.05 not sent (LiteLLM's request does not contain it)"
    model = "gemini/gemini-2.5-flash"
    plan, options = [model if each == MODEL else each for each in plan], ["--param", "min_p=0.05"]
    variables = {"GEMINI_API_KEY": "k"}
    with serving(provider_answer) as server:
        flags = [*options, "--api-base", server.url]
        refused = dialoom(*plan, *flags, "-o", "strict.db", "--strict-params", variables=variables, code=1)
        assert (
            f"strict_params: {change}; change the configuration to what is sent" in refused.stderr
            and not server.requests
        )
        flags += ["--model", model]
        checks = dialoom("doctor", *flags, "--json", variables=variables, code=None)
        assert change in next(
            each["detail"] for each in json.loads(checks.stdout)["checks"] if each["state"] == "changed"
        )
        asked = len(server.requests)
        failed = dialoom("doctor", *flags, "--strict-params", variables=variables, code=1)
        assert change in failed.stdout and len(server.requests) == asked
        dialoom(*plan, *flags[:-2], variables=variables)
        assert all("min_p" not in json.dumps(body) for body in server.requests)
    dialoom("export", "run.db", "--format", "sharegpt", "-o", "out.jsonl")
    card = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob("out*.md"))
    shown = [dialoom(*command).stdout for command in (("status", "run.db", "--config"), ("report", "run.db"))]
    assert all(change in text for text in (*shown, card))


def test_strict_doctor_fails_models_without_calling_them(dialoom: Command) -> None:
    with serving(answer) as server:
        flags = ["doctor", "--model", MODEL, "--api-base", server.url, "--strict-params", "--temperature"]
        assert f"failed   parameters {MODEL}" in dialoom(*flags, "0.7", code=1).stdout
        assert not server.requests
        assert "parameters" not in dialoom(*flags, "1", code=None).stdout and server.requests


def test_all_unknown_prices_are_named_at_once(dialoom: Command, plan: list[object]) -> None:
    models = ["--model", "user=openai/house-one", "--model", "judge=openai/house-two", "--max-cost", "1"]
    refused = dialoom(*plan, *models, variables={"OPENAI_API_KEY": "k"}, code=2)
    assert "the price of openai/house-one and of openai/house-two is unknown" in refused.stderr
    assert "--price openai/house-one=IN,OUT --price openai/house-two=IN,OUT" in refused.stderr


WITHOUT_KEY = [
    f"run personalens --profiles release --model {MODEL} -o run.db",
    "run personalens --profiles release --model gpt-5-mini -o run.db",
    f"run personalens --profiles release --model {MODEL} --max-cost 1 -o run.db",
    f"run personalens --profiles release --model {MODEL} --strict-params -o run.db",
    f"run personalens --profiles release --model user=ollama_chat/house --model judge={MODEL} -o run.db",
    f"run personalens --profiles release --model judge={CLAUDE} --model judge={MODEL} --strict-params -o run.db",
    "resume planned.db",
    "resume planned.db --max-cost 2 --strict-params",
    "retry planned.db --scenario 1",
    f"judge played.db --model judge={MODEL} --max-cost 1",
    f"judge played.db --model judge={CLAUDE} --model judge={MODEL}",
    f"review played.db --model reviewer={MODEL}",
    f"scorecard --model assistant={MODEL} -o card",
    f"doctor --model {MODEL}",
    "run personalens --profiles release --model azure/house -o run.db",
    "doctor --model azure/house",
]
SEQUENTIAL_SCRIPT = """
import contextlib, io, json, sys
import dialoom.cli.app as app
for command in json.load(sys.stdin):
    sys.argv = ["dialoom", *command.split()]
    shown, code = io.StringIO(), None
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            app.main()
        except SystemExit as end:
            code = end.code
    print(json.dumps([shown.getvalue(), code, "litellm" in sys.modules]))
"""


def test_missing_key_is_reported_before_litellm_is_imported(dialoom: Command, tmp_path: Path) -> None:
    write_release(tmp_path / "release")
    dialoom("run", "personalens", "--profiles", "release", "--limit", 1, "-o", "played.db")
    plan = ["run", "personalens", "--profiles", "release", "--model", f"assistant={MODEL}", "-o", "planned.db"]
    with serving(answer) as server:
        variables = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": server.url}
        dialoom(*plan, "--max-cost", "1", "--max-calls", "1", code=None, variables=variables)
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("AZURE_", "OPENAI_"))}
    bare["ANTHROPIC_API_KEY"] = "k"
    arguments: dict[str, Any] = {"cwd": tmp_path, "env": bare, "input": json.dumps(WITHOUT_KEY)}
    done = subprocess.run(
        [sys.executable, "-c", SEQUENTIAL_SCRIPT], capture_output=True, text=True, check=True, **arguments
    )
    for command, line in zip(WITHOUT_KEY, done.stdout.splitlines(), strict=True):
        name = "AZURE_API_KEY and no address in AZURE_API_BASE" if "azure" in command else "OPENAI_API_KEY"
        shown, code, has_litellm = json.loads(line)
        assert f"there is no key in {name}" in shown, command
        assert (code, has_litellm) == (1 if command.startswith("doctor") else 2, False), command


THINKING = 'thinking={"type": "enabled", "budget_tokens": 1024}'
PARAMS_BY_MODEL: dict[str, tuple[str, ...]] = {
    "gpt-5-mini": (),
    "openrouter/openai/gpt-5-mini": (),
    "o4-mini": (),
    "azure/gpt-5-mini": (),
    "anthropic/claude-sonnet-4-5": (THINKING,),
    "claude-sonnet-4-5": ("top_p=0.9", 'stop=["END"]'),
    "gemini/gemini-2.5-flash": ("top_p=0.9", 'stop=["END"]'),
    "deepseek/deepseek-reasoner": ('stop=["END"]',),
    "openai/house": ("top_p=0.9", 'stop=["END"]'),
    "gpt-4o-mini": ("top_p=0.9", 'stop=["END"]'),
}
LARDER = f"{ROOT / 'docs/examples/larder/larder.py'}:RECIPE"


def provider_answer(body: dict[str, Any], number: int) -> Answer:
    """Reject what the provider rejects; otherwise return a reply that ends any dialogue and suits any judge."""
    status, reply = provider(body, number)
    text = r"{\"score\": 3, \"verdict\": true, \"explanation\": \"so\"} TERMINATE"
    answered: dict[str, Any] = json.loads(json.dumps(reply).replace(r"{\"score\": 4}", text))
    if body.get("model") == "house":
        answered["choices"][0]["message"]["reasoning_content"] = "The goal is reached."
    return status, answered


@pytest.mark.parametrize("model", PARAMS_BY_MODEL)
def test_parameters_arrive_as_configured_or_are_reported_wherever_a_run_is_described(
    dialoom: Command, model: str, tmp_path: Path
) -> None:
    write_release(tmp_path / "release")
    keys = {f"{name}_API_KEY": "k" for name in ("OPENAI", "ANTHROPIC", "OPENROUTER", "GEMINI", "DEEPSEEK", "AZURE")}
    variables = {**keys, "AZURE_API_VERSION": "2025-01-01-preview"}
    given = dict(param.split("=", 1) for param in PARAMS_BY_MODEL[model])
    params = {name: json.loads(value) for name, value in given.items()}
    sampling = ["--temperature", "0.7", "--max-reply", "300", *(f"--param={param}" for param in PARAMS_BY_MODEL[model])]
    for name, recipe in (
        ("schema", ["personalens", "--profiles", "release", "--tasks", "single"]),
        ("tools", [LARDER]),
    ):
        with serving(provider_answer) as server:
            plan = ["run", *recipe, "--limit" if name == "schema" else "--larders", 1, "--model", model, *sampling]
            plan += ["--api-base", server.url, "-o", f"{name}.db"]
            strict = dialoom(*plan, "--strict-params", variables=variables, code=None)
            if strict.returncode:
                assert not server.requests
                dialoom(*plan, variables=variables)
            bodies = list(map(sent_of, server.requests))
        recorded = json.loads(dialoom("status", f"{name}.db", "--json").stdout)["not_sent_as_configured"]
        changed = {each for texts in recorded.values() for text in texts for each in text.split("; ")}
        changes = {each.partition(" ")[0]: each for each in changed}
        assert strict.returncode == (2 if changes.keys() - {"seed"} else 0)
        assert all(each in strict.stderr for each in changed if not each.startswith("seed") and strict.returncode)
        for body in bodies:
            stop = body.pop("stop_sequences", None) or body.pop("stopSequences", None)
            arrived = {**({"stop": stop} if stop else {}), **body}
            assert ("seed" in arrived) != ("seed" in changes)
            for setting, value in {"temperature": 0.7, MAX_TOKENS: 300, **params}.items():
                became = re.search(r"sent as ([\d.]+)", changes.get(setting, ""))
                expected = value if setting not in changes else float(became[1]) if became else None
                assert arrived.get(setting) == expected, setting
        schemas = [body for body in bodies if f'"{"score"}"' in json.dumps({**body, "messages": [], "contents": []})]
        objects = [body for body in bodies if body.get("response_format") == {"type": "json_object"}]
        assert bool(objects) == (name == "schema" and "deepseek" in model)
        assert bool(schemas) == (name == "schema" and "deepseek" not in model)
        assert all(("count_jars" in json.dumps(body["tools"])) for body in bodies if name == "tools")
        config, report = (
            dialoom(*command).stdout for command in (("status", f"{name}.db", "--config"), ("report", f"{name}.db"))
        )
        dialoom("export", f"{name}.db", "--format", "sharegpt", "-o", f"{name}.jsonl")
        card = "".join(path.read_text(encoding="utf-8") for path in tmp_path.glob(f"{name}*.md"))
        for each in changed:
            assert each in config and each in report and each in card
