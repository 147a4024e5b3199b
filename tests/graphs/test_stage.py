"""Scenes: calls have places of their own, and equal places draw alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dialoom import Line, Scenario
from dialoom.graphs import DialogueFault, Scene, Stage, stream
from dialoom.graphs.gate import Gate
from dialoom.prompts import Prompt, PromptLibrary
from dialoom.roles import BindingError, Cast, Gateway, ModelBinding
from dialoom.roles.offline import Draws, MarkedRequest, understudy
from tests.ledgers import MemoryLedger

PROMPT = "---\nid: play\nversion: 1\nrole: player\ninputs: [word]\nreply: text\n---\n=== user ===\nSay {{ word }}.\n"


@understudy("play", "player")
def play(request: MarkedRequest, draws: Draws) -> str:
    """Says anything."""
    return f"{request.prompt} {draws.number(0, 999)}"


class Word(Scenario):
    """A scenario of one word."""

    word: str

    @property
    def label(self) -> str:
        """The word."""
        return self.word

    def facets(self) -> dict[str, Any]:
        """The word."""
        return {"word": self.word}


def staged(ledger: MemoryLedger, sample: int = 0) -> Stage:
    """A stage with one role, played by the offline model."""
    library = PromptLibrary([Prompt.parse(PROMPT, "t")])
    models = {"player": ModelBinding(model="offline/generic", temperature=0.0)}
    return Stage(Word(word="heron"), Cast(library, models, Gateway(ledger)), "thread", seed=5, sample=sample)


async def test_a_call_at_the_same_place_is_answered_from_the_ledger() -> None:
    """The same node at the same step: one call. Another step, or a second time in a node: another one."""
    ledger = MemoryLedger()
    for step in (1, 1, 2):
        await Scene(staged(ledger), "node", step).ask("play", word="heron")
    assert len(ledger.begun) == 2
    scene = Scene(staged(ledger), "node", 1)
    await scene.ask("play", word="heron")
    await scene.ask("play", word="heron")
    assert len(ledger.begun) == 3
    assert [place.ordinal for _, place, _ in ledger.begun] == [0, 0, 1]


async def test_a_new_sample_is_a_call_of_its_own_with_a_seed_of_its_own() -> None:
    """So a fork's replies are not those of the branch that it left."""
    ledger = MemoryLedger()
    for sample in (0, 1, 1):
        await Scene(staged(ledger, sample), "node", 1).ask("play", word="heron")
    assert [place.sample for _, place, _ in ledger.begun] == [0, 1]
    assert len({place.seed for _, place, _ in ledger.begun}) == 2


async def test_several_models_play_one_part_under_names_of_their_own() -> None:
    """With a call each, booked under its role and model; understudies play them all; without a model there is none."""
    ledger = MemoryLedger()
    source = PROMPT.replace("id: play", "id: gate/play").replace("player", "reviewer")
    library = PromptLibrary([Prompt.parse(source, "t")])
    models = {
        "reviewer": ModelBinding(model="offline/generic", temperature=0.0),
        "reviewer-2": ModelBinding(model="offline/attentive", temperature=0.0),
    }
    scene = Scene(Stage(Word(word="heron"), Cast(library, models, Gateway(ledger)), "thread", seed=5), "node", 1)
    await scene.ask("gate/play", word="heron")
    await scene.ask_role("reviewer-2", "gate/play", word="heron")
    assert [(request.role, request.model) for _, _, request in ledger.begun] == [
        ("reviewer", "offline/generic"),
        ("reviewer-2", "offline/attentive"),
    ]
    with pytest.raises(
        BindingError, match=r"'reviewer-3' is to play 'gate/play' and has no model; reviewer, reviewer-"
    ):
        await scene.ask_role("reviewer-3", "gate/play", word="heron")


def test_streams_are_private_and_repeatable() -> None:
    """Equal (seed, scenario, purpose) draw alike; anything else differs; the global generator is left alone."""
    import random

    state = random.getstate()
    one = [stream(1, "s", "p").random() for _ in range(2)]
    assert one[0] == one[1]
    assert len({stream(*where).random() for where in [(1, "s", "p"), (2, "s", "p"), (1, "t", "p"), (1, "s", "q")]}) == 4
    assert random.getstate() == state


def test_a_scenarios_id_follows_from_its_content() -> None:
    """Equal content, equal id; the label is in it for people."""
    assert Word(word="heron").id == Word(word="heron").id
    assert Word(word="heron").id != Word(word="hero n").id
    assert Word(word="heron").id.startswith("heron-")


class Suspicious(Gate):
    """A gate that finds a fault in the first lines that it is shown."""

    def __init__(self, rejected: int) -> None:
        self.left = rejected

    def faults_of_line(self, scenario: Any, history: Sequence[Line], line: Line) -> list[DialogueFault]:
        self.left -= 1
        return [DialogueFault(who=line.role, kind="echo")] if self.left >= 0 else []


async def test_a_rejected_line_is_asked_for_again_at_the_same_place() -> None:
    """With another seed and the number of the ask, so that going on finds each of them in the ledger."""
    ledger = MemoryLedger()
    for _ in range(2):
        stage = replace(staged(ledger), gate=Suspicious(2), retries=3)
        await Scene(stage, "node", 1).ask_user("play", [], str, word="heron")
    assert [(place.ordinal, place.ask) for _, place, _ in ledger.begun] == [(0, 1), (0, 3), (0, 5)]
    assert len({place.seed for _, place, _ in ledger.begun}) == 3
    stage = replace(staged(MemoryLedger()), gate=Suspicious(9), retries=1)
    assert await Scene(stage, "node", 1).ask_user("play", [], str, word="heron"), "the last one is taken as it is"
