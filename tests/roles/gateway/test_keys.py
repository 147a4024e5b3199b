"""API keys, env files, redaction, and LiteLLM's callbacks."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dialoom import load_env_file
from dialoom.personas import DataError
from dialoom.roles import BindingError, ModelBinding, PermanentProviderError
from dialoom.roles.gateway import Request
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend, load_litellm
from dialoom.roles.gateway.model_facts import check_keys
from dialoom.roles.gateway.secrets import redact
from tests.conftest import Command
from tests.invented import write_release
from tests.processes import CommandProcess
from tests.roles.gateway.asking import KEY, request
from tests.server import Answer, Response, completion, error, serving

# A key that does not look like one; one of its variables has a name that does not mark it as a key.
UNMARKED_KEY = "plain+4f9a/8c7b=6d5e"
WITH_FILE = """
import sys
from pathlib import Path
from dialoom.roles.gateway.model_facts import load_env_file
load_env_file(Path("keys.env"))
from dialoom.cli import main
main()
"""


def test_lines_of_an_env_file_become_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DIALOOM_TEST_A", "DIALOOM_TEST_C", "DIALOOM_TEST_D"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("DIALOOM_TEST_B", "mine")
    path = tmp_path / "keys.env"
    path.write_text(
        "# mine\n\nDIALOOM_TEST_A=one\nDIALOOM_TEST_B='two'\nexport DIALOOM_TEST_C=\"thr ee\" # three\n"
        "DIALOOM_TEST_D=a=b==\r\n"
    )
    assert load_env_file(path) == [f"DIALOOM_TEST_{letter}" for letter in "ABCD"]
    assert [os.environ[f"DIALOOM_TEST_{letter}"] for letter in "ABCD"] == ["one", "mine", "thr ee", "a=b=="]


async def test_missing_key_of_openai_is_named_before_a_request_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(PermanentProviderError, match="no API key - set OPENAI_API_KEY"):
        await LiteLLMBackend().complete(request(None), "key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with serving(lambda _body, _number: error(400, "no")) as server:
        monkeypatch.setenv("ANTHROPIC_API_BASE", server.url)
        with pytest.raises(PermanentProviderError, match=r"(?s)400.*no"):
            await LiteLLMBackend().complete(request(None, "anthropic/claude-sonnet-4-5"), "key")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"A_KEY=x\n\n{KEY}\n", 3),
        (f"# key\n{KEY}={KEY}\n", 2),
        ("\n\nOPENAI_API_KEY=\n", 3),
        (f"OPENAI_API_KEY='{KEY}\n", 1),
        (f"OPENAI_API_KEY {KEY}\n", 1),
    ],
)
def test_wrong_line_is_named_and_never_shown(tmp_path: Path, text: str, line: int) -> None:
    path = tmp_path / "keys.env"
    path.write_text(text)
    before = dict(os.environ)
    with pytest.raises(BindingError, match=f"keys.env', line {line}:") as caught:
        load_env_file(path)
    assert "planted" not in str(caught.value)
    assert dict(os.environ) == before


def test_unreadable_env_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such file"):
        load_env_file(tmp_path / "keys.env")
    (tmp_path / "keys.env").write_bytes(b"A=\xff\xfe")
    with pytest.raises(DataError, match=r"keys\.env:1: not UTF-8"):
        load_env_file(tmp_path / "keys.env")


@pytest.mark.parametrize(
    "text",
    [
        "Bearer abc.def",
        "sk-proj-abcdefgh12345678",
        "https://x.test/v1?key=abcdefgh&alt=sse",
        "http://me:abcdefgh@proxy.test/",
        "AIzaSyabcdefgh0123456789abcdefg",
        "gsk_abcdefgh0123456789abcdef",
        '{"key": "quo\\"ted-abcdefgh"}',
        "quo%22ted-abcdefgh",
        "the password is 9f.8e.7d.6c.abc.",
    ],
)
def test_key_like_text_is_removed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALOOM_TEST_KEY", 'quo"ted-abcdefgh')
    monkeypatch.setenv("DIALOOM_TEST_PASSWORD", "9f.8e.7d.6c.abc")
    assert "abc" not in redact(text)


@pytest.mark.parametrize("after", [">", "> 'refused'"])
def test_secret_is_removed_to_its_last_character(after: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALOOM_TEST_PASSWORD", "9f.8e.7d.6c.!?")
    assert redact(f"<9f.8e.7d.6c.!?{after}") == f"<[DIALOOM_TEST_PASSWORD]{after}"


@pytest.mark.parametrize("written", ["%{:02x}", "%{:02X}", "\\u{:04x}", "{:02x}"])
def test_encoded_secret_is_removed(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DIALOOM_TEST_PASSWORD", secret := "9f.8e-7d:6c/!?")
    assert redact(f"<{''.join(written.format(ord(letter)) for letter in secret)}>") == "<[DIALOOM_TEST_PASSWORD]>"


@pytest.mark.parametrize("write", [str, lambda address: json.dumps(address)[1:-1], lambda address: quote(address, "")])
def test_secret_address_is_removed_to_its_last_character(
    write: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIALOOM_TEST_TOKEN", address := 'https://hooks.test/"abc"')
    assert redact(f"<{write(address)}>") == "<[DIALOOM_TEST_TOKEN]>"


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file in a folder."""
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def leaking_provider(key: str, folder: Path, meanwhile: dict[str, bytes]) -> Any:
    """Return a provider that quotes the key as its model's name, and in a transient and a permanent error.

    Before the last error it records the run's files, including the write-ahead log.
    """

    def answer(_body: dict[str, Any], number: int) -> Answer | Response:
        if number == 3:
            meanwhile.update(contents(folder))
        if number == 1:
            return 200, {**completion("Well.")[1], "model": key}
        return error(503 if number == 2 else 400, f"no good: {key} and {json.dumps(key)}; {'x' * 570} {key}")

    return answer


@pytest.mark.parametrize("key", [KEY, UNMARKED_KEY])
@pytest.mark.parametrize("source", ["environment", "file"])
def test_planted_key_reaches_the_provider_and_nothing_else(
    dialoom: Command, players: list[str], tmp_path: Path, source: str, key: str
) -> None:
    write_release(tmp_path / "release")
    bare = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    meanwhile: dict[str, bytes] = {}
    with serving(leaking_provider(key, tmp_path, meanwhile)) as server:
        cast = [*players[:2], *players[4:], "--model", "assistant=openai/gpt-4o-mini"]
        plan = ["run", "personalens", "--profiles", "release", "--tasks", "single", *cast, "-o", "r.db"]
        environment = {**bare, "OPENAI_API_BASE": server.url}
        if source == "environment":
            done = dialoom(*plan, code=1, env={**environment, "OPENAI_API_KEY": key})
            out, errors = done.stdout, done.stderr
        else:
            (tmp_path / "keys.env").write_text(f"OPENAI_API_KEY={key}\nOTHER={key}\n")
            with CommandProcess(tmp_path, *plan, script=WITH_FILE, environment=environment) as process:
                out, errors = process.communicate()
                assert process.returncode == 1, errors
            (tmp_path / "keys.env").unlink()
        assert server.keys == [f"Bearer {key}"] * 3
    output = out + errors
    for looking in (("status", "r.db", "--json"), ("show", "r.db", "1"), ("export", "r.db", "-o", "r.jsonl")):
        output += dialoom(*looking).stdout
    assert "no good" in output, "the error itself is shown"
    meanwhile.pop("keys.env", None)
    assert b"no good" in meanwhile["r.db-wal"], "the transient error is already in the log"
    kept = [*contents(tmp_path).items(), *meanwhile.items()]
    for form in (key, json.dumps(key)[1:-1]):
        assert form not in output
        assert [name for name, content in kept if form.encode() in content] == []


REQUEST = Request("assistant", "aloe/assistant", "offline/generic", 0.7, 1, ({"role": "user", "content": "Hello."},))


@pytest.mark.parametrize("registry", ["callbacks", "_async_success_callback"])
async def test_callback_registered_with_litellm_is_called(registry: str) -> None:
    litellm, called = load_litellm(), asyncio.Event()
    from litellm.integrations.custom_logger import CustomLogger

    class Listener(CustomLogger):
        async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            called.set()

    listener = Listener()
    getattr(litellm, registry).append(listener)
    try:
        await LiteLLMBackend().complete(REQUEST, "")
        await called.wait()
    finally:
        for name in ("callbacks", "success_callback", "failure_callback", "input_callback"):
            setattr(litellm, name, [])
        for name in ("_async_success_callback", "_async_failure_callback"):
            setattr(litellm, name, [])


def test_azure_always_needs_an_address_and_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "OPENAI_API_KEY", "AD_TOKEN", "CLIENT_ID", "API_BASE", "AI_API_KEY", "AI_API_BASE"):
        monkeypatch.delenv(f"AZURE_{name}", raising=False)
    bare = {"user": ModelBinding(model="azure/house", temperature=None)}
    served = {"user": ModelBinding(model="azure/house", temperature=None, api_base="http://127.0.0.1:9")}
    with pytest.raises(BindingError, match=r"no key in AZURE_API_KEY and no address in AZURE_API_BASE for azure/house"):
        check_keys(bare)
    with pytest.raises(BindingError, match=r"no key in AZURE_API_KEY for azure/house \(user\)"):
        check_keys(served)
    monkeypatch.setenv("AZURE_AD_TOKEN", KEY)
    check_keys(served)
    with pytest.raises(BindingError, match=r"there is no address in AZURE_API_BASE for azure/house \(user\)"):
        check_keys(bare)
    monkeypatch.setenv("AZURE_API_BASE", "http://127.0.0.1:9")
    check_keys(bare)
    monkeypatch.delenv("AZURE_AD_TOKEN")
    with pytest.raises(BindingError, match=r"no key in AZURE_API_KEY for azure/house"):
        check_keys(bare)
    with pytest.raises(BindingError, match=r"there is no key in AZURE_AI_API_KEY and no address in AZURE_AI_API_BASE"):
        check_keys({"user": ModelBinding(model="azure_ai/house", temperature=None)})


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("gpt-5-mini", "OPENAI_API_KEY"),
        ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
        ("xai/grok-4", "XAI_API_KEY"),
        ("cohere/command-a", "COHERE_API_KEY"),
        ("moonshot/kimi-k2", "MOONSHOT_API_KEY"),
        ("dashscope/qwen-max", "DASHSCOPE_API_KEY"),
        ("deepinfra/house", "DEEPINFRA_API_KEY"),
    ],
)
def test_key_is_read_from_the_variable_that_litellm_uses(
    model: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "CO_API_KEY", name):
        monkeypatch.delenv(each, raising=False)
    assert name in load_litellm().validate_environment(model)["missing_keys"]
    cast = {"judge": ModelBinding(model=model, temperature=None)}
    with pytest.raises(BindingError, match=f"no key in {name} for {model}"):
        check_keys(cast)
    monkeypatch.setenv(name, "k")
    check_keys(cast)
