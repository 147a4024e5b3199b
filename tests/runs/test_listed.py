"""Pages of scenarios: selection, order, and search."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import dialoom
from dialoom import DialoomError
from dialoom.runs.reading.scenarios import iter_scenarios
from dialoom.runs.store import Neighbours, RunFile, ScenarioQuery
from tests.conftest import Command, MadeOnce, write_quick_players

pytestmark = pytest.mark.usefixtures("_cache")


@pytest.fixture
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _make(dialoom: Command, folder: Path) -> None:
    dialoom("run", "personalens", *write_quick_players(folder), "--limit", 6, "-o", "r.db")
    with sqlite3.connect(folder / "r.db") as connection:  # make the scenarios differ
        connection.execute("UPDATE scenarios SET state = 'failed', error = 'no' WHERE position = 2")
        connection.execute("UPDATE judgements SET score = scenario WHERE metric = 'coherence'")
        connection.execute("UPDATE judgements SET score = NULL WHERE metric = 'coherence' AND scenario = 3")
        connection.execute("UPDATE scenarios SET facets = json_set(facets, '$.\"its place\"', abs(position - 2))")
        connection.execute("UPDATE outcomes SET counts = json_set(counts, '$.turns', 9 - scenario)")
        connection.execute("UPDATE outcomes SET faults = '[]'")
        fault = '[{"role":"user","kind":"echo"},{"role":"judge","kind":"copied_form"}]'
        connection.execute("UPDATE outcomes SET faults = ? WHERE scenario = 4", (fault,))
        connection.execute(
            "UPDATE outcomes SET faults = ? WHERE scenario = 5", ('[{"role":"judge","kind":"copied_form"}]',)
        )


@pytest.fixture
def run(made_once: MadeOnce) -> dialoom.Run:
    """Return a run of six scenarios."""
    return dialoom.open_run(made_once(_make) / "r.db")


def _positions(run: dialoom.Run, query: ScenarioQuery, **more: str) -> list[int]:
    page = run.scenarios(query, **more)  # type: ignore[arg-type]
    assert page.total == len(page.rows)
    return [row.position for row in page.rows]


def test_pages_are_consecutive(run: dialoom.Run) -> None:
    first, second = run.scenarios(limit=4), run.scenarios(offset=4, limit=4)
    assert [row.position for row in (*first.rows, *second.rows)] == [*range(6)]
    assert first.total == second.total == 6
    row, episode = first.rows[1], run.episode(2)
    assert episode is not None
    assert (row.id, row.state, row.ended_by, row.facets) == (episode.id, "done", "user_terminated", episode.facets)
    assert row.scores == {"coherence": 1.0, "naturalness": 3.0, "personalization": 3.0, "task_completion": 1.0}
    query = "SELECT sum(input_tokens + output_tokens) FROM calls WHERE scenario = 1"
    with sqlite3.connect(run.path) as connection:
        assert row.tokens == connection.execute(query).fetchone()[0]


@pytest.mark.parametrize(
    ("query", "positions"),
    [
        (ScenarioQuery(state="failed"), [2]),
        (ScenarioQuery(state="pending"), []),
        (ScenarioQuery(ended_by="user_terminated", state="done"), [0, 1, 3, 4, 5]),
        (ScenarioQuery(at_least={"coherence": 4}), [4, 5]),
        (ScenarioQuery(at_most={"coherence": 1}), [0, 1]),
        (ScenarioQuery(fault="any"), [4]),
        (ScenarioQuery(fault="none"), [0, 1, 2, 3, 5]),
        (ScenarioQuery(fault="echo"), [4]),
        (ScenarioQuery(fault="user"), [4]),
        (ScenarioQuery(fault="user/echo"), [4]),
        (ScenarioQuery(fault="judge/echo"), []),
        (ScenarioQuery(among=[5, 1, 99]), [1, 5]),
        (ScenarioQuery(sort="score:coherence"), [0, 1, 2, 4, 5, 3]),
        (ScenarioQuery(sort="score:coherence", is_descending=True), [5, 4, 2, 1, 0, 3]),
        (ScenarioQuery(sort="number", is_descending=True), [5, 4, 3, 2, 1, 0]),
        (ScenarioQuery(sort="state"), [0, 1, 3, 4, 5, 2]),
        (ScenarioQuery(sort="count:turns"), [5, 4, 3, 2, 1, 0]),
        (ScenarioQuery(sort="facet:its place"), [2, 1, 3, 0, 4, 5]),
        (ScenarioQuery(facets={"user": "nobody"}), []),
        (ScenarioQuery(facets={'us"er': "' OR 1"}), []),
    ],
)
def test_scenarios_are_filtered_and_ordered(run: dialoom.Run, query: ScenarioQuery, positions: list[int]) -> None:
    assert _positions(run, query) == positions


def test_list_facet_matches_each_of_its_values(run: dialoom.Run) -> None:
    for name, values in run.choices().items():
        for value, count in values.items() if name.startswith("facet:") else ():
            assert run.scenarios(ScenarioQuery(facets={name.removeprefix("facet:"): value})).total == count, name
    assert run.choices()["state"] == {"done": 5, "failed": 1}
    assert run.choices()["fault"] == {"copied_form": 2, "echo": 1}


def test_expression_and_words_narrow_a_query(run: dialoom.Run) -> None:
    assert _positions(run, ScenarioQuery(state="done"), where="coherence >= 1") == [1, 4, 5]
    assert _positions(run, ScenarioQuery(at_most={"coherence": 2}), search="reply") == [0, 1, 2]


@pytest.mark.parametrize(
    ("query", "where"),
    [
        (ScenarioQuery(), None),
        (ScenarioQuery(sort="score:coherence", is_descending=True), None),
        (ScenarioQuery(state="done", sort="score:coherence"), "coherence >= 1"),
    ],
)
def test_neighbours_are_those_of_the_list(run: dialoom.Run, query: ScenarioQuery, where: str | None) -> None:
    positions = [row.position for row in run.scenarios(query, where=where).rows]
    for place, position in enumerate(positions):
        before, after = [None, *positions][place], [*positions, None][place + 1]
        found = run.neighbours(position + 1, query, where=where)
        assert found == Neighbours(before, after, place + 1, len(positions))
    for position in {*range(6)} - {*positions}:
        assert run.neighbours(position + 1, query, where=where) is None


def test_expression_is_evaluated_once_for_all_pages(run: dialoom.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated: list[str] = []

    def counted(file: RunFile, judging: str | None, where: str, **more: Any) -> Any:
        evaluated.append(where)
        return iter_scenarios(file, judging, where, **more)

    monkeypatch.setattr("dialoom.runs.reading.scenarios.iter_scenarios", counted)
    where = "coherence >= 1 and number > 0"
    assert [run.scenarios(where=where, offset=offset, limit=2).total for offset in (0, 2)] == [4, 4]
    assert evaluated == [where]
    with sqlite3.connect(run.path) as connection:
        connection.execute("UPDATE judgements SET score = 0 WHERE metric = 'coherence' AND scenario = 5")
    assert run.scenarios(where=where).total == 3
    assert evaluated == [where, where]


def test_expression_is_evaluated_anew_for_a_link_to_a_run_that_is_being_written(
    run: dialoom.Run, tmp_path: Path
) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(run.path)
    where = "coherence >= 1 and number > 0"
    with closing(sqlite3.connect(run.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert dialoom.open_run(link).scenarios(where=where).total == 4
        with connection:
            connection.execute("UPDATE judgements SET score = 0 WHERE metric = 'coherence' AND scenario = 5")
        assert dialoom.open_run(link).scenarios(where=where).total == 3


def test_threads_that_share_a_handle_each_read_one_moment(run: dialoom.Run) -> None:
    has_begun, is_written = Event(), Event()

    def wait_until_written(*_progress: object) -> None:
        has_begun.set()
        assert is_written.wait(60)

    def read() -> list[str]:
        return [row.state for row in run.scenarios(where="number > 3", on_progress=wait_until_written).rows]

    def start(*_progress: object) -> None:
        others.append(pool.submit(read))
        assert has_begun.wait(60)

    others = list[Future[list[str]]]()
    with ThreadPoolExecutor(1) as pool, run:
        assert run.scenarios(where="number > 1", on_progress=start).total == 5
        with closing(sqlite3.connect(run.path)) as connection, connection:
            connection.execute("UPDATE scenarios SET state = 'failed', error = 'no'")
        is_written.set()
        assert others[0].result() == ["done"] * 3
        assert read() == ["failed"] * 3


def test_long_search_reports_progress_and_can_be_cancelled(run: dialoom.Run) -> None:
    messages: list[str] = []

    def interrupt(what: str, _done: int, of: int) -> None:
        messages.append(what)
        assert of > 0
        raise InterruptedError

    for more in ({"where": "lines > 1"}, {"search": "reply"}):
        with pytest.raises(InterruptedError):
            run.scenarios(on_progress=interrupt, **more)  # type: ignore[arg-type]
        assert run.scenarios(**more).total == 6  # type: ignore[arg-type]
        assert run.scenarios(on_progress=interrupt, **more).total == 6  # type: ignore[arg-type]
    assert messages == ["reading scenarios", "reading conversations"]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("Reply LINE", 6),
        ('"line 1 of mine"', 6),
        ('"of line"', 0),
        ("repl*", 6),
        ("repl", 0),
        ("reply AND nothing", 0),
        ('reply" OR "x', 0),
        ("NEAR(reply", 0),
    ],
)
def test_messages_are_found_by_their_words(run: dialoom.Run, words: str, found: int) -> None:
    page = run.scenarios(search=words)
    assert page.total == found
    assert all("eply" in text or "ine" in text for text in page.matches.values())
    assert len(page.matches) == found


def test_index_follows_the_run(run: dialoom.Run) -> None:
    assert run.scenarios(search="zebra").total == 0
    before = run.path.read_bytes()
    assert run.scenarios(search="reply").total == 6
    assert run.path.read_bytes() == before
    with sqlite3.connect(run.path) as connection:
        connection.execute("INSERT INTO kept_texts (id, hash, content) VALUES (9999, 0, 'A Zébra!')")
        connection.execute("""UPDATE outcomes SET messages = '[["user",9999]]' WHERE scenario = 0""")
        connection.execute("UPDATE scenarios SET state = 'pending' WHERE position = 1")
    assert run.scenarios(search="zebra").matches == {0: "A Zébra!"}
    assert [row.position for row in run.scenarios(search="reply").rows] == [2, 3, 4, 5]


def test_only_the_user_can_read_the_index(run: dialoom.Run, tmp_path: Path) -> None:
    run.scenarios(search="reply")
    (index,) = (tmp_path / "cache" / "dialoom" / "words").iterdir()
    assert index.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("query", "search", "message"),
    [
        (ScenarioQuery(state="begun"), None, "state must be one of pending, done, failed"),
        (ScenarioQuery(sort="beauty"), None, "score:METRIC"),
        (ScenarioQuery(judging="nobody"), None, "no judgements named 'nobody'"),
        (ScenarioQuery(), " *", "search must contain a word"),
    ],
)
def test_impossible_query_is_explained(
    run: dialoom.Run, query: ScenarioQuery, search: str | None, message: str
) -> None:
    with pytest.raises(DialoomError, match=message):
        run.scenarios(query, search=search)


def test_command_line_searches_messages(run: dialoom.Run, dialoom: Command) -> None:
    output = dialoom("show", run.path, "--search", '"line 1 of mine"', "--where", "coherence == 4").stdout.splitlines()
    assert len(output) == 3  # header, scenario, matching text
    assert "ine 1 of mine" in output[2]
    (line,) = dialoom("show", run.path, "--search", "reply", "--where", "coherence == 4", "--json").stdout.splitlines()
    assert "eply" in json.loads(line)["match"]
    assert dialoom("show", run.path, 1, "--search", "reply", code=2).stderr
