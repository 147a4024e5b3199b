"""The savings of each storage scheme of the run file, on four workloads.

    python -m benchmarks.run_file [--workload prefeval ...] [--scheme passages ...] [--size 20]
    python -m benchmarks.run_file run.db ...

Offline models play and judge: PersonaLens dialogues, PrefEval's pairs with five methods after 298 turns, ALOE's trees,
and APOLLO's samples; `--size` is the number of PrefEval's pairs, to which the other sizes are proportional.
Alternatively, the files of finished runs are measured. For each scheme, a copy of the file is rewritten as it would be
without the scheme. The saving is the share by which that copy is larger, relative to the copy; both are compacted
(`VACUUM`). The last column is the copy's size relative to the distinct texts: all texts that were said or sent, each
counted once.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import dialoom
from benchmarks.prefeval import METHODS, write_pairs, write_pool
from dialoom.personas.pools import combine, load_seeds, write_personas
from dialoom.runs.store import passages, references, texts
from dialoom.runs.store.checkpoints import upkeep

Transform = Callable[[Any], Any]


def _rewrite(connection: sqlite3.Connection, table: str, column: str, transform: Transform) -> None:
    """Change the JSON in a column of all rows."""
    for key, text in connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall():
        changed = json.dumps(transform(json.loads(text)), ensure_ascii=False, separators=(",", ":"))
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed, key))


def _without_composed_texts(connection: sqlite3.Connection) -> None:
    read = texts.make_text_reader(connection)
    ids = connection.execute("SELECT id FROM kept_texts WHERE parts IS NOT NULL").fetchall()
    contents = [(read(id_), id_) for (id_,) in ids]
    connection.executemany("UPDATE kept_texts SET content = ?, parts = NULL WHERE id = ?", contents)


def _without_passages(connection: sqlite3.Connection) -> None:
    read = passages.make_passage_reader(connection)
    for table in ("kept_calls", "outcomes"):
        _rewrite(connection, table, "messages", lambda messages: passages.read_messages(json.dumps(messages), read))
    connection.execute("DELETE FROM passages")


def _without_list_additions(connection: sqlite3.Connection) -> None:
    lists: dict[int, list[Any]] = {}
    rows = connection.execute("SELECT id, prefix, elements FROM checkpoint_lists ORDER BY id").fetchall()
    for id_, prefix, elements in rows:
        lists[id_] = [*lists.get(prefix, ()), *json.loads(elements)]
        text = json.dumps(lists[id_], ensure_ascii=False, separators=(",", ":"))
        connection.execute("UPDATE checkpoint_lists SET prefix = NULL, elements = ? WHERE id = ?", (text, id_))


def _without_references(connection: sqlite3.Connection) -> None:
    transform = _apply_to_objects(references.make_object_hook(texts.make_text_reader(connection)))
    for table, column in (
        ("checkpoint_values", "content"),
        ("checkpoint_lists", "elements"),
        ("checkpoints", "held"),
        ("pending_writes", "value"),
        ("outcomes", "details"),
    ):
        _rewrite(connection, table, column, transform)


def _without_documents(connection: sqlite3.Connection) -> None:
    def follow(parts: dict[str, Any]) -> Any:
        hash_ = parts.get("$doc", parts.get("$shared"))
        if hash_ is None:
            return parts
        query = "SELECT content FROM documents WHERE hash = ?"
        (content,) = connection.execute(query, (bytes.fromhex(hash_),)).fetchone()
        return transform(json.loads(content))

    transform = _apply_to_objects(follow)
    _rewrite(connection, "scenarios", "content", transform)
    connection.execute("DELETE FROM documents")


def _apply_to_objects(follow: Callable[[dict[str, Any]], Any]) -> Transform:
    """Return a function that applies `follow` to the objects in a JSON value, innermost first."""

    def transform(value: Any) -> Any:
        if isinstance(value, list):
            return [transform(part) for part in value]
        return follow({key: transform(part) for key, part in value.items()}) if isinstance(value, dict) else value

    return transform


def _without_fields(connection: sqlite3.Connection) -> None:
    def value_of(part: Any) -> Any:
        if isinstance(part, int):
            query = "SELECT content FROM checkpoint_values WHERE id = ?"
            return json.loads(connection.execute(query, (part,)).fetchone()[0])
        return [value_of(each) for each in list_of(part["list"])] if isinstance(part, dict) else part[0]

    def list_of(id_: int | None) -> list[Any]:
        if id_ is None:
            return []
        query = "SELECT prefix, elements FROM checkpoint_lists WHERE id = ?"
        prefix, elements = connection.execute(query, (id_,)).fetchone()
        return [*list_of(prefix), *json.loads(elements)]

    def transform(row: list[Any]) -> list[Any]:
        return [store_fields(part["fields"]) if isinstance(part, dict) and "fields" in part else part for part in row]

    def store_fields(fields: dict[str, Any]) -> int:
        value = {name: value_of(part) for name, part in fields.items()}
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        hash_ = references.digest(text)
        connection.execute("INSERT OR IGNORE INTO checkpoint_values (hash, content) VALUES (?, ?)", (hash_, text))
        query = "SELECT id FROM checkpoint_values WHERE hash = ?"
        return int(connection.execute(query, (hash_,)).fetchone()[0])

    _rewrite(connection, "checkpoints", "held", transform)
    upkeep.sweep(connection)


def _without_frames(connection: sqlite3.Connection) -> None:
    connection.executescript("""
        CREATE TABLE plain (number INTEGER PRIMARY KEY, thread, id, parent, time, format, channels, held, seen, updated,
            metadata);
        INSERT INTO plain SELECT number, thread, checkpoints.id, parent, time, format, channels, held, seen, updated,
            metadata FROM checkpoints JOIN checkpoint_frames AS frames ON frames.id = frame;
        DROP TABLE checkpoints;
        DROP TABLE checkpoint_frames;
        CREATE UNIQUE INDEX idx_plain ON plain (thread, id);
    """)


def _without_kinds(connection: sqlite3.Connection) -> None:
    connection.executescript("""
        CREATE TABLE plain AS SELECT * FROM calls;
        DROP VIEW texts;
        DROP VIEW calls;
        DROP TABLE kept_calls;
        DROP TABLE kinds;
        ALTER TABLE plain RENAME TO calls;
        CREATE INDEX idx_calls_scenario ON calls (scenario);
        CREATE UNIQUE INDEX calls_replayable ON calls (key) WHERE reply IS NOT NULL;
        CREATE UNIQUE INDEX calls_common ON calls (uid) WHERE uid IS NOT NULL;
    """)


SCHEMES: dict[str, Callable[[sqlite3.Connection], None]] = {
    "composed texts": _without_composed_texts,
    "passages": _without_passages,
    "additions to lists": _without_list_additions,
    "references to texts": _without_references,
    "documents": _without_documents,
    "frames": _without_frames,
    "kinds of calls": _without_kinds,
    "fields of the input": _without_fields,
}
"""For each scheme a function that rewrites a file without it."""


def play(name: str, folder: Path, size: int) -> Path:
    """Play a workload and return the run's file."""
    options: dict[str, Any]
    match name:
        case "personalens":
            options = {"limit": 3 * size}
        case "prefeval":
            write_pool(folder / "pool.json", 298)
            write_pairs(folder / "pairs.json", size)
            files = {"distractors": folder / "pool.json", "pairs": folder / "pairs.json"}
            options = {"turns": [298], "method": METHODS, **files}
        case "aloe":
            seeds = (load_seeds("profile"), load_seeds("personality"))
            write_personas(folder / "people.jsonl", combine(*seeds, max(size // 4, 1), seed=0))
            options = {"personas": folder / "people.jsonl"}
        case _:
            dialoom.play("apollo-build", path=folder / "build.db", folder=folder / "source")
            options = {"source": folder / "source", "limit": 5 * size}
    run = dialoom.play(name, path=folder / f"{name}.db", options=options, concurrency=16)
    if run.status().failed:
        raise RuntimeError("a scenario failed: the figures would compare different things")
    return run.path


def measure_size_without(path: Path, transform: Callable[[sqlite3.Connection], None] | None) -> tuple[int, int]:
    """Return the bytes of a run file's compacted copy after a change, and of its distinct texts."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copy(path, folder))
        with closing(sqlite3.connect(copy)) as connection:
            (text_bytes,) = connection.execute("SELECT sum(length(CAST(content AS BLOB))) FROM texts").fetchone()
            if transform is not None:
                transform(connection)
            connection.commit()
            connection.execute("VACUUM")
        return copy.stat().st_size, text_bytes


def measure(path: Path, schemes: list[str]) -> None:
    """Print a table of the savings of each scheme in a run file."""
    file_bytes, text_bytes = measure_size_without(path, None)
    print(f"{path.stem:14}{'(as it is)':22}{file_bytes:12,}{'':8}{file_bytes / text_bytes:8.2f}", flush=True)
    for scheme in schemes:
        size, _ = measure_size_without(path, SCHEMES[scheme])
        print(f"{path.stem:14}{scheme:22}{size:12,}{1 - file_bytes / size:8.1%}{size / text_bytes:8.2f}", flush=True)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = ("personalens", "prefeval", "aloe", "apollo")
    parser.add_argument("files", nargs="*", type=Path, help="files of finished runs; by default, new runs")
    parser.add_argument("--workload", action="append", choices=names)
    parser.add_argument("--scheme", action="append", choices=list(SCHEMES))
    parser.add_argument("--size", type=int, default=20)
    arguments = parser.parse_args()
    schemes = arguments.scheme or list(SCHEMES)
    print(f"{'':14}{'without':22}{'bytes':>12}{'saved':>8}{'/ text':>8}")
    for path in arguments.files:
        measure(path, schemes)
    for name in [] if arguments.files else arguments.workload or names:
        with tempfile.TemporaryDirectory() as folder:
            measure(play(name, Path(folder), arguments.size), schemes)


if __name__ == "__main__":
    main()
