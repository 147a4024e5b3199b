"""Recorded conversations: `dialoom import`, and `new study --from-transcripts`, where a model infers their users."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from dialoom import aimport_transcripts
from dialoom.api.importing import ImportResult
from dialoom.api.operation_settings import CallSettings
from dialoom.api.run import RunReader
from dialoom.graphs import Episode, Recipe
from dialoom.graphs.traits import MEASURED_TRAITS
from dialoom.outputs import folder_output, format_json_line
from dialoom.text import pluralize

from .errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_SOME_FAILED
from .new_folder import check_folder_is_new, fill_template
from .option_flags import parse_role_models
from .playing import estimate_run, play_or_resume, run_with_display
from .setting_flags import RunCommand
from .terminal import echo, echo_lines
from .watcher import Watcher

_STATEMENT_KINDS = ("person", "goal", "traits")
_INFERRED_RESULT = "inferred"
_MAX_TURNS = 30
"""The maximum `max_turns` of a study, however long the recorded conversations are."""


def seed_study(recipe: Recipe, command: RunCommand, talks: Path, folder: Path, name: str) -> int:
    """Carry out `dialoom new study --from-transcripts`, and return the exit code.

    Args:
        recipe: The recipe that infers the users.
        command: The recipe's options, and the players.
        talks: The conversations.
        folder: The study's folder. The run is stored beside it, and the same command continues the run.
        name: The study's name.
    """
    check_folder_is_new(folder)
    if command["dry_run"]:
        return estimate_run(recipe, command)
    run = folder.with_name(f"{folder.absolute().name}.run.db")
    watcher = play_or_resume(recipe, run, command)
    if (code := watcher.exit_code()) not in (EXIT_DONE, EXIT_SOME_FAILED) or RunReader(run).status().pending:
        echo(
            f"{folder} is not written yet; the same 'dialoom new study' command continues the run, "
            "and then writes the folder"
        )
        return code
    done = [episode for episode in RunReader(run).episodes() if episode.state == "done"]
    counts = Counter(kind for each in done for kind in _STATEMENT_KINDS if _get_statements(each, kind))
    if not counts:
        echo(
            f"dialoom: no study was written: nothing could be inferred from any of the {len(done):,} conversations; "
            f"for the reasons, run: dialoom report {run}",
            err=True,
        )
        return EXIT_SOME_FAILED
    _write_study(folder, name, talks.name, done)
    inferred = ", ".join(f"{kind} of {counts[kind]:,}" for kind in _STATEMENT_KINDS)
    echo(f"{folder} is written: {len(done):,} users; inferred: {inferred}; no evidence was found for the others")
    return code


def _get_statements(episode: Episode, kind: str) -> list[str]:
    """Return the inferred statements of a kind whose evidence was found in the conversation."""
    statements: Sequence[Mapping[str, Any]] = episode.outcome.details[kind]
    return [each["statement"] for each in statements if each["result"] == _INFERRED_RESULT]


def _write_study(folder: Path, name: str, source: str, episodes: Sequence[Episode]) -> None:
    """Write the study's files."""
    opens = Counter(each.outcome.details["opens"] for each in episodes).most_common(1)[0][0]
    turns = max(round(each.outcome.details["manner"]["patience"]) for each in episodes)
    words = {
        "@NAME@": name,
        "@SOURCE@": json.dumps(source, ensure_ascii=False),
        "@TURNS@": str(min(turns + 1, _MAX_TURNS)),
        "@OPENS@": opens,
    }
    evidence = [{"id": each.id, **{kind: each.outcome.details[kind] for kind in _STATEMENT_KINDS}} for each in episodes]
    files = {"people": map(_build_person, episodes), "tasks": map(_build_task, episodes), "evidence": evidence}
    with folder_output(folder) as output:
        with output.text("study.toml") as file:
            file.write(fill_template("study-of-transcripts.toml", words))
        for file_name, rows in files.items():
            with output.text(f"{file_name}.jsonl") as file:
                file.writelines(map(format_json_line, rows))


def _build_person(episode: Episode) -> dict[str, Any]:
    return {
        "id": episode.id,
        "description": " ".join(_get_statements(episode, "person")),
        "traits": "; ".join(_get_statements(episode, "traits")),
        **dict.fromkeys(MEASURED_TRAITS, ""),
        **episode.outcome.details["manner"],
    }


def _build_task(episode: Episode) -> dict[str, str]:
    return {
        "goal": " ".join(_get_statements(episode, "goal")),
        "opening": episode.outcome.details["opening"].strip(),
        "id": episode.id,
    }


def import_file(
    source: Path, out: Path, judges: Path | None, reader: str | None, skip_broken: bool, models: Sequence[str]
) -> None:
    """Carry out `dialoom import`."""
    settings: CallSettings = {}
    watcher = Watcher(settings)
    work = aimport_transcripts(
        source,
        path=out,
        study=judges,
        reader=reader,
        broken="skip" if skip_broken else "refuse",
        models=dict(parse_role_models(models)),
        **settings,
    )
    imported: ImportResult = run_with_display(work, watcher)
    echo_lines(imported.errors, err=True)
    if imported.broken > len(imported.errors):
        echo(f"and {imported.broken - len(imported.errors):,} more", err=True)
    known = f", {imported.known:,} already present" if imported.known else ""
    skipped = f", {pluralize(imported.broken, 'broken rows')} left out" if imported.broken else ""
    echo(f"{out}: {pluralize(imported.added, 'conversations')} added{known}{skipped}")
    echo_lines(imported.notices, err=True)
    if not imported.is_complete:
        echo("stopped; run the same command again to add the rest")
        raise typer.Exit(EXIT_INTERRUPTED)
    if errors := imported.run.check_errors():
        echo_lines(f"failed check: {each}" for each in errors)
        raise typer.Exit(EXIT_SOME_FAILED)
