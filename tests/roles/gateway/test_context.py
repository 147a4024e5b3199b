"""A request that is longer than its model reads: as servers word it, never sent again, with both lengths."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialoom
from dialoom.roles import ContextError
from tests.ledgers import MemoryLedger
from tests.roles.gateway.asking import ask, request
from tests.server import Answer, completion, error, serving, too_long

pytestmark = pytest.mark.usefixtures("keyed")

WORDED: dict[str, tuple[Answer, str]] = {
    "OpenAI": (too_long(), "9,000 tokens; it reads 8,192"),
    "vLLM": (
        error(
            400,
            "This model's maximum context length is 2048 tokens. However, you requested 2531 tokens (2275 in the "
            "messages, 256 in the completion). Please reduce the length of the messages or completion.",
        ),
        "2,531 tokens; it reads 2,048",
    ),
    "llama.cpp": (
        error(
            400,
            "the request (5210 tokens) exceeds the available context size (4096 tokens), try increasing it",
            kind="exceed_context_size_error",
        ),
        "5,210 tokens; it reads 4,096",
    ),
    "llama-cpp-python, with a status for its own troubles": (
        error(500, "Requested tokens (2600) exceed context window of 2048"),
        "2,600 tokens; it reads 2,048",
    ),
    "Anthropic": (error(400, "prompt is too long: 210000 tokens > 200000 maximum"), "210,000 tokens; it reads 200,000"),
    "without a figure": (error(413, "too much"), "(about 6 tokens)"),
}


@pytest.mark.parametrize("server", WORDED)
async def test_a_request_that_is_too_long_fails_at_once(server: str) -> None:
    """One request, one attempt, and both lengths as far as the server tells them."""
    ledger = MemoryLedger()
    refusal, lengths = WORDED[server]
    with serving(lambda _body, _number: refusal) as reached:
        with pytest.raises(ContextError, match="longer than the model reads") as caught:
            await ask(request(reached.url), ledger)
        assert len(reached.requests) == 1
    assert lengths in str(caught.value)
    assert ledger.records[0].attempts == 1


async def test_trouble_that_only_speaks_of_a_context_is_tried_again() -> None:
    """A status 500 that names no length that was exceeded may pass."""
    trouble = error(500, "could not build the context for this request")
    with serving(lambda _body, number: trouble if number == 1 else completion("heron")) as reached:
        assert (await ask(request(reached.url))).text == "heron"


def test_the_scenario_fails_by_a_fault_of_its_own_kind(tmp_path: Path) -> None:
    """`context`: a longer window mends it, and no attempt is made without. The other scenarios are played."""
    failed: list[dialoom.ScenarioFailed] = []

    def hear(event: dialoom.Event) -> None:
        if isinstance(event, dialoom.ScenarioFailed):
            failed.append(event)

    with serving(lambda _body, number: too_long() if number == 1 else completion("That is done.")) as reached:
        run = dialoom.play(
            "personalens",
            path=tmp_path / "run.db",
            models={"assistant": dialoom.Model("openai/small", api_base=reached.url)},
            options={"limit": 2, "judge": False},
            concurrency=1,
            on_event=hear,
        )
        sent = len(reached.requests)
        assert dialoom.retry(run.path).status().failed == 1
        assert len(reached.requests) == sent
        assert dialoom.retry(run.path, context={"openai/small": 9000}).status().failed == 0
    assert [str(event.fault) for event in failed] == ["context"]
    assert run.ended is not None and (run.ended.done, run.ended.failed) == (1, 1)
