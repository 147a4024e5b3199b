"""What a model thinks aloud is kept apart from what it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialoom.roles.gateway.completions import without_thinking
from tests.roles.gateway.asking import ask, request
from tests.server import ended, serving


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("Hello.", "Hello.", None),
        ("1 < 2", "1 < 2", None),
        (" <b>Hello.</b> ", " <b>Hello.</b> ", None),
        ("<think>Hm.</think>Hello.", "Hello.", "Hm."),
        ("<think>\nHm.\nWell.\n</think>\n\nHello.\n", "Hello.", "Hm.\nWell."),
        ("<THINKING>Hm.</THINKING> Hello.", "Hello.", "Hm."),
        ("<think>Hm.", "", "Hm."),
        ("Hm.</think>Hello.", "Hello.", "Hm."),
        ("<think></think>Hello.", "Hello.", None),
        ("<think>a</think>Hello. <think>b</think>Bye.", "Hello. Bye.", "a\n\nb"),
        ("Hello. <think>Hm", "Hello.", "Hm"),
        ("<think>a<think>b</think>c</think>Hello.", "Hello.", "c\n\na<think>b"),
    ],
)
def test_reasoning_is_taken_out_of_a_reply(text: str, said: str, thought: str | None) -> None:
    """Closed, left open, opened by the request; a reply without any stays as it is."""
    assert without_thinking(text) == (said, thought)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<thinking>", "</thinking>", "a", " ", "\n", "<"])))
def test_no_block_ever_stays(parts: list[str]) -> None:
    """However they are put together, no closed block is left."""
    said, _ = without_thinking("".join(parts))
    assert "</think>" not in said and "</thinking>" not in said


@pytest.mark.usefixtures("keyed")
@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("<think>Hm.</think>Hello.", None),
        ("Hello.", "Hm."),
        ("Hm.</thinking>Hello.", None),
        ("<thinking>Hm.</thinking>Hello.", None),
    ],
)
async def test_reasoning_reaches_the_ledger_and_not_the_dialogue(content: str, field: str | None) -> None:
    """Whether it stands in the text or apart from it."""
    with serving(lambda _body, _number: ended(content, "stop", None, reasoning_content=field)) as server:
        reply = await ask(request(server.url, "hosted_vllm/x"))
    assert (reply.text, reply.reasoning) == ("Hello.", "Hm.")


async def test_a_users_own_assistant_may_think_aloud_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever calls a model in a function of their own need not take its reasoning out."""
    (tmp_path / "loud_player.py").write_text("async def say(messages):\n    return '<think>Hm.</think>Hello.'\n")
    monkeypatch.syspath_prepend(tmp_path)
    reply = await ask(request(None, "python:loud_player:say"))
    assert (reply.text, reply.reasoning) == ("Hello.", "Hm.")
