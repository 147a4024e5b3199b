"""A provider with bad moments: which request it fails, and how, follows from the call and the attempt alone."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.server import Answer, Response, broken_off, busy, completion, error

ASKED_AGAIN = "That answer could not be used"
SHARE = 0.1
"""Of all requests that something is wrong with."""

MOST_IN_A_ROW = 3
"""After so many bad answers to one call comes a good one, so that none runs out of attempts."""

USUAL, SLOW = 0.02, 0.3
"""Seconds before a reply is sent: some are under way at any moment."""

PRICE = (3.0, 15.0)
"""US dollars per million tokens in and out."""


class Call(NamedTuple):
    """A call as the provider can tell it: a seed stands for one place in the run, which may be asked twice."""

    seed: int
    ask: int


class Usage(NamedTuple):
    """Tokens in and out."""

    asked: int
    said: int


FAILING: dict[str, Callable[[], Answer | Response]] = {
    "429": busy,
    "429 with Retry-After": lambda: busy(retry_after="0.05"),
    "500": lambda: error(500, "trouble"),
    "502": lambda: Response(502, raw=b"<html>bad gateway</html>", headers={"Content-Type": "text/html"}),
    "503": lambda: busy(503),
    "cut connection": broken_off,
    "no JSON": lambda: Response(raw=b'{"id": "x", "choices": [{"in'),
}
"""Answers that are none: each must be an attempt in the ledger."""

KINDS = (*FAILING, "empty", "slow")
"""What else may be wrong: an empty reply, which is a reply all the same, and one that takes its time."""


@dataclass
class MoodyProvider:
    """Answers, and keeps the books of what it was sent and what it gave.

    Attributes:
        sent: How often each call came.
        replied: How often each was given a reply, be it an empty one.
        given: How often each kind of trouble was made, and `none`.
        closed: Calls that are not to come any more.
        reopened: Those among them that came all the same.
    """

    sent: Counter[Call] = field(default_factory=Counter)
    replied: Counter[Call] = field(default_factory=Counter)
    given: Counter[str] = field(default_factory=Counter)
    closed: set[Call] = field(default_factory=set)
    reopened: set[Call] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, body: dict[str, Any], _number: int) -> Answer | Response:
        call = call_of(body)
        with self.lock:
            self.sent[call] += 1
            if call in self.closed:
                self.reopened.add(call)
            kind = trouble(call, self.sent[call])
            self.given[kind or "none"] += 1
            if kind not in FAILING:
                self.replied[call] += 1
        if kind in FAILING:
            return FAILING[kind]()
        answer = completion("" if kind == "empty" else words(body), *usage_of(call))
        return Response(*answer, delay=SLOW if kind == "slow" else USUAL)

    def failed(self, call: Call) -> int:
        """How often a call was given an answer that is none."""
        return self.sent[call] - self.replied[call]


def call_of(body: dict[str, Any]) -> Call:
    """The call that a request belongs to."""
    return Call(body["seed"], 2 if ASKED_AGAIN in body["messages"][-1]["content"] else 1)


def trouble(call: Call, attempt: int) -> str | None:
    """What is wrong with the answer to a call's n-th request; `None` if nothing is."""
    luck = _hash(call, attempt)
    if luck % 1000 >= 1000 * SHARE or attempt % (MOST_IN_A_ROW + 1) == 0:
        return None
    kind = KINDS[luck // 1000 % len(KINDS)]
    # Two empty replies in a row are a scenario that failed for good, and here all are to be finished.
    return None if kind == "empty" and call.ask == 2 else kind


def usage_of(call: Call) -> Usage:
    """What a call's reply takes: another number for each, so that no two mistakes in the books cancel out."""
    luck = _hash(call, 0)
    return Usage(100 + luck % 900, 1 + luck // 900 % 90)


def words(body: dict[str, Any]) -> str:
    """A reply that follows from the request alone."""
    hash_ = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
    if body["model"] == "judge":
        return json.dumps({"score": 1 + int(hash_[0], 16) % 5, "explanation": hash_})
    return f"Said {hash_}."


def _hash(call: Call, attempt: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{call.seed} {call.ask} {attempt}".encode()).digest()[:6])
