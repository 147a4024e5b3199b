"""Gold played through the agent's loop: a pair is kept only if that scores 1. The protocol, section 3, check (f)."""

from __future__ import annotations

from typing import Any

from dialoom.personas.apollo import World, compare, execute
from dialoom.personas.apollo.source import ApolloPair
from dialoom.personas.apollo.text_protocol import FINISH, call_text, read_turn

from .loop import FINISHED, TURN_LIMIT, AgentTurn, calls_of, ending, flags_of


def gold_refusal(world: World, pair: ApolloPair) -> str | None:
    """How a pair's gold calls fail if an agent makes them one by one and then says that all is done; else `None`.

    Args:
        world: Where they are made.
        pair: The pair; only its own tools can be called.
    """
    turns: list[AgentTurn] = []
    outputs: list[Any] = []
    for line in (*map(call_text, pair.calls()), FINISH):
        if ended := ending(turns, TURN_LIMIT):
            return f"not played: the loop ends ({ended}) after {len(turns)} of {len(pair.gold)} calls"
        turns.append(AgentTurn(*read_turn(line)))
        outputs += [execute(world, call, pair.tools) for call in turns[-1].calls]
    scores, ended, flags = compare(calls_of(turns), pair.calls()), ending(turns, TURN_LIMIT), flags_of(turns, outputs)
    if ended == FINISHED and scores.accuracy and scores.f1 == 1 and not flags:
        return None
    odd = next((output for output in outputs if isinstance(output, dict) and "error" in output), outputs[-1])
    return f"not played: it ends ({ended}) with F1 {scores.f1:.2f} and {', '.join(flags) or 'nothing odd'}: {odd}"
