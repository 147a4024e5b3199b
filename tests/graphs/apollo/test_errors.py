"""Why samples fail: the rule's label of one altered argument of each provenance, and a judge's word beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs.apollo.loop import kappa, label_of
from dialoom.personas.apollo.source import ApolloPair
from dialoom.personas.apollo.text_protocol import call_text
from tests.graphs.apollo.invented import source
from tests.graphs.apollo.players import FINISH, Agent, Messages, played

MADE = source(["flight", "commute-bus", "commute-rule"])
FLIGHT, BUS, RULE = MADE.pairs.values()


def altered(pair: ApolloPair, at: int, name: str, value: Any) -> list[dict[str, Any]]:
    """The gold calls with one argument changed; `None` leaves it out."""
    calls = pair.calls()
    arguments = {key: given for key, given in calls[at]["arguments"].items() if key != name or value is not None}
    calls[at] = {**calls[at], "arguments": {**arguments, **({} if value is None else {name: value})}}
    return calls


def other(pair: ApolloPair) -> list[dict[str, Any]]:
    """The gold calls with the other end of the flow's rule."""
    *looked_up, last = pair.calls()
    ends = {"request_ride": ("ride_type", "comfort"), "transport_recommendation": ("mode", "bike")}
    (name, (decided, value)) = next((name, end) for name, end in ends.items() if name != last["name"])
    way = {key: given for key, given in last["arguments"].items() if key.startswith(("city", "location"))}
    return [*looked_up, {"name": name, "arguments": {**way, decided: value}}]


@pytest.mark.parametrize(
    ("pair", "made", "asked", "label"),
    [
        (FLIGHT, FLIGHT.calls(), False, None),
        (FLIGHT, [], False, "unhelpful"),
        (FLIGHT, [], True, "unawareness"),
        (FLIGHT, FLIGHT.calls()[:1], True, "unawareness"),
        (FLIGHT, altered(FLIGHT, 1, "payment_method", None), False, "unawareness"),
        (FLIGHT, altered(FLIGHT, 1, "payment_method", "cash"), False, "hallucination"),
        (FLIGHT, altered(FLIGHT, 1, "flight_id", "FL100"), False, "hallucination"),
        (FLIGHT, altered(FLIGHT, 0, "date", "2027-03-01"), False, "tool_related"),
        (FLIGHT, altered(FLIGHT, 0, "from_city", "Nowhere"), False, "tool_related"),
        (FLIGHT, altered(FLIGHT, 0, "seat", "12A"), False, "tool_related"),
        (FLIGHT, [{"name": "search_flight", "arguments": "no JSON"}], False, "tool_related"),
        (FLIGHT, FLIGHT.calls()[:1], False, "tool_related"),
        (FLIGHT, [*FLIGHT.calls(), *FLIGHT.calls()], False, "tool_related"),
        (FLIGHT, FLIGHT.calls()[1:], False, "tool_related"),
        (BUS, other(BUS), False, "hallucination"),
        (BUS, other(BUS)[-1:], False, "tool_related"),
        (RULE, [*RULE.calls()[:1], RULE.calls()[-1]], False, "hallucination"),
        (RULE, RULE.calls()[-1:], False, "tool_related"),
    ],
)
def test_the_first_wrong_call_gives_the_label(pair: ApolloPair, made: Any, asked: bool, label: str | None) -> None:
    """By where the argument is from: a preference, what it chose, the request, the user."""
    assert label_of(pair.flow, pair.gold, made, asked) == label


def test_what_could_be_left_out_is_no_error() -> None:
    """A preferred value that is the tool's default."""
    for pair in MADE.pairs.values():
        for at, call in enumerate(pair.gold):
            for name, value in call.arguments.items():
                if value is False:
                    assert label_of(pair.flow, pair.gold, altered(pair, at, name, None), False) is None


@pytest.mark.parametrize(
    ("pairs", "wanted"),
    [([], None), (["aa", "aa"], None), (["aa", "bb"], 1.0), (["ab", "ba"], -1.0), (["aa", "ab", "bb", "bb"], 0.5)],
)
def test_kappa_by_hand(pairs: list[str], wanted: float | None) -> None:
    """Agreement beyond chance."""
    assert kappa([(both[0], both[1]) for both in pairs]) == wanted


def test_a_judge_labels_what_failed_and_nothing_else(tmp_path: Path) -> None:
    """It sees request, preference, gold and what was done; one that cannot be read is unparsed."""
    lines = {
        FLIGHT.query: [*map(call_text, FLIGHT.calls()), FINISH],
        BUS.query: [*map(call_text, other(BUS)), FINISH],
        RULE.query: ["Well.", "Well."],
    }
    run = played(tmp_path, Agent(lines), MADE)
    seen: list[str] = []

    async def judge(messages: Messages) -> str:
        seen.append(messages[1]["content"])
        wrong = "Well." in messages[1]["content"]
        return "It is hard to say." if wrong else json.dumps({"label": "unawareness", "explanation": "so"})

    run.judge(judge, name="why")
    found = {episode.facets["pair"]: episode.outcome for episode in run.episodes("why")}
    words = {
        pair: [(each.metric, each.score, each.status) for each in outcome.judgements] for pair, outcome in found.items()
    }
    assert words["flight-1"] == [("accuracy", True, "ok"), ("f1", 1.0, "ok")]
    labels = ("unhelpful", "unawareness", "hallucination", "tool_related")
    assert words["commute-bus-1"][2:] == [(label, label == "unawareness", "ok") for label in labels]
    assert words["commute-rule-1"][2:] == [(label, None, "unparsed") for label in labels]
    bus = next(text for text in seen if BUS.query in text)
    assert bus.count("assistant: ") == 3 and "I want this" not in bus and BUS.calls()[-1]["name"] in bus
    (table,) = [table for table in run.report("why").tables if table.name == "errors"]
    shown = [[getattr(cell, "mean", cell) for cell in row[2:]] for row in table.rows]
    assert shown == [["rule", 2, 0.5, 0.0, 0.5, 0.0, None], ["judge", 1, 0.0, 1.0, 0.0, 0.0, 0.0]]


def test_a_sample_of_what_failed_is_judged_and_a_larger_one_adds_to_it(tmp_path: Path) -> None:
    """Drawn with the seed among failures alone; what is judged is not judged again."""
    lines = {pair.query: ["Well.", "Well."] for pair in (FLIGHT, BUS)}
    lines[RULE.query] = [*map(call_text, RULE.calls()), FINISH]
    run = played(tmp_path, Agent(lines), MADE)
    seen: list[str] = []

    async def judge(messages: Messages) -> str:
        seen.append(next(pair.id for pair in (FLIGHT, BUS, RULE) if pair.query in messages[1]["content"]))
        return json.dumps({"label": "unhelpful", "explanation": "so"})

    for sample, count in ((1, 1), (1, 1), (5, 2)):
        run.judge(judge, name="why", sample=sample)
        assert len(seen) == count
    assert sorted(seen) == sorted([FLIGHT.id, BUS.id])
    run.judge(judge, name="flights", where="flow == 'flight'")
    assert seen[2:] == [FLIGHT.id]
    for wrong, message in (({"where": "flow == 'music'"}, "nothing to judge where"), ({"sample": 0}, "sample 0")):
        with pytest.raises(dialoom.DialoomError, match=message):
            run.judge(judge, name="none", **wrong)
