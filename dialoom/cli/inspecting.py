"""`status` and `show`: a run's progress and its conversations."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml
from rich.text import Text
from rich.tree import Tree

from dialoom.api.run import RunReader
from dialoom.graphs import Outline, Recipe, WithOutline, WithRoles
from dialoom.graphs.gate import format_reduced_coverage, has_reduced_coverage
from dialoom.graphs.outcome import count_dialogue_faults
from dialoom.grouping import group_pairs
from dialoom.roles.binding import is_provider_model
from dialoom.roles.gateway.calls import INCOMPLETE_REASONS
from dialoom.runs.configuration.config import RunConfig
from dialoom.runs.errors import TrustError
from dialoom.runs.reading.scenarios import scores_by_metric
from dialoom.runs.reading.search_index import extract_snippet
from dialoom.runs.report.differences import format_subject
from dialoom.runs.report.health import Health, health_by_subject
from dialoom.runs.store import OWN_JUDGEMENTS, CommonCall, JudgementSet, RecordedEpisode, Status, Usage
from dialoom.text import format_number

from .console import SafeConsole, build_table, make_console
from .errors import format_error
from .option_flags import build_trust
from .setting_flags import NO_VALUE
from .show_lines import (
    ROLE_COLOURS,
    format_bounds,
    format_budget_flags,
    format_changes,
    format_message_faults,
    format_other_faults,
)
from .terminal import echo, echo_json, echo_lines

_MAX_HEALTH_SCENARIOS = 1_000
"""The maximum number of scenarios that are read to determine the health of a judge."""
_STYLES = {"plain": "", "heading": "bold", "user": "cyan", "assistant": "green", "note": "dim", "new": "yellow"}


def print_status(path: Path, as_json: bool) -> None:
    """Print a run's progress and the usage of each role."""
    with RunReader(path) as run:
        config, progress, changes = run.config, run.progress(), run.changes()
        sets = [each.name for each in run.judgement_sets]
        additional = [each for each in run.judgement_sets if each.name != OWN_JUDGEMENTS]
        unparsed, unjudged = {name: run.unparsed(name) for name in sets}, {name: run.unjudged(name) for name in sets}
    status, bounds, is_played = progress.status, progress.bounds, progress.is_played
    if as_json:
        data = {
            **_status_as_json(config, status, additional),
            "check_errors": [asdict(each) for each in progress.check_errors],
            "unparsed": unparsed,
            "unjudged": unjudged,
            "not_sent_as_configured": changes,
            "is_being_written": is_played,
        }
        echo_json({**data, **bounds.as_json()})
        return
    prompts = f", prompts {', '.join(config.prompts)}" if config.prompts else ""
    echo(f"{path}: {config.recipe}, seed {config.seed}{prompts}")
    echo(f"{status.total:,} {config.units}: {status.done:,} done, {status.failed:,} failed, {status.pending:,} pending")
    columns = ("role", "model", "calls", "failed", "replayed", "input tokens", "output tokens", "cost")
    make_console().print(build_table(columns, _iter_usage_rows(config, status, additional), text_columns=2))
    echo_lines((*_format_broken_off(status), *format_changes(changes)))
    echo_lines(f"failed check: {each}" for each in progress.check_errors)
    for name in sets:
        if unparsed[name]:
            echo(f"judgements {name!r}: {unparsed[name]:,} are unparsed and have no score")
        if unjudged[name]:
            echo(f"judgements {name!r}: {unjudged[name]:,} of {status.done:,} finished {config.units} are not judged")
    if status.faults or any(map(has_reduced_coverage, status.languages)):
        echo(f"faults: {status.faults:,} in {status.faulty:,} of {status.gated:,} conversations checked by the gate")
        echo(format_reduced_coverage(status.languages, status.gated))
    if status.leased:
        echo(f"{config.units} that workers hold: {status.leased:,} (their latest calls are not included yet)")
    if status.usage.unanswered:
        why = "in progress, or lost in a crash" if is_played else "lost when a process ended, but possibly billed"
        echo(f"calls without an answer: {status.usage.unanswered:,} ({why})")
    echo_lines(format_bounds(bounds, str(path)))
    if is_played:
        echo("another dialoom process is writing it now")
    elif status.pending:
        echo(f"continue with: dialoom resume {path}{format_budget_flags(bounds)}")


def _format_broken_off(status: Status) -> list[str]:
    """Return the counts of incomplete replies, as one line for each role."""
    judgings = {f"judging {name!r}": usage for name, usage in status.by_judging.items()}
    return [
        f"replies of {who}: " + ", ".join(f"{count:,} {what}" for what, count in usage.broken_off.items())
        for who, usage in {**status.by_role, **judgings}.items()
        if usage.broken_off
    ]


def _status_as_json(config: RunConfig, status: Status, additional: Sequence[JudgementSet]) -> dict[str, Any]:
    roles = {role: (model, status.by_role.get(role, Usage())) for role, model in config.model_names.items()}
    return {
        "recipe": config.recipe,
        "prompts": list(config.prompts),
        "scenarios": {
            "total": status.total,
            "done": status.done,
            "failed": status.failed,
            "pending": status.pending,
        },
        "leased_scenarios": status.leased,
        **_usage_as_json(status.usage),
        "faults": {
            "gated": status.gated,
            "faulty": status.faulty,
            "faults": status.faults,
            "languages": {
                language: {"gated": count, "is_reduced": has_reduced_coverage(language)}
                for language, count in status.languages.items()
            },
        },
        "roles": {
            role: {"model": model, "models": _list_players(model, usage), **_usage_as_json(usage)}
            for role, (model, usage) in roles.items()
        },
        "judgings": {
            judging.name: {
                "models": judging.model_names,
                **_usage_as_json(status.by_judging.get(judging.name, Usage())),
            }
            for judging in additional
        },
    }


def _iter_usage_rows(config: RunConfig, status: Status, additional: Sequence[JudgementSet]) -> Iterator[list[str]]:
    for role, model in config.model_names.items():
        usage = status.by_role.get(role, Usage())
        yield [role, ", ".join(_list_players(model, usage)), *_format_usage(usage)]
    for judging in additional:
        usage = status.by_judging.get(judging.name, Usage())
        yield [f"judging {judging.name!r}", ", ".join(judging.model_names.values()), *_format_usage(usage)]
    yield ["all", "", *_format_usage(status.usage)]


def _list_players(model: str, usage: Usage) -> list[str]:
    """Return the models that play a role: the configured one, then models or a person that replaced it on a branch."""
    return [*dict.fromkeys((*model.split(", "), *usage.models))]


def _get_models(config: RunConfig) -> dict[str, str | list[str]]:
    """Return the models by role; for a role with several judges, all of them."""
    models = {role: list(dict.fromkeys(cast[role].model for cast in config.casts)) for role in config.models}
    return {role: names[0] if len(names) == 1 else names for role, names in models.items()}


def print_config(path: Path, is_trusted: bool = False) -> None:
    """Print the resolved configuration in the form that `--config` reads, without the file's name."""
    with RunReader(path, trust=build_trust(is_trusted)) as run:
        config, recipe, changes = run.config, _load_recipe(run), run.changes()
    reply_limits = {} if recipe is None else WithRoles.of(recipe).reply_limits
    fields = {} if recipe is None else recipe.options_type.model_fields
    models = config.models.items()
    role_settings = {
        "model": _get_models(config),
        "temperature": {role: NO_VALUE if each.temperature is None else each.temperature for role, each in models},
        "api_base": {role: each.api_base for role, each in models if each.api_base},
        "structured": {role: each.structured for role, each in models if each.structured != "auto"},
        "stateful": ",".join(role for role, each in models if each.stateful),
        "takes_tools": ",".join(role for role, each in models if each.takes_tools and is_provider_model(each.model)),
        "session": {role: each.session for role, each in models if each.session},
        "max_reply": {
            role: each.max_reply or NO_VALUE for role, each in models if each.max_reply or role in reply_limits
        },
        "param": {role: dict(each.params) for role, each in models if each.params},
    }
    values = {
        **{(name in fields and fields[name].alias) or name: value for name, value in config.options.items()},
        **{name: value or None for name, value in role_settings.items()},
        **config.run_settings(is_complete=False),
    }
    values = {name: value for name, value in values.items() if value is not None}
    echo(f"# dialoom run {config.recipe}\n" + yaml.safe_dump(values, sort_keys=False, allow_unicode=True), nl=False)
    echo_lines(f"# {line}" for line in format_changes(changes))


def list_scenarios(
    path: Path,
    as_json: bool,
    judging: str | None = None,
    where: str | None = None,
    sort: str | None = None,
    is_reversed: bool = False,
    search: str | None = None,
    is_trusted: bool = False,
    labelled_by: str | None = None,
    unlabelled_by: str | None = None,
) -> None:
    """Print scenarios: all, or only those selected by an expression, by words, or by labels.

    Each line has a scenario's number, state, scores and id.
    """
    with RunReader(path, trust=build_trust(is_trusted)) as run:
        targets = run.metrics(judging)
        multi_target = {metric for metric, judged in targets.items() if len(judged) > 1}
        metrics = [
            f"{metric}.{each}" if metric in multi_target else metric for metric in targets for each in targets[metric]
        ]
        metrics += ["faults"] if run.is_gated else []
        messages = None if search is None else run.search(search, _make_progress_callback())
        is_wanted = _build_label_filter(run, labelled_by, unlabelled_by)
        figures = run.figures(judging, where=where, sort=sort, is_descending=is_reversed)
        selected = (each for each in figures if (messages is None or each[0] in messages) and is_wanted(each[0]))
        index = -1
        for index, (position, episode) in enumerate(selected):
            if index == 0 and metrics and not as_json:
                echo(f"{'number':>7}  {'state':<8} {'ended by':<16} {' '.join(metrics)} id")
            faults = None if episode.outcome.faults is None else count_dialogue_faults(episode.outcome.faults)
            scores = {
                f"{metric}.{target}" if metric in multi_target else metric: value
                for metric, score in scores_by_metric(episode).items()
                for target, value in vars(score).items()
            }
            message = None if messages is None else messages[position]
            ending = episode.outcome.ended_by
            if as_json:
                summary = {"number": position + 1, "id": episode.id, "state": episode.state, "ended_by": ending or None}
                matched = {} if message is None else {"match": message}
                echo_json({**summary, "scores": scores, "faults": faults, **matched})
                continue
            values: dict[str, float | None] = {**scores, "faults": faults if ending else None}
            shown = {name: "-" if (value := values.get(name)) is None else format_number(value) for name in metrics}
            cells = "".join(f"{cell:>{len(name)}} " for name, cell in shown.items())
            echo(f"{position + 1:>7}  {episode.state:<8} {ending:<16} {cells}{episode.id}")
            if message is not None:
                echo(f"{'':>9}{extract_snippet(message, search or '')}")
        filters = {
            "--where": where,
            "--search": search,
            "--labelled-by": labelled_by,
            "--unlabelled-by": unlabelled_by,
        }
        if index < 0 and (given := ", ".join(f"{flag} {text!r}" for flag, text in filters.items() if text is not None)):
            echo(f"no scenario matches {given}", err=True)


def _build_label_filter(run: RunReader, by: str | None, not_by: str | None) -> Callable[[int], bool]:
    """Return a filter for the positions of scenarios that one person has labelled completely and another has not."""
    wanted, excluded = (
        None if name is None else {position for position, each in run.labelled(name).items() if each.is_complete}
        for name in (by, not_by)
    )
    return lambda position: (wanted is None or position in wanted) and (excluded is None or position not in excluded)


def _make_progress_callback() -> Callable[[str, int, int], None]:
    """Return a callback that displays the progress of building a search index; only on a terminal."""
    is_reported = False

    def report(_what: str, _done: int, of: int) -> None:
        nonlocal is_reported
        if not is_reported and sys.stderr.isatty():
            is_reported = True
            echo(f"indexing the messages of {of:,} conversations; later searches use the index", err=True)

    return report


def show_scenario(path: Path, name: str, as_json: bool, judging: str | None, is_trusted: bool = False) -> None:
    """Print one dialogue with its judgements and its ending; without the recipe, only what the file itself contains."""
    with RunReader(path, trust=build_trust(is_trusted)) as run:
        common, models = run.common_calls(name), run.models(judging)
        if as_json:
            echo_json({**run.dialogue(name, judging), "common_calls": [asdict(call) for call in common]})
            return
        recorded = run.episode(name, judging)
        if recorded is not None and _load_recipe(run) is None:
            _print_episode(recorded, dict(recorded.facets), models, common, None)
            return
        recipe, scenario, episode = run.recipe, run.scenario(name), recorded or run.so_far(name)
        is_judged = any(judgement.score is not None for judgement in episode.outcome.judgements)
        health = run.judge_health(judging, limit=_MAX_HEALTH_SCENARIOS) if is_judged else ()
    _print_episode(
        episode,
        {**scenario.portrait(), **scenario.described()},
        models,
        common,
        WithOutline.of(recipe).outline(episode),
        health,
    )
    if episode.state == "pending":
        state = "not finished yet; its current state is shown" if episode.outcome.messages else "not begun yet"
        echo(f"\n{scenario.id} is {state}; continue with: dialoom resume {path}")


def _load_recipe(run: RunReader) -> Recipe | None:
    """Return the run's recipe. If it must not be loaded, print a message and return `None`."""
    try:
        return run.recipe
    except TrustError as error:
        echo(f"dialoom: {format_error(error)}", err=True)
        return None


def _print_episode(
    episode: RecordedEpisode,
    described: dict[str, Any],
    models: dict[str, str],
    common: Sequence[CommonCall],
    outline: Outline | None,
    health: Iterable[Health] = (),
) -> None:
    console = make_console()
    failing = {subject: each for subject, each in health_by_subject(health).items() if each.marks}
    console.print(episode.id, style="bold")
    for key, value in described.items():
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        _print_named(console, key, ", ".join(map(str, values)))
    if models:  # an imported conversation has no models
        _print_named(console, "models", ", ".join(f"{role} {model}" for role, model in models.items()))
    for text in _format_common_calls(common):
        _print_named(console, "common call", text)
    if episode.branch is not None:
        action = episode.branch.done()
        _print_named(
            console, "branch", f"{episode.branch.name}, made in the step debugger" + (f" ({action})" if action else "")
        )
    if outline is not None:
        console.print()
        console.print(_build_tree(outline))
    messages, faults = episode.outcome.messages if outline is None else (), episode.outcome.faults or ()
    for index, message in enumerate(messages):
        console.print()
        console.print(message.role, style=f"bold {ROLE_COLOURS.get(message.role, 'magenta')}")
        console.print(message.spoken)
        if message.finish_reason is not None:
            console.print(f"({INCOMPLETE_REASONS.get(message.finish_reason, message.finish_reason)})", style="dim")
        for line in format_message_faults(faults, index):
            console.print(line)
    if episode.outcome.ended_by:
        console.print()
        console.print(Text.assemble(("ended by", "dim"), " ", episode.outcome.ended_by))
    if episode.error:
        console.print(Text.assemble(("failed:", "red"), " ", episode.error))
    for line in format_other_faults(faults, messages):
        console.print(line)
    for judgement in episode.outcome.judgements:
        of = judgement.target if judgement.turn is None else f"{judgement.target}, turn {judgement.turn}"
        mark = failing[subject].marks if (subject := format_subject(judgement)) in failing else ""
        score = judgement.status if judgement.score is None else f"{judgement.score}{mark}"
        parts = (f" ({of}): ", (score, "bold"), " ", (_indent(judgement.explanation), "dim"))
        console.print(Text.assemble("  ", (judgement.metric, "bold"), *parts))
    judged = {format_subject(judgement) for judgement in episode.outcome.judgements}
    for subject, each in failing.items():
        if subject in judged:
            console.print(
                f"  {each.marks} The judge of {each.display_name} fails a check: {'; '.join(each.failures())}."
            )


def _format_common_calls(common: Sequence[CommonCall]) -> Iterator[str]:
    """Yield one line for all shared calls with the same prompt, because a scenario may have dozens of such calls."""
    for (role, prompt), users in group_pairs(((call.role, call.prompt), call.scenarios) for call in common).items():
        low, high = min(users), max(users)
        count = f"{len(users)} of them, each " if len(users) > 1 else ""
        used = f"by {high} scenarios" if low == high else f"by {low} to {high} scenarios"
        yield f"{role}, {prompt} ({count}requested once, used {used if high > 1 else 'so far only by this scenario'})"


def _print_named(console: SafeConsole, name: str, text: str) -> None:
    """Print a name and a text; further lines of the text are indented."""
    console.print(Text.assemble("  ", (f"{name}:", "dim"), " ", _indent(text)))


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")


def _build_tree(outline: Outline, parent: Tree | None = None) -> Tree:
    """Return the outline as a rich tree."""
    line = Text.assemble(*((span.text, _STYLES[span.style]) for span in outline.spans))
    tree = Tree(line, guide_style="dim") if parent is None else parent.add(line)
    for part in outline.parts:
        _build_tree(part, tree)
    return tree


def _usage_as_json(usage: Usage) -> dict[str, Any]:
    return {
        "calls": usage.calls,
        "failed_calls": usage.failed,
        "unanswered_calls": usage.unanswered,
        "replays": usage.replays,
        "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
        "cost": usage.cost,
        "broken_off": usage.broken_off,
    }


def _format_usage(usage: Usage) -> list[str]:
    tokens = ["unknown" if count is None else f"{count:,}" for count in (usage.input_tokens, usage.output_tokens)]
    cost = "unknown" if usage.cost is None else f"${usage.cost:,.4f}"
    return [f"{usage.calls:,}", f"{usage.failed:,}", f"{usage.replays:,}", *tokens, cost]
