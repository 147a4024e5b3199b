"""Import of recorded conversations into a run: all are checked first, then the new ones are added in transactions."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Unpack

from dialoom.errors import Advice
from dialoom.graphs.conversation import TOOL
from dialoom.graphs.outcome import SYSTEM, USER, Outcome
from dialoom.graphs.recipe import complete_outcome
from dialoom.graphs.study import ASSISTANT, FileFunction, read_study
from dialoom.graphs.transcript import Transcript, Transcripts, build_transcripts, read_transcripts
from dialoom.graphs.transcript_rows import SUFFIXES, Reader
from dialoom.inputs import DataError
from dialoom.runs.configuration.recipes import is_file_spec
from dialoom.runs.configuration.trust import cast_references, recipe_references
from dialoom.runs.engine import run_in_thread
from dialoom.runs.errors import RunError, StoppedError
from dialoom.runs.planning import build_judgement_set, prepare
from dialoom.runs.store import OWN_JUDGEMENTS, RunStore
from dialoom.settings import PathLike
from dialoom.text import pluralize

from .blocking import blocking
from .open_run import check_transcripts, replace_study
from .operation_settings import PlaySettings, resolve_new_run
from .operations import Run

_BATCH_SIZE = 200
"""Number of conversations that are written in one transaction."""

_MAX_LISTED_ROLES = 10
"""The number of unknown roles that a notice names."""

_MAX_QUOTED_ERRORS = 20
"""The number of broken rows that an error or a result quotes; the others are only counted."""


@dataclass
class ImportResult:
    """The result of an import.

    Example:
        >>> imported = dialoom.import_transcripts("talks.jsonl", path="talks.db")
        >>> imported.added + imported.known
        1

    Attributes:
        run: The run.
        added: The number of new conversations.
        known: The number of conversations that the run already had, or that are repeated in the file.
        broken: The number of broken rows, which were skipped.
        errors: The first errors in broken rows, each with file and line.
        silent: The number of conversations without a message of the user, and of the assistant, by role.
        other_roles: The number of conversations in which a role speaks that the run does not know, by role. A run knows
            `user`, `assistant`, `system`, `tool` and the roles of its study.
        is_complete: False if the import was stopped; importing again adds the rest.
    """

    run: Run
    added: int = 0
    known: int = 0
    broken: int = 0
    errors: list[str] = field(default_factory=list)
    silent: Counter[str] = field(default_factory=Counter)
    other_roles: Counter[str] = field(default_factory=Counter)
    is_complete: bool = True

    @property
    def notices(self) -> list[str]:
        """The notices about other roles, and about conversations in which the user or the assistant does not speak."""
        count = self.added + self.known
        lines = [
            f"{silent:,} of {count:,} conversations have no message of the role {role!r}; what is scored of it does "
            "not apply to them"
            for role, silent in sorted(self.silent.items())
        ]
        if self.other_roles:
            others = [
                f"{role} (in {each:,} of {count:,} conversations)" for role, each in self.other_roles.most_common()
            ]
            rest = f", and {len(others) - _MAX_LISTED_ROLES:,} more" if len(others) > _MAX_LISTED_ROLES else ""
            lines.append(f"roles that are neither user nor assistant: {', '.join(others[:_MAX_LISTED_ROLES])}{rest}")
        return lines


async def aimport_transcripts(
    source: PathLike,
    *,
    path: PathLike,
    study: PathLike | None = None,
    reader: str | Reader | None = None,
    broken: Literal["refuse", "skip"] = "refuse",
    **settings: Unpack[PlaySettings],
) -> ImportResult:
    """Import conversations recorded elsewhere into a new or existing run of the recipe `transcript`.

    Example:
        >>> run = dialoom.import_transcripts("talks.jsonl", path="talks.db").run
        >>> run.episode(1).outcome.messages[0].content
        'Where is my order?'

    Args:
        source: A file, or a folder of files: rows with `messages`, ShareGPT, dialoom's exports, dialogues of the
            PersonaLens release, inspect_ai logs; see `docs/transcripts.md`.
        path: The run's file; if it exists, the conversations that it does not have yet are added.
        study: A study. Its judges and checks can score the conversations, and its user can continue them.
        reader: A reader for a format of your own: a function that takes a path and returns numbered rows, or
            `path/to/file.py:function`.
        broken: `refuse` imports nothing if a row is broken; `skip` leaves broken rows out. No row is repaired.
        **settings: Who plays the roles when a conversation is continued, as for `play`.

    Raises:
        DataError: If a row is broken, there are no conversations, or the file cannot be read.
        RunError: If `path` holds a run of another recipe, or a setting is wrong.
        StoppedError: If the import was stopped while the rows were checked; nothing is imported.
    """
    if broken not in ("refuse", "skip"):
        raise RunError(f"broken must be 'refuse' or 'skip', got {broken!r}", setting="broken")
    control = settings.get("control")
    source_path = Path(source)

    def work(is_stopped: Callable[[], bool]) -> ImportResult:
        loaded_reader = _load_reader(reader)
        if not source_path.exists():
            raise DataError(source_path, "there is no such file")
        roles = _check_rows(source_path, loaded_reader, broken, is_stopped)
        with _open_store(Path(path), study, roles, settings) as store:
            imported = ImportResult(Run(path, trust=True))
            _add_conversations(store, source_path, loaded_reader, imported, is_stopped)
        return imported

    return await run_in_thread(work, lambda: control is not None and control.is_draining)


def _load_reader(reader: str | Reader | None) -> Reader | None:
    if isinstance(reader, str):
        if not is_file_spec(reader):
            raise RunError(f"reader must have the form file.py:function, got {reader!r}", setting="reader")
        return FileFunction(reader, (str(Path.cwd()),)).load()
    return reader


def _check_rows(
    source: Path, reader: Reader | None, broken: Literal["refuse", "skip"], is_stopped: Callable[[], bool]
) -> set[str]:
    """Check all rows without keeping them in memory, and return the roles that speak in them.

    Raises:
        DataError: If a file as a whole cannot be read, or there are no rows.
        RunError: If there are only broken rows, or if rows are broken and broken rows are refused; the message lists
            them.
        StoppedError: If the check was stopped.
    """
    broken_count, errors, roles = 0, list[DataError](), set[str]()
    for _, row in read_transcripts(source, reader):
        if is_stopped():
            raise StoppedError("stopped during the check of the rows; nothing was imported")
        if isinstance(row, DataError):
            broken_count += 1
            errors += [row] if len(errors) < _MAX_QUOTED_ERRORS else []
        else:
            roles.update(line.role for line in row.lines)
    if not errors and not roles:
        raise DataError(source, 'there are no conversations; a row has the form {"messages": [...]}')
    if errors and (broken == "refuse" or not roles):
        omitted = [f"and {broken_count - len(errors):,} more"] if broken_count > len(errors) else []
        others = " and no others" if broken == "skip" else ""
        summary = f"{pluralize(broken_count, 'broken rows')}{others}; nothing was imported"
        is_unknown = reader is None and source.is_file() and source.suffix.lower() not in SUFFIXES
        raise RunError(
            "\n".join([*map(str, errors), *omitted, summary]),
            advice=Advice("reader", "read files of another format with 'reader'") if is_unknown else None,
        )
    return roles


@contextlib.contextmanager
def _open_store(path: Path, study: PathLike | None, roles: set[str], settings: PlaySettings) -> Iterator[RunStore]:
    """Open the run for writing; it is created and planned if it does not exist."""
    recipe = None if study is None else build_transcripts(read_study(Path(study), is_played=False))
    if path.exists():
        store = RunStore(path)
    else:
        if recipe is not None:
            recipe.check_roles(sorted(roles))
        settings["options"] = {"judge": False}  # imported conversations are judged later
        new = resolve_new_run(recipe or build_transcripts(), False, **settings)
        store = RunStore.create(path, new.config, prepare(new.recipe, new.config), recipe=new.recipe)
        store.trust_specified(cast_references(new.config.models))
    with store:
        check_transcripts(store)
        replace_study(store, recipe, sorted(roles))
        store.trust_specified(recipe_references(store.config.recipe, recipe=recipe))
        if not store.is_planned:
            store.plan([], [], build_judgement_set(OWN_JUDGEMENTS, store.prompts, {}))
        yield store


def _add_conversations(
    store: RunStore, source: Path, reader: Reader | None, imported: ImportResult, is_stopped: Callable[[], bool]
) -> None:
    """Add the conversations that the run does not have yet, `_BATCH_SIZE` per transaction."""
    recipe = store.recipe
    assert isinstance(recipe, Transcripts)
    roles = {*recipe.turns.roles, SYSTEM, TOOL}
    batch: list[tuple[Transcript, Outcome]] = []

    def write() -> None:
        added = store.results.record(batch)
        imported.added += added
        imported.known += len(batch) - added
        batch.clear()

    for _, row in read_transcripts(source, reader):
        if is_stopped():
            imported.is_complete = False
            break
        if isinstance(row, DataError):
            imported.broken += 1
            imported.errors += [str(row)] if len(imported.errors) < _MAX_QUOTED_ERRORS else []
            continue
        speaking = {line.role for line in row.lines}
        imported.silent.update({USER, ASSISTANT} - speaking)
        imported.other_roles.update(speaking - roles)
        if store.position_of(row.id) is not None:  # known already: skip the gate's slow rules
            imported.known += 1
            continue
        recipe.check_columns(row.facets())
        batch.append((row, store.gate.add_faults(row, complete_outcome(recipe, row, recipe.recorded_outcome(row)))))
        if len(batch) == _BATCH_SIZE:
            write()
    write()


import_transcripts = blocking("import_transcripts", aimport_transcripts)
