"""Context of the figures: soundness of the dialogues, agreement of judges, costs, settings and versions."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from dialoom.graphs import Table
from dialoom.graphs.capabilities import WithRoles
from dialoom.graphs.fault import USER
from dialoom.graphs.gate import reduced_shares
from dialoom.graphs.reporting.statistics import share_of
from dialoom.runs.cost import seconds_of_calls
from dialoom.runs.report.faulty import FaultsOf
from dialoom.runs.report.judges import judges_tables
from dialoom.runs.report.reported import ReportedRun, plan_hash
from dialoom.version import __version__

from .entries import PlayedSystem
from .suite import Size, Suite

MADE = ("settings", "versions")
"""The tables that give the provenance."""

_PACKAGES = ("litellm", "langgraph", "langchain-core", "pydantic", "numpy")


def soundness_table(systems: Sequence[PlayedSystem]) -> Table:
    """Return the table of failed scenarios, unparsed judgements, and dialogues with faults by role."""
    faults = ("a fault of the user's %", "a fault of the assistant's %")
    table = Table("soundness", "How sound it is", ["system", "assistant", "played", "failed", "unparsed", *faults])
    gated, languages = 0, Counter[str]()
    for played, reported in _each(systems):
        found = FaultsOf.read(reported, None)
        evaluated = WithRoles.of(played.recipe).evaluated or ""
        user = share_of(found.unsound[USER], found.gated) if USER in reported.models else None
        unparsed = reported.run.unparsed(reported.set_name) if reported.set_name is not None else 0
        status, own = reported.run.status(), share_of(found.unsound[evaluated], found.gated)
        counts = [status.total - status.pending, status.failed, unparsed]
        table.rows.append([played.system.label, reported.label, *counts, user, own])
        gated += found.gated
        languages.update(found.languages)
    table.notes.append(
        "Played: scenarios that are over, those that failed among them. Unparsed: judgements that could not be read, "
        "which are in no mean. Faults: dialogues in which the gate found one, with Wilson's intervals. A dash: no "
        "simulated user speaks there, or no dialogue passed the gate."
    )
    if gated:
        table.notes.append(f"Passed the gate: {gated:,}. {reduced_shares(languages, gated)}")
    return table


def agreement_table(systems: Sequence[PlayedSystem]) -> list[Table]:
    """Return the agreement of judges with each other and with themselves; no table if nothing was judged twice."""
    table = Table("agreement", "How far the judges agree", ["system", "assistant", "between", "metric", *_AGREEMENT])
    for played, reported in _each(systems):
        for found in judges_tables(reported.run, None):
            columns = list(found.columns)
            for row in found.rows:
                between = "judges" if found.name == "judges" else f"{row[0]} and itself"
                cells = [row[columns.index(name)] for name in ("metric", *_AGREEMENT)]
                table.rows.append([played.system.label, reported.label, between, *cells])
            table.notes += [note for note in found.notes if note not in table.notes]
    return [table] if table.rows else []


_AGREEMENT = ("n", "alpha", "all equal %")


def cost_of_all(systems: Sequence[PlayedSystem]) -> Table:
    """Return the table of the costs of each run's calls."""
    columns = ["system", "assistant", "calls", "input tokens", "output tokens", "US dollars", "seconds"]
    table = Table("cost", "What it took", columns, decimals={"US dollars": 4, "seconds": 1})
    for played, reported in _each(systems):
        usage = reported.run.status().usage
        tokens = (usage.input_tokens, usage.output_tokens)
        seconds = seconds_of_calls(reported.run.path)
        table.rows.append([played.system.label, reported.label, usage.calls, *tokens, usage.cost, seconds])
    table.notes.append(
        "Of all roles: the user and the judges as well. Seconds: how long the calls took, one after the other; many "
        "are under way at once. A dash: a provider did not say, or a price is unknown."
    )
    return table


def settings_table(systems: Sequence[PlayedSystem]) -> Table:
    """Return the table of each run's settings; assistants with equal settings share a row."""
    columns = ["system", "assistants", "seed", "scenarios", "hash", "others", "told"]
    table = Table("settings", "How it was made", columns)
    rows: dict[tuple[str, ...], list[str]] = {}
    for played, reported in _each(systems):
        config, recipe = reported.run.config, played.recipe
        others = [
            f"{role} {each.model}" for role, each in reported.models.items() if role != WithRoles.of(recipe).evaluated
        ]
        usual = recipe.options_type().model_dump(mode="json")
        told = {name: value for name, value in config.options.items() if value != usual.get(name)}
        told |= {} if config.sample is None else {"sample": config.sample}
        texts = (", ".join(others), "; ".join(f"{name} {_plainly(value)}" for name, value in told.items()))
        total, plan = reported.run.status().total, plan_hash(reported.run)
        key = (played.system.label, str(config.seed), f"{total:,}", plan, *texts)
        rows.setdefault(key, []).append(reported.label)
    table.rows = [[key[0], ", ".join(labels), *key[1:]] for key, labels in rows.items()]
    table.notes.append(
        "Hash: of what the scenarios hold; where it is equal, they are the same ones. Others: who played the other "
        "roles. Told: options that are not the recipe's usual ones. Each run is a file of its own in the folder, with "
        "all of its configuration, every call and every prompt."
    )
    return table


def _plainly(value: object) -> str:
    """Format an option's value."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def versions_table(suite: Suite, size: Size, systems: Sequence[PlayedSystem]) -> Table:
    """Return the table of versions, and of the hashes of code that belongs to no package."""
    table = Table("versions", "Versions", ["what", "version"])
    table.rows = [
        ["suite", f"{suite.suite} {suite.version}, {size}"],
        ["suite's settings", suite.hash],
        ["dialoom", __version__],
        ["Python", platform.python_version()],
        *([name, found] for name in _PACKAGES if (found := _version(name)) is not None),
    ]
    code = {spec: found for _, reported in _each(systems) for spec, found in reported.run.config.code.items()}
    table.rows += [[spec, f"sha256 {found[:16]}"] for spec, found in code.items()]
    table.notes.append("Of dialoom and its packages: those that have made this page.")
    return table


def finished(systems: Sequence[PlayedSystem]) -> tuple[int, int]:
    """Return the numbers of pending and of failed scenarios."""
    statuses = [reported.run.status() for _, reported in _each(systems)]
    return sum(each.pending for each in statuses), sum(each.failed for each in statuses)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _each(systems: Sequence[PlayedSystem]) -> Iterator[tuple[PlayedSystem, ReportedRun]]:
    return ((played, reported) for played in systems for reported in played.reported)
