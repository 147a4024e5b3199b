"""Judges. A judge is a frozen value that defines a metric, the role that scores it, and the role's inputs.

A judge reads an `Outcome` and its scenario, never a graph's state. While a scenario is played, the outcome is made from
the current state. When a finished scenario is judged again, the stored outcome is used. The same judge can therefore be
used in both cases.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeAlias, TypedDict

from dialoom.errors import DialoomError
from dialoom.grouping import group_pairs
from dialoom.prompts import Prompt, shared_text
from dialoom.roles import UnparsedReplyError, Verdict
from dialoom.roles.players import is_async

from .built_in_environments import decode_snapshot
from .conversation import joined, to_messages, utterances
from .outcome import ENVIRONMENT, Judgement, Outcome, find_turn_ends
from .scenario import Scenario
from .stage import Scene, Stage, Update, node

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

Graph: TypeAlias = "StateGraph[Any, Any, Any, Any]"
ExplainedScore: TypeAlias = "tuple[bool | int | float | str, str]"
"""A score or a label, with its explanation."""

JUDGE_INPUTS = frozenset({"history", "target", "metric", "turn"})
"""The names of the inputs that judges' prompts may use in addition to the scenario's fields and the environment."""


class JudgedRecipe(Protocol):
    """The attributes of a recipe that judges use."""

    @property
    def name(self) -> str:
        """The recipe's name, which is the prefix of the ids of prompts made from rubrics."""

    @property
    def judges(self) -> Sequence[Judge]:
        """The judges of the recipe."""

    @property
    def scenario_type(self) -> type[Scenario]:
        """The type of the recipe's scenarios."""

    def outcome(self, scenario: Any, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return a scenario's outcome, made from the current state."""


class JudgeError(DialoomError):
    """A judge that cannot work as declared. The message names the judge and states the correct form."""


@dataclass(frozen=True, slots=True)
class Case:
    """One item that a judge scores.

    Attributes:
        turn: The turn that is judged, counted from 1; `None` for the whole outcome.
        inputs: Inputs of the judge's prompt besides those that the judge itself provides, or a function that returns
            them. The function is called only if the case has not been judged yet.
        missing: The reason why there is nothing to judge. If set, no request is made, and the judgement is `unparsed`
            with this explanation.
        label: A prefix of the explanation that distinguishes cases of the same turn, such as a branch of a tree.
    """

    turn: int | None = None
    inputs: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = field(default_factory=dict)
    missing: str = ""
    label: str = ""

    def matches(self, judgement: Judgement) -> bool:
        """Return whether a judgement belongs to this case. Its metric and target are not compared."""
        return judgement.turn == self.turn and judgement.explanation.startswith(self.add_label(""))

    def add_label(self, explanation: str) -> str:
        """Return an explanation with the label as its prefix."""
        return f"{self.label}: {explanation}" if self.label else explanation


class JudgedState(TypedDict, total=False):
    """The channel of a graph's state that judges write: judgements as plain values."""

    judgements: Annotated[list[dict[str, Any]], joined]


@dataclass(frozen=True)
class Judge:
    """A metric, and how a model scores it.

    Example:
        >>> resolved = dialoom.Judge("resolved", rubric="The caller's goal was reached: {{ goal }}")  # a verdict
        >>> tone = dialoom.Judge("tone", rubric={1: "rude", 3: "polite", 5: "warm"}, scale=(1, 5))

    Attributes:
        metric: The name of the metric.
        rubric: The criterion, as a Jinja2 template over the fields of the scenario. It is a statement that is true or
            false, a description of a scale, or a mapping that describes some levels of the scale.
        prompt: The id of a prompt file, used instead of a rubric. Its reply is a verdict or a score, unless `read` is
            given.
        scale: The lowest and the highest score, as whole numbers; `None` for a verdict.
        target: The role whose messages are judged.
        role: The role that judges.
        per_turn: Whether to judge after each turn of the target rather than once at the end. A message with tool calls
            and the message after their results are one turn.
        when: A function `when(scenario, outcome)` that returns whether there is anything to judge; by default, it is
            always true.
        sees: The fields of the scenario that the judge may be shown; by default, those that its rubric or prompt uses.
        cases: A function `cases(scenario, outcome)` that returns the cases; by default, they are the conversation or
            its turns.
        node: The name of the judge's node in the graph; by default derived from metric and target.
        after: The node of another judge whose judgements this one needs; by default judges run in parallel.
        read: A function `read(reply)` that returns the score of a reply and its explanation; by default the reply's
            fields `verdict` or `score`, and `explanation`.
        both_orders: The names of two inputs, such as two replies, that the judge reads in both orders to cancel
            position bias. The judge gets two requests, and `read(reply, swapped)` gets both of its replies.
        placed: For a judgement made in both orders, a function that returns whether the judge chose the same position
            twice rather than the same input; `None` if that is unknown. By default it is unknown.
        labels: The labels of a judge that picks one of several labels. Each label is a metric, which is true if `read`
            returns this label; any other value is unparsed. For such a judge, `metric` is only its name.
        lower_is_better: Whether low scores are good and, for a verdict, whether false is.
    """

    metric: str
    rubric: str | Mapping[int, str] = ""
    prompt: str = ""
    scale: tuple[int, int] | None = None
    target: str = "assistant"
    role: str = "judge"
    per_turn: bool = False
    when: Callable[[Any, Outcome], bool] | None = None
    sees: Sequence[str] | None = None
    cases: Callable[[Any, Outcome], Iterable[Case]] | None = None
    node: str = ""
    after: str = ""
    read: Callable[..., ExplainedScore] | None = None
    both_orders: tuple[str, str] | None = None
    placed: Callable[[Judgement], bool | None] | None = None
    labels: Sequence[str] = ()
    lower_is_better: bool = False

    def __post_init__(self) -> None:
        if bool(self.rubric) == bool(self.prompt):
            raise JudgeError(f"judge {self.metric!r} needs either a rubric or the id of a prompt")
        if (field_name := "labels" if self.labels else "both_orders" if self.both_orders else "") and self.read is None:
            raise JudgeError(f"judge {self.metric!r}: {field_name} need `read`, a function that reads the replies")
        for name in ("when", "cases", "read", "placed"):
            function = getattr(self, name)
            if function is not None and (not callable(function) or is_async(function)):
                actual = "an async function" if callable(function) else f"{function!r:.60}"
                raise JudgeError(f"judge {self.metric!r}: {name} must be a plain function, got {actual}")
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise JudgeError(f"judge {self.metric!r}: scale must go from low to high, got {self.scale!r}")
        if isinstance(self.rubric, Mapping):
            self._check_levels(self.rubric)
        if not self.node:
            by_turn = "_by_turn" if self.per_turn else ""
            object.__setattr__(self, "node", f"judge_{self.metric}_{self.target}{by_turn}")

    def _check_levels(self, levels: Mapping[int, str]) -> None:
        if self.scale is None:
            raise JudgeError(f"judge {self.metric!r}: a rubric with numbered levels needs a scale, e.g. scale=(1, 5)")
        low, high = self.scale
        if outside := [level for level in levels if not low <= level <= high]:
            raise JudgeError(f"judge {self.metric!r}: level {outside[0]} must be within the scale, {low} to {high}")

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics of the judgements: a single metric, or one per label."""
        return tuple(self.labels) or (self.metric,)

    @property
    def reply(self) -> str:
        """The name of the reply type of a judge that has a rubric."""
        return "verdict" if self.scale is None else f"score-{self.scale[0]}-{self.scale[1]}"

    def prompt_of(self, recipe: str, sets: Sequence[str] = ()) -> str | Prompt:
        """Return the id of the judge's prompt, or the prompt itself if it is made from a rubric.

        Args:
            recipe: The recipe's name, which is the prefix of the id of a prompt made from a rubric.
            sets: Sets of prompts. One of them may replace the text around the rubric.

        Raises:
            PromptError: If the rubric is not a valid template.
        """
        if self.prompt:
            return self.prompt
        name_parts = [self.metric, *([self.target] if self.target != "assistant" else []), *(["turn"] * self.per_turn)]
        kind = "verdict" if self.scale is None else "score"
        text = (
            shared_text(f"judge-{kind}", sets).replace("%CRITERION%", self._criterion).replace("%TARGET%", self.target)
        )
        if self.scale is not None:
            text = text.replace("%LOW%", str(self.scale[0])).replace("%HIGH%", str(self.scale[1]))
        return Prompt.compose(f"{recipe}/judge-{'-'.join(name_parts)}", self.role, text, reply=self.reply)

    @property
    def _criterion(self) -> str:
        if isinstance(self.rubric, str):
            return self.rubric.strip()
        return "\n".join(f"{level} - {text}" for level, text in sorted(self.rubric.items()))

    def open_cases(self, scenario: Any, outcome: Outcome) -> list[Case]:
        """Return the judge's cases for which the outcome has no judgement yet.

        Args:
            scenario: The scenario that was played.
            outcome: Its outcome so far, with the current judgements.
        """
        if self.when is not None and not self.when(scenario, outcome):
            return []
        judgements = [each for each in outcome.judgements if each.target == self.target and each.metric in self.metrics]
        by_turn = group_pairs((each.turn, each) for each in judgements)
        return [
            case
            for case in self._iter_cases(scenario, outcome)
            if not {*self.metrics} <= {each.metric for each in by_turn.get(case.turn, ()) if case.matches(each)}
        ]

    def lacks_case(self, scenario: Any, outcome: Outcome, judgement: Judgement) -> bool:
        """Return whether a judgement has no score because there was nothing to judge, so that no request was made."""
        return judgement.score is None and any(
            case.missing and case.turn == judgement.turn and judgement.explanation == case.add_label(case.missing)
            for case in self._iter_cases(scenario, outcome)
        )

    def _iter_cases(self, scenario: Any, outcome: Outcome) -> Iterator[Case]:
        if self.cases is not None:
            result: Any = self.cases(scenario, outcome)
            cases = [*result] if isinstance(result, Iterable) else [result]
            if invalid := [each for each in cases if not isinstance(each, Case)]:
                raise TypeError(f"judge {self.metric!r}: cases must return `Case` objects, got {invalid[0]!r:.60}")
            yield from cases
            return
        turns: Iterable[tuple[int | None, int]] = [(None, len(outcome.messages))]
        if self.per_turn:
            turns = enumerate(find_turn_ends(outcome.messages, self.target), start=1)
        for turn, end in turns:
            yield Case(turn, {"history": utterances(to_messages(outcome.messages[:end]))})

    async def judge(self, scene: Scene, prompt: str, outcome: Outcome) -> list[Judgement]:
        """Judge all open cases concurrently. A reply that cannot be parsed gives an `unparsed` judgement.

        Args:
            scene: The node's scene.
            prompt: The id of the judge's prompt.
            outcome: The outcome to judge.

        Returns:
            The judgements, in the order of the cases.
        """
        cases = self.open_cases(scene.scenario, outcome)
        judgements = await asyncio.gather(*(self._judge_case(scene, prompt, case, outcome) for case in cases))
        return [judgement for each in judgements for judgement in each]

    async def _judge_case(self, scene: Scene, prompt: str, case: Case, outcome: Outcome) -> list[Judgement]:
        if case.missing:
            return [self._make_judgement(metric, case, None, case.missing) for metric in self.metrics]
        inputs = [self._inputs(scene, prompt, case, outcome)]
        if self.both_orders is not None:
            first_input, second_input = self.both_orders
            inputs.append({**inputs[0], first_input: inputs[0][second_input], second_input: inputs[0][first_input]})
        try:
            replies = await asyncio.gather(*(scene.ask_role(self.role, prompt, **each) for each in inputs))
        except UnparsedReplyError as error:
            return [self._make_judgement(metric, case, None, str(error)) for metric in self.metrics]
        reply = replies[0]
        if self.read is not None:
            score, explanation = self._read_replies(*replies)
        else:
            score, explanation = reply.verdict if isinstance(reply, Verdict) else reply.score, reply.explanation
        if self.labels:
            is_label = score in self.labels
            return [
                self._make_judgement(each, case, score == each if is_label else None, explanation)
                for each in self.labels
            ]
        return [self._make_judgement(self.metric, case, score, explanation)]

    def _read_replies(self, *replies: Any) -> tuple[Any, str]:
        """Return what the function `read` returns for replies, a score or a label and an explanation.

        Raises:
            ValueError: If it is something else, or the score is not on the judge's scale.
        """
        assert self.read is not None
        result: Any = self.read(*replies)
        message = f"judge {self.metric!r}: read must return"
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], str)):
            raise ValueError(f"{message} a score and an explanation, got {result!r:.60}")
        score = result[0]
        if score is None or self.labels:
            return score, result[1]
        if not isinstance(score, bool | int | float) or not math.isfinite(score):
            raise ValueError(f"{message} true, false, a finite number or None as the score, got {score!r:.60}")
        if self.scale is not None and not self.scale[0] <= score <= self.scale[1]:
            raise ValueError(f"{message} a score from {self.scale[0]} to {self.scale[1]}, got {score!r}")
        return score, result[1]

    def _make_judgement(self, metric: str, case: Case, score: bool | float | None, explanation: str) -> Judgement:
        return Judgement(
            metric=metric,
            target=self.target,
            turn=case.turn,
            score=score,
            status="unparsed" if score is None else "ok",
            explanation=case.add_label(explanation),
        )

    def _inputs(self, scene: Scene, prompt: str, case: Case, outcome: Outcome) -> dict[str, Any]:
        """Return the inputs that the prompt declares, taken from the case, the judge, the outcome, and the scenario."""
        inputs = case.inputs if isinstance(case.inputs, Mapping) else case.inputs()
        values = {"target": self.target, "metric": self.metric, "turn": case.turn, **inputs}
        declared = scene.inputs_of(prompt)
        if ENVIRONMENT in declared and outcome.environment is not None:
            values[ENVIRONMENT] = json.dumps(decode_snapshot(outcome.environment), ensure_ascii=False, indent=1)
        return {name: values[name] if name in values else getattr(scene.scenario, name) for name in declared}

    def check_inputs(self, prompt: Prompt, kind: type[Scenario], has_environment: bool = False) -> None:
        """Check, before a run starts, that the inputs of the judge's prompt exist and that the judge may see them.

        Args:
            prompt: The judge's prompt.
            kind: The type of the scenarios.
            has_environment: Whether outcomes include the final state of an environment.

        Raises:
            JudgeError: If an input is unknown, or the judge may not see it. The message states the input.
        """
        for name in prompt.front.inputs:
            if name in JUDGE_INPUTS or self.cases is not None or (has_environment and name == ENVIRONMENT):
                continue
            if self.sees is not None and name not in self.sees:
                visible = f"only {', '.join(self.sees)}" if self.sees else "nothing of the scenario"
                raise JudgeError(f"judge {self.metric!r} declares the input {name!r} but may see {visible}")
            if not hasattr(kind, name) and name not in kind.model_fields:
                raise JudgeError(
                    f"judge {self.metric!r} declares the input {name!r}, which {kind.__name__} does not have; its "
                    "fields are "
                    f"{', '.join(kind.model_fields)}"
                )


def check_judges(recipe: JudgedRecipe, library: Mapping[str, Prompt]) -> None:
    """Check, before a run starts, that the inputs of the judges' prompts exist and that the judges may see them.

    Args:
        recipe: The recipe.
        library: The recipe's prompts by id, with the user's overrides.

    Raises:
        JudgeError: If an input is unknown, or the judge may not see it. The message states the judge and the input.
    """
    has_environment = getattr(recipe, ENVIRONMENT, None) is not None
    for judge in recipe.judges:
        prompt = judge.prompt_of(recipe.name)
        judge.check_inputs(
            library[prompt if isinstance(prompt, str) else prompt.id], recipe.scenario_type, has_environment
        )


def sort_judgements(metrics: Sequence[str], judgements: Iterable[Judgement]) -> tuple[Judgement, ...]:
    """Return judgements in the order of reports and exports: those of whole outcomes first, then by metric and target.

    Args:
        metrics: The metrics in the order to use; other metrics come last.
        judgements: The judgements in any order, such as the order of completion.
    """
    ranks = {metric: rank for rank, metric in enumerate(metrics)}

    return tuple(
        sorted(
            judgements,
            key=lambda each: (each.turn is not None, ranks.get(each.metric, len(ranks)), each.target, each.turn or 0),
        )
    )


def add_judges(builder: Graph, recipe: JudgedRecipe, judges: Sequence[Judge], then: str = "") -> list[str]:
    """Add a node per judge to a graph. A judge that needs another judge's judgements follows that judge.

    Args:
        builder: The graph under construction; its state has `judgements` (see `JudgedState`).
        recipe: The recipe, which makes the outcome from the state. Its name is the prefix of the ids of prompts made
            from rubrics.
        judges: The judges.
        then: The node that follows the last judges; by default the graph ends after them.

    Returns:
        The names of the nodes where judging begins; empty without judges.
    """
    from langgraph.graph import END  # slow to import, and not needed to read a run

    for judge in judges:
        builder.add_node(judge.node, node(_make_node(judge, recipe)))
        for follower in [each.node for each in judges if each.after == judge.node] or [then or END]:
            builder.add_edge(judge.node, follower)
    return [judge.node for judge in judges if not judge.after]


def judging_graph(recipe: JudgedRecipe, judges: Sequence[Judge]) -> Graph:
    """Return an uncompiled graph that only judges a finished outcome. A judge without open cases makes no request.

    Args:
        recipe: The recipe; see `add_judges`.
        judges: The judges.
    """
    from langgraph.graph import START, StateGraph  # slow to import, and not needed to read a run

    builder = StateGraph(JudgedState, context_schema=Stage)
    for first in add_judges(builder, recipe, judges):
        builder.add_edge(START, first)
    return builder


def _make_node(judge: Judge, recipe: JudgedRecipe) -> Callable[[Any, Scene], Awaitable[Update]]:
    prompt = judge.prompt_of(recipe.name)
    id_ = prompt if isinstance(prompt, str) else prompt.id

    async def run(state: Any, scene: Scene) -> Update:
        if scene.judged is None:
            outcome = recipe.outcome(scene.scenario, state)
        else:
            judgements = tuple(Judgement.model_validate(value) for value in state["judgements"])
            outcome = scene.judged.model_copy(update={"judgements": judgements})
        return {"judgements": [each.model_dump(mode="json") for each in await judge.judge(scene, id_, outcome)]}

    run.__name__ = judge.node
    return run
