"""The gateway for every model call of every role."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from pydantic import BaseModel, ConfigDict, Field

from dialoom.roles.binding import OBJECT, OFFLINE, ModelBinding
from dialoom.roles.errors import (
    BindingError,
    BudgetError,
    ContextError,
    DrainedError,
    NotRecordedError,
    PermanentProviderError,
    ProviderError,
)
from dialoom.roles.players import GRAPH, PYTHON, named_player
from dialoom.settings import Budget, OwnPlayer, Price

from .availability import Availability, CallInFlight, ProviderEvent
from .budget import Account, Spend, tokens_spent
from .cache import Replies
from .calls import CallPlace, CallRecord, Completion, Ledger, Request, ToolRun
from .embedding import embedding_backend
from .limits import AdaptiveLimit, LimitState
from .litellm_backend import LiteLLMBackend, check_offline, check_support, ensure_known
from .pauses import Pauses
from .players import player_backend
from .prices import Prices
from .provider_keys import provider_of
from .retries import MAX_ATTEMPTS, Attempts, Backend
from .sharing import Place, Sharing
from .stateful import StatefulModel, marks, player_key
from .structure import Shapes
from .tracing import Tracing
from .windows import Windows

__all__ = ["MAX_ATTEMPTS", "Gateway", "Limits", "check_model", "check_parameters"]


class Limits(BaseModel):
    """Limits on a run's calls; none of them changes the replies. Those of one process are in no stored form.

    Attributes:
        budget: The whole run's budget.
        prices: Prices of tokens where LiteLLM has none, by model.
        rpm: Requests per minute by model; under the empty name, for every model.
        tpm: Tokens per minute, likewise.
        timeouts: Seconds that an attempt may take, by role; under the empty name, for every role.
        context: Context windows in tokens, request and reply together, by model, where the user states them.
        concurrency: Maximum number of calls in flight for each model.
        longest_wait: Longest backoff between attempts, in seconds.
        replay_only: Make no call at all: the ledger and the cache must hold every reply.
        patience: Seconds that calls wait for a provider that is away; 0 to let them fail.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    budget: Budget = Budget()
    prices: Mapping[str, Price] = {}
    rpm: Mapping[str, int] = {}
    tpm: Mapping[str, int] = {}
    timeouts: Mapping[str, float] = {}
    context: Mapping[str, int] = {}
    concurrency: int = Field(16, exclude=True)
    longest_wait: float = Field(30.0, exclude=True)
    replay_only: bool = Field(False, exclude=True)
    patience: float = Field(0.0, exclude=True)

    @property
    def stated_prices(self) -> Prices:
        """The prices with LiteLLM's behind them."""
        return Prices(self.prices)


class Gateway:
    """A gateway that replays calls held by the ledger, and otherwise makes them within budget and limits, with retries.

    Args:
        ledger: The store of calls.
        limits: Limits on the calls.
        spent: The consumption of the run's earlier sessions.
        cache: Replies shared between runs; read before a request is sent, and updated with its reply.
        tracing: Notified of every call that was sent.
        objects: Functions and graphs that were given as objects, by the names of their models.
        shapes: What is known of the models' support for structured output; the gateway adds to it.
        sharing: State shared with the gateways of other processes, if there are any.
    """

    def __init__(
        self,
        ledger: Ledger,
        limits: Limits | None = None,
        spent: Spend | None = None,
        cache: Replies | None = None,
        tracing: Tracing | None = None,
        objects: Mapping[str, OwnPlayer] | None = None,
        shapes: Shapes | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self._ledger = ledger
        self._limits = limits or Limits()
        self._cache = cache
        self._tracing = tracing
        self._objects = objects or {}
        self._shapes = shapes or Shapes()
        self._sharing = sharing
        budget = self._limits.budget
        self._account = sharing.account(budget) if sharing else Account(budget, spent or Spend())
        self._backends: dict[tuple[str, bool], Backend] = {}
        self._importing = asyncio.Lock()
        self._adaptive: dict[tuple[str, str | None], AdaptiveLimit] = {}
        self._availabilities: dict[tuple[str, str | None], Availability] = {}
        self._pauses = Pauses()
        self._windows = Windows(self._limits.context)
        self._asked: dict[str, asyncio.Future[None]] = {}
        self._refused: dict[str, PermanentProviderError] = {}
        self._listener: Callable[[ProviderEvent], None] = lambda _tidings: None
        self._in_flight: dict[str, CallInFlight] = {}
        if sharing is not None:
            sharing.listen(self._hear_overload)

    @property
    def in_flight(self) -> Sequence[CallInFlight]:
        """The calls in flight, oldest first."""
        return tuple(self._in_flight.values())  # in insertion order

    @property
    def states(self) -> dict[str, LimitState]:
        """The state of each called model's limit."""
        return {model: limit.state for (model, _), limit in self._adaptive.items()}

    def drain(self) -> None:
        """End every pause: attempts in flight are completed, calls that would have to wait are given up."""
        self._pauses.drain()

    def listen(self, listener: Callable[[ProviderEvent], None]) -> None:
        """Register a listener for a provider's going away, its return, and the end of the patience with it.

        In the last case the listener should drain the gateway; otherwise the calls fail.
        """
        self._listener = listener

    def prepare(self, models: Iterable[ModelBinding]) -> None:
        """Load the backends of the models before the first call.

        Raises:
            BindingError: If a model's module, file or name is unknown.
        """
        for binding in models:
            self._backend(binding.model, binding.stateful)

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """Return the reply to a request made at a place.

        Raises:
            ContextError: If the request exceeds the model's context window.
            ProviderError: If the model failed permanently, or transiently in each of `MAX_ATTEMPTS` attempts.
            BudgetError: If the budget does not allow the call.
            DrainedError: If the run is stopping and the call would have to wait before it is sent.
            NotRecordedError: If the call must be replayed and is not recorded.
            CacheError: If the cache file cannot be used.
        """
        key = request.key(place)
        if request.tool_run is not None:
            return await self._run_tool(request.tool_run, key, request, place)
        try:
            if place.is_common:
                return await self._common(key, request, place)
            return await self._complete(key, request, place)
        except DrainedError:
            await self._account.idle()  # LangGraph would cancel concurrent calls, which are paid for
            raise

    async def _run_tool(self, run: ToolRun, key: str, request: Request, place: CallPlace) -> Completion:
        """Return the recorded result of a tool call, or execute it: never twice, unless a repetition has no effect.

        It is no request to a model: it takes no slot and no budget, has no second attempt, and is never shared.
        """
        if self._limits.replay_only:
            return await self._replayed(key, request, place)
        if (known := await self._ledger.find(key, place)) is not None:
            return known
        if not run.is_repeatable and await self._ledger.is_open(key, place):
            raise PermanentProviderError(
                f"the tool call {run.text} was begun before an interruption, and its result is unknown; its server "
                "does not mark the tool as read-only or idempotent, so the call is not repeated: play the scenario anew"
            )
        begun = await self._ledger.begin(key, place, request)
        if isinstance(begun, Completion):
            return begun
        started = time.monotonic()
        try:
            completion = Completion(await run.execute(), input_tokens=0, output_tokens=0, cached_tokens=0, cost=0.0)
        except ProviderError as failure:
            await self._ledger.record(begun, CallRecord(None, str(failure), 1, time.monotonic() - started))
            raise
        await self._ledger.record(begun, CallRecord(completion, None, 1, time.monotonic() - started))
        return completion

    async def _common(self, key: str, request: Request, place: CallPlace) -> Completion:
        """Make a call whose reply and failure are shared by all callers; a permanent failure is remembered."""
        if (known := await self._ledger.find(key, place)) is not None:
            return known
        if (refused := self._refused.get(key)) is not None:
            raise refused
        while (asked := self._asked.get(key)) is not None:
            await asyncio.wait([asked])
            if asked.cancelled():
                continue
            if (error := asked.exception()) is not None:
                raise error
            return await self._complete(key, request, place)  # the ledger has the reply now, and records its use
        asked = self._asked[key] = asyncio.get_running_loop().create_future()
        try:
            completion = await self._made_once(key, request, place)
        except asyncio.CancelledError:
            asked.cancel()
            raise
        except BaseException as failure:
            if isinstance(failure, PermanentProviderError):
                self._refused[key] = failure
            asked.set_exception(failure)
            asked.exception()  # mark the exception as retrieved: there may be no waiting caller
            raise
        finally:
            del self._asked[key]
            if not asked.done():
                asked.set_result(None)
        return completion

    async def _made_once(self, key: str, request: Request, place: CallPlace) -> Completion:
        """Make a common call that no other caller in this process is making; another process may be."""
        sharing = self._sharing
        if sharing is None or await sharing.is_made(key):
            return await self._complete(key, request, place)
        try:
            completion = await self._complete(key, request, place)
        except BaseException as error:
            await asyncio.shield(sharing.failed(key, error if isinstance(error, ProviderError) else None))
            raise
        await sharing.made(key)
        return completion

    async def _complete(self, key: str, request: Request, place: CallPlace) -> Completion:
        """Return a call's reply: from the cache or the ledger, or within the budget from the model."""
        if (
            self._cache is not None
            and not request.is_stateful
            and (shared := await self._cache.find(request, place)) is not None
        ):
            return await self._booked(shared, key, request, place)
        if self._limits.replay_only:
            return await self._replayed(key, request, place)
        backend = await self._backend_for_call(request)  # its table of models is needed for the window
        expected = self._expected(request)
        try:
            self._windows.check(request)
            self._account.reserve(expected)
        except (ContextError, BudgetError) as refusal:
            if (known := await self._ledger.find(key, place)) is not None:
                return known
            if isinstance(refusal, ContextError):
                raise
            await self._account.claim(expected)
        taken = Spend()
        try:
            completion, taken = await self._call(backend, request, place, key)
        finally:
            self._in_flight.pop(key, None)
            self._account.settle(expected, taken)
        return completion

    async def _call(self, backend: Backend, request: Request, place: CallPlace, key: str) -> tuple[Completion, Spend]:
        """Send a request until it is answered, and record what became of it.

        It is recorded as begun when its first attempt has a slot, unless the ledger holds a reply by then.

        Returns:
            The reply and its consumption, which is zero if it was replayed.
        """
        if timeouts := self._limits.timeouts:
            request = replace(request, timeout=timeouts.get(request.role, timeouts.get("")))
        limit, availability = self._limit(request), self._availability(request)
        if availability.is_away and (known := await self._ledger.find(key, place)) is not None:
            return known, Spend()
        if request.is_stateful:
            earlier = await self._ledger.player_state(place, player_key(request), marks(request))
            request = replace(request, earlier=earlier)
        attempts = Attempts(limit, availability, self._limits.longest_wait, self._pauses)
        begun: Completion | int | None = None
        started = time.monotonic()
        outcome: Completion | ProviderError
        try:
            async for attempt in attempts.loop():
                with attempt:
                    async with availability.turn(limit, request.expected_tokens) as turn:
                        if begun is None:
                            begun = await self._ledger.begin(key, place, request)
                            started = time.monotonic()
                        if isinstance(begun, Completion):
                            limit.unsent(turn.slot)
                            return begun, Spend()
                        self._in_flight.setdefault(key, CallInFlight(request.role, request.model))
                        failed = functools.partial(self._ledger.failed, begun)
                        outcome = await attempts.make(turn, backend.complete(request, key), failed)
        except ProviderError as failure:
            outcome = failure
        except DrainedError:
            if isinstance(begun, int):
                latency = time.monotonic() - started
                await self._ledger.record(begun, CallRecord(None, str(attempts.last_error), attempts.made, latency))
            raise
        assert isinstance(begun, int)
        latency = time.monotonic() - started
        if isinstance(outcome, Completion):
            outcome = self._limits.stated_prices.applied(outcome, request.model).with_ids(key)
            record = CallRecord(outcome, None, attempts.made, latency)
        else:
            record = CallRecord(None, str(outcome), attempts.made, latency)
        await self._ledger.record(begun, record)
        if self._tracing is not None:
            self._tracing.called(request, place, outcome, attempts.made, latency)
        if isinstance(outcome, ProviderError):
            raise outcome
        if self._cache is not None and not request.is_stateful:
            await self._cache.keep(request, place, outcome)
        return outcome, self._taken(outcome, request)

    async def _booked(self, shared: Completion, key: str, request: Request, place: CallPlace) -> Completion:
        """Record a cached reply as a call of this run with no attempt, tokens or cost.

        It needs no slot and no budget. If the ledger already holds a reply, that one is returned.
        """
        begun = await self._ledger.begin(key, place, request)
        if isinstance(begun, Completion):
            return begun
        free = replace(shared, input_tokens=0, output_tokens=0, cached_tokens=0, cost=0.0).with_ids(key)
        await self._ledger.record(begun, CallRecord(free, None, 0, 0.0))
        return free

    async def _replayed(self, key: str, request: Request, place: CallPlace) -> Completion:
        known = await self._ledger.find(key, place)
        if known is None:
            raise NotRecordedError(
                f"the call of {request.role} at node {place.node!r}, step {place.step} of {place.scenario} is not "
                "recorded, and this run may only replay"
            )
        return known

    def _expected(self, request: Request) -> Spend:
        if not self._limits.budget.is_bounded:
            return Spend(1)
        tokens = request.expected_tokens
        return Spend(1, tokens, self._limits.stated_prices.expected(request.model, tokens) or 0.0)

    def _taken(self, completion: Completion, request: Request) -> Spend:
        """Return a reply's consumption; figures that are not reported are replaced by the estimates."""
        expected = self._expected(request)
        tokens, cost = tokens_spent(completion), completion.cost
        return Spend(1, expected.tokens if tokens is None else tokens, expected.cost if cost is None else cost)

    def _limit(self, request: Request) -> AdaptiveLimit:
        place = (request.model, request.api_base)
        if place not in self._adaptive:
            self._adaptive[place] = self._new_limit(place)
        return self._adaptive[place]

    def _new_limit(self, place: Place) -> AdaptiveLimit:
        rpm, tpm = (rates.get(place[0], rates.get("")) for rates in (self._limits.rpm, self._limits.tpm))
        most, sharing = self._limits.concurrency, self._sharing
        if sharing is None:
            return AdaptiveLimit(most, rpm, tpm, pauses=self._pauses)
        requests, tokens = (
            None if units is None else sharing.rate(place, kind, units, self._pauses)
            for kind, units in (("requests", rpm), ("tokens", tpm))
        )

        def tell(sent_at: float, retry_after: float | None) -> None:
            sharing.overloaded(place, time.monotonic() - sent_at, retry_after)

        return AdaptiveLimit(most, pauses=self._pauses, rates=(requests, tokens), on_overload=tell)

    def _hear_overload(self, place: Place, age: float, retry_after: float | None) -> None:
        if (limit := self._adaptive.get(place)) is not None:
            limit.hear_overload(time.monotonic() - age, retry_after)

    def _availability(self, request: Request) -> Availability:
        provider = provider_of(request.model)
        place = (provider, request.api_base)
        if place not in self._availabilities:
            name = provider if request.api_base is None else f"{provider} at {request.api_base}"
            self._availabilities[place] = Availability(
                name, self._limits.patience, self._pauses, lambda tidings: self._listener(tidings)
            )
        return self._availabilities[place]

    async def _backend_for_call(self, request: Request) -> Backend:
        """Return the model's backend, loaded in a thread because imports would block the event loop."""
        key = request.model, request.is_stateful
        if key not in self._backends:
            async with self._importing:
                await asyncio.to_thread(self._backend, *key)
        return self._backends[key]

    def _backend(self, model: str, is_stateful: bool = False) -> Backend:
        key = model, is_stateful
        if key not in self._backends:
            self._backends[key] = _backend_for(model, self._objects, self._shapes, is_stateful)
        return self._backends[key]


def check_model(model: str, is_stateful: bool = False) -> None:
    """Check that a model can be called, before anything is written.

    Args:
        model: Its name.
        is_stateful: Whether it is declared to keep state between calls.

    Raises:
        BindingError: If its provider, module, file or name is unknown. (A key may still be missing.)
    """
    if is_stateful and model.startswith((OFFLINE, _EMBEDDING)):
        raise BindingError(f"stateful: {model} keeps no state between calls", setting="stateful")
    if model.startswith(OBJECT) or named_player(model, is_stateful) is not None:
        return  # an object was checked when it was given
    if model.startswith(_EMBEDDING):
        embedding_backend(model.removeprefix(_EMBEDDING))
    elif model.startswith(OFFLINE):
        check_offline(model)
    else:
        ensure_known(model)


def check_parameters(models: Mapping[str, ModelBinding]) -> None:
    """Check that the parameters of the roles' models are passed on to them.

    Raises:
        BindingError: If LiteLLM would drop a parameter for a model.
    """
    for role, binding in models.items():
        if binding.params and not binding.model.startswith((OBJECT, OFFLINE, PYTHON, GRAPH, _EMBEDDING)):
            check_support(role, binding.model, binding.params)


def _backend_for(model: str, objects: Mapping[str, OwnPlayer], shapes: Shapes, is_stateful: bool) -> Backend:
    if model.startswith(OBJECT):
        if model not in objects:
            raise BindingError(f"{model!r} was given as an object and is in no file: give it again", setting="models")
        return player_backend(model.removeprefix(OBJECT), objects[model], is_stateful)
    if (player := named_player(model, is_stateful)) is not None:
        return player_backend(model, player, is_stateful)
    if model.startswith(_EMBEDDING):
        return embedding_backend(model.removeprefix(_EMBEDDING))
    backend = LiteLLMBackend(shapes=shapes)
    return StatefulModel(backend) if is_stateful else backend


_EMBEDDING = "embed:"
