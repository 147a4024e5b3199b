"""A faulty provider: the call and the attempt alone decide which requests fail, and how."""

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
"""The share of requests with a faulty answer."""

MOST_IN_A_ROW = 3
"""The most faulty answers to one call in a row, so that no call runs out of attempts."""

USUAL, SLOW = 0.02, 0.3
"""Seconds before a reply is sent, so that some calls are always in progress."""

PRICE = (3.0, 15.0)
"""US dollars per million tokens in and out."""


class Call(NamedTuple):
    """A call as the provider identifies it: a seed for a place in the run, which may be asked twice."""

    seed: int
    ask: int


class Usage(NamedTuple):
    """Input and output tokens."""

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
"""Failures, each of which must be a failed attempt in the ledger."""

KINDS = (*FAILING, "empty", "slow")
"""All kinds of faults: failures, and empty or slow replies, which are replies all the same."""


@dataclass
class FaultyProvider:
    """A provider that counts its requests and answers.

    Attributes:
        sent: The number of requests of each call.
        replied: The number of replies, including empty ones, to each call.
        given: The number of answers by kind of fault, or `none`.
        closed: Calls that must not be requested again.
        reopened: Closed calls that were requested again.
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
            kind = fault_of(call, self.sent[call])
            self.given[kind or "none"] += 1
            if kind not in FAILING:
                self.replied[call] += 1
        if kind in FAILING:
            return FAILING[kind]()
        answer = completion("" if kind == "empty" else words(body), *usage_of(call))
        return Response(*answer, delay=SLOW if kind == "slow" else USUAL)

    def failed(self, call: Call) -> int:
        """Return the number of failures given to a call."""
        return self.sent[call] - self.replied[call]


def call_of(body: dict[str, Any]) -> Call:
    """Return the call that a request belongs to."""
    return Call(body["seed"], 2 if ASKED_AGAIN in body["messages"][-1]["content"] else 1)


def fault_of(call: Call, attempt: int) -> str | None:
    """Return the fault of the answer to a call's n-th request, or `None`."""
    luck = _hash(call, attempt)
    if luck % 1000 >= 1000 * SHARE or attempt % (MOST_IN_A_ROW + 1) == 0:
        return None
    kind = KINDS[luck // 1000 % len(KINDS)]
    # Two empty replies in a row would make a scenario fail for good, and all are to be finished.
    return None if kind == "empty" and call.ask == 2 else kind


def usage_of(call: Call) -> Usage:
    """Return a call's usage, which differs between calls, so that errors in the ledger do not cancel out."""
    luck = _hash(call, 0)
    return Usage(100 + luck % 900, 1 + luck // 900 % 90)


def words(body: dict[str, Any]) -> str:
    """Return a reply that depends on the request alone."""
    hash_ = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
    if body["model"] == "judge":
        return json.dumps({"score": 1 + int(hash_[0], 16) % 5, "explanation": hash_})
    return f"Said {hash_}."


def _hash(call: Call, attempt: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{call.seed} {call.ask} {attempt}".encode()).digest()[:6])
