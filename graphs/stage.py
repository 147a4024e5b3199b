"""The context that a node gets in addition to the state: the scenario, the roles to ask, and private random streams."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Protocol, cast

from typing_extensions import TypeVar

from dialoom.prompts import ChatMessage, FunctionCall, ToolDefinition
from dialoom.prompts.messages import format_call, message_identity
from dialoom.roles import MAX_ASKS, AgentReply, CallPlace, Cast, Completion, UnparsedReplyError
from dialoom.roles.gateway.calls import WRITTEN_BY_PERSON, RunTool, ToolExecution
from dialoom.roles.players import Session

from .environment import RemoteTool, parse_arguments
from .outcome import USER, DialogueFault, Line, Outcome
from .scenario import Scenario

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import Runtime


def stream(seed: int, scenario_id: str, purpose: str) -> random.Random:
    """Return a separate random stream for a purpose. The global stream is not used because LangGraph draws from it."""
    return random.Random(_hash_to_int(seed, scenario_id, purpose))


def _hash_to_int(*parts: object) -> int:
    return int.from_bytes(hashlib.sha256("\x1f".join(str(part) for part in parts).encode()).digest()[:8], "big")


class LineGate(Protocol):
    """The part of the gate that a node uses to check a line before adding it."""

    def find_line_faults(self, scenario: Any, history: Sequence[Line], line: Line) -> Sequence[DialogueFault]:
        """Return the faults of a line that follows the given history."""


class RequestGroup:
    """The concurrent requests of one graph run, made by one or several nodes."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = asyncio.Event()

    @asynccontextmanager
    async def track(self) -> AsyncIterator[None]:
        """Count a request while it is in flight. If it fails, raise the error once no other request is in flight.

        An error ends the graph run and would cancel concurrent requests. Such requests have been sent, and perhaps paid
        for, but would be missing from the ledger, or be added to it only after the scenario's results were handed over.
        """
        self._count += 1
        is_counted = True
        try:
            yield
        except Exception:
            self._end()
            is_counted = False
            while self._count:
                self._idle.clear()
                await self._idle.wait()
            raise
        finally:
            if is_counted:
                self._end()

    def _end(self) -> None:
        self._count -= 1
        if not self._count:
            self._idle.set()


@dataclass(frozen=True, slots=True)
class Stage:
    """The context of one graph run.

    Attributes:
        thread: The thread id of the checkpoints: the scenario's id, or another id when the scenario is judged again.
        seed: The run's seed.
        sample: The sample's number. It is 0, except on a fork or in a deliberate re-sample, so that these get new
            replies instead of those in the ledger.
        step: The superstep, if it differs from LangGraph's count. That count also grows when the state is edited, which
            would change the places of all later calls.
        tell: A function that passes nodes' messages to the run's observer.
        gate: The gate that checks lines before they are added; `None` if lines are not checked.
        retries: Maximum number of new requests for a line in which the gate finds a fault.
        judged: The finished outcome that is judged; `None` while a scenario is played.
        requests: The requests that are under way.
        session: The conversation that a call belongs to, for players that keep a memory of their own; otherwise `None`.
        is_fork: Whether the graph runs on a branch of the step debugger rather than for the scenario itself.
        is_resampled: Whether new replies are requested on that branch, also those that scenarios share.
    """

    scenario: Scenario
    cast: Cast
    thread: str
    seed: int
    sample: int = 0
    step: int | None = None
    tell: Callable[[str], None] = field(default=lambda _text: None)
    gate: LineGate | None = None
    retries: int = 0
    judged: Outcome | None = None
    requests: RequestGroup = field(default_factory=RequestGroup)
    session: Session | None = None
    is_fork: bool = False
    is_resampled: bool = False


class StageFactory(Protocol):
    """A context that creates the stage on demand, such as a context received over a network as plain values."""

    async def stage(self, step: int) -> Stage:
        """Return the stage of a node at a superstep, as LangGraph counts them."""


_FIRST_REMOTE_ORDINAL = 1000
"""The number from which calls of remote tools are numbered in a node; requests to roles have lower numbers."""


ScenarioT = TypeVar("ScenarioT", bound=Scenario, default=Any)


class Scene(Generic[ScenarioT]):
    """One execution of a node. It calls roles, and numbers its calls so that each call has its own place.

    A node can state the type of its scenarios, as in `scene: Scene[MyScenario]`.

    Attributes:
        scenario: The scenario.
        finish_reason: The reason why the last reply was cut off (`length`, `refusal`, `content_filter`), or `None`.
    """

    def __init__(self, stage: Stage, node: str, step: int) -> None:
        self.scenario: ScenarioT = cast(Any, stage.scenario)
        self._stage = stage
        self._node = node
        self._step = step
        self._ordinals = itertools.count()
        self.finish_reason: str | None = None
        self._is_written_by_person = False  # whether a person wrote the last reply

    @property
    def judged(self) -> Outcome | None:
        """The finished outcome to judge; `None` while a scenario is played."""
        return self._stage.judged

    @property
    def is_fork(self) -> bool:
        """Return whether the step is played on a branch other than `main`."""
        return self._stage.is_fork

    def inputs_of(self, prompt_id: str) -> Sequence[str]:
        """Return the names of the inputs that a prompt declares."""
        return self._stage.cast[prompt_id].prompt.front.inputs

    async def ask(self, prompt_id: str, **inputs: Any) -> Any:
        """Return the reply of a prompt's role: text, or an instance of the prompt's reply type.

        Raises:
            PromptError: If the prompt cannot be rendered.
            RoleError: If the reply cannot be obtained or parsed.
        """
        async with self._stage.requests.track():
            return await self._stage.cast[prompt_id](inputs, at=self)

    async def ask_role(self, role: str, prompt_id: str, **inputs: Any) -> Any:
        """Return a reply as `ask` does, but from a role other than the prompt's own.

        If several models play the same part, each has its own role.

        The name of each further role is the first role's name with a number appended, e.g. `answerer-2`. All of them
        have the understudy of the first role.

        Raises:
            PromptError, RoleError: In the same cases as `ask`.
        """
        async with self._stage.requests.track():
            return await self._stage.cast.recast(role, prompt_id)(inputs, at=self)

    async def act(
        self,
        prompt_id: str,
        tools: Sequence[ToolDefinition],
        run_tool: RunTool | None = None,
        /,
        **inputs: Any,
    ) -> AgentReply:
        """Return the reply of a role that may call tools: its text and calls. The role is asked only once.

        Args:
            prompt_id: The prompt.
            tools: The tools, as OpenAI functions.
            run_tool: A function that runs a call and returns its result. Only a player with its own loop (a graph) uses
                it; its reply then holds the `outputs`. For all other players, the node runs the calls.
            **inputs: The prompt's inputs; its `history` may hold calls and tool results (see `utterances`).

        Raises:
            PromptError: If the prompt cannot be rendered.
            ProviderError: If the reply cannot be obtained.
        """
        async with self._stage.requests.track():
            return await self._stage.cast[prompt_id].act(inputs, tools, self, run_tool)

    async def run_remote(self, prompt_id: str, tool: RemoteTool, call: FunctionCall, number: int) -> str:
        """Return the recorded result of a call of a tool that acts outside. If there is none, execute the call.

        Args:
            prompt_id: The prompt of the role that calls the tool.
            tool: The tool.
            call: The call.
            number: The call's number among equal calls of the node, from 1. Thus a graph may repeat different calls in
                any order.

        Raises:
            PermanentProviderError: If the call was started before a crash and must not be repeated, or its result is
                unknown for another reason.
        """
        arguments = parse_arguments(call)
        if isinstance(arguments, str):
            return arguments
        stage = self._stage
        place = CallPlace(stage.thread, self._node, self._step, _FIRST_REMOTE_ORDINAL + number, 0, sample=stage.sample)
        run = ToolExecution(call["name"], format_call(call), tool.is_repeatable, partial(tool.run, arguments))
        return await stage.cast[prompt_id].run_tool(run, place)

    async def takes_tools(self, prompt_id: str) -> bool:
        """Return whether the player of a prompt's role is known to accept tools.

        For models, LiteLLM's table of models decides. Graphs accept tools, and so do functions with a parameter
        `tools`, and LangChain chat models that can bind tools. The answer may change with LiteLLM's version, so ask
        once and keep the answer in the state.
        """
        return await self._stage.cast[prompt_id].takes_tools()

    def render(self, prompt_id: str, **inputs: Any) -> list[ChatMessage]:
        """Return the messages that `ask` would send, without sending them.

        Raises:
            PromptError: If the prompt cannot be rendered.
        """
        return self._stage.cast[prompt_id].prompt.render(inputs)

    async def ask_user(self, prompt_id: str, said: Sequence[Line], spoken: Callable[[str], str], **inputs: Any) -> str:
        """Return a simulated user's next line.

        If retries are set and the gate finds a fault in a line, the line is requested again.

        Rejected lines stay in the ledger. The last attempt is used even if it has a fault, and so is a line that a
        person wrote in the step debugger.

        Args:
            prompt_id: The prompt.
            said: The conversation so far.
            spoken: A function that returns the part of a reply that the other side receives, e.g. without an end
                marker.
            **inputs: The prompt's inputs.

        Raises:
            PromptError, RoleError: In the same cases as `ask`.
        """
        stage, ordinal = self._stage, next(self._ordinals)
        for attempt in range(stage.retries + 1):
            site = _CallSite(self, partial(self.place_of_attempt, ordinal, attempt))
            async with stage.requests.track():
                reply = str(await stage.cast[prompt_id](inputs, at=site))
            if stage.gate is None or attempt == stage.retries or self._is_written_by_person:
                break
            line = Line(role=USER, content=spoken(reply), finish_reason=self.finish_reason)
            if not line.content or not stage.gate.find_line_faults(self.scenario, said, line):
                break
        return reply

    async def ask_common(self, prompt_id: str, **inputs: Any) -> Any:
        """Return a reply as `ask` does, but from a call that scenarios share, e.g. a model's reply to a shared opening.

        The request is made once for all scenarios that make it, concurrently or later, and all of them get the same
        reply or the same error. Its random seed is derived from the request and the run's seed. If the reply could not
        be parsed, all scenarios that are retried share one new request. A resampled branch gets a reply of its own.

        Raises:
            PromptError: If the prompt cannot be rendered.
            RoleError: If the reply cannot be obtained or parsed.
        """
        if self._stage.is_resampled:
            return await self.ask(prompt_id, **inputs)
        role, place = self._stage.cast[prompt_id], partial(self.common_place, prompt_id, next(self._ordinals))
        async with self._stage.requests.track():
            for sample in range(self._stage.sample):
                with suppress(UnparsedReplyError):
                    return await role(inputs, at=_CallSite(self, partial(place, sample)))
            return await role(inputs, at=_CallSite(self, partial(place, self._stage.sample)))

    def tell(self, text: str) -> None:
        """Send a message to the run's observer, e.g. about progress. The message is not stored."""
        self._stage.tell(text)

    def draw(self, purpose: str) -> random.Random:
        """Return a private random stream of this scenario for a purpose."""
        return stream(self._stage.seed, self._stage.scenario.id, purpose)

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        """Return the place of the next call. It does not depend on the call's messages."""
        return self.place_of_attempt(next(self._ordinals), 0, messages)

    def place_of_attempt(self, ordinal: int, attempt: int, messages: Sequence[ChatMessage] = ()) -> CallPlace:
        """Return the place of a call after `attempt` rejected lines. Requests of each attempt are numbered separately.

        The place does not depend on the messages.
        """
        stage = self._stage
        where = (stage.seed, stage.thread, self._node, self._step, ordinal)
        seed = (
            _hash_to_int(*where, *([stage.sample] if stage.sample or attempt else []), *([attempt] if attempt else []))
            % 2**31
        )
        return CallPlace(
            stage.thread,
            self._node,
            self._step,
            ordinal,
            seed,
            ask=1 + MAX_ASKS * attempt,
            sample=stage.sample,
            session=stage.session,
        )

    def on_completion(self, completion: Completion) -> None:
        """Record the reason why the reply was cut off, if it was, and whether a person wrote it."""
        self.finish_reason = completion.incomplete_reason
        self._is_written_by_person = completion.finish_reason == WRITTEN_BY_PERSON

    def common_place(self, prompt_id: str, ordinal: int, sample: int, messages: Sequence[ChatMessage]) -> CallPlace:
        """Return the place of a call shared between scenarios. Its seed is derived from its messages."""
        content = json.dumps([message_identity(message) for message in messages])
        seed = _hash_to_int(self._stage.seed, "common", prompt_id, content, sample) % 2**31
        return CallPlace(self._stage.thread, self._node, self._step, ordinal, seed, sample=sample, is_common=True)


@dataclass(frozen=True, slots=True)
class _CallSite:
    """A call site with a fixed place, used instead of the scene's next place."""

    scene: Scene
    place: Callable[[Sequence[ChatMessage]], CallPlace]

    def on_completion(self, completion: Completion) -> None:
        self.scene.on_completion(completion)


Update = dict[str, Any]
NodeFunction = Callable[[Any, Scene], Awaitable[Update]]


def node(function: NodeFunction) -> Callable[..., Awaitable[Update]]:
    """Return a LangGraph node made from `async (state, scene) -> update`."""

    async def run(state: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Update:
        context: Stage | StageFactory = runtime.context
        metadata = config["metadata"]
        step = metadata["langgraph_step"]
        stage = context if isinstance(context, Stage) else await context.stage(step)
        step = step if stage.step is None else stage.step
        return await function(state, Scene(stage, metadata["langgraph_node"], step))

    run.__name__ = getattr(function, "__name__", "node")
    return run


Key = TypeVar("Key", bound=Hashable)

_MAX_CONCURRENT_CALLS = 16
"""Maximum number of calls that a node makes at once, because a scenario may need thousands."""


async def ask_each(
    scene: Scene,
    prompt: str | Callable[[Key], str],
    inputs: Mapping[Key, Mapping[str, Any]],
    role: Callable[[Key], str] | None = None,
    *,
    common: bool = False,
) -> dict[Key, Any]:
    """Return the replies to several requests, by key. A reply that could not be parsed is `None`.

    Each request makes one call, so the result does not depend on the order in which replies arrive.

    Args:
        scene: The node's scene.
        prompt: The prompt of all requests, or a function that returns the prompt of a key.
        inputs: The prompt's inputs, by key.
        role: A function that returns the role to ask for a key; by default the prompt's own role.
        common: Whether the calls are shared between scenarios. Each call is then made once, however many scenarios
            request it.
    """
    ask = scene.ask_common if common else scene.ask

    async def ask_one(key: Key) -> Any:
        name = prompt if isinstance(prompt, str) else prompt(key)
        try:
            if role is None:
                return await ask(name, **inputs[key])
            return await scene.ask_role(role(key), name, **inputs[key])
        except UnparsedReplyError:
            return None

    keys: Sequence[Key] = list(inputs)
    replies: dict[Key, Any] = {}
    for start in range(0, len(keys), _MAX_CONCURRENT_CALLS):
        batch = keys[start : start + _MAX_CONCURRENT_CALLS]
        replies |= zip(batch, await asyncio.gather(*map(ask_one, batch)), strict=True)
    return replies
