"""`dialoom doctor`: what is in place and what is not, without a call unless a model is given, and never with a key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conftest import Command
from tests.server import completion, error, serving

KEY = "sk-planted-0a1b2c3d4e5f6a7b8c9d"


def examined(dialoom: Command, *arguments: object, code: int = 0, **variables: str) -> list[dict[str, Any]]:
    """The checks, as a program reads them."""
    done = dialoom("doctor", *arguments, "--json", code=code, variables=variables)
    assert KEY not in done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] is (code == 0)
    checks: list[dict[str, Any]] = found["checks"]
    return checks


def states(checks: list[dict[str, Any]], about: str) -> Mapping[str, str]:
    """What was found about one kind of thing, by name."""
    return {check["name"]: check["state"] for check in checks if check["about"] == about}


def test_without_a_model_nothing_is_sent(dialoom: Command) -> None:
    """Python, the packages with their versions, the extras; the names of the keys that are there."""
    with serving(lambda _body, _number: completion("Hello.")) as server:
        checks = examined(dialoom, OPENAI_API_BASE=server.url, OPENAI_API_KEY=KEY)
        assert server.requests == []
    assert set(states(checks, "python").values()) == {"ok"}
    assert {"dialoom", "litellm", "langgraph", "tenacity"} <= states(checks, "package").keys()
    assert set(states(checks, "package").values()) == {"ok"}
    assert "st" in states(checks, "extra")
    assert "dev" not in states(checks, "extra"), "that is not for users"
    assert not states(checks, "model")
    (keys,) = [check for check in checks if check["about"] == "keys"]
    assert "OPENAI_API_KEY" in keys["detail"]


def test_people_read_lines(dialoom: Command) -> None:
    """One a check, and a last one that says it all."""
    said = dialoom("doctor", "--model", "offline/attentive").stdout
    assert "ok       model offline/attentive" in said
    assert "ok       structured output offline/attentive" in said
    assert said.endswith("everything is in place\n")


def test_a_model_is_asked_three_times(dialoom: Command) -> None:
    """A greeting, a question that wants an object, and one that only a shape makes one of; what they took is told."""
    answers = {1: completion("I am ready."), 2: completion('{"verdict": true, "explanation": "it is set"}')}
    for third, state in (("A quiet street.", "missing"), ('{"verdict": true, "explanation": "a street"}', "ok")):
        answers[3] = completion(third)
        with serving(lambda _body, number: answers[number]) as server:
            where = ["--model", "openai/house-model", "--api-base", server.url]
            checks = examined(dialoom, *where, OPENAI_API_KEY=KEY)
            assert len(server.requests) == 3
        assert states(checks, "shape") == {"openai/house-model": state}
        assert "JSON schema" in checks[-1]["detail"]
    assert states(checks, "model") == states(checks, "structured output") == {"openai/house-model": "ok"}
    asked = next(check for check in checks if check["about"] == "model")
    assert asked["latency"] > 0
    assert "10 + 5 tokens at an unknown price" in asked["detail"]


def test_the_shape_is_asked_for_as_it_will_be_in_the_run(dialoom: Command) -> None:
    """Some object will do where one was wanted; a schema that is not kept to fails; words alone ask for none."""
    verdict = '{"verdict": true, "explanation": "it is set"}'
    found = {}
    answers = {1: completion("I am ready."), 2: completion(verdict), 3: completion('{"sight": "a street"}')}
    for how in ("schema", "json", "prompt"):
        with serving(lambda _body, number: answers[number]) as server:
            where = ["--model", "openai/house-model", "--api-base", server.url, "--structured", how]
            checks = examined(dialoom, *where, code=1 if how == "schema" else 0, OPENAI_API_KEY=KEY)
            asked = [(body.get("response_format") or {}).get("type") for body in server.requests]
        found[how] = (states(checks, "shape")["openai/house-model"], asked)
    assert found == {
        "schema": ("failed", [None, "json_schema", "json_schema"]),
        "json": ("ok", [None, "json_object", "json_object"]),
        "prompt": ("missing", [None, None]),
    }
    assert "--structured 'tight'" in dialoom("doctor", "--structured", "tight", code=2).stderr


def test_a_model_that_cannot_give_an_object_is_no_judge(dialoom: Command) -> None:
    """Its words are shown; the exit code says that something is wrong."""
    with serving(lambda _body, _number: completion("I would rather chat.")) as server:
        where = ["--model", "openai/house-model", "--api-base", server.url]
        checks = examined(dialoom, *where, code=1, OPENAI_API_KEY=KEY)
    assert states(checks, "model") == {"openai/house-model": "ok"}
    assert states(checks, "structured output") == {"openai/house-model": "failed"}
    assert "rather chat" in next(each["detail"] for each in checks if each["about"] == "structured output")


def test_a_model_that_refuses_is_asked_nothing_further(dialoom: Command, tmp_path: Path) -> None:
    """One call, its error, and no key in it, though the provider quotes it; the key comes from a file here."""
    (tmp_path / "keys.env").write_text(f"OPENAI_API_KEY={KEY}\n")
    with serving(lambda _body, _number: error(401, f"Incorrect API key provided: {KEY}")) as server:
        where = ["--model", "openai/house-model", "--api-base", server.url, "--env-file", "keys.env"]
        checks = examined(dialoom, *where, code=1)
        assert server.keys == [f"Bearer {KEY}"]
    assert states(checks, "model") == {"openai/house-model": "failed"}
    assert not states(checks, "structured output")


def test_a_model_that_there_is_not_is_named(dialoom: Command) -> None:
    """And the others are still looked at."""
    checks = examined(dialoom, "--model", "offline/clever", "--model", "offline/generic", code=1)
    assert states(checks, "model") == {"offline/clever": "failed", "offline/generic": "ok"}
