"""`status` and `show`: how far a run is, and what was said in it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
import yaml
from rich import box
from rich.markup import escape
from rich.table import Table as RichTable
from rich.text import Text
from rich.tree import Tree

from dialoom.graphs import Outline
from dialoom.runs import export as exporting
from dialoom.runs.branch_taken import BranchTaken, RecordedEpisode
from dialoom.runs.config import RunConfig
from dialoom.runs.recipes import load_recipe
from dialoom.runs.store import OWN_JUDGEMENTS, JudgementSet, RunFile, Usage
from dialoom.runs.store.lock import is_written
from dialoom.runs.store.status import Status

from .bounds import RunBounds
from .tables import make_console

_COLOURS = {"user": "cyan", "assistant": "green"}
_STYLES = {"plain": "", "heading": "bold", "user": "cyan", "assistant": "green", "note": "dim", "new": "yellow"}


def print_status(path: Path, as_json: bool) -> None:
    """How far a run is, and what each role has taken."""
    with RunFile(path) as run:
        config, status = run.config, run.status()
        later, bounds = [each for each in run.judgement_sets() if each.name != OWN_JUDGEMENTS], RunBounds.of(run)
    is_played = is_written(path)
    if as_json:
        told = _status_for_programs(config, status, later)
        typer.echo(json.dumps({**told, "is_being_written": is_played, **bounds.as_json()}))
        return
    typer.echo(f"{path}: {config.recipe}, seed {config.seed}")
    typer.echo(
        f"{status.total:,} scenarios: {status.done:,} done, {status.failed:,} failed, {status.pending:,} pending"
    )
    make_console().print(_usage_table(config, status, later))
    if status.usage.unanswered:
        why = "under way, or lost in a crash" if is_played else "lost when a process ended, and perhaps billed"
        typer.echo(f"calls without an answer: {status.usage.unanswered:,} ({why})")
    for line in bounds.lines(str(path)):
        typer.echo(line)
    if is_played:
        typer.echo("another dialoom process is writing it now")
    elif status.pending:
        typer.echo(f"go on with: dialoom resume {path}{bounds.budget_flags}")


def _status_for_programs(config: RunConfig, status: Status, later: Sequence[JudgementSet]) -> dict[str, Any]:
    roles = {}
    for role, model in config.model_names.items():
        usage = status.by_role.get(role, Usage())
        roles[role] = {"model": model, "models": _players(model, usage), **_usage(usage)}
    return {
        "recipe": config.recipe,
        "scenarios": {
            "total": status.total,
            "done": status.done,
            "failed": status.failed,
            "pending": status.pending,
        },
        **_usage(status.usage),
        "roles": roles,
        "judgings": {
            judging.name: {"models": judging.model_names, **_usage(status.by_judging.get(judging.name, Usage()))}
            for judging in later
        },
    }


def _usage_table(config: RunConfig, status: Status, later: Sequence[JudgementSet]) -> RichTable:
    table = RichTable(box=box.SIMPLE_HEAD)
    for column in ("role", "model", "calls", "failed", "replayed", "input tokens", "output tokens", "cost"):
        table.add_column(column, justify="left" if column in ("role", "model") else "right")
    for role, model in config.model_names.items():
        usage = status.by_role.get(role, Usage())
        table.add_row(role, ", ".join(_players(model, usage)), *_cells(usage))
    for judging in later:
        models = ", ".join(judging.model_names.values())
        table.add_row(f"judging {judging.name!r}", models, *_cells(status.by_judging.get(judging.name, Usage())))
    table.add_row("all", "", *_cells(status.usage))
    return table


def _players(model: str, usage: Usage) -> list[str]:
    """Who plays a role, and after that who has played it otherwise: in a branch, or a person."""
    return [*dict.fromkeys((model, *usage.models))]


def print_config(path: Path) -> None:
    """The resolved configuration, in the form that `--config` takes (less the file's name)."""
    with RunFile(path) as run:
        config = run.config
    values: dict[str, Any] = {
        **config.options,
        "model": config.model_names,
        "temperature": {role: binding.temperature for role, binding in config.models.items()},
        "api_base": {role: binding.api_base for role, binding in config.models.items() if binding.api_base} or None,
        "seed": config.seed,
    }
    recipe = load_recipe(config.recipe, path)
    aliases = {name: field.alias for name, field in recipe.options_type.model_fields.items() if field.alias}
    values = {aliases.get(key, key): value for key, value in values.items() if value is not None}
    typer.echo(
        f"# dialoom run {config.recipe}\n" + yaml.safe_dump(values, sort_keys=False, allow_unicode=True), nl=False
    )


def list_scenarios(path: Path, as_json: bool) -> None:
    """Every scenario: number, state, ending, id."""
    with RunFile(path) as run:
        for position, id_, state, ended_by in run.listing():
            if as_json:
                typer.echo(json.dumps({"number": position + 1, "id": id_, "state": state, "ended_by": ended_by}))
            else:
                typer.echo(f"{position + 1:>7}  {state:<8} {ended_by or '':<16} {id_}")


def show_scenario(path: Path, name: str, as_json: bool, judging: str | None) -> None:
    """One dialogue with its judgements and how it ended."""
    with RunFile(path) as run:
        recipe = run.recipe
        position = run.resolve(name)
        chosen = run.judgement_set(judging)
        scenario = run.scenario(recipe, position)
        episode = run.episode(position, chosen.name if chosen else None)
        models, prompts = exporting.provenance(run, chosen)
    if episode is None:
        if as_json:
            typer.echo(json.dumps({"id": scenario.id, "state": "pending", "scenario": scenario.described()}))
        else:
            typer.echo(f"{scenario.id} is not finished yet; go on with: dialoom resume {path}")
        return
    if as_json:
        line = exporting.dialogue(episode, scenario, recipe, models, prompts)
        typer.echo(json.dumps({**line, "state": episode.state}, ensure_ascii=False))
        return
    _print_episode(episode, scenario.described(), models, recipe.outline(episode))


def _print_episode(
    episode: RecordedEpisode, described: dict[str, Any], models: dict[str, str], outline: Outline | None
) -> None:
    console = make_console()
    console.print(f"[bold]{escape(episode.id)}[/bold]", highlight=False)
    for key, value in described.items():
        text = (
            ", ".join(map(str, value.values() if isinstance(value, dict) else value))
            if isinstance(value, dict | list)
            else str(value)
        )
        console.print(f"  [dim]{key}:[/dim] {escape(text)}", highlight=False)
    played = ", ".join(f"{role} {model}" for role, model in models.items())
    console.print(f"  [dim]models:[/dim] {escape(played)}", highlight=False)
    if episode.branch is not None:
        console.print(f"  [dim]branch:[/dim] {escape(_taken(episode.branch))}", highlight=False)
    if outline is not None:
        console.print()
        console.print(_tree(outline))
    for message in episode.outcome.messages if outline is None else ():
        colour = _COLOURS.get(message.role, "magenta")
        console.print(f"\n[bold {colour}]{escape(message.role)}[/bold {colour}]", highlight=False)
        console.print(escape(message.content), highlight=False)
    console.print(f"\n[dim]ended by[/dim] {episode.outcome.ended_by}", highlight=False)
    if episode.error:
        console.print(f"[red]failed:[/red] {escape(episode.error)}", highlight=False)
    for judgement in episode.outcome.judgements:
        turn = f", turn {judgement.turn}" if judgement.turn is not None else ""
        score = judgement.status if judgement.score is None else str(judgement.score)
        console.print(
            f"  [bold]{judgement.metric}[/bold] ({judgement.target}{turn}): [bold]{score}[/bold] "
            f"[dim]{escape(judgement.explanation)}[/dim]",
            highlight=False,
        )


def _taken(branch: BranchTaken) -> str:
    """The branch that an outcome came from, and what a person did there."""
    done = [f"{role} played by {model}" for role, model in branch.models.items()]
    for count, what in (
        (branch.edits, "edited"),
        (branch.said, "said by a person"),
        (branch.prompts, "asked by a person"),
    ):
        done += [f"{count} {what}"] if count else []
    return f"{branch.name}, made step by step" + (f" ({', '.join(done)})" if done else "")


def _tree(outline: Outline, parent: Tree | None = None) -> Tree:
    """The outline as rich draws it."""
    line = Text.assemble(*((span.text, _STYLES[span.style]) for span in outline.spans))
    tree = Tree(line, guide_style="dim") if parent is None else parent.add(line)
    for part in outline.parts:
        _tree(part, tree)
    return tree


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "failed_calls": usage.failed,
        "unanswered_calls": usage.unanswered,
        "replays": usage.replays,
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
        "cost": usage.cost,
    }


def _cells(usage: Usage) -> list[str]:
    tokens = ["unknown" if count is None else f"{count:,}" for count in (usage.input_tokens, usage.output_tokens)]
    cost = "unknown" if usage.cost is None else f"${usage.cost:,.4f}"
    return [f"{usage.calls:,}", f"{usage.failed:,}", f"{usage.replays:,}", *tokens, cost]
