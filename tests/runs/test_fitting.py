"""Context windows that servers report: a run with longer requests is refused before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from tests.conftest import Command
from tests.hostile.replies import play
from tests.server import completion, error, serving

SMALL, LARGE = 10, 100_000


def vllm(size: int) -> dict[str, dict[str, Any]]:
    """Return vLLM's list of models."""
    return {"/v1/models": {"data": [{"id": "other", "max_model_len": 7}, {"id": "m", "max_model_len": size}]}}


def llama_cpp(size: int) -> dict[str, dict[str, Any]]:
    """Return llama.cpp's reports; its list of models has only the context length of the training."""
    listed = {"data": [{"id": "m", "meta": {"n_ctx_train": 8 * LARGE}}]}
    return {"/v1/models": listed, "/props": {"default_generation_settings": {"n_ctx": size}, "total_slots": 4}}


def ollama_loaded(size: int) -> dict[str, dict[str, Any]]:
    """Return Ollama's reports on a model that is loaded."""
    shown = {"model_info": {"llama.context_length": 8 * LARGE}}
    return {"/api/ps": {"models": [{"name": "m:latest", "context_length": size}]}, "/api/show": shown}


def ollama_set(size: int) -> dict[str, dict[str, Any]]:
    """Return Ollama's reports on a model that is not loaded and whose file sets the window."""
    shown = {"parameters": f"stop x\nnum_ctx   {size}", "model_info": {"llama.context_length": 8 * LARGE}}
    return {"/api/ps": {"models": []}, "/api/show": shown}


SERVERS = [
    ("openai/m", vllm),
    ("hosted_vllm/m", vllm),
    ("openai/m", llama_cpp),
    ("ollama_chat/m", ollama_loaded),
    ("ollama_chat/m", ollama_set),
]


@pytest.fixture(autouse=True)
def api_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a key, which the servers do not check."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def at(url: str, model: str) -> dialoom.Model:
    """Return a model at a server; the address of Ollama's own interface has no version."""
    return dialoom.Model(model, api_base=url.removesuffix("/v1") if model.startswith("ollama") else url)


@pytest.mark.parametrize(("model", "reports"), SERVERS)
def test_run_that_does_not_fit_its_model_is_refused(model: str, reports: Any, tmp_path: Path) -> None:
    with serving(lambda _body, _number: completion("Hello."), reports=reports(SMALL)) as server:
        with pytest.raises(dialoom.DialoomError) as caught:
            play(tmp_path, people=1, assistant=at(server.url, model))
        assert server.requests == []
    said = str(caught.value)
    assert said.startswith("models: assistant gets requests of ")
    assert f"the context window of {model} is 10 tokens according to its server: serve it with a longer context" in said
    assert not (tmp_path / "run.db").exists()


@pytest.mark.parametrize(("model", "reports"), SERVERS[:3])
def test_run_that_fits_its_model_is_played(model: str, reports: Any, tmp_path: Path) -> None:
    for size in (LARGE, None):
        reported = {} if size is None else reports(size)
        with serving(lambda _body, _number: completion("Hello."), reports=reported) as server:
            run = play(tmp_path, people=1, name=f"run{size}", assistant=at(server.url, model))
        assert run.status().done == 1


@pytest.mark.parametrize("report", [{}, {"data": "x"}, {"data": [{"id": "m", "max_model_len": "many"}]}, {"data": [3]}])
def test_unreadable_model_list_does_not_stop_a_run(report: dict[str, Any], tmp_path: Path) -> None:
    broken = {"/v1/models": report, "/props": {"default_generation_settings": []}}
    with serving(lambda _body, _number: completion("Hello."), reports=broken) as server:
        assert play(tmp_path, people=1, assistant=at(server.url, "openai/m")).status().done == 1


def test_stated_window_is_checked_for_each_request(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "people.jsonl").write_text(json.dumps({"profile": "She keeps hens.", "personality": "Calm."}))
    with serving(lambda _body, _number: completion("Hello."), reports=vllm(SMALL)) as server:
        where = ["--model", "assistant=openai/m", "--api-base", f"assistant={server.url}", "-o", "run.db"]
        plan = ["run", "aloe-eval", "--personas", "people.jsonl", "--rounds", 1, *where]
        refused = dialoom(*plan, code=2)
        assert "--model: assistant gets requests of " in refused.stderr
        failed = dialoom(*plan, "--context", f"openai/m={SMALL}", code=1)
    assert "fault=context" in failed.stderr


def test_long_requests_of_apollo_are_not_sent_to_a_short_window(dialoom: Command) -> None:
    with serving(lambda _body, _number: error(500, "nobody should ask"), reports=vllm(4096)) as server:
        where = ["--model", "assistant=openai/m", "--api-base", f"assistant={server.url}"]
        refused = dialoom("run", "apollo", "--limit", 2, *where, "-o", "run.db", code=2)
        assert server.requests == []
    assert "openai/m is 4,096 tokens according to its server" in refused.stderr
    replies = {1: completion("I am ready."), 2: completion('{"verdict": true, "explanation": "it is set"}')}
    checks = {}
    for size in (4096, LARGE):
        with serving(lambda _body, number: replies.get(number, completion("A street.")), reports=vllm(size)) as server:
            asked = ["--model", "openai/m", "--api-base", server.url, "--recipe", "apollo", "--json"]
            found = json.loads(dialoom("doctor", *asked, code=None).stdout)["checks"]
        checks[size] = next(each for each in found if each["about"] == "context")
    assert checks[4096]["state"] == "failed"
    assert "assistant gets requests of " in checks[4096]["detail"]
    assert checks[LARGE]["state"] == "ok"
    assert "context window of 100,000 tokens; the recipe's largest request has " in checks[LARGE]["detail"]


def test_empty_answer_is_reported_with_a_remedy(dialoom: Command) -> None:
    with serving(lambda _body, _number: completion("", completion_tokens=0)) as server:
        done = dialoom("doctor", "--model", "openai/m", "--api-base", server.url, code=1)
    assert "the reply is empty, as from a base model or a model served without its chat template" in done.stdout
