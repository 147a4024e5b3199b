r"""Half of a character (a lone surrogate, `\ud83d` in JSON) is replaced wherever it comes in, and costs nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Outcome
from dialoom.personas import Mendings, PersonaLensRelease
from dialoom.personas.mending import HALVES
from dialoom.personas.pools.files import values_of
from dialoom.text import well_formed
from tests.hostile.replies import play, saying
from tests.invented import write_release
from tests.server import Response, serving

HALF = "\ud83d"


def test_halves_that_belong_together_are_joined_and_others_replaced() -> None:
    """Nothing else is changed."""
    assert well_formed("wh\u00f6le \U0001f600") == "wh\u00f6le \U0001f600"
    assert well_formed("\ud83d\ude00") == "\U0001f600"
    assert well_formed(f"ok {HALF}!") == "ok \ufffd!"


def test_a_judge_with_half_an_emoji_has_judged(tmp_path: Path) -> None:
    """As JSON spells it: the reply is recorded, parsed and kept; nothing fails."""
    run = play(tmp_path, judge=saying('{"score": 3, "explanation": "ok \\ud83d"}'))
    assert (run.status().done, run.status().failed) == (3, 0)
    for episode in run.episodes():
        assert [each.explanation for each in episode.outcome.judgements] == ["ok \ufffd"]


def test_plain_text_with_half_an_emoji_is_recorded(tmp_path: Path) -> None:
    """So that it is paid for once."""
    run = play(tmp_path, assistant=saying(f"Hi {HALF}"))
    assert run.status().done == 3
    assert run.status().usage.unanswered == 0
    episode = run.episode(1)
    assert episode is not None and episode.outcome.messages[-1].content == "Hi \ufffd"


def test_an_error_with_half_an_emoji_is_a_row(tmp_path: Path) -> None:
    """A player's, and one of a provider."""

    async def fails(_messages: list[Any]) -> str:
        raise ValueError(f"no {HALF}")

    run = play(tmp_path, assistant=fails)
    assert (run.status().done, run.status().failed) == (0, 3)
    episode = run.episode(1)
    assert episode is not None and "no \ufffd" in (episode.error or "")


def test_a_provider_may_send_halves_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text, reasoning, finish reason, and the message of an error."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    said = b'{"role": "assistant", "content": "x \\ud83d", "reasoning_content": "y \\ude00"}'
    whole = b'{"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, '
    whole += b'"finish_reason": "stop", "message": ' + said + b"}]}"
    answers = [Response(400, raw=b'{"error": {"message": "bad \\ud83d", "type": "t", "code": "c"}}')]
    with serving(lambda _body, number: answers[0] if number == 1 else Response(raw=whole)) as server:
        assistant = dialoom.Model("openai/m", api_base=server.url)
        run = play(tmp_path, assistant=assistant)
    assert (run.status().done, run.status().failed) == (2, 1)
    with closing(sqlite3.connect(run.path)) as connection:
        (texts,) = connection.execute("SELECT group_concat(content) FROM texts").fetchone()
    assert "x \ufffd" in texts and "y \ufffd" in texts


def test_files_with_halves_are_read_and_counted(tmp_path: Path) -> None:
    """A person's profile, and a line of a pool."""
    reader = PersonaLensRelease(write_release(tmp_path))
    path = tmp_path / "data" / "profile" / "user7" / "profile.json"
    path.write_text(path.read_text().replace("church bells", "church bells \\ud83d"))
    assert "church bells \ufffd" in reader.profile("user7").model_dump_json()
    assert "1 value with half a character" in reader.mendings.summary()
    (tmp_path / "pool.jsonl").write_text('"She keeps hens \\ud83d"\n')
    mendings = Mendings()
    assert list(values_of(tmp_path / "pool.jsonl", mendings)) == [(1, "She keeps hens \ufffd")]
    assert mendings[HALVES] == 1


class _Unkept(Exception):
    pass


@pytest.mark.parametrize("where", ["finish", "fail"])
def test_what_cannot_be_kept_fails_one_scenario(tmp_path: Path, where: str) -> None:
    """Whatever a recipe's outcome holds, or is, the others are played; and what failed can be tried again."""
    from dialoom.runs.recipes import load_recipe

    own = type(load_recipe("aloe-eval"))

    class Odd(own):  # type: ignore[valid-type, misc]
        name = "odd"

        def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
            outcome: Outcome = super().outcome(scenario, state, failed)
            if "1 hens" not in scenario.model_dump_json():
                return outcome
            if failed and where == "fail":
                raise _Unkept
            return outcome.model_copy(update={"details": {"odd": HALF if where == "fail" else object()}})

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
