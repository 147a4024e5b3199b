"""What a provider says of tokens, waits and sizes is believed within bounds; a reply is read in linear time."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.roles import Completion, score_type
from dialoom.roles.gateway.completions import MOST_LETTERS
from dialoom.roles.gateway.failures import classified
from dialoom.roles.gateway.retries import LONGEST
from dialoom.roles.replies import parse_reply
from tests.hostile.replies import play, saying
from tests.server import Response, completion, ended, serving


@pytest.mark.parametrize("figure", [2**62, 2**63, 10**30, -1, 1e400, "many"])
def test_impossible_usage_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, figure: Any) -> None:
    """The reply is used, and the sums over the run stand."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    usage = {"prompt_tokens": figure, "completion_tokens": figure, "total_tokens": figure}
    with serving(lambda _body, _number: ended("Hello.", "stop", usage=usage)) as server:
        run = play(tmp_path, people=2, assistant=dialoom.Model("openai/gpt-4o-mini", api_base=server.url))
        assert len(server.requests) == 2, "paid for once"
    status = run.status()
    assert (status.done, status.failed) == (2, 0)
    assert status.by_role["assistant"].input_tokens is None
    assert status.by_role["assistant"].cost is None


def test_a_file_with_impossible_figures_can_be_looked_at(tmp_path: Path) -> None:
    """As an earlier version or a stranger may have written it."""
    run = play(tmp_path, people=2)
    with closing(sqlite3.connect(run.path)) as connection, connection:
        connection.execute("UPDATE kept_calls SET input_tokens = ?, output_tokens = ?, cached_tokens = ?", (2**62,) * 3)
    assert run.status().done == 2
    assert len(list(run.episodes())) == 2


def test_impossible_figures_of_a_completion_are_unknown() -> None:
    """Wherever it comes from."""
    odd: Any = Completion("x", input_tokens=2**70, output_tokens=-1, cost=float("nan"))
    assert (odd.input_tokens, odd.output_tokens, odd.cost) == (None, None, None)


def test_retry_after_is_capped() -> None:
    """A year is as long as the longest wait."""

    class Busy(Exception):
        status_code = 429
        litellm_response_headers = {"retry-after": "1e9"}

    assert getattr(classified(Busy("slow down"), "openai/m"), "retry_after", None) == LONGEST


def test_an_endless_body_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After so many bytes, once, with a message that says why."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setattr("dialoom.roles.gateway.exchange.MOST_BYTES", 2**20)
    answer = Response(raw=b" " * (2**20 + 2**18) + b"{}")
    for model in ("openai/gpt-4o-mini", "hosted_vllm/m"):
        with serving(lambda _body, _number: answer) as server:
            player = dialoom.Model(model, api_base=server.url)
            run = play(tmp_path, people=1, name=model.partition("/")[0], assistant=player)
            assert len(server.requests) == 1
        episode = run.episode(1)
        assert episode is not None and "larger than 1,048,576 bytes" in (episode.error or "")


def test_a_reply_that_no_model_writes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a function, and of a provider."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    long = "x" * (MOST_LETTERS + 1)
    with serving(lambda _body, _number: completion(long)) as server:
        for name, player in (("f", saying(long)), ("p", dialoom.Model("openai/m", api_base=server.url))):
            episode = play(tmp_path, people=1, name=name, assistant=player).episode(1)
            assert episode is not None and "1,000,001 letters" in (episode.error or "")


def test_a_reply_is_read_in_linear_time() -> None:
    """These took half a minute, or would."""
    nested = ('{"k":[0' + ",0" * 200 + ",") * 900
    for text in ("{" * 400_000, '{"a":' * 80_000, nested, '{"score":' + "{" * 400_000, '{"score": "' + "a" * 400_000):
        with pytest.raises(ValueError):
            parse_reply(text, score_type(1, 5))


def test_what_a_reply_is_tried_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: however many braces there are, the decoder is called so many times."""
    calls = 0

    class Counting(__import__("json").JSONDecoder):  # type: ignore[misc]
        def raw_decode(self, text: str, start: int = 0) -> Any:
            nonlocal calls
            calls += 1
            return super().raw_decode(text, start)

    monkeypatch.setattr("dialoom.roles.replies.json.JSONDecoder", Counting)
    with pytest.raises(ValueError):
        parse_reply('{"a":' * 50_000, score_type(1, 5))
    assert calls <= 64


@pytest.mark.parametrize("text", ['{"score": true}', '{"score": false}', 'Surely {score: true, explanation: "x"}'])
def test_truth_is_no_number(text: str) -> None:
    """Although Python takes it for 1."""
    with pytest.raises(ValueError, match="score: a number is needed"):
        parse_reply(text, score_type(1, 5))
