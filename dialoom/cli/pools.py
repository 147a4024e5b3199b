"""`dialoom personas`: building pools with a run, and combining, checking and importing pool files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dialoom.api.run import RunReader
from dialoom.graphs import Recipe
from dialoom.personas import (
    EmbedderError,
    PoolEntry,
    Repairs,
    combine,
    load_local_embedder,
    read_entries,
    read_pool,
    write_personas,
    write_pool,
)
from dialoom.personas.similarity import count_passing, find_nearest_neighbours, suggest_threshold
from dialoom.runs.errors import RunError
from dialoom.text import pluralize

from .errors import EXIT_DONE, EXIT_SOME_FAILED
from .playing import play_or_resume
from .setting_flags import RunCommand
from .terminal import echo, echo_json


def build_pool(recipe: Recipe, command: RunCommand, out: Path) -> int:
    """Carry out `dialoom personas build`, which writes the pool's file; return the exit code."""
    run = out.with_suffix(".run.db")
    if out == run:
        raise RunError(
            f"-o {out}: a pool is a JSONL file, such as pool.jsonl; its run is stored as {run.name} beside it"
        )
    if not run.exists() and out.exists():
        raise RunError(f"{out} exists, but its run ({run.name}) is not beside it; give another file with -o")
    if (code := play_or_resume(recipe, run, command).exit_code()) != EXIT_DONE:
        echo(
            f"{out} is not written yet; the same 'dialoom personas build' command continues the run, and then writes it"
        )
        return code
    return _write_pool(run, out)


def _write_pool(run: Path, out: Path) -> int:
    """Write the pool from the result of its run; return the exit code."""
    reader = RunReader(run)
    episode, failed = reader.episode(1), reader.status().failed
    if episode is None or failed:
        echo(f"dialoom: no pool was written: {episode.error if episode else 'the run is not finished'}", err=True)
        return EXIT_SOME_FAILED
    outcome = episode.outcome
    entries = [PoolEntry.model_validate(each) for each in outcome.details["entries"]]
    if not entries:
        raise RunError("no pool was written, because all of the writer's texts were rejected")
    if out.exists() and read_pool(out) != entries:
        raise RunError(
            f"{out} differs from the pool that its run made, so it is not replaced; remove it to write it again"
        )
    write_pool(out, entries, (run,))
    rounds, too_near = outcome.counts["rounds"], outcome.counts["too_near"]
    why = "the target is reached" if outcome.ended_by == "target" else "further rounds added hardly any texts"
    echo(
        f"wrote {len(entries):,} texts to {out} after {pluralize(rounds, 'rounds')}: {why}; "
        f"{too_near:,} were too similar to others"
    )
    return EXIT_DONE


def combine_pools(profiles: Path, personalities: Path, count: int, seed: int, out: Path) -> None:
    """Carry out `dialoom personas combine`."""
    first, second = _read_pool(profiles), _read_pool(personalities)
    try:
        written = write_personas(out, combine(first, second, count, seed), (profiles, personalities))
    except ValueError as error:
        raise RunError(f"-n: {error}") from error
    echo(f"wrote {written:,} personas to {out}")


def import_pool(file: Path, out: Path) -> None:
    """Carry out `dialoom personas import`."""
    entries = _read_pool(file)
    if out.exists():
        raise RunError(f"{out} exists; give another file with -o")
    echo(f"wrote {write_pool(out, entries, (file,)):,} texts to {out}")


def check_pool(path: Path, embedder: str, threshold: float, max_pairs: int, as_json: bool) -> None:
    """Carry out `dialoom personas check`."""
    repairs = Repairs()
    lines = list(read_entries(path, repairs))
    first_lines = {entry.text: line for line, entry in reversed(lines)}
    entries = [(line, entry) for line, entry in lines if first_lines[entry.text] == line]
    if not entries:
        raise RunError(f"{path}: the pool contains no texts")
    try:
        text_embedder = load_local_embedder(embedder)
        vectors = text_embedder.embed([entry.text for _, entry in entries])
    except EmbedderError as error:
        raise RunError(f"--embedder: {error}") from error
    pairs = _build_pairs(find_nearest_neighbours(vectors))
    shown = [pair for rank, pair in enumerate(pairs) if rank < max_pairs or pair[2] > threshold]
    result = {
        "texts": len(entries),
        "seeds": sum(entry.round == 0 for _, entry in entries),
        "rounds": max(entry.round for _, entry in entries),
        "duplicates": [
            {"line": line, "as_line": first_lines[entry.text], "id": entry.id}
            for line, entry in lines
            if first_lines[entry.text] != line
        ],
        "above_threshold": sum(similarity > threshold for *_, similarity in pairs),
        "nearest": [
            {
                "similarity": similarity,
                "lines": [entries[index][0] for index in (first_index, second_index)],
                "ids": [entries[index][1].id for index in (first_index, second_index)],
                "texts": [entries[index][1].text for index in (first_index, second_index)],
            }
            for first_index, second_index, similarity in shown
        ],
        "repaired": {kind: count for kind, count in repairs.items() if count},
        "embedder": embedder,
        "threshold": threshold,
        "passing": count_passing(vectors, threshold),
        "suggested_threshold": suggest_threshold(vectors),
        "meaning": text_embedder.meaning,
    }
    if as_json:
        echo_json(result)
    else:
        echo(_format_report(path, result, repairs))


def _read_pool(path: Path) -> list[PoolEntry]:
    """Read a pool, and print a line about repairs if there are any."""
    repairs = Repairs()
    entries = read_pool(path, repairs)
    if summary := repairs.summary():
        echo(f"{path}: {summary}")
    return entries


def _build_pairs(neighbours: Sequence[tuple[int, float] | None]) -> list[tuple[int, int, float]]:
    """Return every pair of texts in which one is the nearest neighbour of the other, the most similar pair first."""
    pairs = {
        (min(index, nearest[0]), max(index, nearest[0]), nearest[1])
        for index, nearest in enumerate(neighbours)
        if nearest is not None
    }
    return sorted(pairs, key=lambda pair: (-pair[2], pair))


def _format_report(path: Path, result: dict[str, Any], repairs: Repairs) -> str:
    lines = [
        f"{path}: {result['texts']:,} texts, {result['seeds']:,} of them seeds, {result['rounds']:,} rounds",
        f"{result['above_threshold']:,} pairs of nearest neighbours have a similarity above {result['threshold']:g}",
        f"({result['meaning']})",
        _describe_threshold(result),
    ]
    if summary := repairs.summary():
        lines.insert(1, f"repaired while reading: {summary}")
    lines += [f"line {each['line']} has the same text as line {each['as_line']}" for each in result["duplicates"]]
    if result["nearest"]:
        lines.append("nearest neighbours:")
    for each in result["nearest"]:
        (first_line, second_line), (text, other_text) = each["lines"], each["texts"]
        lines += [
            f"  {each['similarity']:.2f}  line {first_line}: {_shorten(text)}",
            f"        line {second_line}: {_shorten(other_text)}",
        ]
    return "\n".join(lines)


def _describe_threshold(result: dict[str, Any]) -> str:
    count = f"{result['passing']:,}"
    text = f"with the threshold {result['threshold']:g}, a filter that reads the texts in this order keeps {count}"
    if result["suggested_threshold"] is None:
        return text
    return f"{text}; of further texts like these, the threshold {result['suggested_threshold']:g} keeps at least 95 %"


def _shorten(text: str) -> str:
    return text if len(text) <= 90 else text[:89].rstrip() + "…"
