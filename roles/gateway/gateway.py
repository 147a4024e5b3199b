"""The gateway for every model call of every role."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from dialoom.inputs import Record
from dialoom.roles.binding import EMBEDDING_PREFIX, OBJECT_PREFIX, OFFLINE_PREFIX, ModelBinding, is_provider_model
from dialoom.roles.errors import (
    BindingError,
    BudgetError,
    ContextError,
    DrainedError,
    NotRecordedError,
    PermanentProviderError,
    ProviderError,
)
from dialoom.roles.players import is_restorable, load_player
from dialoom.roles.restoring import STATEFUL_OFFLINE_MODEL
from dialoom.settings import DEFAULT_CONCURRENCY, Budget, PlayerObject, Price

from .availability import Availability, CallInFlight, ProviderEvent
from .budget import Account, Coordinator, Endpoint, Spend, sum_tokens
from .cache import ReplyStore
from .calls import CallPlace, CallRecord, Completion, Ledger, Request, ToolExecution
from .limits import AdaptiveLimit, LimitState, Pauses
from .litellm_backend import (
    TIMEOUT_SECONDS,
    EmbeddingBackend,
    LiteLLMBackend,
    check_offline_model,
    check_provider,
    check_support,
    predict_changes,
)
from .model_facts import Prices, check_window, provider_of
from .players import create_player_backend
from .retries import MAX_ATTEMPTS, Attempts, Backend
from .sampling import describe_changes
from .stateful import StatefulModel, compute_marks, player_key
from .tracing import Tracing
from .wire import RejectedForms

Value = TypeVar("Value")

__all__ = ["MAX_ATTEMPTS", "CallLimits", "Gateway", "GatewaySettings", "check_model", "check_parameters"]


class CallLimits(Record):
    """Budget, prices and limits of a run's calls, which its file stores. They never change a reply.

    Attributes:
        budget: The whole run's budget.
        prices: Prices of tokens by model; they override LiteLLM's.
        rpm: Requests per minute by model; the empty name stands for all other models.
        tpm: Tokens per minute by model; the empty name stands for all other models.
        timeouts: Seconds that an attempt may take, by role; the empty name stands for all other roles.
        context: Context windows by model, as stated by the user: tokens of request and reply together.
    """

    budget: Budget = Budget()
    prices: Mapping[str, Price] = {}
    rpm: Mapping[str, int] = {}
    tpm: Mapping[str, int] = {}
    timeouts: Mapping[str, float] = {}
    context: Mapping[str, int] = {}

    @property
    def stated_prices(self) -> Prices:
        """Prices as stated by the user, with LiteLLM's prices for all other models."""
        return Prices(self.prices)


class GatewaySettings(CallLimits):
    """The limits of a run's calls, and the settings of one process's gateway, which are not stored.

    Fields with the name of a setting in `ProcessSettings` have its value.

    Attributes:
        concurrency: Maximum number of calls in flight for each model.
        max_backoff: Longest backoff between attempts, in seconds.
        replay_only: Whether calls are forbidden, so that every reply must be in the ledger or the cache.
        patience: Seconds that calls wait for an unavailable provider; with 0, they fail instead.
        strict_params: Whether a call is refused if its parameters would not be sent as configured.
    """

    concurrency: int = DEFAULT_CONCURRENCY
    max_backoff: float = 30.0
    replay_only: bool = False
    patience: float = 0.0
    strict_params: bool = False


class Gateway:
    """A gateway for model calls. It replays the calls in the ledger, and makes all others within budget and limits.

    Args:
        ledger: The store of calls.
        settings: The limits on the calls, including the budget, and the settings of this process.
        spent: The consumption of the run's earlier sessions.
        cache: Replies shared between runs; it is read before a request is sent, and the new reply is added to it.
        tracing: Receives every call that was sent.
        objects: Players that were given as objects, by the names of their models.
        shapes: The forms of structured output that the models have rejected; the gateway adds new findings.
        coordinator: State shared with the gateways of other processes, if there are any.
    """

    def __init__(
        self,
        ledger: Ledger,
        settings: GatewaySettings | None = None,
        spent: Spend | None = None,
        cache: ReplyStore | None = None,
        tracing: Tracing | None = None,
        objects: Mapping[str, PlayerObject] | None = None,
        shapes: RejectedForms | None = None,
        coordinator: Coordinator | None = None,
    ) -> None:
        self._ledger = ledger
        self._settings = settings or GatewaySettings()
        self._cache = cache
        self._tracing = tracing
        self._objects = objects or {}
        self._shapes = shapes or RejectedForms()
        self._coordinator = coordinator
        budget = self._settings.budget
        self._account = coordinator.account(budget) if coordinator else Account(budget, spent or Spend())
        self._backends: dict[tuple[str, bool], Backend] = {}
        self._import_lock = asyncio.Lock()
        self._limits: dict[tuple[str, str | None], AdaptiveLimit] = {}
        self._availabilities: dict[str, Availability] = {}
        self._pauses = Pauses()
        self._pending: dict[str, asyncio.Future[None]] = {}
        self._permanent_failures: dict[str, PermanentProviderError] = {}
        self._listener: Callable[[ProviderEvent], None] = lambda _event: None
        self._in_flight: dict[str, CallInFlight] = {}
        if coordinator is not None:
            coordinator.listen(self._apply_overload)

    @property
    def in_flight(self) -> Sequence[CallInFlight]:
        """The calls in flight, oldest first."""
        return tuple(self._in_flight.values())  # in insertion order

    @property
    def limit_states(self) -> dict[str, LimitState]:
        """The state of the limit of each model that was called."""
        return {model: limit.state for (model, _), limit in self._limits.items()}

    def drain(self) -> None:
        """End every pause. Attempts in flight are completed; calls that would have to wait are cancelled."""
        self._pauses.drain()

    def listen(self, listener: Callable[[ProviderEvent], None]) -> None:
        """Register a listener for the availability of providers.

        It is called when a provider becomes unavailable or available, and when it has been unavailable for longer than
        the patience. In the last case, the listener should drain the gateway; otherwise the waiting calls fail.
        """
        self._listener = listener

    def prepare(self, models: Iterable[ModelBinding]) -> None:
        """Load the backends of the models before the first call.

        Raises:
            BindingError: If a model's module, file or name is unknown.
        """
        for binding in models:
            self._get_backend(binding.model, binding.stateful)

    def can_restore(self, model: str) -> bool:
        """Return whether a stateful player's state can be restored; `True` for an object that was not given again."""
        is_missing = model.startswith(OBJECT_PREFIX) and model not in self._objects
        return is_missing or is_restorable(model, self._objects)

    def player(self, model: str) -> Backend:
        """Return a stateful player; import it if it is not loaded yet.

        Raises:
            BindingError: If its module, file or name is unknown.
        """
        return self._get_backend(model, is_stateful=True)

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        """Return the reply to a request that is made at a place in a run.

        Raises:
            ContextError: If the request exceeds the model's context window.
            ProviderError: If the model failed permanently, or transiently in each of `MAX_ATTEMPTS` attempts.
            BudgetError: If the budget does not allow the call.
            DrainedError: If the run is stopping and the call would have to wait before it is sent.
            NotRecordedError: If the call must be replayed and is not recorded.
            CacheError: If the cache file cannot be used.
        """
        key = request.call_key(place)
        if request.tool_execution is not None:
            return await self._run_tool(request.tool_execution, key, request, place)
        try:
            if place.is_common:
                return await self._complete_common(key, request, place)
            return await self._complete(key, request, place)
        except DrainedError:
            # Otherwise LangGraph would cancel concurrent calls, which are paid for.
            await self._account.wait_until_idle()
            raise

    async def _run_tool(self, run: ToolExecution, key: str, request: Request, place: CallPlace) -> Completion:
        """Return the recorded result of a tool call, or execute the call.

        A call that was interrupted is executed again only if a repetition has no additional effect. A tool call needs
        no slot in a limit and no budget, is attempted once, and is not shared between runs.
        """
        if self._settings.replay_only:
            return await self._replay(key, request, place)
        is_open = not run.is_repeatable and await self._ledger.is_open(key, place)
        if is_open and await self._ledger.find(key, place) is None:
            raise PermanentProviderError(
                f"the tool call {run.text} was started before an interruption, and its result is unknown; its server "
                "does not mark the tool as read-only or idempotent, so the call is not repeated; play the scenario "
                "again"
            )
        begun = await self._ledger.begin(key, place, request)
        if isinstance(begun, Completion):
            return begun
        started, seconds = time.monotonic(), _look_up(request.role, self._settings.timeouts) or TIMEOUT_SECONDS
        outcome: Completion | ProviderError
        try:
            async with asyncio.timeout(seconds) as bound:
                outcome = Completion(await run.execute(), input_tokens=0, output_tokens=0, cached_tokens=0, cost=0.0)
        except ProviderError as error:
            outcome = error
        except TimeoutError:
            if not bound.expired():
                raise
            outcome = PermanentProviderError(f"the tool call {run.text} has no result after {seconds:g} s (timeout)")
        return await self._record(begun, outcome, 1, time.monotonic() - started)

    async def _record(self, id_: int, outcome: Completion | ProviderError, attempts: int, latency: float) -> Completion:
        """Record the result of a call; return the completion or raise the error."""
        if isinstance(outcome, Completion):
            await self._ledger.record(id_, CallRecord(outcome, None, attempts, latency))
            return outcome
        await self._ledger.record(
            id_, CallRecord(None, str(outcome), attempts, latency, outcome.changes, outcome.billed)
        )
        raise outcome

    async def _complete_common(self, key: str, request: Request, place: CallPlace) -> Completion:
        """Make a common call: all its callers share its reply or its failure.

        A permanent failure is raised again for later callers.
        """
        if (recorded := await self._ledger.find(key, place)) is not None:
            return recorded
        if (earlier_failure := self._permanent_failures.get(key)) is not None:
            raise earlier_failure
        while (pending := self._pending.get(key)) is not None:
            await asyncio.wait([pending])
            if pending.cancelled():
                continue
            if (error := pending.exception()) is not None:
                raise error
            return await self._complete(key, request, place)  # replayed from the ledger, which records the use
        pending = self._pending[key] = asyncio.get_running_loop().create_future()
        try:
            completion = await self._complete_once(key, request, place)
        except asyncio.CancelledError:
            pending.cancel()
            raise
        except BaseException as failure:
            if isinstance(failure, PermanentProviderError):
                self._permanent_failures[key] = failure
            pending.set_exception(failure)
            pending.exception()  # mark the exception as retrieved: there may be no waiting caller
            raise
        finally:
            del self._pending[key]
            if not pending.done():
                pending.set_result(None)
        return completion

    async def _complete_once(self, key: str, request: Request, place: CallPlace) -> Completion:
        """Make a common call once for this process, or return the reply if another process has made the call."""
        coordinator = self._coordinator
        if coordinator is None or await coordinator.has_reply(key):
            return await self._complete(key, request, place)
        try:
            completion = await self._complete(key, request, place)
        except BaseException as error:
            await asyncio.shield(coordinator.announce_failure(key, error if isinstance(error, ProviderError) else None))
            raise
        await coordinator.announce_reply(key)
        return completion

    async def _complete(self, key: str, request: Request, place: CallPlace) -> Completion:
        """Return the reply to a call: from the cache or the ledger, else from the model, within the budget."""
        if (
            self._cache is not None
            and not request.is_stateful
            and (cached := await self._cache.find(request, place)) is not None
        ):
            return await self._record_cached(cached, key, request, place)
        if self._settings.replay_only:
            return await self._replay(key, request, place)
        backend_key = request.model, request.is_stateful
        if (backend := self._backends.get(backend_key)) is None:  # first, as it loads LiteLLM's table of windows
            async with self._import_lock:  # in a thread, because imports would block the event loop
                backend = await asyncio.to_thread(self._get_backend, *backend_key)
        expected = self._estimate_spend(request)
        try:
            check_window(request, self._settings.context)
            self._account.reserve(expected)
        except (ContextError, BudgetError) as refusal:
            if (recorded := await self._ledger.find(key, place)) is not None:
                return recorded
            if isinstance(refusal, ContextError):
                raise
            await self._account.claim(expected)
        spent = Spend()
        try:
            completion, spent = await self._call(backend, request, place, key)
        except ProviderError as error:
            if error.billed is not None:
                spent = replace(self._compute_spend(error.billed, request), calls=0)
            raise
        finally:
            self._in_flight.pop(key, None)
            self._account.settle(expected, spent)
        return completion

    async def _call(self, backend: Backend, request: Request, place: CallPlace, key: str) -> tuple[Completion, Spend]:
        """Send a request until it is answered or fails for good, and record the result.

        The call is recorded as begun when its first attempt has a slot, unless the ledger has a reply by then.

        Returns:
            The reply and its consumption; no consumption if the reply was replayed.
        """
        request = replace(request, timeout=_look_up(request.role, self._settings.timeouts))
        limit, availability = self._get_limit(request), self._get_availability(request)
        if availability.is_unavailable and (known := await self._ledger.find(key, place)) is not None:
            return known, Spend()
        if request.is_stateful:
            earlier = await self._ledger.player_state(place, player_key(request), list(compute_marks(request)))
            request = replace(request, player_state=earlier)
        attempts = Attempts(limit, availability, self._settings.max_backoff, self._pauses)
        begun: Completion | int | None = None
        started = time.monotonic()
        prices = self._settings.stated_prices
        outcome: Completion | ProviderError
        try:
            async for attempt in attempts:
                with attempt:
                    async with availability.turn(limit, request.expected_tokens) as turn:
                        if begun is None:
                            begun = await self._ledger.begin(key, place, request)
                            started = time.monotonic()
                        if isinstance(begun, Completion):
                            limit.release(turn.slot)
                            return begun, Spend()
                        self._in_flight.setdefault(key, CallInFlight(request.role, request.model))
                        failed = functools.partial(self._ledger.record_failed_attempt, begun)
                        outcome = await attempts.make(turn, backend.complete(request, key), failed)
        except ProviderError as failure:
            outcome = failure
        except DrainedError:
            if (error := attempts.last_error) is not None:  # it was waiting for another attempt
                assert isinstance(begun, int)
                error.billed = error.billed and prices.apply_to(error.billed, request.model)
                with suppress(ProviderError):
                    await self._record(begun, error, attempts.count, time.monotonic() - started)
            raise
        assert isinstance(begun, int)
        latency = time.monotonic() - started
        if isinstance(outcome, Completion):
            outcome = prices.apply_to(outcome.add_usage(attempts.billed), request.model).with_ids(key)
        elif outcome.billed is not None:
            outcome.billed = prices.apply_to(outcome.billed, request.model)
        try:
            completion = await self._record(begun, outcome, attempts.count, latency)
        finally:
            if self._tracing is not None:
                self._tracing.record_call(request, place, outcome, attempts.count, latency)
        if self._cache is not None and not request.is_stateful:
            await self._cache.store(request, place, completion)
        return completion, self._compute_spend(completion, request)

    async def _record_cached(self, cached: Completion, key: str, request: Request, place: CallPlace) -> Completion:
        """Record a cached reply as a call of this run without attempts, tokens or cost.

        The call needs no slot and no budget. If the ledger already has a reply, return that reply.
        """
        begun = await self._ledger.begin(key, place, request)
        if isinstance(begun, Completion):
            return begun
        free = replace(cached, input_tokens=0, output_tokens=0, cached_tokens=0, cost=0.0).with_ids(key)
        return await self._record(begun, free, 0, 0.0)

    async def _replay(self, key: str, request: Request, place: CallPlace) -> Completion:
        recorded = await self._ledger.find(key, place)
        if recorded is None:
            raise NotRecordedError(
                f"the call of {request.role} at node {place.node!r}, step {place.step} of {place.scenario} is not "
                "recorded, but this run may only replay recorded replies"
            )
        return recorded

    def _estimate_spend(self, request: Request) -> Spend:
        if not self._settings.budget.is_bounded:
            return Spend(1)
        tokens = request.expected_tokens
        return Spend(1, tokens, self._settings.stated_prices.estimate_cost(request.model, tokens) or 0.0)

    def _compute_spend(self, completion: Completion, request: Request) -> Spend:
        """Return the calls, tokens and cost of a reply, with estimates in place of figures that were not reported."""
        expected = self._estimate_spend(request)
        tokens, cost = sum_tokens(completion), completion.cost
        if cost is None and tokens is not None and self._settings.budget.is_bounded:
            cost = self._settings.stated_prices.estimate_cost(request.model, tokens)
        return Spend(1, expected.tokens if tokens is None else tokens, expected.cost if cost is None else cost)

    def _get_limit(self, request: Request) -> AdaptiveLimit:
        endpoint = (request.model, request.api_base)
        if (limit := self._limits.get(endpoint)) is None:
            limit = self._limits[endpoint] = self._create_limit(endpoint)
        return limit

    def _create_limit(self, endpoint: Endpoint) -> AdaptiveLimit:
        rpm, tpm = _look_up(endpoint[0], self._settings.rpm), _look_up(endpoint[0], self._settings.tpm)
        concurrency, coordinator = self._settings.concurrency, self._coordinator
        if coordinator is None:
            return AdaptiveLimit(concurrency, rpm, tpm, pauses=self._pauses)
        requests, tokens = (
            None if units is None else coordinator.rate(endpoint, kind, units, self._pauses)
            for kind, units in (("requests", rpm), ("tokens", tpm))
        )

        def announce_overload(sent_at: float, retry_after: float | None) -> None:
            coordinator.announce_overload(endpoint, time.monotonic() - sent_at, retry_after)

        return AdaptiveLimit(concurrency, pauses=self._pauses, rates=(requests, tokens), on_overload=announce_overload)

    def _apply_overload(self, endpoint: Endpoint, age: float, retry_after: float | None) -> None:
        if (limit := self._limits.get(endpoint)) is not None:
            limit.apply_overload(time.monotonic() - age, retry_after)

    def _get_availability(self, request: Request) -> Availability:
        provider = provider_of(request.model)
        name = provider if request.api_base is None else f"{provider} at {request.api_base}"
        if (availability := self._availabilities.get(name)) is None:
            availability = self._availabilities[name] = Availability(
                name, self._settings.patience, self._pauses, lambda event: self._listener(event)
            )
        return availability

    def _get_backend(self, model: str, is_stateful: bool) -> Backend:
        """Return a model's backend; an object with several names has a single backend."""
        key = model, is_stateful
        if key not in self._backends:
            first = next((name for name, each in self._objects.items() if each is self._objects.get(model)), model)
            if (first, is_stateful) not in self._backends:
                self._backends[first, is_stateful] = self._create_backend(first, is_stateful)
            self._backends[key] = self._backends[first, is_stateful]
        return self._backends[key]

    def _create_backend(self, model: str, is_stateful: bool) -> Backend:
        if model.startswith(OBJECT_PREFIX):
            if model not in self._objects:
                raise BindingError(
                    f"{model!r} was passed as an object and is not stored in the run: pass it again", setting="models"
                )
            return create_player_backend(model.removeprefix(OBJECT_PREFIX), self._objects[model], is_stateful)
        if (player := load_player(model, is_stateful)) is not None:
            return create_player_backend(model, player, is_stateful)
        if model.startswith(EMBEDDING_PREFIX):
            return EmbeddingBackend(model.removeprefix(EMBEDDING_PREFIX))
        backend = LiteLLMBackend(shapes=self._shapes, is_strict=self._settings.strict_params)
        return StatefulModel(backend) if is_stateful else backend


def _look_up(name: str, values: Mapping[str, Value]) -> Value | None:
    """Return the value for a role or model; the empty name stands for all others."""
    return values.get(name, values.get(""))


def check_model(model: str, is_stateful: bool = False) -> None:
    """Check that a model can be called, before anything is written.

    Args:
        model: Its name.
        is_stateful: Whether it is declared as keeping state between calls.

    Raises:
        BindingError: If its provider, module, file or name is unknown. (A key may still be missing.)
    """
    if is_stateful and model.startswith((OFFLINE_PREFIX, EMBEDDING_PREFIX)):
        raise BindingError(STATEFUL_OFFLINE_MODEL.format(model=model), setting="stateful")
    if model.startswith(OBJECT_PREFIX) or load_player(model, is_stateful) is not None:
        return  # objects are checked when they are given
    if model.startswith(EMBEDDING_PREFIX):
        EmbeddingBackend(model.removeprefix(EMBEDDING_PREFIX))
    elif model.startswith(OFFLINE_PREFIX):
        check_offline_model(model)
    else:
        check_provider(model)


def describe_changed_parameters(models: Mapping[str, ModelBinding], *, with_seed: bool = True) -> dict[str, str]:
    """Describe, by role, how requests will differ from the configuration, with or without the seed, which dialoom sets.

    Tools and reply types are not considered, because they depend on the request.
    """
    changes_by_role = {role: predict_changes(each) for role, each in models.items() if is_provider_model(each.model)}
    texts = {role: describe_changes(changes, with_seed=with_seed) for role, changes in changes_by_role.items()}
    return {role: text for role, text in texts.items() if text is not None}


def ensure_unchanged(models: Mapping[str, ModelBinding]) -> None:
    """Refuse parameters that would not be sent as configured.

    Raises:
        BindingError: If there are such parameters; the message lists all of them.
    """
    if found := describe_changed_parameters(models, with_seed=False):
        lines = [f"{role} ({models[role].model}): {text}" for role, text in found.items()]
        raise BindingError(
            f"strict_params: {'; '.join(lines)}; change the configuration to what is sent", setting="strict_params"
        )


def check_parameters(models: Mapping[str, ModelBinding]) -> None:
    """Check that the parameters of the roles' models are passed on to them.

    Raises:
        BindingError: If LiteLLM would drop a parameter for a model.
    """
    for role, binding in models.items():
        if binding.params and is_provider_model(binding.model):
            check_support(role, binding.model, binding.params)
