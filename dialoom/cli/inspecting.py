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

from .console import HarmlessConsole, make_console, table_of
from .errors import worded
from .option_flags import trust_by_flag
from .setting_flags import UNBOUNDED
from .show_lines import COLOURS, at_message, bound_lines, budget_flags, changed_lines, of_the_rest
from .terminal import say, say_json, say_lines

_MOST_READ = 1_000
"""The maximum number of scenarios that are read to determine the health of a judge."""
_STYLES = {"plain": "", "heading": "bold", "user": "cyan", "assistant": "green", "note": "dim", "new": "yellow"}


def print_status(path: Path, as_json: bool) -> None:
    """Print a run's progress and the usage of each role."""
    with RunReader(path) as run:
        config, progress, changes = run.config, run.progress(), run.changes()
        sets = [each.name for each in run.judgement_sets]
        later = [each for each in run.judgement_sets if each.name != OWN_JUDGEMENTS]
        unparsed, unjudged = {name: run.unparsed(name) for name in sets}, {name: run.unjudged(name) for name in sets}
    status, bounds, is_played = progress.status, progress.bounds, progress.is_played
    if as_json:
        data = {
            **_status_for_programs(config, status, later),
            "check_errors": [asdict(each) for each in progress.check_errors],
            "unparsed": unparsed,
            "unjudged": unjudged,
            "not_sent_as_configured": changes,
            "is_being_written": is_played,
        }
        say_json({**data, **bounds.as_json()})
        return
    prompts = f", prompts {', '.join(config.prompts)}" if config.prompts else ""
    say(f"{path}: {config.recipe}, seed {config.seed}{prompts}")
    say(f"{status.total:,} {config.units}: {status.done:,} done, {status.failed:,} failed, {status.pending:,} pending")
    columns = ("role", "model", "calls", "failed", "replayed", "input tokens", "output tokens", "cost")
    make_console().print(table_of(columns, _usage_rows(config, status, later), texts=2))
    say_lines((*_broken_off(status), *changed_lines(changes)))
    say_lines(f"failed check: {each}" for each in progress.check_errors)
    for name in sets:
        if unparsed[name]:
            say(f"judgements {name!r}: {unparsed[name]:,} are unparsed and have no score")
        if unjudged[name]:
            say(f"judgements {name!r}: {unjudged[name]:,} of {status.done:,} finished {config.units} are not judged")
    if status.faults or any(map(has_reduced_coverage, status.languages)):
        say(f"faults: {status.faults:,} in {status.faulty:,} of {status.gated:,} conversations checked by the gate")
        say(format_reduced_coverage(status.languages, status.gated))
    if status.leased:
        say(f"{config.units} that workers hold: {status.leased:,} (their latest calls are not included yet)")
    if status.usage.unanswered:
        why = "in progress, or lost in a crash" if is_played else "lost when a process ended, but possibly billed"
        say(f"calls without an answer: {status.usage.unanswered:,} ({why})")
    say_lines(bound_lines(bounds, str(path)))
    if is_played:
        say("another dialoom process is writing it now")
    elif status.pending:
        say(f"continue with: dialoom resume {path}{budget_flags(bounds)}")


def _broken_off(status: Status) -> list[str]:
    """Return the counts of incomplete replies, as one line for each role."""
    judgings = {f"judging {name!r}": usage for name, usage in status.by_judging.items()}
    return [
        f"replies of {who}: " + ", ".join(f"{count:,} {what}" for what, count in usage.broken_off.items())
        for who, usage in {**status.by_role, **judgings}.items()
        if usage.broken_off
    ]


def _status_for_programs(config: RunConfig, status: Status, later: Sequence[JudgementSet]) -> dict[str, Any]:
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
        **_usage(status.usage),
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
            role: {"model": model, "models": _players(model, usage), **_usage(usage)}
            for role, (model, usage) in roles.items()
        },
        "judgings": {
            judging.name: {"models": judging.model_names, **_usage(status.by_judging.get(judging.name, Usage()))}
            for judging in later
        },
    }


def _usage_rows(config: RunConfig, status: Status, later: Sequence[JudgementSet]) -> Iterator[list[str]]:
    for role, model in config.model_names.items():
        usage = status.by_role.get(role, Usage())
        yield [role, ", ".join(_players(model, usage)), *_cells(usage)]
    for judging in later:
        usage = status.by_judging.get(judging.name, Usage())
        yield [f"judging {judging.name!r}", ", ".join(judging.model_names.values()), *_cells(usage)]
    yield ["all", "", *_cells(status.usage)]


def _players(model: str, usage: Usage) -> list[str]:
    """Return the models that play a role: the configured one, then models or a person that replaced it on a branch."""
    return [*dict.fromkeys((*model.split(", "), *usage.models))]


def _models(config: RunConfig) -> dict[str, str | list[str]]:
    """Return the models by role; for a role with several judges, all of them."""
    named = {role: list(dict.fromkeys(cast[role].model for cast in config.casts)) for role in config.models}
    return {role: models[0] if len(models) == 1 else models for role, models in named.items()}


def print_config(path: Path, is_trusted: bool = False) -> None:
    """Print the resolved configuration in the form that `--config` reads, without the file's name."""
    with RunReader(path, trust=trust_by_flag(is_trusted)) as run:
        config, recipe, changes = run.config, _recipe(run), run.changes()
    usual = {} if recipe is None else WithRoles.of(recipe).reply_limits
    fields = {} if recipe is None else recipe.options_type.model_fields
    models = config.models.items()
    of_roles = {
        "model": _models(config),
        "temperature": {role: UNBOUNDED if each.temperature is None else each.temperature for role, each in models},
        "api_base": {role: each.api_base for role, each in models if each.api_base},
        "structured": {role: each.structured for role, each in models if each.structured != "auto"},
        "stateful": ",".join(role for role, each in models if each.stateful),
        "takes_tools": ",".join(role for role, each in models if each.takes_tools and is_provider_model(each.model)),
        "session": {role: each.session for role, each in models if each.session},
        "max_reply": {role: each.max_reply or UNBOUNDED for role, each in models if each.max_reply or role in usual},
        "param": {role: dict(each.params) for role, each in models if each.params},
    }
    values = {
        **{(name in fields and fields[name].alias) or name: value for name, value in config.options.items()},
        **{name: value or None for name, value in of_roles.items()},
        **config.run_settings(is_complete=False),
    }
    values = {name: value for name, value in values.items() if value is not None}
    say(f"# dialoom run {config.recipe}\n" + yaml.safe_dump(values, sort_keys=False, allow_unicode=True), nl=False)
    say_lines(f"# {line}" for line in changed_lines(changes))


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
    with RunReader(path, trust=trust_by_flag(is_trusted)) as run:
        targets = run.metrics(judging)
        several = {metric for metric, judged in targets.items() if len(judged) > 1}
        metrics = [
            f"{metric}.{each}" if metric in several else metric for metric in targets for each in targets[metric]
        ]
        metrics += ["faults"] if run.is_gated else []
        texts = None if search is None else run.search(search, _progress())
        is_wanted = _labelled(run, labelled_by, unlabelled_by)
        found = run.figures(judging, where=where, sort=sort, is_descending=is_reversed)
        chosen = (each for each in found if (texts is None or each[0] in texts) and is_wanted(each[0]))
        place = -1
        for place, (position, episode) in enumerate(chosen):
            if place == 0 and metrics and not as_json:
                say(f"{'number':>7}  {'state':<8} {'ended by':<16} {' '.join(metrics)} id")
            faults = None if episode.outcome.faults is None else count_dialogue_faults(episode.outcome.faults)
            scores = {
                f"{metric}.{target}" if metric in several else metric: value
                for metric, score in scores_by_metric(episode).items()
                for target, value in vars(score).items()
            }
            words = None if texts is None else texts[position]
            ending = episode.outcome.ended_by
            if as_json:
                known = {"number": position + 1, "id": episode.id, "state": episode.state, "ended_by": ending or None}
                matched = {} if words is None else {"match": words}
                say_json({**known, "scores": scores, "faults": faults, **matched})
                continue
            values: dict[str, float | None] = {**scores, "faults": faults if ending else None}
            shown = {name: "-" if (value := values.get(name)) is None else format_number(value) for name in metrics}
            figures = "".join(f"{cell:>{len(name)}} " for name, cell in shown.items())
            say(f"{position + 1:>7}  {episode.state:<8} {ending:<16} {figures}{episode.id}")
            if words is not None:
                say(f"{'':>9}{extract_snippet(words, search or '')}")
        filters = {
            "--where": where,
            "--search": search,
            "--labelled-by": labelled_by,
            "--unlabelled-by": unlabelled_by,
        }
        if place < 0 and (given := ", ".join(f"{flag} {text!r}" for flag, text in filters.items() if text is not None)):
            say(f"no scenario matches {given}", err=True)


def _labelled(run: RunReader, by: str | None, not_by: str | None) -> Callable[[int], bool]:
    """Return a filter for the positions of scenarios that one person has labelled completely and another has not."""
    done, others = (
        None if name is None else {position for position, each in run.labelled(name).items() if each.is_complete}
        for name in (by, not_by)
    )
    return lambda position: (done is None or position in done) and (others is None or position not in others)


def _progress() -> Callable[[str, int, int], None]:
    """Return a callback that displays the progress of building a search index; only on a terminal."""
    is_reported = False

    def report(_what: str, _done: int, of: int) -> None:
        nonlocal is_reported
        if not is_reported and sys.stderr.isatty():
            is_reported = True
            say(f"indexing the messages of {of:,} conversations; later searches use the index", err=True)

    return report


def show_scenario(path: Path, name: str, as_json: bool, judging: str | None, is_trusted: bool = False) -> None:
    """Print one dialogue with its judgements and its ending; without the recipe, only what the file itself contains."""
    with RunReader(path, trust=trust_by_flag(is_trusted)) as run:
        common, models = run.common_calls(name), run.models(judging)
        if as_json:
            say_json({**run.dialogue(name, judging), "common_calls": [asdict(call) for call in common]})
            return
        bare = run.episode(name, judging)
        if bare is not None and _recipe(run) is None:
            _print_episode(bare, dict(bare.facets), models, common, None)
            return
        recipe, scenario, episode = run.recipe, run.scenario(name), bare or run.so_far(name)
        is_judged = any(judgement.score is not None for judgement in episode.outcome.judgements)
        health = run.judge_health(judging, most=_MOST_READ) if is_judged else ()
    _print_episode(
        episode,
        {**scenario.portrait(), **scenario.described()},
        models,
        common,
        WithOutline.of(recipe).outline(episode),
        health,
    )
    if episode.state == "pending":
        begun = "not finished yet; its current state is shown" if episode.outcome.messages else "not begun yet"
        say(f"\n{scenario.id} is {begun}; continue with: dialoom resume {path}")


def _recipe(run: RunReader) -> Recipe | None:
    """Return the run's recipe. If it must not be loaded, print a message and return `None`."""
    try:
        return run.recipe
    except TrustError as error:
        say(f"dialoom: {worded(error)}", err=True)
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
    failing = {what: each for what, each in health_by_subject(health).items() if each.marks}
    console.print(episode.id, style="bold")
    for key, value in described.items():
        values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else [value]
        _print_named(console, key, ", ".join(map(str, values)))
    if models:  # an imported conversation has no models
        _print_named(console, "models", ", ".join(f"{role} {model}" for role, model in models.items()))
    for text in _common_calls(common):
        _print_named(console, "common call", text)
    if episode.branch is not None:
        done = episode.branch.done()
        _print_named(
            console, "branch", f"{episode.branch.name}, made in the step debugger" + (f" ({done})" if done else "")
        )
    if outline is not None:
        console.print()
        console.print(_tree(outline))
    messages, faults = episode.outcome.messages if outline is None else (), episode.outcome.faults or ()
    for place, message in enumerate(messages):
        console.print()
        console.print(message.role, style=f"bold {COLOURS.get(message.role, 'magenta')}")
        console.print(message.spoken)
        if message.finish_reason is not None:
            console.print(f"({INCOMPLETE_REASONS.get(message.finish_reason, message.finish_reason)})", style="dim")
        for line in at_message(faults, place):
            console.print(line)
    if episode.outcome.ended_by:
        console.print()
        console.print(Text.assemble(("ended by", "dim"), " ", episode.outcome.ended_by))
    if episode.error:
        console.print(Text.assemble(("failed:", "red"), " ", episode.error))
    for line in of_the_rest(faults, messages):
        console.print(line)
    for judgement in episode.outcome.judgements:
        of = judgement.target if judgement.turn is None else f"{judgement.target}, turn {judgement.turn}"
        mark = failing[what].marks if (what := format_subject(judgement)) in failing else ""
        score = judgement.status if judgement.score is None else f"{judgement.score}{mark}"
        parts = (f" ({of}): ", (score, "bold"), " ", (_indented(judgement.explanation), "dim"))
        console.print(Text.assemble("  ", (judgement.metric, "bold"), *parts))
    judged = {format_subject(judgement) for judgement in episode.outcome.judgements}
    for what, each in failing.items():
        if what in judged:
            console.print(
                f"  {each.marks} The judge of {each.display_name} fails a check: {'; '.join(each.failures())}."
            )


def _common_calls(common: Sequence[CommonCall]) -> Iterator[str]:
    """Yield one line for all shared calls with the same prompt, because a scenario may have dozens of such calls."""
    for (role, prompt), users in group_pairs(((call.role, call.prompt), call.scenarios) for call in common).items():
        fewest, most = min(users), max(users)
        count = f"{len(users)} of them, each " if len(users) > 1 else ""
        used = f"by {most} scenarios" if fewest == most else f"by {fewest} to {most} scenarios"
        yield f"{role}, {prompt} ({count}requested once, used {used if most > 1 else 'so far only by this scenario'})"


def _print_named(console: HarmlessConsole, name: str, text: str) -> None:
    """Print a name and a text; further lines of the text are indented."""
    console.print(Text.assemble("  ", (f"{name}:", "dim"), " ", _indented(text)))


def _indented(text: str) -> str:
    return text.replace("\n", "\n    ")


def _tree(outline: Outline, parent: Tree | None = None) -> Tree:
    """Return the outline as a rich tree."""
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
        "broken_off": usage.broken_off,
    }


def _cells(usage: Usage) -> list[str]:
    tokens = ["unknown" if count is None else f"{count:,}" for count in (usage.input_tokens, usage.output_tokens)]
    cost = "unknown" if usage.cost is None else f"${usage.cost:,.4f}"
    return [f"{usage.calls:,}", f"{usage.failed:,}", f"{usage.replays:,}", *tokens, cost]
