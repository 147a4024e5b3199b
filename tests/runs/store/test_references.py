"""The text of a message is stored once; everything else that contains it refers to it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.long_requests import Item, Recalling, assistant
from dialoom import Outcome, play
from dialoom.graphs.conversation import lines
from dialoom.runs.store.references import make_object_hook, replace_texts

TEXTS = ["a long text that was said " * 4, "another one that was sent " * 4]


class Detailed(Recalling):
    """A recipe whose outcomes repeat a message in their details."""

    name = "detailed"

    def outcome(self, scenario: Item, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return an outcome with the answer in its details."""
        said = lines(state["messages"])
        details = {"answer": said[-1].content if said else "", "$text": ["a dict of the recipe's own", 3]}
        return Outcome(messages=said, ended_by="error" if failed else "answered", details=details)


def tables_with(path: Path, text: str) -> Iterator[str]:
    """Yield the tables that contain a text."""
    with closing(sqlite3.connect(path)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in connection.execute(f"SELECT * FROM {table}"):
                if any(isinstance(value, str) and text in value for value in row):
                    yield table


def test_text_is_stored_once(tmp_path: Path) -> None:
    options = {"pairs": 1, "methods": 2, "turns": 1, "in_state": True}
    run = play(Detailed, path=tmp_path / "run.db", options=options, models={"assistant": assistant})
    for number, episode in enumerate(run.episodes(), start=1):
        answer = episode.outcome.messages[-1].content
        assert len(answer) > 900
        assert list(tables_with(run.path, answer)) == ["kept_texts"]
        assert episode.outcome.details == {"answer": answer, "$text": ["a dict of the recipe's own", 3]}

        async def states(number: int = number) -> list[Any]:
            async with run.step(number) as stepper:
                return [stop.state["messages"] for stop in await stepper.stops()]

        assert asyncio.run(states())[-1][-1].content == answer


def test_references_are_restored_to_the_original_values() -> None:
    value: Any = {"$text": [TEXTS[0], {"$text": 1}], "b": [TEXTS[1], "short", None, {"c": TEXTS[0]}, "unsaid " * 20]}
    value |= {"d": {"e": 1, TEXTS[1]: TEXTS[0]}, "f": {"$text 0": "a key of the recipe's own", TEXTS[0]: 1}}
    text = json.dumps(replace_texts(value, lambda text: TEXTS.index(text) if text in TEXTS else None))
    assert [text.count(each) for each in TEXTS] == [1, 0] and "unsaid" in text
    assert json.loads(text, object_hook=make_object_hook(TEXTS.__getitem__)) == value
