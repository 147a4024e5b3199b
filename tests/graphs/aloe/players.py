"""Three people, and quick players whose lines contain a hash of the request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PEOPLE = [
    {"id": "ada", "profile": "She bakes at night. She keeps two hens.", "personality": "She is blunt."},
    {"id": "ben", "profile": "He drives a tram. He has twin sons.", "personality": "He is shy."},
    {"id": "cem", "profile": "They teach judo. They save for a boat.", "personality": "They are calm."},
]

PLAYERS = """
import hashlib, json
from pathlib import Path

def mark(messages):
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:8]

async def user(messages):
    return f"*smiles* Said {mark(messages)}. *waves*"

async def induction(messages):
    return json.dumps({"profile": f"Fact {mark(messages)}.", "personality": "None"})

async def preferred(messages):
    return f"Preferred {mark(messages)}."

async def rejected(messages):
    return f"Rejected {mark(messages)}."

async def assistant(messages):
    return f"Answer {mark(messages)}."

async def judge(messages):
    number = int(mark(messages), 16)
    if "how well an answer" in messages[0]["content"]:
        return json.dumps({"score": 1 + number % 5, "explanation": "so"})
    return json.dumps({"better": ("first", "second")[number % 2], "explanation": "so"})

async def hazy(messages):
    return "five" if Path("haze").exists() and int(mark(messages), 16) % 3 else await judge(messages)

async def five(messages):
    return "five"

async def late(messages):
    if sum(message["content"].count("<user>") for message in messages) > 2:
        return "She bakes, it seems."
    return await induction(messages)

async def tired(messages):
    return "" if len(messages) > 6 else await preferred(messages)
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """Write a file of three personas, with the players' module beside it."""
    (tmp_path / "players.py").write_text(PLAYERS)
    path = tmp_path / "people.jsonl"
    path.write_text("".join(json.dumps(person) + "\n" for person in PEOPLE))
    return path


def cast(*roles: str, **others: str) -> list[str]:
    """Return options that give each role the player of its name, or another one."""
    players = {**{role: role for role in roles}, **others}
    return [part for role, name in players.items() for part in ("--model", f"{role}=python:players:{name}")]
