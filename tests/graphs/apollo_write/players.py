"""Players that write a small source like the understudies, with replies that tests can replace."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import dialoom
from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.source import ApolloSource, read_source
from dialoom.personas.apollo.source.scripted import describe_flow
from dialoom.roles import offline

SMALL: dict[str, Any] = {"users": 1, "pairs": 1, "errands": 0, "offers": 1}
Say = Callable[[str], Any]


def part(text: str, tag: str) -> str:
    """Return the text of a part of a prompt."""
    found = re.search(rf"<{tag}\b[^>]*>(.*?)</{tag}>", text, re.DOTALL)
    return found[1].strip() if found else ""


class Players:
    """A player of all roles that counts and records requests, and answers like an understudy without faults.

    Args:
        instead: By kind (`name`, `choice`, `turns`, `query` of the writer; `check`, `read` and `solve`), a function of
            the request's text that returns the reply, or None for the usual one.
    """

    def __init__(self, **instead: Say) -> None:
        self.asked: Counter[str] = Counter()
        self.received: list[tuple[str, str]] = []
        self._instead = instead

    async def __call__(self, messages: list[Any]) -> str:
        text = "\n".join(message["content"] for message in messages)
        kind = _kind(text)
        self.asked[kind] += 1
        self.received.append((kind, text))
        say = self._instead.get(kind)
        said = say(text) if say else None
        said = self.said(text) if said is None else said
        return said if isinstance(said, str) else json.dumps(said)

    @staticmethod
    def said(text: str) -> str:
        """Return the reply of an understudy that makes no deliberate fault."""
        marked = [{"role": "user", "content": _faultless(text)}]
        role = {"check": "checker", "read": "checker", "solve": "solver"}.get(_kind(text), "writer")
        flow = next((name for name in FLOWS if describe_flow(name) == part(text, "task")), "")
        return offline.play("attentive", marked, f"apollo_write/{role}", role, inputs={"flow": flow}).words

    def errors_in_requests(self, kind: str) -> list[str]:
        """Return the errors stated in each request to correct a text."""
        return [part(text, "wrong") for asked, text in self.received if asked == kind and "<wrong>" in text]


def _kind(text: str) -> str:
    others = {"You check": "check", "You read": "read", "You are an assistant": "solve"}
    first_key = re.findall(r'JSON object of[^"]*"(\w+)"', part(text, "instruction"))[0]
    return next((kind for words, kind in others.items() if text.startswith(words)), first_key)


def _faultless(text: str) -> str:
    """State an error in a prompt, so that the understudy makes no deliberate fault."""
    return text if "<wrong>" in text else text.replace("<instruction>", "<wrong>nothing</wrong>\n<instruction>", 1)


def played(folder: Path, players: Players | None = None, name: str = "run", **options: Any) -> dialoom.Run:
    """Play a run of one user."""
    models: Mapping[str, Any] = dict.fromkeys(("writer", "checker", "solver"), players or Players())
    roles = models if options.get("verify_leaks") else {role: models[role] for role in ("writer", "checker")}
    return dialoom.play("apollo-write", path=folder / f"{name}.db", models=roles, options={**SMALL, **options})


def details(run: dialoom.Run) -> Mapping[str, Any]:
    """Return the details of the only scenario's outcome."""
    (episode,) = run.episodes()
    return episode.outcome.details


def source(run: dialoom.Run, folder: Path) -> ApolloSource:
    """Export the source that a run has written, and read it with all checks."""
    run.export("apollo-source", folder)
    return read_source(folder, thorough=True)
