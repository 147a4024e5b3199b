"""What stands behind the figures: how sound the dialogues are, how far judges agree, what it took, how it was made."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version

from dialoom.graphs import Table
from dialoom.graphs.fault import USER
from dialoom.graphs.reporting.statistics import share_of
from dialoom.runs.cost import seconds_of_calls
from dialoom.runs.report.faulty import FaultsOf
from dialoom.runs.report.judges import judges_tables
from dialoom.runs.report.reported import ReportedRun, plan_hash
from dialoom.runs.store.documents import canonical
from dialoom.version import __version__

from .entries import PlayedSystem
from .suite import Size, Suite

MADE = ("settings", "versions")
"""The tables that say how all of it was made."""

_PACKAGES = ("litellm", "langgraph", "langchain-core", "pydantic", "numpy")


def soundness_table(systems: Sequence[PlayedSystem]) -> Table:
    """What failed, what could not be read, and in how many dialogues something is wrong, by whose fault."""
    faults = ("a fault of the user's %", "a fault of the assistant's %")
    table = Table("soundness", "How sound it is", ["system", "assistant", "failed", "unparsed", *faults])
    for played, reported in _each(systems):
        found = FaultsOf.read(reported, None)
        evaluated = played.recipe.evaluated or ""
        user = share_of(found.unsound[USER], found.gated) if USER in reported.models else None
        unparsed = reported.run.unparsed(reported.set_name) if reported.set_name is not None else 0
        failed, own = reported.run.status().failed, share_of(found.unsound[evaluated], found.gated)
        table.rows.append([played.system.label, reported.label, failed, unparsed, user, own])
    table.notes.append(
        "Unparsed: judgements that could not be read, which are in no mean. Faults: dialogues in which the gate found "
        "one, with Wilson's intervals. A dash: no simulated user speaks there, or no dialogue passed the gate."
    )
    return table


def agreement_table(systems: Sequence[PlayedSystem]) -> list[Table]:
    """How far judges agree, with each other and with themselves; nothing where each thing was judged once."""
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
    """What the calls of each run took."""
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
    """All that decides what each run does."""
    columns = ["system", "assistant", "seed", "scenarios", "models", "options", "file"]
    table = Table("settings", "How it was made", columns)
    for played, reported in _each(systems):
        config = reported.run.config
        models = ", ".join(f"{role} {binding.model}" for role, binding in reported.models.items())
        scenarios = f"{reported.run.status().total:,} ({plan_hash(reported.run)})"
        told = canonical({name: value for name, value in config.options.items() if value is not None})
        table.rows.append(
            [played.system.label, reported.label, str(config.seed), scenarios, models, told, reported.run.path.name]
        )
    table.notes.append(
        "Each file is a run as any other: its report, its dialogues, every call and every prompt are in it. Behind the "
        "number of scenarios stands a hash of what they hold: equal ones are the same scenarios."
    )
    return table


def versions_table(suite: Suite, size: Size, systems: Sequence[PlayedSystem]) -> Table:
    """What it was made with, and the hashes of code that is no package's."""
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
    """How many scenarios are pending, and how many have failed."""
    statuses = [reported.run.status() for _, reported in _each(systems)]
    return sum(each.pending for each in statuses), sum(each.failed for each in statuses)


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _each(systems: Sequence[PlayedSystem]) -> Iterator[tuple[PlayedSystem, ReportedRun]]:
    return ((played, reported) for played in systems for reported in played.reported)
