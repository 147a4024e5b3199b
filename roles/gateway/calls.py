"""What a call is: where it is made, what is asked, what came back, and the ledger's side of the bargain."""

from __future__ import annotations

import hashlib
import json
import math
import string
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias

from pydantic import BaseModel

from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition
from dialoom.prompts.messages import beyond_words, identity
from dialoom.roles.binding import Structured
from dialoom.text import well_formed, well_formed_value

ASKS = 2
"""How many asks there may be before a reply can be read: the second one shows the error."""

BROKEN_OFF: Mapping[str, str] = {
    "length": "cut off, as it was too long",
    "refusal": "refused",
    "content_filter": "filtered",
}
"""Reasons for which a reply ends before all is said, in the provider's words (as LiteLLM unifies them) and in ours."""

RunTool: TypeAlias = Callable[[FunctionCall], Awaitable[str]]
"""What runs a call of a tool, and gives what the tool says, for players that go on by themselves."""

_LETTERS = string.ascii_letters + string.digits
_USUAL_REPLY = 256
_MOST_TOKENS = 1_000_000_000
_MOST_DOLLARS = 1_000_000.0
"""No call takes as much; a provider that says so is wrong, and the sums over a run must not break on it."""


@dataclass(frozen=True, slots=True)
class CallPlace:
    """Where in a run a call is made.

    Attributes:
        scenario: The scenario's id (or another thread's).
        node: The graph's node.
        step: LangGraph's superstep.
        ordinal: The call's number within that node's execution, from 0.
        seed: For the model's sampling: from the run's seed and this place, so equal places draw alike.
        ask: 1, or 2 when an unparsable reply is asked for again; from 3 on when a reply that could be read was not
            wanted as it was, each time in pairs like these.
        sample: Set apart by forks and deliberate re-samples.
        is_common: Whether the call belongs to no scenario: whoever asks the same shares one reply, and the seed follows
            from what is asked.
    """

    scenario: str
    node: str
    step: int
    ordinal: int
    seed: int
    ask: int = 1
    sample: int = 0
    is_common: bool = False

    def again(self) -> CallPlace:
        """The place of the second ask."""
        return replace(self, ask=self.ask + 1)


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a model, and for whom.

    Attributes:
        reply_type: What the reply must become, for models that can be held to a shape; no part of the call's identity.
        api_base: Where the model is served, if not at its provider's own address; no part of it either.
        temperature: Sampling temperature; `None` if none is sent.
        max_reply: The most tokens of the reply; `None` for no limit.
        params: Further parameters of sampling by name.
        timeout: Seconds that an attempt may take, if that is said; no part of it either.
        structured: How the model is held to the reply's type; part of the identity where it was chosen.
        tools: The tools that the model may call.
        run_tool: Runs calls for a player with a loop of its own; no part of the identity.
        inputs: What the prompt was rendered with, for the offline models; never sent, and no part of the identity.
    """

    role: str
    prompt_id: str
    prompt_hash: str
    model: str
    temperature: float | None
    seed: int
    messages: tuple[ChatMessage, ...]
    reply_type: type[BaseModel] | None = None
    api_base: str | None = None
    max_reply: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    timeout: float | None = None
    structured: Structured = "auto"
    tools: tuple[ToolDefinition, ...] = ()
    run_tool: RunTool | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def shaping(self) -> list[Any]:
        """What shapes the reply besides model, temperature and seed; empty if nothing does."""
        sampled = [self.max_reply, dict(sorted(self.params.items()))] if self.max_reply or self.params else []
        shaped = sampled if self.structured == "auto" else [*sampled, self.structured]
        return [*shaped, {"tools": list(self.tools)}] if self.tools else shaped

    @property
    def letters(self) -> int:
        """How long it is, tools and calls included."""
        rest = [*self.tools, *filter(None, map(beyond_words, self.messages))]
        words = sum(len(message["content"]) for message in self.messages)
        return words + sum(len(json.dumps(each, ensure_ascii=False)) for each in rest)

    @property
    def expected_tokens(self) -> int:
        """Roughly how many tokens the request will take: one for four letters, and a reply of usual length."""
        return expected_tokens(self.letters)

    def key(self, place: CallPlace) -> str:
        """The call's identity (SHA-256): equal only for the same request at the same place; a common call has none."""
        at = [place.scenario, place.node, place.step, place.ordinal]
        content = [
            [*(["common", self.prompt_id] if place.is_common else at), place.ask, place.sample],
            [self.model, self.temperature, self.seed, *self.shaping],
            [identity(message) for message in self.messages],
        ]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def expected_tokens(letters: int, requests: int = 1) -> int:
    """Roughly how many tokens requests of so many letters in all will take, each with a reply of usual length."""
    return letters // 4 + requests * _USUAL_REPLY


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt at a call.

    Attributes:
        number: From 1.
        latency: Seconds until it had failed.
        error: How.
        retry_after: Seconds that the provider asked to wait.
    """

    number: int
    latency: float
    error: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back, from whomever: its texts are well formed, and a figure that cannot be true is unknown.

    Attributes:
        text: The reply.
        input_tokens: Tokens of the request, cached ones included; `None` if the provider does not say.
        output_tokens: Tokens of the reply.
        cached_tokens: Those of the request that were read from a cache.
        cost: US dollars; `None` if the price is unknown.
        finish_reason: The provider's word for why it ended.
        reasoning: What the model thought aloud before its reply; kept in the ledger, shown to nobody.
        tool_calls: The tools that it calls, besides its words.
        outputs: What these tools have said, call by call, where a player's own loop has run them.
        carried: What the provider wants back with the calls.
    """

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    tool_calls: tuple[FunctionCall, ...] = ()
    outputs: tuple[str, ...] = ()
    carried: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("text", "finish_reason", "reasoning"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, well_formed(text))
        if self.tool_calls:
            object.__setattr__(self, "tool_calls", tuple(well_formed_value(list(self.tool_calls))))
            object.__setattr__(self, "outputs", tuple(map(well_formed, self.outputs)))
            object.__setattr__(self, "carried", well_formed_value(self.carried))
        for name in ("input_tokens", "output_tokens", "cached_tokens"):
            if not is_count(getattr(self, name)):
                object.__setattr__(self, name, None)
        if not _is_cost(self.cost):
            object.__setattr__(self, "cost", None)

    def with_ids(self, key: str) -> Completion:
        """The same, its calls with ids of our own: providers' are random, and some take back no other's.

        Args:
            key: The identity of the call of the model, from which those of its calls follow.
        """
        if not self.tool_calls:
            return self
        calls = tuple(
            FunctionCall(id=_call_id(key, number), name=call["name"], arguments=call["arguments"])
            for number, call in enumerate(self.tool_calls)
        )
        return replace(self, tool_calls=calls)

    @property
    def broken_off(self) -> str | None:
        """The provider's word for why it ended, if that is not that all was said."""
        return self.finish_reason if self.finish_reason in BROKEN_OFF else None


def _call_id(key: str, number: int) -> str:
    """Nine letters and digits: Mistral takes no other ids."""
    number = int.from_bytes(hashlib.sha256(f"{key} {number}".encode()).digest()[:8], "big")
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(9))


def is_count(value: object) -> bool:
    """Whether a call can have taken so many tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS


def _is_cost(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value <= _MOST_DOLLARS


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What came of a call: a reply or an error, never both.

    Attributes:
        attempts: How often the request was sent.
        latency: Seconds, waiting between attempts included.
    """

    completion: Completion | None
    error: str | None
    attempts: int
    latency: float


class Caller(Protocol):
    """The way to a model."""

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """What the model replies.

        Raises:
            ProviderError: If it cannot be had.
        """
        ...


class Ledger(Protocol):
    """Where calls are kept: written ahead, and a reply is durable before the gateway hands it on."""

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:
        """Write down that a call is about to be sent; returns its id once that is durable.

        If an earlier call of this identity got a reply, nothing is to be sent, and that reply is returned instead.
        """
        ...

    async def find(self, key: str, place: CallPlace) -> Completion | None:
        """The reply that an earlier call of this identity got, counted as a replay; nothing is begun."""
        ...

    async def failed(self, id_: int, attempt: Attempt) -> None:
        """Write down a failed attempt at a call that is under way."""
        ...

    async def record(self, id_: int, record: CallRecord) -> None:
        """Write down what came of it; returns once that is durable."""
        ...
