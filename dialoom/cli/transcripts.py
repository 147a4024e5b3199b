"""Recorded conversations: `dialoom import`, and `new study --from-transcripts`, where a model infers their users."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from dialoom import aimport_transcripts
from dialoom.api.importing import Imported
from dialoom.api.operation_settings import CallSettings
from dialoom.api.run import RunReader
from dialoom.graphs import Episode, Recipe
from dialoom.graphs.traits import MEASURED_TRAITS
from dialoom.outputs import folder_output, format_json_line
from dialoom.text import pluralize

from .errors import EXIT_DONE, EXIT_INTERRUPTED, EXIT_SOME_FAILED
from .new_folder import check_is_new, filled
from .option_flags import by_role
from .playing import estimate_run, play_or_resume, run_with_display
from .setting_flags import RunCommand
from .terminal import say, say_lines
from .watcher import Watcher

_PARTS = ("person", "goal", "traits")
_INFERRED = "inferred"
_MOST_TURNS = 30
"""The maximum `max_turns` of a study, however long the recorded conversations are."""


def seed_study(recipe: Recipe, given: RunCommand, talks: Path, folder: Path, name: str) -> int:
    """Carry out `dialoom new study --from-transcripts`, and return the exit code.

    Args:
        recipe: The recipe that infers the users.
        given: The recipe's options, and the players.
        talks: The conversations.
        folder: The study's folder. The run is stored beside it, and the same command continues the run.
        name: The study's name.
    """
    check_is_new(folder)
    if given["dry_run"]:
        return estimate_run(recipe, given)
    run = folder.with_name(f"{folder.absolute().name}.run.db")
    watcher = play_or_resume(recipe, run, given)
    if (code := watcher.exit_code()) not in (EXIT_DONE, EXIT_SOME_FAILED) or RunReader(run).status().pending:
        say(
            f"{folder} is not written yet; the same 'dialoom new study' command continues the run, "
            "and then writes the folder"
        )
        return code
    done = [episode for episode in RunReader(run).episodes() if episode.state == "done"]
    counts = Counter(kind for each in done for kind in _PARTS if _statements(each, kind))
    if not counts:
        say(
            f"dialoom: no study was written: nothing could be inferred from any of the {len(done):,} conversations; "
            f"for the reasons, run: dialoom report {run}",
            err=True,
        )
        return EXIT_SOME_FAILED
    _write(folder, name, talks.name, done)
    inferred = ", ".join(f"{kind} of {counts[kind]:,}" for kind in _PARTS)
    say(f"{folder} is written: {len(done):,} users; inferred: {inferred}; no evidence was found for the others")
    return code


def _statements(episode: Episode, kind: str) -> list[str]:
    """Return the inferred statements of a kind whose evidence was found in the conversation."""
    found: Sequence[Mapping[str, Any]] = episode.outcome.details[kind]
    return [each["statement"] for each in found if each["result"] == _INFERRED]


def _write(folder: Path, name: str, source: str, episodes: Sequence[Episode]) -> None:
    """Write the study's files."""
    opens = Counter(each.outcome.details["opens"] for each in episodes).most_common(1)[0][0]
    turns = max(round(each.outcome.details["manner"]["patience"]) for each in episodes)
    words = {
        "@NAME@": name,
        "@SOURCE@": json.dumps(source, ensure_ascii=False),
        "@TURNS@": str(min(turns + 1, _MOST_TURNS)),
        "@OPENS@": opens,
    }
    evidence = [{"id": each.id, **{kind: each.outcome.details[kind] for kind in _PARTS}} for each in episodes]
    files = {"people": map(_person, episodes), "tasks": map(_task, episodes), "evidence": evidence}
    with folder_output(folder) as made:
        with made.text("study.toml") as file:
            file.write(filled("study-of-transcripts.toml", words))
        for file_name, rows in files.items():
            with made.text(f"{file_name}.jsonl") as file:
                file.writelines(map(format_json_line, rows))


def _person(episode: Episode) -> dict[str, Any]:
    return {
        "id": episode.id,
        "description": " ".join(_statements(episode, "person")),
        "traits": "; ".join(_statements(episode, "traits")),
        **dict.fromkeys(MEASURED_TRAITS, ""),
        **episode.outcome.details["manner"],
    }


def _task(episode: Episode) -> dict[str, str]:
    return {
        "goal": " ".join(_statements(episode, "goal")),
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
        models=dict(by_role(models)),
        **settings,
    )
    found: Imported = run_with_display(work, watcher)
    say_lines(found.errors, err=True)
    if found.broken > len(found.errors):
        say(f"and {found.broken - len(found.errors):,} more", err=True)
    known = f", {found.known:,} already present" if found.known else ""
    left = f", {pluralize(found.broken, 'broken rows')} left out" if found.broken else ""
    say(f"{out}: {pluralize(found.added, 'conversations')} added{known}{left}")
    say_lines(found.notices, err=True)
    if not found.is_complete:
        say("stopped; run the same command again to add the rest")
        raise typer.Exit(EXIT_INTERRUPTED)
    if errors := found.run.check_errors():
        say_lines(f"failed check: {each}" for each in errors)
        raise typer.Exit(EXIT_SOME_FAILED)
