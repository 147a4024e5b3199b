"""Checks: functions that score a finished conversation; and the part of a conversation that a judgement covers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dialoom.prompts import FunctionCall

from .outcome import Judgement, Line, Outcome
from .state_checks import gold_check, sql_check

Score: TypeAlias = "bool | int | float | None"
"""A verdict, a number, or `None` where a check does not apply."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A finished conversation as a check sees it.

    Attributes:
        scenario: The scenario that was played.
        outcome: Its outcome.
    """

    scenario: Any
    outcome: Outcome

    @property
    def messages(self) -> tuple[Line, ...]:
        """All messages, in order."""
        return self.outcome.messages

    def text(self, role: str) -> str:
        """Return the messages of a role, one per line."""
        return "\n".join(line.content for line in self.messages if line.role == role)

    @property
    def environment(self) -> Any:
        """The final state of the assistant's environment: its last snapshot; `None` where it has none."""
        return self.outcome.environment

    @property
    def tool_results(self) -> Iterator[tuple[FunctionCall, str | None]]:
        """Each tool call with the tool's result, `None` for a call that was never answered."""
        return self.outcome.tool_results


@dataclass(frozen=True, slots=True)
class Check:
    """A metric that a function computes once, when a conversation has ended.

    Example:
        >>> Check("gave_number", lambda talk: "AB-12345" in talk.text("assistant"))

    Attributes:
        metric: The name of the metric.
        function: Returns a verdict, a score, or `None` where the metric does not apply; or a pair of it and an
            explanation.
        scale: The lowest and the highest score; `None` for a verdict, or a number without bounds.
        target: The role whose messages are measured.
    """

    metric: str
    function: Callable[[Conversation], Score | tuple[Score, str]]
    scale: tuple[int, int] | None = None
    target: str = "assistant"

    @classmethod
    def sql(cls, metric: str, sql: str, expected: Any = None, scale: tuple[int, int] | None = None) -> Check:
        """Return a check that runs one SELECT statement on the final state of an SQLite environment.

        Example:
            >>> Check.sql("refunded", "SELECT count(*) FROM refunds WHERE order_id = {{ task.order }}", 1)

        Args:
            metric: The name of the metric.
            sql: The statement; each `{{ expression }}` over the scenario's fields is bound as a parameter.
            expected: The value, or for a list the values, of the first column, for a verdict; `None` if the value is
                the score.
            scale: The lowest and the highest score.
        """
        return cls(metric, sql_check(sql, expected), scale)

    @classmethod
    def state(cls, metric: str, gold: Any) -> Check:
        """Return a check that compares the final state with the right one; its explanation is the difference.

        Example:
            >>> Check.state("right_state", {"refunds": [{"order_id": "{{ task.order }}"}]})

        Args:
            metric: The name of the metric.
            gold: The right state, or the parts that matter; a database is compared as its tables, by the columns that
                the right rows have. A text that is one `{{ expression }}` stands for its value.
        """
        return cls(metric, gold_check(gold))

    def judgement(self, conversation: Conversation) -> Judgement | None:
        """Return the check's judgement, `None` where it does not apply; a function that raises gives an `error`."""
        about = {"metric": self.metric, "target": self.target}
        try:
            found: Any = self.function(conversation)
        except Exception as error:
            return Judgement(**about, status="error", explanation=f"{type(error).__name__}: {error}")
        score, explanation = found if isinstance(found, tuple) and len(found) == 2 else (found, "")
        if score is None:
            return None
        if why := self._refusal(score):
            return Judgement(**about, status="error", explanation=why)
        return Judgement(**about, score=score, explanation=explanation)

    def _refusal(self, score: Any) -> str:
        """Return the reason why a value is no score of this check; empty if it is one."""
        if not isinstance(score, bool | int | float):
            return f"a check returns a verdict, a number or None, got {type(score).__name__}"
        if not math.isfinite(score):
            return f"a score must be finite, got {score}"
        if self.scale is not None and not self.scale[0] <= score <= self.scale[1]:
            return f"a score must be from {self.scale[0]} to {self.scale[1]}, got {score}"
        return ""


def checked(checks: Iterable[Check], scenario: Any, outcome: Outcome) -> list[Judgement]:
    """Return the judgements of checks about a finished outcome, without those that do not apply."""
    conversation = Conversation(scenario, outcome)
    found = (check.judgement(conversation) for check in checks)
    return [judgement for judgement in found if judgement is not None]


def conversation_to(outcome: Outcome, judgement: Judgement) -> Sequence[Line]:
    """Return the messages that a judgement is about: all of them, or those up to the end of its turn.

    Turn k ends with the k-th message of the target. If the target says nothing in the conversation, turn k ends with
    the k-th message of the first speaker.
    """
    messages = outcome.messages
    if judgement.turn is None or not messages:
        return messages
    speakers = [line.role for line in messages]
    speaker = judgement.target if judgement.target in speakers else speakers[0]
    ends = [place for place, role in enumerate(speakers, start=1) if role == speaker]
    return messages[: ends[judgement.turn - 1]] if 1 <= judgement.turn <= len(ends) else messages


def is_judged(judgements: Iterable[Mapping[str, Any]], metric: str, target: str, turn: int | None = None) -> bool:
    """Return whether one of these judgements (plain values) already covers a metric, target and turn."""
    return any(
        (each["metric"], each["target"], each.get("turn")) == (metric, target, turn)
        and each.get("status") != "unparsed"
        for each in judgements
    )
