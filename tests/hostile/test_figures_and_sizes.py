"""Extreme numbers, sizes, waits, lone surrogates and expressions."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom
import dialoom as door
from dialoom import Outcome
from dialoom.personas import PersonaLensRelease, Repairs
from dialoom.personas.pools import read_json_values
from dialoom.personas.profile import LONE_SURROGATES
from dialoom.prompts import Prompt, PromptError
from dialoom.roles import score_type
from dialoom.roles.gateway.completions import MAX_REPLY_CHARACTERS
from dialoom.roles.gateway.failures import classify_error
from dialoom.roles.gateway.retries import MAX_RETRY_AFTER_SECONDS
from dialoom.roles.replies import parse_reply
from dialoom.runs.errors import RunError
from dialoom.text import to_well_formed
from tests.hostile.replies import play, saying
from tests.invented import write_release
from tests.server import Answer, Response, busy, completion, ended, serving


@pytest.mark.parametrize("figure", [2**62, 2**63, 10**30, -1, 0, 1e400, "many", None, {}, [1, 2]])
def test_impossible_usage_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    usage: Any = {"prompt_tokens": figure, "completion_tokens": figure, "total_tokens": figure}
    if isinstance(figure, dict | list):
        usage = figure
    with serving(lambda _body, _number: ended("Hello.", "stop", usage=usage)) as server:
        run = play(tmp_path, people=2, assistant=dialoom.Model("openai/gpt-4o-mini", api_base=server.url))
        assert len(server.requests) == 2, "there is one call for each dialogue"
    status = run.status()
    assert (status.done, status.failed) == (2, 0)
    assert status.by_role["assistant"].input_tokens is None
    assert status.by_role["assistant"].cost is None


def test_file_with_impossible_figures_can_be_shown(tmp_path: Path) -> None:
    run = play(tmp_path, people=2)
    with closing(sqlite3.connect(run.path)) as connection, connection:
        connection.execute("UPDATE kept_calls SET input_tokens = ?, output_tokens = ?, cached_tokens = ?", (2**62,) * 3)
    assert run.status().done == 2
    assert len(list(run.episodes())) == 2


def test_retry_after_is_capped() -> None:
    class Busy(Exception):
        status_code = 429
        litellm_response_headers = {"retry-after": "1e9"}

    assert getattr(classify_error(Busy("slow down"), "openai/m"), "retry_after", None) == MAX_RETRY_AFTER_SECONDS


def test_oversized_reply_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    long = "x" * (MAX_REPLY_CHARACTERS + 1)
    with serving(lambda _body, _number: completion(long)) as server:
        for name, player in (("f", saying(long)), ("p", dialoom.Model("openai/m", api_base=server.url))):
            episode = play(tmp_path, people=1, name=name, assistant=player).episode(1)
            assert episode is not None and "1,000,001 characters" in (episode.error or "")


def test_reply_is_read_in_linear_time() -> None:
    nested = ('{"k":[0' + ",0" * 200 + ",") * 900
    for text in ("{" * 400_000, '{"a":' * 80_000, nested, '{"score":' + "{" * 400_000, '{"score": "' + "a" * 400_000):
        with pytest.raises(ValueError):
            parse_reply(text, score_type(1, 5))


@pytest.mark.parametrize("text", ['{"score": true}', '{"score": false}', 'Surely {score: true, explanation: "x"}'])
def test_boolean_score_is_refused(text: str) -> None:
    """Python's `True == 1` does not make it a score."""
    with pytest.raises(ValueError, match="score: a number is needed"):
        parse_reply(text, score_type(1, 5))


LONE_SURROGATE = "\ud83d"


def test_surrogate_pairs_are_joined_and_others_replaced() -> None:
    assert to_well_formed("wh\u00f6le \U0001f600") == "wh\u00f6le \U0001f600"
    assert to_well_formed("\ud83d\ude00") == "\U0001f600"
    assert to_well_formed(f"ok {LONE_SURROGATE}!") == "ok \ufffd!"


def test_error_with_a_lone_surrogate_is_stored(tmp_path: Path) -> None:
    async def fails(_messages: list[Any]) -> str:
        raise ValueError(f"no {LONE_SURROGATE}")

    run = play(tmp_path, assistant=fails)
    assert (run.status().done, run.status().failed) == (0, 3)
    episode = run.episode(1)
    assert episode is not None and "no \ufffd" in (episode.error or "")


def test_provider_may_send_lone_surrogates_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    message = b'{"role": "assistant", "content": "x \\ud83d", "reasoning_content": "y \\ude00"}'
    whole = b'{"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, '
    whole += b'"finish_reason": "stop", "message": ' + message + b"}]}"
    answers = [Response(400, raw=b'{"error": {"message": "bad \\ud83d", "type": "t", "code": "c"}}')]
    with serving(lambda _body, number: answers[0] if number == 1 else Response(raw=whole)) as server:
        assistant = dialoom.Model("openai/m", api_base=server.url)
        run = play(tmp_path, assistant=assistant)
    assert (run.status().done, run.status().failed) == (2, 1)
    with closing(sqlite3.connect(run.path)) as connection:
        (texts,) = connection.execute("SELECT group_concat(content) FROM texts").fetchone()
    assert "x \ufffd" in texts and "y \ufffd" in texts


def test_files_with_lone_surrogates_are_read_and_counted(tmp_path: Path) -> None:
    reader = PersonaLensRelease(write_release(tmp_path))
    path = tmp_path / "data" / "profile" / "user7" / "profile.json"
    path.write_text(path.read_text().replace("church bells", "church bells \\ud83d"))
    assert "church bells \ufffd" in reader.profile("user7").model_dump_json()
    assert "1 value with half a character" in reader.repairs.summary()
    (tmp_path / "pool.jsonl").write_text('"She keeps hens \\ud83d"\n')
    repairs = Repairs()
    assert list(read_json_values(tmp_path / "pool.jsonl", repairs)) == [(1, "She keeps hens \ufffd")]
    assert repairs[LONE_SURROGATES] == 1


class _Unstored(Exception):
    pass


@pytest.mark.parametrize("where", ["finish", "fail"])
def test_outcome_that_cannot_be_stored_fails_one_scenario(tmp_path: Path, where: str) -> None:
    from dialoom.runs.configuration.recipes import load_recipe

    own = type(load_recipe("aloe-eval"))

    class Odd(own):  # type: ignore[valid-type, misc]
        name = "odd"

        def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
            outcome: Outcome = super().outcome(scenario, state, failed)
            if "1 hens" not in scenario.model_dump_json():
                return outcome
            if failed and where == "fail":
                raise _Unstored
            return outcome.model_copy(update={"details": {"odd": LONE_SURROGATE if where == "fail" else object()}})

    people = [{"profile": f"She keeps {number} hens.", "personality": "Calm."} for number in range(3)]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(each) + "\n" for each in people))
    models = {"user": saying("Hi."), "assistant": saying("Hello."), "judge": saying('{"score": 3}')}
    options = {"personas": str(tmp_path / "people.jsonl"), "rounds": 1}
    run = dialoom.play(Odd, path=tmp_path / "run.db", models=models, options=options)
    assert (run.status().done, run.status().failed) == (2, 1)
    errors = [episode.error for episode in run.episodes() if episode.state == "failed"]
    assert len(errors) == 1 and errors[0]
    again = dialoom.retry(tmp_path / "run.db", recipe=Odd, models=models)
    assert (again.status().done, again.status().failed) == (2, 1)


def drained_when(control: dialoom.Control, is_waiting: Any) -> threading.Thread:
    """Start a thread that drains the run as soon as a model's calls have to wait."""

    def watch() -> None:
        while not is_waiting(control.limits.values()):
            threading.Event().wait(0.01)
        control.drain()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", ["retry-after", "backoff", "rate"])
def test_draining_ends_every_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    is_well = threading.Event()
    control = dialoom.Control()

    def answer(_body: dict[str, Any], _number: int) -> Answer | Response:
        if is_well.is_set() or kind == "rate":
            return completion("Hello.")
        if kind == "backoff":
            control.drain()
            return busy(503)
        return busy(429, retry_after="1e9")

    people = [{"profile": f"She keeps {number} hens.", "personality": "Calm."} for number in range(3)]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(each) + "\n" for each in people))
    others = {"user": saying("Hi."), "judge": saying('{"score": 3}')}
    with serving(answer) as server:
        if kind == "retry-after":
            drained_when(control, lambda states: any(state.paused > 100 for state in states))
        if kind == "rate":
            drained_when(control, lambda _states: len(server.requests) == 1)  # the next one has to wait for a minute
        run = dialoom.play(
            "aloe-eval",
            path=tmp_path / "run.db",
            models={**others, "assistant": dialoom.Model("openai/m", api_base=server.url)},
            options={"personas": str(tmp_path / "people.jsonl"), "rounds": 1},
            rpm=1 if kind == "rate" else None,
            concurrency=3,
            control=control,
        )
        status = run.status()
        assert status.failed == 0
        assert status.pending in ((2, 3) if kind == "rate" else (3,)), "the rate allows one call"
        assert status.usage.unanswered == 0, "the ledger has the result of every call"
        is_well.set()
        again = dialoom.resume(run.path, models=others, rpm={"": None})
    assert (again.status().done, again.status().failed) == (3, 0)


HOSTILE = [
    ('"a" * 10**8 == user', "'*' needs numbers, got str"),
    ("[user] * 10**8", "'*' needs numbers, got list"),
    ("'%100000000d' % number == user", "'%' needs numbers"),
    ("'%100000000d' is odd and user", "needs numbers, got str"),
    ("user and 10**(10**8)", "more than 4,096 bits"),
    ("number * 10**1000 * 10**1000 * number", "at most 4,096 bits"),
    ("user.ljust(10**8)", "'ljust' cannot be called"),
    ("'{:>100000000}'.format(user)", "'format' cannot be called"),
    ("user|center(10**8)", "No filter named 'center'"),
    ("[user]|map('indent', 10**8)|list", "No filter named 'indent'"),
    ("user and 7|round(-10**8)", "at most 30 decimals"),
    ("range(10**8) and user", "'range'"),
    ("(" * 400 + "user" + ")" * 400, "nested too deeply"),
    ("not " * 240 + "user", "nested too deeply"),
    ("user == '" + "a" * 1_000 + "'", "the maximum is 1,000"),
]


@pytest.mark.parametrize(("text", "message"), HOSTILE, ids=[text[:30] for text, _ in HOSTILE])
def test_expression_with_unbounded_cost_is_refused(finished: Path, text: str, message: str) -> None:
    with pytest.raises(RunError) as caught:
        list(door.open_run(finished).episodes(where=text))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ordinary_expressions_work(finished: Path) -> None:
    run = door.open_run(finished)
    for text in (
        "turns * 2 ** 2 - turns // 1 % 7 > -100",
        "user + '!' == user ~ '!' and number is number",
        "messages|map(attribute='role')|unique|sort|join(',') == 'assistant,user'",
        "messages|selectattr('role', 'equalto', 'user')|list|length >= 1",
        "(turns / 3)|round(1) >= 0 and user.lower().startswith('user')",
        "[1, 2] + [3] == [1, 2, 3] and number is not divisibleby(100)",
    ):
        assert len(list(run.episodes(where=text))) == 2, text


PROMPT = "---\nid: x/y\nversion: 1\nrole: user\ninputs: [words]\n---\n=== user ===\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('{{ "a" * 10**8 }}', "'*' needs numbers"),
        ("{% for a in range(100000) %}{{ words }}{% endfor %}", "'range'"),
        ("{% set a = words %}{% set a = a ~ a %}{{ a }}", "'if' and 'for'"),
        ("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "'if' and 'for'"),
        ("{% for a in words %}" * 4 + "{% endfor %}" * 4, "'for' may be nested at most 3"),
        ("{% for a in words %}{% for b in words %}{{ words }}{% endfor %}{% endfor %}", "more than 20,000,000"),
        ("{{ " + "(" * 500 + "words" + ")" * 500 + " }}", "nested too deeply"),
        ("{{ " + "9" * 5_000 + " }}", "4300 digits"),
    ],
)
def test_prompt_with_unbounded_cost_is_refused(body: str, message: str) -> None:
    with pytest.raises(PromptError) as caught:
        Prompt.parse(PROMPT + body, "y.md").render({"words": "word " * 100})
    assert message in str(caught.value)
    assert str(caught.value).startswith("y.md")
