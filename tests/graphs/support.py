"""A small dialogue recipe, as an author writes it, and players for its roles; the links of a report's figures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

from dialoom import Check, DialogueRecipe, Judge, RecipeOptions, Run, Scenario, Turns
from dialoom.graphs import Conversation, Estimate
from dialoom.runs.store import ScenarioQuery
from dialoom.studio.queries import FACET_PREFIX, build_figure_query


class Errand(Scenario):
    """A caller's goal."""

    goal: str


def gave_number(conversation: Conversation) -> bool:
    """Return whether the agent named a case number."""
    return "AB-" in conversation.text("assistant")


class Support(DialogueRecipe):
    """Callers of a web shop and its support agent."""

    name = "support"
    scenario_type = Errand
    prompts = {
        "user": "You call a web shop. <task>{{ goal }}</task> Write DONE when satisfied.",
        "assistant": "You are the support agent of a web shop.",
    }
    turns = Turns(max_turns=3, end_marker="DONE")
    judges = [
        Judge("resolved", rubric="The goal was reached: {{ goal }}"),
        Judge("tone", scale=(1, 5), rubric={1: "rude", 5: "warm"}, per_turn=True),
    ]
    checks = [Check("gave_number", gave_number)]

    def scenarios(self, options: RecipeOptions, draw: Random, note: Callable[[str], None]) -> Iterator[Errand]:
        """Yield two errands."""
        yield from (Errand(goal=goal) for goal in ("return a kettle", "change an address"))


def scripted(lines: Sequence[str]) -> Callable[[list[Any]], Awaitable[str]]:
    """Return a player that says the lines in order and then repeats the last one."""

    async def player(messages: list[Any]) -> str:
        said = sum(message["role"] == "assistant" for message in messages)
        return str(lines[min(said, len(lines) - 1)])

    return player


async def judge(messages: list[Any]) -> str:
    """Return an approving verdict or a score, as the question requires."""
    asked: str = messages[-1]["content"]
    if "true or false" in asked:
        return '{"explanation": "so it says", "verdict": true}'
    return '{"score": 4}'


def linked_columns(run: Run) -> set[tuple[str, str]]:
    """Return the tables and columns of linked means; check that each link selects as many scenarios as were counted.

    The tables about judges are left out: they count judgements, and one scenario has several.
    """
    choices, linked = run.choices(), set[tuple[str, str]]()
    for table in run.report().tables:
        for row, column in product(table.rows, table.columns if table.name != "judge-health" else ()):
            cell, query = row[list(table.columns).index(column)], build_figure_query(table, row, column, choices)
            if isinstance(cell, Estimate) and query is not None:
                facets = {
                    name.removeprefix(FACET_PREFIX): value
                    for name, value in query.items()
                    if name.startswith(FACET_PREFIX)
                }
                selected = ScenarioQuery(state=query.get("state", ""), facets=facets)
                assert run.scenarios(selected, where=query["where"] or None).total == cell.n, (table.name, row, column)
                linked.add((table.name, column))
    return linked
