"""The rules of the agent's loop."""

from __future__ import annotations

import pytest

from dialoom.graphs.apollo.loop import AgentTurn, calls_of, ending, flags_of

CALL = {"name": "a", "arguments": "{}"}
WORDS, EMPTY, DONE = AgentTurn("Well.", ()), AgentTurn("", ()), AgentTurn("[Finish]", ())
ONE, TWO = AgentTurn("", (CALL,)), AgentTurn("", (CALL, CALL))


@pytest.mark.parametrize(
    ("turns", "wanted"),
    [
        ([], None),
        ([ONE], None),
        ([ONE, DONE], "finished"),
        ([AgentTurn("All is booked. [finish]", ())], "finished"),
        ([AgentTurn("[Finish]", (CALL,))], None),
        ([WORDS], None),
        ([WORDS, WORDS], "silent"),
        ([WORDS, ONE, WORDS], None),
        ([WORDS, ONE, EMPTY, EMPTY], "silent"),
        ([ONE] * 11, None),
        ([ONE] * 12, "turn_limit"),
        ([*[ONE] * 11, DONE], "finished"),
        ([*[ONE] * 10, WORDS, WORDS], "silent"),
        ([*[ONE] * 11, WORDS], "turn_limit"),
    ],
)
def test_a_loop_ends_by_its_word_by_silence_or_at_its_limit(turns: list[AgentTurn], wanted: str | None) -> None:
    """And by nothing else."""
    assert ending(turns, 12) == wanted


@pytest.mark.parametrize(
    ("turns", "outputs", "wanted"),
    [
        ([ONE, DONE], [{}], []),
        ([TWO], [[], {}], ["parallel"]),
        ([AgentTurn("I call it.", (CALL,))], [{}], ["mixed"]),
        ([AgentTurn("Which one? I need to know.", ())], [], ["asked"]),
        ([AgentTurn("See http://a.b/?q=1.", ())], [], []),
        ([AgentTurn("Done. [Finish]", ())], [], ["late_finish"]),
        ([EMPTY], [], ["empty"]),
        ([ONE], [{"error": "no"}], ["failed_call"]),
        (
            [AgentTurn("Shall I?", (CALL, CALL)), EMPTY],
            [{"error": "no"}, {}],
            ["parallel", "mixed", "asked", "empty", "failed_call"],
        ),
    ],
)
def test_what_is_odd_is_flagged(turns: list[AgentTurn], outputs: list[object], wanted: list[str]) -> None:
    """Each by its own rule."""
    assert flags_of(turns, outputs) == wanted


def test_all_calls_of_all_turns_count_in_order() -> None:
    """Several in a turn, too."""
    other = {"name": "b", "arguments": "no", "id": "x"}
    assert calls_of([ONE, WORDS, AgentTurn("", (other, CALL)), DONE]) == [CALL, {"name": "b", "arguments": "no"}, CALL]
