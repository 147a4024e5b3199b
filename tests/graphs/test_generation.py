"""Generation loops in a user-defined recipe: which drafts are rewritten or dropped, and the report on them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Episode, Outcome, Scenario
from dialoom.graphs import Scene, Table
from dialoom.graphs.generation import (
    GenerationRecipe,
    GenerationState,
    Loop,
    NoteTally,
    Problem,
    due,
    earlier,
    generation_graph,
    problem,
    reviewed,
    rule,
    settled,
    unwritten,
    written,
)
from dialoom.graphs.judge import Graph
from dialoom.graphs.stage import ask_each

WRITE = """---
id: slogans/write
version: 1
role: writer
inputs: [product, written, wrong]
reply: text
---
=== user ===
Write a slogan for <product>{{ product }}</product>.
{% if wrong %}
Your slogan <written>{{ written }}</written> was rejected: <wrong>{{ wrong }}</wrong>
{% endif %}
"""
FITS = """---
id: slogans/fits
version: 1
role: checker
inputs: [product, slogan]
reply: verdict
---
=== user ===
Does <slogan>{{ slogan }}</slogan> fit <product>{{ product }}</product>? Answer with a JSON object.
"""


class Range(Scenario):
    """The products of a shop, and slogans that a person has written."""

    products: tuple[str, ...]
    given: dict[str, str] = {}


class SloganState(GenerationState, total=False):
    """The state of the graph."""

    drafts: dict[str, str]


async def write(state: SloganState, scene: Scene) -> dict[str, Any]:
    """Write the missing slogans."""
    planned = [product for product in scene.scenario.products if product not in scene.scenario.given]
    inputs = {product: {"product": product, **earlier(state, product)} for product in due(state, planned)}
    drafts, problems = await written(scene, "slogans/write", inputs)
    return {"drafts": {**state["drafts"], **drafts}, "problems": problems}


def length(slogan: str) -> Problem | None:
    """Return a problem if a slogan is too long."""
    return problem("length", f"{len(slogan)} characters, at most 20", slogan) if len(slogan) > 20 else None


def plain(slogan: str) -> Problem | None:
    """Return a problem if a slogan shouts."""
    return problem("plain", "it shouts", slogan) if slogan.endswith("!") else None


async def review(state: SloganState, scene: Scene) -> dict[str, Any]:
    """Check by a rule, by a model, and by another rule."""

    async def fits(drafts: Mapping[str, str]) -> dict[str, Problem]:
        inputs = {product: {"product": product, "slogan": slogan} for product, slogan in drafts.items()}
        found = {}
        for product, reply in (await ask_each(scene, "slogans/fits", inputs)).items():
            if reply is None:
                found[product] = problem("fits", "the checker's reply could not be parsed", result="unparsed")
            elif not reply.verdict:
                found[product] = problem("fits", reply.explanation, drafts[product])
        return found

    drafts = state["drafts"]
    new = {product: drafts[product] for product in due(state, scene.scenario.products) if product in drafts}
    problems = await reviewed(new, rule(length), fits, rule(plain), problems=state["problems"])
    update = settled(state, "slogans", new, problems, rewrites=2, by_hand=scene.scenario.given)
    dropped = {note["id"] for note in update["notes"] if note["result"] == "dropped"}
    return {**update, "drafts": {name: slogan for name, slogan in drafts.items() if name not in dropped}}


class Slogans(GenerationRecipe):
    """Slogans for the products of a shop."""

    name = "slogans"
    roles = {"writer": 0.8, "checker": 0.0}
    prompts = ("slogans/write", "slogans/fits")
    scenario_type = Range

    def scenarios(self, options: Any, draw: random.Random, note: Callable[[str], None]) -> Iterator[Range]:
        """Yield one range of products."""
        yield Range(products=("kettle", "lamp", "rug", "chair", "sofa", "desk"), given={"desk": "d" * 30})

    def initial(self, scenario: Range) -> dict[str, Any]:
        """Return the slogans that were given."""
        return {"drafts": dict(scenario.given), **unwritten()}

    def graph(self, options: Any) -> Graph:
        """Return a single loop."""
        return generation_graph(SloganState, Loop(write, review))

    def outcome(self, scenario: Range, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the slogans and the notes."""
        details = {"slogans": state["drafts"], "notes": state["notes"]}
        return Outcome(messages=(), ended_by="error" if failed else "written", details=details)

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return what was rejected and why."""
        tally = NoteTally({"length": "longer than 20 characters"})
        for episode in episodes:
            tally.add(episode.outcome.details["notes"])
        return tally.tables()


async def writer(messages: list[Any]) -> str:
    """Write a good slogan, but at first one too long for kettles and one too loud for sofas, and none for rugs."""
    text = "\n".join(message["content"] for message in messages)
    asked[text.split("<product>")[1].split("<")[0]] += 1
    if "kettle" in text and "<wrong>" not in text:
        return "k" * 30
    if "kettle" in text:
        kettle_rewrites.append(text)
    if "sofa" in text and "<wrong>" not in text:
        return "Short and good!"
    return "" if "rug" in text else "Short and good."


async def checker(messages: list[Any]) -> str:
    """Reject slogans for lamps, and give an unparseable reply on sofas."""
    text = "\n".join(message["content"] for message in messages)
    if "sofa" in text:
        return "Perhaps."
    return '{"verdict": %s, "explanation": "it is dull"}' % ("false" if "lamp" in text else "true")


asked: Counter[str] = Counter()
kettle_rewrites: list[str] = []


@pytest.fixture
def run(tmp_path: Path) -> dialoom.Run:
    """Play a run of the recipe."""
    asked.clear()
    kettle_rewrites.clear()
    for name, text in (("write", WRITE), ("fits", FITS)):
        (path := tmp_path / "slogans" / f"{name}.md").parent.mkdir(exist_ok=True)
        path.write_text(text)
    recipe = type("Slogans", (Slogans,), {"templates": tmp_path, "__doc__": Slogans.__doc__})
    return dialoom.play(recipe, path=tmp_path / "run.db", models={"writer": writer, "checker": checker})


def test_rejected_drafts_are_rewritten_twice_and_then_dropped(run: dialoom.Run) -> None:
    """The writer is shown its draft with the reason; a draft that a person wrote is checked and never overwritten.

    A check without a parseable reply does not prevent the next one.
    """
    (episode,) = run.episodes()
    assert episode.error is None, episode.error
    assert episode.outcome.details["slogans"] == dict.fromkeys(("kettle", "chair", "sofa"), "Short and good.")
    assert {name: count for name, count in asked.items() if name != "rug"} == {
        **{"kettle": 2, "lamp": 3, "chair": 1, "sofa": 2}
    }
    (again,) = kettle_rewrites
    assert f"<written>{'k' * 30}</written> was rejected: <wrong>30 characters, at most 20</wrong>" in again
    notes = [(note["id"], note["round"], note["result"], note["check"]) for note in episode.outcome.details["notes"]]
    assert [note for note in notes if note[0] in ("kettle", "lamp", "sofa", "desk")] == [
        ("kettle", 1, "rejected", "length"),
        ("lamp", 1, "rejected", "fits"),
        ("sofa", 1, "rejected", "plain"),
        ("desk", 1, "dropped", "length"),
        ("kettle", 2, "passed", ""),
        ("lamp", 2, "rejected", "fits"),
        ("sofa", 2, "unparsed", "fits"),
        ("lamp", 3, "dropped", "fits"),
    ]


def test_report_counts_attempts_and_reasons(run: dialoom.Run) -> None:
    drafts, rejected = run.report(tables=["drafts", "rejected"]).tables
    assert [list(row) for row in drafts.rows] == [["slogans", 6, 1, 2, 0, 3]]
    assert drafts.columns == ["drafts", "number", "passed at once", "after 1 rewrite", "after 2 rewrites", "dropped"]
    rows = {row[1]: row for row in rejected.rows}
    assert [(check, row[2].mean, *row[3:7]) for check, row in rows.items()] == [  # type: ignore[union-attr]
        ("length", 2 / 6, 1, 1, 0, "longer than 20 characters"),
        ("fits", 1 / 6, 2, 1, 1, ""),
        ("plain", 1 / 6, 1, 0, 0, ""),
        ("unparsed", 1 / 6, 2, 1, 0, ""),
    ]
