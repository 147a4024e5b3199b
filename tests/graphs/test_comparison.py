"""The tables of several runs, side by side."""

from __future__ import annotations

from dialoom.graphs import Table, side_by_side


def _table(
    *rows: list[str | float], columns: tuple[str, ...] = ("setting", "TCR %"), note: str = "TCR: share."
) -> Table:
    return Table("scores", "Scores", list(columns), list(rows), [note])


def test_rows_that_are_to_be_compared_stand_together() -> None:
    """One table, with the run's label before each row; a note that all have is there once."""
    first = _table(["base", 0.5], ["I", 0.9])
    second = _table(["base", 0.6], ["P", 0.7], note="Another note.")
    (table,) = side_by_side([("model-a", [first]), ("model-b", [second])])
    assert table.columns == ["run", "setting", "TCR %"]
    assert table.rows == [
        ["model-a", "base", 0.5],
        ["model-b", "base", 0.6],
        ["model-a", "I", 0.9],
        ["model-b", "P", 0.7],
    ]
    assert table.notes == ["TCR: share.", "Another note."]
    assert (table.name, table.title) == ("scores", "Scores")


def test_tables_of_other_columns_stay_apart_under_names_of_their_own() -> None:
    """Titles say whose they are; no file of one is written over the other's."""
    longer = _table(["base", 0.5, 0.4], columns=("setting", "turn 1", "turn 2"))
    shorter = _table(["base", 0.5], columns=("setting", "turn 1"))
    tables = side_by_side([("a.db", [longer]), ("b.db", [shorter])])
    assert [(table.name, table.title) for table in tables] == [
        ("scores-1", "Scores (a.db)"),
        ("scores-2", "Scores (b.db)"),
    ]
    assert [table.rows for table in tables] == [longer.rows, shorter.rows]
    assert longer.name == "scores", "what was given is left as it was"


def test_a_table_that_only_one_run_has_is_shown() -> None:
    """E.g. no other was judged."""
    (table,) = side_by_side([("a.db", []), ("b.db", [_table(["base", 0.5])])])
    assert table.rows == [["b.db", "base", 0.5]]
