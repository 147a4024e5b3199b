"""Fuzzed replies, server answers and releases: they are parsed, or refused with a message."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import dialoom
from dialoom.roles import Completion, ProviderError, TransientProviderError, Verdict, score_type
from dialoom.roles.gateway.completions import deserialize_reply, serialize_reply, split_reasoning
from dialoom.roles.gateway.litellm_backend import LiteLLMBackend
from dialoom.roles.gateway.retries import MAX_RETRY_AFTER_SECONDS
from dialoom.roles.replies import parse_reply
from tests.hostile.replies import play
from tests.invented import ALARM, BOTH, PROFILE, write_release
from tests.roles.gateway.asking import request
from tests.server import Answer, Response, completion, http_date, serving
from tests.virtual_time import SkippedPauses

EXAMPLES = 80

BRACKETS = ["{", "}", "[", "]", '"', "'", ":", ",", "\\", "\n", "\x00", "```json", "<think>", "</think>"]
KEYWORDS = ["score", "verdict", "explanation", "true", "3", "1e999", "NaN", "\\ud83d", "\ud83d"]
LONG = ["{" * 500, '{"a":' * 300, "9" * 5000]
PIECES = st.sampled_from([*BRACKETS, *KEYWORDS, *LONG])
TEXTS = st.text(st.characters(exclude_categories=()), max_size=40)  # with lone surrogates
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda each: st.lists(each) | st.dictionaries(TEXTS, each),
    max_leaves=8,
)
OBJECTS = st.fixed_dictionaries({}, optional={"score": VALUES, "verdict": VALUES, "explanation": VALUES}).map(
    json.dumps
)
REPLIES = st.lists(PIECES | TEXTS | OBJECTS, max_size=12).map("".join)


def check_reply(text: str) -> None:
    """Check that a reply can be stored, without its reasoning, and parsed as each type or refused."""
    stripped, _thoughts = split_reasoning(Completion(text).text)
    stripped.encode()
    for type_ in (score_type(1, 5), Verdict):
        try:
            reply = parse_reply(text, type_)
        except ValueError as error:
            assert str(error)
        else:
            reply.model_dump_json()
            if isinstance(reply, score_type(1, 5)):
                assert 1 <= reply.score <= 5


def check_figures(figure: object) -> None:
    """Check that any usage figures of a provider become valid or unknown."""
    kept = Completion("x", figure, figure, figure, figure)  # type: ignore[arg-type]
    for value in (kept.input_tokens, kept.output_tokens, kept.cached_tokens, kept.cost):
        assert value is None or 0 <= value < 2**53


@given(REPLIES)
@settings(max_examples=EXAMPLES)
def test_any_reply_is_of_its_type_or_refused(text: str) -> None:
    check_reply(text)


@given(VALUES)
@settings(max_examples=EXAMPLES)
def test_any_figure_is_known_or_not(figure: object) -> None:
    check_figures(figure)


MODELS = st.sampled_from(["openai/gpt-4o-mini", "hosted_vllm/m", "openrouter/openai/gpt-4o-mini"])
PATIENCE = 30.0
"""Seconds after which a reader still waiting for a complete answer counts as hung."""

HOSTILE_HENS = 1
"""The number of hens of the person, one of three, whose dialogue gets the hostile answer."""

STATUSES = st.sampled_from([200, 400, 401, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 529]) | st.integers(
    400, 599
)
HEADER_TEXTS = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=20)
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
CONTENTS = st.builds("{}; charset={}".format, TYPES, CHARSETS | HEADER_TEXTS) | TYPES | HEADER_TEXTS
ENCODINGS = st.sampled_from(["identity", "gzip", "deflate", "br", "zstd", "none"]) | HEADER_TEXTS
LIMITS = [f"x-ratelimit-{kind}-{unit}" for kind in ("limit", "remaining", "reset") for unit in ("requests", "tokens")]
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "Content-Type": CONTENTS,
        "Content-Encoding": ENCODINGS,
        "Retry-After": NUMBERS | DATES | HEADER_TEXTS,
        "retry-after-ms": NUMBERS | HEADER_TEXTS,
        "Date": DATES | HEADER_TEXTS,
        "Location": HEADER_TEXTS,
        **dict.fromkeys(LIMITS, NUMBERS | DATES | HEADER_TEXTS),
    },
)

ERRORS = st.fixed_dictionaries({}, optional=dict.fromkeys(("message", "type", "code", "param", "metadata"), VALUES))
FUNCTIONS = st.fixed_dictionaries({}, optional={"name": VALUES, "arguments": VALUES})
CALLS = st.fixed_dictionaries({}, optional={"id": VALUES, "type": VALUES, "function": FUNCTIONS | VALUES})
MESSAGE_FIELDS = {
    "content": VALUES,
    "reasoning_content": VALUES,
    "tool_calls": st.lists(CALLS | VALUES, max_size=2) | VALUES,
}
MESSAGES = st.fixed_dictionaries({}, optional=MESSAGE_FIELDS)
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
REGULAR = st.just(json.dumps(completion("Hello.")[1]).encode())
HOSTILE = st.builds(
    Response, status=STATUSES, headers=HEADERS, raw=BODIES | REGULAR, cut=st.none() | st.integers(0, 30)
)


TOOL = {"type": "function", "function": {"name": "count", "parameters": {"type": "object", "properties": {}}}}
MALFORMED_CALL = {
    "choices": [{"message": {"content": "Hm.", "tool_calls": [{"function": {"name": 3, "arguments": [1e400]}}]}}]
}


@dataclass
class Provider:
    """A provider whose hostile answer is set by the test.

    Attributes:
        hostile: The answer in the hostile dialogue.
    """

    url: str = ""
    hostile: Response = field(default_factory=Response)

    def answer(self, body: dict[str, Any], _number: int) -> Answer | Response:
        """Return the hostile answer, or a regular one in dialogues about other numbers of hens than `HOSTILE_HENS`."""
        hens = re.search(r"I keep (\d+) hens", json.dumps(body["messages"]))
        return completion("Hello.") if hens and int(hens[1]) != HOSTILE_HENS else self.hostile


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """Run a provider, with keys for it in the environment."""
    made = Provider()
    with pytest.MonkeyPatch.context() as patch, serving(made.answer) as server:
        for name in ("OPENAI_API_KEY", "HOSTED_VLLM_API_KEY", "OPENROUTER_API_KEY"):
            patch.setenv(name, "sk-test")
        patch.setattr("dialoom.roles.gateway.gateway.Pauses", lambda: SkippedPauses(lambda _passed: None))
        made.url = server.url
        yield made


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """Return an event loop for all requests: connections are reused, as in a run."""
    with asyncio.Runner() as made:
        yield made


def check_answer(provider: Provider, runner: asyncio.Runner, model: str, hostile: Response) -> None:
    """Check that an answer is read, or refused with a text that can be stored and a bounded wait."""
    provider.hostile = hostile
    asked = request(provider.url, model, tools=(TOOL,))
    try:
        kept = runner.run(asyncio.wait_for(LiteLLMBackend(2 * PATIENCE).complete(asked, "k"), PATIENCE))
    except ProviderError as error:
        assert model in str(error)
        str(error).encode()
        assert len(str(error)) < 2_000
        pause = error.retry_after if isinstance(error, TransientProviderError) else None
        assert pause is None or 0 <= pause <= MAX_RETRY_AFTER_SECONDS
    else:
        assert hostile.status == 200
        assert isinstance(kept, Completion)
        (kept.text + (kept.reasoning or "")).encode()
        replied = Completion(kept.text, tool_calls=kept.tool_calls, carried=kept.carried).with_ids("k")
        assert deserialize_reply(Completion(serialize_reply(replied))) == replied


@given(MODELS, HOSTILE)
@example("openai/gpt-4o-mini", Response(429, raw=b"{}", headers={"Retry-After": "1e9"}))
@example("openai/gpt-4o-mini", Response(200, raw=json.dumps(MALFORMED_CALL).encode()))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_answer_is_a_reply_or_a_provider_error(
    provider: Provider, runner: asyncio.Runner, model: str, hostile: Response
) -> None:
    check_answer(provider, runner, model, hostile)


async def user(messages: list[Any]) -> str:
    """Tell the number of hens, by which the server identifies the dialogue."""
    hens = re.search(r"keeps (\d+) hens", str(messages))
    assert hens is not None
    return f"I keep {hens[1]} hens."


def check_run(provider: Provider, folder: Path, hostile: Response) -> None:
    """Check that a hostile answer in one of three dialogues leaves the others done, and all readable."""
    provider.hostile = hostile
    player = dialoom.Model("openai/gpt-4o-mini", api_base=provider.url)
    with pytest.MonkeyPatch.context() as patch:  # the model's pauses use the real clock
        patch.setattr("dialoom.roles.gateway.retries.MAX_RETRY_AFTER_SECONDS", 0.01)
        run = play(Path(tempfile.mkdtemp(dir=folder)), user=user, assistant=player)
    status = run.status()
    assert (status.done, status.failed + status.pending) in ((2, 1), (3, 0))
    assert status.done == 2 or hostile.status == 200
    for number in (1, 2, 3):
        episode = run.episode(number)
        text = "" if episode is None else str(episode)
        text.encode()
        assert "Hello." in text or number == HOSTILE_HENS + 1


@given(HOSTILE)
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_answer_in_one_dialogue_leaves_the_others_unaffected(
    provider: Provider, tmp_path: Path, hostile: Response
) -> None:
    check_run(provider, tmp_path, hostile)


FEW = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
BYTES = st.binary(max_size=30)
PLACES = st.lists(st.integers(0, 30), min_size=1, max_size=4)
ENTRIES = VALUES | st.fixed_dictionaries({"profile": VALUES, "personality": VALUES})


def replace_at(whole: Any, path: list[int], value: Any) -> None:
    """Replace the value at the end of a path."""
    for number, step in enumerate(path):
        keys = list(whole) if isinstance(whole, dict) else range(len(whole))
        if not keys:
            return
        key = keys[step % len(keys)]
        if number == len(path) - 1 or not isinstance(whole[key], dict | list):
            whole[key] = value
            return
        whole = whole[key]


def check_planned(folder: Path, recipe: str, options: dict[str, Any]) -> None:
    """Check that options give a plan or a `DialoomError`, and that no file but the run's is created."""
    before = {path.name for path in folder.iterdir()}
    with suppress(dialoom.DialoomError):
        dialoom.plan(recipe, path=folder / "run.db", options=options)
    assert {path.name for path in folder.iterdir()} - before <= {"run.db", "run.db-wal", "run.db-shm"}


def emptied_folder(folder: Path) -> Path:
    """Return an empty folder."""
    shutil.rmtree(folder / "made", ignore_errors=True)
    (folder / "made").mkdir()
    return folder / "made"


def check_release(tmp_path: Path, path: list[int], value: Any) -> None:
    """Check a PersonaLens release of people and tasks in which one value is replaced."""
    folder = emptied_folder(tmp_path)
    content: dict[str, Any] = copy.deepcopy({"profile": PROFILE, "tasks": [ALARM, BOTH]})
    replace_at(content, path, value)
    with suppress(AttributeError, TypeError):  # for values that the writer of the release rejects
        write_release(folder / "release", content["profile"], content["tasks"])
    if (folder / "release").exists():
        check_planned(folder, "personalens", {"profiles": folder / "release"})


def check_lines(tmp_path: Path, entry: Any, tail: bytes) -> None:
    """Check ALOE's personas and pools with an arbitrary entry, followed by arbitrary bytes."""
    folder = emptied_folder(tmp_path)
    (folder / "people.jsonl").write_bytes(json.dumps(entry).encode() + b"\n" + tail)
    check_planned(folder, "aloe-eval", {"personas": folder / "people.jsonl"})
    with suppress(FileNotFoundError):
        (folder / "run.db").unlink()
    check_planned(folder, "persona-pool", {"seeds": folder / "people.jsonl"})


@given(PLACES, VALUES)
@FEW
def test_any_release_is_planned_or_refused(tmp_path: Path, path: list[int], value: Any) -> None:
    check_release(tmp_path, path, value)


@given(ENTRIES, BYTES)
@FEW
def test_any_lines_are_planned_or_refused(tmp_path: Path, entry: Any, tail: bytes) -> None:
    check_lines(tmp_path, entry, tail)
