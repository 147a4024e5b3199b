"""What a node is given besides the state: the scenario, the cast, and private random streams."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from dialoom.prompts import ChatMessage, ToolDefinition
from dialoom.prompts.messages import identity
from dialoom.roles import ASKS, AgentReply, CallPlace, Cast, Completion, UnparsedReplyError
from dialoom.roles.gateway.calls import RunTool

from .fault import USER, DialogueFault
from .outcome import Line, Outcome
from .scenario import Scenario

if TYPE_CHECKING:  # slow to import; LangGraph knows the parameters by their names
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import Runtime


def stream(seed: int, scenario_id: str, purpose: str) -> random.Random:
    """A random stream that nothing else draws from (LangGraph itself draws from the global one)."""
    return random.Random(_digest(seed, scenario_id, purpose))


def _digest(*parts: object) -> int:
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


class LineGate(Protocol):
    """The part of the gate that a node asks before a line is said."""

    def faults_of_line(self, scenario: Any, history: Sequence[Line], line: Line) -> Sequence[DialogueFault]:
        """Return the faults of a line after those before it."""
        ...


class Asking:
    """The requests of one graph run that are under way at the same time, in one node or in several."""

    def __init__(self) -> None:
        self._count = 0
        self._idle = asyncio.Event()

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Count a request. If it fails, that is known only when no other one is under way.

        The failure ends the graph run, and what was asked beside it would be cut off: sent, and perhaps paid for, but
        not in the ledger, or there only after the scenario's results were handed over.
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
        thread: The checkpoints' thread; the scenario's id, or another one's for a second judging.
        seed: The run's seed.
        sample: 0; a fork or a deliberate re-sample takes another number, and so gets replies of its own instead of
            those that the ledger holds.
        step: The superstep, where it is not LangGraph's own count: that one goes up at an edit of the state, too, and
            then the calls after an edit would have other places than before it.
        tell: Takes what nodes have to say to whoever watches the run.
        gate: Looks at lines that are about to be said.
        retries: How often a line in which it finds a fault is asked for again.
        judged: The finished outcome that is judged; `None` while a scenario is played.
        asking: The requests under way.
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
    asking: Asking = field(default_factory=Asking)


class StageFactory(Protocol):
    """A context that is no stage yet but makes one, as where it comes over a network in plain values."""

    async def stage(self, step: int) -> Stage:
        """The stage for a node at a superstep of LangGraph's count."""
        ...


class Scene:
    """One execution of one node: asks roles, and numbers its calls so that each has a place of its own.

    Attributes:
        finish_reason: Why the last reply broke off (`length`, `refusal`, `content_filter`); `None` if it did not.
    """

    def __init__(self, stage: Stage, node: str, step: int) -> None:
        self.scenario: Any = stage.scenario
        self._stage = stage
        self._node = node
        self._step = step
        self._ordinals = itertools.count()
        self.finish_reason: str | None = None

    @property
    def judged(self) -> Outcome | None:
        """The finished outcome that is judged; `None` while a scenario is played."""
        return self._stage.judged

    def inputs_of(self, prompt_id: str) -> Sequence[str]:
        """Return the names of the inputs that a prompt declares."""
        return self._stage.cast[prompt_id].prompt.front.inputs

    async def ask(self, prompt_id: str, **inputs: Any) -> Any:
        """What the role of a prompt answers: text, or an instance of the prompt's reply type.

        Raises:
            PromptError: If the prompt cannot be rendered.
            RoleError: If the model cannot be had or its reply cannot be parsed.
        """
        async with self._stage.asking.together():
            return await self._stage.cast[prompt_id](inputs, at=self)

    async def ask_role(self, role: str, prompt_id: str, **inputs: Any) -> Any:
        """As `ask`, of another role than the prompt's own: where several models play one part, each has a role.

        Such a role is called as the first with a number behind it, e.g. `answerer-2`. Its understudy is the first's.

        Raises:
            PromptError, RoleError: As `ask`.
        """
        async with self._stage.asking.together():
            return await self._stage.cast.played_by(role, prompt_id)(inputs, at=self)

    async def act(
        self,
        prompt_id: str,
        tools: Sequence[ToolDefinition],
        run_tool: RunTool | None = None,
        /,
        **inputs: Any,
    ) -> AgentReply:
        """What the role of a prompt does that may call tools: words and calls as they come, and it is asked once.

        Args:
            prompt_id: The prompt.
            tools: The tools, as OpenAI functions.
            run_tool: Runs a call and gives what the tool says, for a player that has a loop of its own (a graph). Its
                reply brings the `outputs`; of all others, running the calls is the node's.
            **inputs: The prompt's inputs; its `history` may hold calls and what tools said (see `utterances`).

        Raises:
            PromptError: If the prompt cannot be rendered.
            ProviderError: If the model cannot be had.
        """
        async with self._stage.asking.together():
            return await self._stage.cast[prompt_id].act(inputs, tools, self, run_tool)

    async def takes_tools(self, prompt_id: str) -> bool:
        """Return whether the player of a prompt's role is known to take tools.

        Of models, LiteLLM's table says it. Graphs take tools, functions with a parameter `tools`, and LangChain chat
        models that can bind them. The answer may change with LiteLLM's version: ask once, and keep it in the state.
        """
        return await self._stage.cast[prompt_id].takes_tools()

    def rendered(self, prompt_id: str, **inputs: Any) -> list[ChatMessage]:
        """What `ask` would send; nobody is asked.

        Raises:
            PromptError: If the prompt cannot be rendered.
        """
        return self._stage.cast[prompt_id].prompt.render(inputs)

    async def ask_user(self, prompt_id: str, said: Sequence[Line], spoken: Callable[[str], str], **inputs: Any) -> str:
        """A simulated user's next line. If the run wants that, one with a fault is asked for again before it is heard.

        The line that was rejected stays in the ledger; the last one is taken as it is.

        Args:
            prompt_id: The prompt.
            said: The conversation so far.
            spoken: What of a reply is said, without its end marker and so on.
            **inputs: The prompt's inputs.

        Raises:
            PromptError, RoleError: As `ask`.
        """
        stage, ordinal = self._stage, next(self._ordinals)
        for again in range(stage.retries + 1):
            site = _Again(self, self.place_again(ordinal, again))
            async with stage.asking.together():
                reply = str(await stage.cast[prompt_id](inputs, at=site))
            if stage.gate is None or again == stage.retries:
                break
            line = Line(role=USER, content=spoken(reply), finish_reason=self.finish_reason)
            if not line.content or not stage.gate.faults_of_line(self.scenario, said, line):
                break
        return reply

    async def ask_common(self, prompt_id: str, **inputs: Any) -> Any:
        """As `ask`, of what belongs to no scenario, such as a model's own reply to something that many begin with.

        It is asked once however many scenarios want it, at the same time or later, and all of them get the same answer,
        or the same failure. What follows from chance follows from what is asked, and from the run's seed. A scenario
        that is tried again after a reply that could not be read asks anew, once for all that do.

        Raises:
            PromptError: If the prompt cannot be rendered.
            RoleError: If the model cannot be had or its reply cannot be parsed.
        """
        role, ordinal = self._stage.cast[prompt_id], next(self._ordinals)
        async with self._stage.asking.together():
            for sample in range(self._stage.sample):
                with suppress(UnparsedReplyError):
                    return await role(inputs, at=_Common(self, prompt_id, ordinal, sample))
            return await role(inputs, at=_Common(self, prompt_id, ordinal, self._stage.sample))

    def tell(self, text: str) -> None:
        """Say something to whoever watches the run, e.g. how far a long piece of work is. Nothing of it is kept."""
        self._stage.tell(text)

    def draw(self, purpose: str) -> random.Random:
        """A private random stream of this scenario for a purpose."""
        return stream(self._stage.seed, self._stage.scenario.id, purpose)

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:  # noqa: ARG002
        """The place of the next call, whatever it asks."""
        return self.place_again(next(self._ordinals), 0)

    def place_again(self, ordinal: int, times: int) -> CallPlace:
        """The place of a call after so many rejected lines; the asks of each time have numbers of their own."""
        stage = self._stage
        where = (stage.seed, stage.thread, self._node, self._step, ordinal)
        varied = [stage.sample] if stage.sample or times else []
        seed = _digest(*where, *varied, *([times] if times else [])) % 2**31
        ask = 1 + ASKS * times
        return CallPlace(stage.thread, self._node, self._step, ordinal, seed, ask=ask, sample=stage.sample)

    def heard(self, completion: Completion) -> None:
        """Keep why the reply broke off, if it did."""
        self.finish_reason = completion.broken_off

    def common_place(self, prompt_id: str, messages: Sequence[ChatMessage], ordinal: int, sample: int) -> CallPlace:
        """The place of a common call: seen from here one like any other, but its seed follows from what is asked."""
        asked = json.dumps([identity(message) for message in messages])
        seed = _digest(self._stage.seed, "common", prompt_id, asked, sample) % 2**31
        return CallPlace(self._stage.thread, self._node, self._step, ordinal, seed, sample=sample, is_common=True)


class _Common:
    """Where a common call is made from."""

    def __init__(self, scene: Scene, prompt_id: str, ordinal: int, sample: int) -> None:
        self._scene = scene
        self._prompt_id = prompt_id
        self._ordinal = ordinal
        self._sample = sample

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:
        return self._scene.common_place(self._prompt_id, messages, self._ordinal, self._sample)

    def heard(self, completion: Completion) -> None:
        self._scene.heard(completion)


@dataclass(frozen=True, slots=True)
class _Again:
    """A place that is known before it is asked for."""

    scene: Scene
    known: CallPlace

    def place(self, messages: Sequence[ChatMessage]) -> CallPlace:  # noqa: ARG002
        return self.known

    def heard(self, completion: Completion) -> None:
        self.scene.heard(completion)


Update = dict[str, Any]
NodeFunction = Callable[[Any, Scene], Awaitable[Update]]


def node(function: NodeFunction) -> Callable[..., Awaitable[Update]]:
    """A LangGraph node out of `async (state, scene) -> update`."""

    async def run(state: Any, config: RunnableConfig, runtime: Runtime[Any]) -> Update:
        context: Stage | StageFactory = runtime.context
        metadata = config["metadata"]
        step = metadata["langgraph_step"]
        stage = context if isinstance(context, Stage) else await context.stage(step)
        step = step if stage.step is None else stage.step
        return await function(state, Scene(stage, metadata["langgraph_node"], step))

    run.__name__ = getattr(function, "__name__", "node")
    return run
