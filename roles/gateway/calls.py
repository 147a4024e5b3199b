"""The data of a call: its place, request, completion and record, and the ledger's interface."""

from __future__ import annotations

import hashlib
import json
import math
import string
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition
from dialoom.prompts.messages import beyond_words, identity
from dialoom.roles.session import Session
from dialoom.settings import SessionForm, Structured
from dialoom.text import well_formed, well_formed_value

ASKS = 2
"""Maximum number of asks for a reply that parses: the second one shows the error."""

BROKEN_OFF: Mapping[str, str] = {
    "length": "cut off, as it was too long",
    "refusal": "refused",
    "content_filter": "filtered",
}
"""Reasons for which a reply is incomplete: the provider's term (as unified by LiteLLM) and ours."""

RunTool: TypeAlias = Callable[[FunctionCall], Awaitable[str]]
"""A function that runs a tool call and returns the tool's output, for players with a loop of their own."""


@runtime_checkable
class StatefulTools(Protocol):
    """Tools whose state is stored with the reply of a player with its own loop: a replayed reply runs none of them."""

    async def __call__(self, call: FunctionCall) -> str:
        """Run a call and return the tool's output."""
        ...

    def state(self) -> Any:
        """Return the state after the calls, as JSON values; `None` if there is none."""
        ...


_LETTERS = string.ascii_letters + string.digits
_USUAL_REPLY = 256
_MOST_TOKENS = 1_000_000_000
_MOST_DOLLARS = 1_000_000.0
"""Upper bounds of a call's tokens and cost: larger figures are a provider's error and must not break a run's sums."""


TOOL_CALL = "tool:"
"""Prefix of the model's name of a recorded tool call, and without the colon its role."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """A call of a tool that acts outside.

    Attributes:
        name: The tool's name.
        text: The call as text.
        is_repeatable: Whether a repeated call has no further effect.
        execute: Executes it, and returns the result.
    """

    name: str
    text: str
    is_repeatable: bool
    execute: Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class PlayerState:
    """The state of a stateful player after one of its replies.

    Attributes:
        player: Identifies the player within a scenario: a hash of role and model.
        mark: Identifies the conversation up to and including that reply, a hash; `None` if the state is that of the
            person's earlier conversation.
        content: The state, packed by the player's backend.
    """

    player: bytes
    mark: bytes | None
    content: bytes


@dataclass(frozen=True, slots=True)
class CallPlace:
    """The place of a call in a run.

    Attributes:
        scenario: The scenario's id (or another thread's).
        node: The graph's node.
        step: LangGraph's superstep.
        ordinal: The call's number within that node's execution, from 0.
        seed: The seed for sampling, derived from the run's seed and this place, so that equal places sample alike.
        ask: 1, or 2 for the second ask after an unparsable reply; from 3 on when a reply that parses was rejected by
            the recipe, again in pairs.
        sample: Number that distinguishes forks and deliberate re-samples.
        is_common: Whether the call belongs to no scenario: equal requests share one reply, and the seed is derived from
            the request.
        session: The player's session, before its turn is known; not part of the call's identity.
    """

    scenario: str
    node: str
    step: int
    ordinal: int
    seed: int
    ask: int = 1
    sample: int = 0
    is_common: bool = False
    session: Session | None = field(default=None, compare=False)

    def again(self) -> CallPlace:
        """Return the place of the second ask."""
        return replace(self, ask=self.ask + 1)


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a model.

    Attributes:
        reply_type: The type that the reply is parsed into, for models that support structured output; not part of the
            call's identity.
        api_base: The address at which the model is served, if not the provider's own; not part of the identity.
        temperature: Sampling temperature; `None` if none is sent.
        max_reply: Maximum number of tokens in the reply; `None` for no limit.
        params: Further sampling parameters by name.
        timeout: Seconds that an attempt may take, if set; not part of the identity.
        structured: How the reply is constrained to its type; part of the identity unless it is `auto`.
        tools: The tools that the model may call.
        run_tool: Runs tool calls for a player with a loop of its own; not part of the identity.
        inputs: The prompt's inputs, for the offline models; never sent, and not part of the identity.
        is_stateful: Whether the player keeps state between calls; like the rest, not part of the identity.
        conversation: The places in `messages` of the conversation's messages; all others are the prompt's own.
        session: The session that the player learns about.
        session_form: Where a request to a model names it; `None` for nowhere.
        earlier: The state of a stateful player after its last reply that is known.
        tool_run: The tool call that this stands for, if it is no request to a model.
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
    is_stateful: bool = False
    conversation: tuple[int, ...] = ()
    session: Session | None = None
    session_form: SessionForm | None = None
    earlier: PlayerState | None = None
    tool_run: ToolRun | None = None

    @property
    def shaping(self) -> list[Any]:
        """All that shapes the reply besides model, temperature and seed; empty by default."""
        sampled = [self.max_reply, dict(sorted(self.params.items()))] if self.max_reply or self.params else []
        shaped = sampled if self.structured == "auto" else [*sampled, self.structured]
        return [*shaped, {"tools": list(self.tools)}] if self.tools else shaped

    @property
    def letters(self) -> int:
        """The request's length in characters, including tools and tool calls."""
        rest = [*self.tools, *filter(None, map(beyond_words, self.messages))]
        words = sum(len(message["content"]) for message in self.messages)
        return words + sum(len(json.dumps(each, ensure_ascii=False)) for each in rest)

    @property
    def expected_tokens(self) -> int:
        """The estimated number of tokens: one per four characters, plus a reply of usual length."""
        return expected_tokens(self.letters)

    def key(self, place: CallPlace) -> str:
        """Return the call's identity (SHA-256): request and place; for a common call, the request alone."""
        at = [place.scenario, place.node, place.step, place.ordinal]
        content = [
            [*(["common", self.prompt_id] if place.is_common else at), place.ask, place.sample],
            [self.model, self.temperature, self.seed, *self.shaping],
            [identity(message) for message in self.messages],
        ]
        return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def expected_tokens(letters: int, requests: int = 1) -> int:
    """Return the estimated number of tokens of requests with this total length, each with a reply of usual length."""
    return letters // 4 + requests * _USUAL_REPLY


@dataclass(frozen=True, slots=True)
class Attempt:
    """One failed attempt at a call.

    Attributes:
        number: The attempt's number, from 1.
        latency: Seconds until it failed.
        error: The error message.
        retry_after: Seconds that the provider asked to wait.
    """

    number: int
    latency: float
    error: str
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply: its texts are well formed, and implausible figures are replaced by `None`.

    Attributes:
        text: The reply.
        input_tokens: Tokens of the request, including cached ones; `None` if the provider does not report them.
        output_tokens: Tokens of the reply.
        cached_tokens: Tokens of the request that were read from a prompt cache.
        cost: US dollars; `None` if the price is unknown.
        finish_reason: The provider's reason for the end of the reply.
        reasoning: The model's visible reasoning before the reply; stored in the ledger, not shown to other roles.
        tool_calls: The tool calls besides the text.
        outputs: The tools' outputs, one per call, where a player has run them in a loop of its own.
        carried: Provider data that must be sent back with the calls; or, with `outputs`, the state of the tools'
            environment after them.
        state: The state of a stateful player after this reply.
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
    state: PlayerState | None = None

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
        """Return the completion with deterministic tool call ids: some providers accept no ids of another provider's.

        Args:
            key: The identity of the model call, from which the ids are derived.
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
        """The finish reason if the reply is incomplete, else `None`."""
        return self.finish_reason if self.finish_reason in BROKEN_OFF else None


def _call_id(key: str, number: int) -> str:
    """Return an id of nine letters and digits, the only form that Mistral accepts."""
    number = int.from_bytes(hashlib.sha256(f"{key} {number}".encode()).digest()[:8], "big")
    return "".join(_LETTERS[number // len(_LETTERS) ** place % len(_LETTERS)] for place in range(9))


def is_count(value: object) -> bool:
    """Return whether a value is a plausible token count."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_TOKENS


def _is_cost(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and 0 <= value <= _MOST_DOLLARS


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The result of a call: a reply or an error, never both.

    Attributes:
        attempts: Number of attempts.
        latency: Seconds, including pauses between attempts.
    """

    completion: Completion | None
    error: str | None
    attempts: int
    latency: float


class Caller(Protocol):
    """An object that calls models."""

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """Return the model's reply.

        Raises:
            ProviderError: If the model cannot be reached or refuses the request.
        """
        ...


class Ledger(Protocol):
    """The store of calls: each is logged before it is sent, and its reply is durable before the gateway returns it."""

    async def begin(self, key: str, place: CallPlace, request: Request) -> Completion | int:
        """Record that a call is about to be sent; return its id once that is durable.

        If an earlier call with this identity got a reply, that reply is returned and nothing is sent.
        """
        ...

    async def find(self, key: str, place: CallPlace) -> Completion | None:
        """Return the reply to an earlier call with this identity, counted as a replay; nothing is begun."""
        ...

    async def player_state(self, place: CallPlace, player: bytes, marks: Sequence[bytes]) -> PlayerState | None:
        """Return the state of a player after the last of the marks for which one is recorded.

        If there is none, it is the last state in the person's earlier conversation, if the scenario has such a
        predecessor; else `None`.
        """
        ...

    async def is_open(self, key: str, place: CallPlace) -> bool:
        """Return whether a call with this identity was begun and has no reply: nobody knows what became of it."""
        ...

    async def failed(self, id_: int, attempt: Attempt) -> None:
        """Record a failed attempt at a call in flight."""
        ...

    async def record(self, id_: int, record: CallRecord) -> None:
        """Record a call's result; return once that is durable."""
        ...
