"""The corpus of sound and faulty dialogues, assembled reproducibly from hand-written pieces in `corpus/`.

Half of it is held out: the hash of a scene or a planted piece decides its half, so dialogues of different halves share
no piece. Rules are developed with the first half and measured on the second.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from dialoom import Judgement, Line
from dialoom.graphs.gate import RULES, Facts, PromptWords, Talk
from dialoom.prompts import PromptLibrary
from dialoom.prompts.prompt import SHIPPED_FOLDER

CORPUS = Path(__file__).parent / "corpus"
WORDINGS = 10
"""The number of dialogues made of each scene."""

ALLOWED: Mapping[str, frozenset[str]] = {
    "echo": frozenset({"swapped_role"}),
    "glued_lines": frozenset({"swapped_role"}),
    "prompt_leak": frozenset({"end_marker", "glued_lines", "swapped_role"}),
    "loop": frozenset({"echo", "repetition", "no_end"}),
    "no_end": frozenset({"loop"}),
}
"""Faults that a planted fault entails, which count neither as found nor as wrong."""

_SPEAKERS = {"U": "user", "A": "assistant"}


@dataclass(frozen=True)
class Scene:
    """A hand-written conversation with several wordings of each line."""

    name: str
    task: str
    kept_back: tuple[str, ...]
    lines: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def facts(self) -> Facts:
        if not self.task:
            return Facts(languages=("en",))
        ends: dict[str, Any] = {"end_markers": ("TERMINATE",), "user_ends": "user_terminated", "limit": "turn_limit"}
        return Facts(languages=("en",), task=self.task, kept_back=self.kept_back, **ends)

    def worded(self, draw: random.Random) -> list[Line]:
        return [Line(role=role, content=draw.choice(wordings)) for role, wordings in self.lines]


@dataclass(frozen=True)
class Case:
    """A dialogue and its planted faults."""

    name: str
    lines: Sequence[Line]
    facts: Facts
    ended_by: str
    planted: frozenset[str] = field(default=frozenset())
    is_held_out: bool = False
    has_tools: bool = False

    def found(self) -> set[str]:
        """Return the kinds of faults that the rules find."""
        talk = Talk.of(self.lines, self.facts, self.ended_by, self.has_tools)
        known = replace(talk, prompts=_prompt_words())
        return {fault.kind for rule in RULES for fault in rule(known)}


@cache
def cases() -> tuple[Case, ...]:
    """Return the whole corpus."""
    return (*_sound(), *_faulty())


def explanations() -> list[tuple[Judgement, bool]]:
    """Return judgements, and whether each repeats the form of the reply."""
    rows = [line.split(" ", 1) for line in _read("explanations.txt")]
    return [(Judgement(metric="m", target="t", score=3, explanation=text), mark == "+") for mark, text in rows]


def _sound() -> Iterator[Case]:
    for scene in _scenes("scenes.txt"):
        worded: dict[tuple[Line, ...], None] = {}
        draw = random.Random(scene.name)
        while len(worded) < WORDINGS:
            worded[tuple(scene.worded(draw))] = None
        for number, lines in enumerate(worded):
            is_limited = number == 0 and scene.task  # and is cut off by the turn limit
            shown, ended_by = (lines[:-2], "turn_limit") if is_limited else (lines, _ending(scene))
            yield Case(f"{scene.name} {number}", shown, scene.facts, ended_by, is_held_out=_is_held_out(scene.name))
    for scene in _scenes("hard.txt"):
        lines = tuple(scene.worded(random.Random(0)))
        yield Case(scene.name, lines, scene.facts, _ending(scene), is_held_out=_is_held_out(scene.name))


def _faulty() -> Iterator[Case]:
    for kind, who, pieces in _pieces():
        make = _MADE.get(kind, _with_line)
        for number, piece in enumerate(pieces):
            for again in range(2 if len(pieces) < 30 else 1):
                yield _planted(kind, who, number, piece, f"{kind} {who} {number} {again}", make)
    for kind, place in (("echo", -1), ("repetition", -2)):
        for number in range(36):
            yield _copied(kind, place, f"{kind} {number}")


Made = Callable[[list[Line], str, str, random.Random], tuple[list[Line], str]]


def _planted(kind: str, who: str, number: int, piece: str, name: str, make: Made) -> Case:
    is_held_out, draw = _is_held_out(piece), random.Random(name)
    if kind == "early_preferences":
        wanted, piece = piece.split(" || ")
        scene = next(scene for scene in _scenes("scenes.txt") if scene.name == wanted)
    elif kind == "task_not_stated":
        task, piece = piece.split(" || ", 1)
        scene = Scene(kind, task, (), ())
    else:
        scene = draw.choice([scene for scene in _task_scenes() if _is_held_out(scene.name) == is_held_out])
    who = ("user", "assistant")[number % 2] if who == "both" else who
    lines, ended_by = make(scene.worded(draw), who, piece, draw)
    has_tools = kind == "claimed_action"
    return Case(name, lines, scene.facts, ended_by, frozenset({kind}), is_held_out, has_tools)


def _with_line(lines: list[Line], who: str, piece: str, draw: random.Random) -> tuple[list[Line], str]:
    places = [place for place, line in enumerate(lines) if line.role == who and place]
    lines[draw.choice(places)] = Line(role=who, content=piece)
    return lines, "user_terminated"


def _with_opening(lines: list[Line], _who: str, piece: str, _draw: random.Random) -> tuple[list[Line], str]:
    return [Line(role="user", content=piece), *lines[1:]], "user_terminated"


def _ended_early(lines: list[Line], _who: str, piece: str, _draw: random.Random) -> tuple[list[Line], str]:
    said, answer = piece.split(" || ")
    return [lines[0], Line(role="assistant", content=said), Line(role="user", content=answer)], "user_terminated"


def _never_ended(lines: list[Line], _who: str, piece: str, draw: random.Random) -> tuple[list[Line], str]:
    replies = ["You're welcome!", "Goodbye!", "Any time.", "Have a good day!", "Gladly.", "Bye, take care!"]
    for farewell in piece.split(" || "):
        lines += [Line(role="user", content=farewell), Line(role="assistant", content=draw.choice(replies))]
    return lines, "turn_limit"


def _off_topic(_lines: list[Line], _who: str, piece: str, _draw: random.Random) -> tuple[list[Line], str]:
    said = piece.split(" || ")
    return [Line(role=("user", "assistant")[place % 2], content=text) for place, text in enumerate(said)], "turn_limit"


def _looping(lines: list[Line], _who: str, piece: str, draw: random.Random) -> tuple[list[Line], str]:
    said, answer = piece.split(" || ")
    pair = [Line(role="user", content=said), Line(role="assistant", content=answer)]
    return [*lines[: 2 * draw.randint(1, 2)], *pair * draw.randint(4, 7)], "turn_limit"


_MADE: Mapping[str, Made] = {
    "early_preferences": _with_opening,
    "early_end": _ended_early,
    "no_end": _never_ended,
    "loop": _looping,
    "task_not_stated": _off_topic,
}


def _copied(kind: str, offset: int, name: str) -> Case:
    """Return a dialogue in which the other (-1) or the same speaker (-2) copies a line with small changes."""
    draw, is_held_out = random.Random(name), _is_held_out(name)
    scenes = [scene for scene in _scenes("scenes.txt") if _is_held_out(scene.name) == is_held_out]
    while True:
        scene = draw.choice(scenes)
        lines = scene.worded(draw)
        places = [at for at in range(-offset, len(lines)) if len(lines[at + offset].content.split()) >= 7]
        if places:
            break
    at = draw.choice(places)
    copy = draw.choice(_CHANGES)(lines[at + offset].content, draw)
    lines[at] = Line(role=lines[at].role, content=copy)
    return Case(name, lines, scene.facts, _ending(scene), frozenset({kind}), is_held_out)


def _one_word_changed(text: str, draw: random.Random) -> str:
    words = text.split()
    words[draw.randrange(len(words))] = draw.choice(["really", "thing", "good", "maybe"])
    return " ".join(words)


_CHANGES: Sequence[Callable[[str, random.Random], str]] = (
    lambda text, _: text,
    lambda text, _: text,
    lambda text, _: text.lower().replace(",", "").rstrip(".?!"),
    lambda text, draw: f"{draw.choice(['Okay.', 'Yes!', 'Well,'])} {text}",
    lambda text, _: f"{text} Right?",
    _one_word_changed,
    lambda text, _: text if len(text.split()) < 12 else " ".join(text.split()[:-2]),
)


def _ending(scene: Scene) -> str:
    return "user_terminated" if scene.task else "all_rounds"


def _is_held_out(name: str) -> bool:
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


def _task_scenes() -> list[Scene]:
    return [scene for scene in _scenes("scenes.txt") if scene.task]


@cache
def _scenes(file: str) -> tuple[Scene, ...]:
    found: list[Scene] = []
    for line in _read(file):
        mark, text = line.split(" ", 1)
        if mark in "=~":
            name, task, kept = [*map(str.strip, text.split("|")), "", ""][:3]
            found.append(Scene(name, task, tuple(part.strip() for part in kept.split(";") if part.strip()), ()))
        else:
            wordings = tuple(part.strip().replace("\\n", "\n") for part in text.split(" || "))
            before = found[-1]
            lines = (*before.lines, (_SPEAKERS[mark.rstrip(":")], wordings))
            found[-1] = Scene(before.name, before.task, before.kept_back, lines)
    return tuple(found)


def _pieces() -> list[tuple[str, str, list[str]]]:
    found: list[tuple[str, str, list[str]]] = []
    for line in _read("planted.txt", stripped=False):
        if line.startswith("* "):
            _, kind, who = line.split()
            found.append((kind, who, []))
        else:
            found[-1][2].append(line.replace("\\n", "\n"))
    return found


def _read(name: str, stripped: bool = True) -> list[str]:
    text = (CORPUS / name).read_text(encoding="utf-8")
    lines = [line.strip() if stripped else line for line in text.split("\n")[1:]]
    return [line for line in lines if line]


@cache
def _prompt_words() -> PromptWords:
    ids = [f"personalens/{path.stem}" for path in sorted((SHIPPED_FOLDER / "personalens").glob("*.md"))]
    return PromptWords.of(PromptLibrary.load(ids).values())
