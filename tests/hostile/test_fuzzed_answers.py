"""Whatever a provider's server sends is a reply or an error of ours, and costs nobody else's dialogue."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dialoom
from dialoom.roles import Completion, ProviderError, TransientProviderError
from dialoom.roles.gateway.completions import kept_text, read_reply
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend
from dialoom.roles.gateway.retries import LONGEST
from tests.hostile.replies import play
from tests.hostile.test_fuzzed_replies import PIECES, TEXTS, VALUES
from tests.roles.gateway.asking import request
from tests.server import Answer, Response, completion, http_date, serving
from tests.virtual_time import SkippedPauses

MODELS = st.sampled_from(["openai/gpt-4o-mini", "hosted_vllm/m", "openrouter/openai/gpt-4o-mini"])
PATIENCE = 30.0
"""Seconds after which an answer that was sent to its end, and is still waited for, has hung its reader."""

ILL_TREATED = 1
"""The number of hens that one of three people keeps; the provider knows them by it."""

STATUSES = st.sampled_from([200, 400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529]) | st.integers(
    400, 599
)
SAID = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=20)
NUMBERS = st.floats().map(str) | st.integers().map(str) | st.sampled_from(["9" * 5000, "1e400", "-1", "0x10", "\xb2"])
DATES = st.builds(http_date, st.integers(-(10**9), 10**10)) | st.sampled_from(
    [
        "Mon, 01 Jan 0001 00:00:00 +2359",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Thu, 32 Foo 2026 25:61:61 GMT",
        "1 Jan 1 -9999",
    ]
)
TYPES = st.sampled_from(
    ["application/json", "text/html", "text/event-stream", "image/png", "multipart/form-data", "", ";", "/"]
)
CHARSETS = st.sampled_from(["utf-8", "utf-16", "hex", "rot13", "zlib", "idna", "undefined", "punycode", "x", "\x00"])
CONTENTS = st.builds("{}; charset={}".format, TYPES, CHARSETS | SAID) | TYPES | SAID
ENCODINGS = st.sampled_from(["identity", "gzip", "deflate", "br", "zstd", "none"]) | SAID
LIMITS = [f"x-ratelimit-{kind}-{unit}" for kind in ("limit", "remaining", "reset") for unit in ("requests", "tokens")]
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Content-Type": CONTENTS,
        "Content-Encoding": ENCODINGS,
        "Retry-After": NUMBERS | DATES | SAID,
        "retry-after-ms": NUMBERS | SAID,
        "Date": DATES | SAID,
        "Location": SAID,
        **dict.fromkeys(LIMITS, NUMBERS | DATES | SAID),
    },
)

ERRORS = st.fixed_dictionaries({}, optional=dict.fromkeys(("message", "type", "code", "param", "metadata"), VALUES))
FUNCTIONS = st.fixed_dictionaries({}, optional={"name": VALUES, "arguments": VALUES})
CALLS = st.fixed_dictionaries({}, optional={"id": VALUES, "type": VALUES, "function": FUNCTIONS | VALUES})
SPOKEN = {"content": VALUES, "reasoning_content": VALUES, "tool_calls": st.lists(CALLS | VALUES, max_size=2) | VALUES}
MESSAGES = st.fixed_dictionaries({}, optional=SPOKEN)
CHOICES = st.fixed_dictionaries({}, optional={"index": VALUES, "finish_reason": VALUES, "message": MESSAGES | VALUES})
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "error": ERRORS | VALUES,
        "detail": VALUES,
        "id": VALUES,
        "model": VALUES,
        "choices": st.lists(CHOICES | VALUES, max_size=2) | VALUES,
        "usage": VALUES,
    },
)
HUGE = st.builds(bytes.__mul__, st.sampled_from([b"<p>", b"[", b'{"a":', b"\xff", b"\x00", b"9"]), st.just(200_000))
BODIES = (
    ANSWERS.map(lambda body: json.dumps(body).encode())
    | VALUES.map(lambda body: json.dumps(body).encode())
    | st.binary(max_size=60)
    | st.lists(PIECES | TEXTS, max_size=6).map(lambda parts: "".join(parts).encode(errors="surrogatepass"))
    | HUGE
)
PROPER = st.just(json.dumps(completion("Hello.")[1]).encode())
HOSTILE = st.builds(Response, status=STATUSES, headers=HEADERS, raw=BODIES | PROPER, cut=st.none() | st.integers(0, 30))


TOOL = {"type": "function", "function": {"name": "count", "parameters": {"type": "object", "properties": {}}}}
CALLED = {"choices": [{"message": {"content": "Hm.", "tool_calls": [{"function": {"name": 3, "arguments": [1e400]}}]}}]}


@dataclass
class Provider:
    """A server whose bad answer is set from without.

    Attributes:
        hostile: What it answers whoever is to be treated badly.
    """

    url: str = ""
    hostile: Response = field(default_factory=Response)

    def answer(self, body: dict[str, Any], _number: int) -> Answer | Response:
        """The hostile answer; a proper one to those who keep another number of hens than `ILL_TREATED`."""
        hens = re.search(r"I keep (\d+) hens", json.dumps(body["messages"]))
        return completion("Hello.") if hens and int(hens[1]) != ILL_TREATED else self.hostile


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """One, with a key for it."""
    made = Provider()
    with pytest.MonkeyPatch.context() as patch, serving(made.answer) as server:
        for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY", "OPENROUTER_API_KEY"):
            patch.setenv(name, "sk-test")
        patch.setattr("dialoom.roles.gateway.gateway.Pauses", lambda: SkippedPauses(lambda _passed: None))
        made.url = server.url
        yield made


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """An event loop for all requests: connections are kept, as in a run."""
    with asyncio.Runner() as made:
        yield made


def check_answer(provider: Provider, runner: asyncio.Runner, model: str, hostile: Response) -> None:
    """One answer, as the gateway gets it: read, or refused with a text that can be kept and a wait that has an end."""
    provider.hostile = hostile
    asked = request(provider.url, model, tools=(TOOL,))
    try:
        kept = runner.run(asyncio.wait_for(LiteLLMBackend(2 * PATIENCE).complete(asked, "k"), PATIENCE))
    except ProviderError as error:
        assert model in str(error)
        str(error).encode()
        assert len(str(error)) < 2_000
        pause = error.retry_after if isinstance(error, TransientProviderError) else None
        assert pause is None or 0 <= pause <= LONGEST
    else:
        assert hostile.status == 200
        assert isinstance(kept, Completion)
        (kept.text + (kept.reasoning or "")).encode()
        replied = Completion(kept.text, tool_calls=kept.tool_calls, carried=kept.carried).with_ids("k")
        assert read_reply(Completion(kept_text(replied))) == replied


@given(MODELS, HOSTILE)
@example("openai/gpt-4o-mini", Response(429, raw=b"{}", headers={"Retry-After": "1e9"}))
@example("openai/gpt-4o-mini", Response(200, raw=json.dumps(CALLED).encode()))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_answer_is_a_reply_or_an_error_of_ours(
    provider: Provider, runner: asyncio.Runner, model: str, hostile: Response
) -> None:
    """Nothing else comes of it."""
    check_answer(provider, runner, model, hostile)


async def user(messages: list[Any]) -> str:
    """Says how many hens it keeps, so that the server can tell whose dialogue it is."""
    hens = re.search(r"keeps (\d+) hens", str(messages))
    assert hens is not None
    return f"I keep {hens[1]} hens."


def check_run(provider: Provider, folder: Path, hostile: Response) -> None:
    """A run in which one of three dialogues gets nothing but that answer: the others are had, and can be read."""
    provider.hostile = hostile
    player = dialoom.Model("openai/gpt-4o-mini", api_base=provider.url)
    with pytest.MonkeyPatch.context() as patch:  # pauses of the whole model go by the real clock
        patch.setattr("dialoom.roles.gateway.retries.LONGEST", 0.01)
        run = play(Path(tempfile.mkdtemp(dir=folder)), user=user, assistant=player)
    status = run.status()
    assert (status.done, status.failed + status.pending) in ((2, 1), (3, 0))
    assert status.done == 2 or hostile.status == 200
    for number in (1, 2, 3):
        episode = run.episode(number)
        said = "" if episode is None else str(episode)
        said.encode()
        assert "Hello." in said or number == ILL_TREATED + 1


@given(HOSTILE)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_answer_to_one_dialogue_leaves_the_others_alone(
    provider: Provider, tmp_path: Path, hostile: Response
) -> None:
    """They are done; it is done, has failed with a text, or was given up when the provider was away for too long."""
    check_run(provider, tmp_path, hostile)
