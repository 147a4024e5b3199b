"""Source folders that somebody has mended: what is wrong is told with its file and line, and nothing is passed over."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoom import personas
from dialoom.personas import DataError
from dialoom.personas.apollo.source import read_source

SAMPLE = Path(personas.__file__).parent / "samples" / "apollo"


def edited(folder: Path, file: str, edit: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of the sample with its second line of a file edited."""
    shutil.copytree(SAMPLE, folder)
    lines = (folder / file).read_text().splitlines()
    row = json.loads(lines[1])
    edit(row)
    (folder / file).write_text("\n".join([lines[0], json.dumps(row), *lines[2:]]))
    return folder


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda pair: pair.update(tools=[*pair["tools"], "juggle"]), 'tools: there is no tool "juggle"'),
        (lambda pair: pair.update(tools=[]), "is missing, which is called by its gold"),
        (lambda pair: pair.update(tools=pair["tools"] * 5), "is there twice"),
        (lambda pair: pair.update(today="yesterday"), 'today "yesterday": give a day from'),
        (lambda pair: pair["slots"].pop("today"), "slots: today is missing"),
        (lambda pair: pair["slots"].update(date=7), "date 7: give a day"),
        (lambda pair: pair.update(order=["juggle"]), "order "),
        (lambda pair: pair.update(order=[]), "order "),
        (lambda pair: pair.update(values={}), "values: "),
    ],
)
def test_a_pair_that_could_not_be_played_is_refused(
    tmp_path: Path, edit: Callable[[dict[str, Any]], object], told: str
) -> None:
    """When it is read, and not in the middle of a plan or of a sample."""
    with pytest.raises(DataError, match=r"pairs\.jsonl:2: pair u01-") as raised:
        read_source(edited(tmp_path / "source", "pairs.jsonl", edit))
    assert told in str(raised.value)


def test_a_session_that_tells_a_preference_is_not_among_the_unrelated(tmp_path: Path) -> None:
    """It would be told twice."""
    folder = edited(tmp_path / "source", "sessions.jsonl", lambda session: session.update(kind="unrelated"))
    with pytest.raises(DataError, match=r"pairs\.jsonl:\d+: pair .*is to be of the kind preference"):
        read_source(folder)


def test_several_pairs_on_a_line_are_all_read(tmp_path: Path) -> None:
    """As they come where files without a last newline were put together."""
    folder = edited(tmp_path / "source", "users.jsonl", lambda _: None)
    for file in ("users.jsonl", "sessions.jsonl", "pairs.jsonl"):
        (folder / file).write_text((folder / file).read_text().replace("\n", " "))
    assert read_source(folder) == read_source(SAMPLE)


def test_a_second_line_of_what_a_source_was_made_with_is_refused(tmp_path: Path) -> None:
    """Which of them would hold?"""
    shutil.copytree(SAMPLE, tmp_path / "source")
    (meta := tmp_path / "source" / "meta.jsonl").write_text(meta.read_text() * 2)
    with pytest.raises(DataError, match=r"meta\.jsonl:2: a source has one line here"):
        read_source(tmp_path / "source")
