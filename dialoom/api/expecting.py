"""Tests of assistants: replays of saved cases, expectations of scores, and test results as JUnit XML and Markdown."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Collection, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from dataclasses import replace as changed
from operator import methodcaller
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dialoom.graphs import Episode
from dialoom.runs.configuration.trust import Trust
from dialoom.runs.errors import RunError
from dialoom.runs.report.differences import format_subject
from dialoom.runs.report.requirements import Requirement, RequirementResult, check_outcome, parse_allowed
from dialoom.runs.stepping import Case, ReplayResult, read_case
from dialoom.runs.stepping import replay as play_case
from dialoom.settings import ModelLike, PathLike, resolve_prompt_sets
from dialoom.text import escape_markdown, quote_code, sanitize

from .blocking import run_in_daemon_threads
from .run import RunReader

__tracebackhide__ = methodcaller("errisinstance", AssertionError)
"""Let pytest show an unmet expectation at the test's line, without the lines of this module."""


async def areplay(
    case: Case | PathLike,
    *,
    live: Collection[str] = (),
    models: Mapping[str, ModelLike] | None = None,
    prompts: PathLike | Sequence[PathLike] | None = None,
    trust: bool | Trust = False,
) -> ReplayResult:
    """Play a saved case with the current code: with its recorded replies, or with new replies of the roles in `live`.

    Example:
        >>> asyncio.run(dialoom.areplay("talk.case.json")).is_same
        True

    Args:
        case: The case that `save` in the step debugger wrote, or its file. Files that the case names are looked up in
            the folder of the case first, then in the working folder, then at their paths when the case was saved.
        live: The roles that reply again, with their current prompts and code. Every other speaker repeats its recorded
            messages, even if the messages before them are different now. A judge's recorded reply is used only if the
            conversation is the one that it judged.
        models: Models of live roles, in place of the recorded ones.
        prompts: Sets of prompts that replace the recipe's own, for live roles; as for `play`.
        trust: Whether to trust the code and the addresses that the case refers to.

    Returns:
        The result. `is_same` tells whether the conversation had the recorded steps or, with live roles, whether the
        judgements are the recorded ones.

    Raises:
        RunError, RecipeError, BindingError: If the case cannot be played.
        TrustError: If the case refers to code or an address that was not specified on this machine, and `trust` is not
            set.
    """
    loaded, folders = (case, []) if isinstance(case, Case) else (read_case(Path(case)), [Path(case).absolute().parent])
    trusted = trust if isinstance(trust, Trust) else Trust(trust)
    return await play_case(
        loaded, trusted, folders=folders, live=live, models=models, prompts=resolve_prompt_sets(prompts)
    )


def replay(
    case: Case | PathLike,
    *,
    live: Collection[str] = (),
    models: Mapping[str, ModelLike] | None = None,
    prompts: PathLike | Sequence[PathLike] | None = None,
    trust: bool | Trust = False,
) -> ReplayResult:
    """Play a saved case; the blocking form of `areplay`.

    Example:
        >>> dialoom.replay("talk.case.json", live=["assistant"]).is_same
        True
    """
    return _run_in_thread(areplay(case, live=live, models=models, prompts=prompts, trust=trust))


def _run_in_thread(replaying: Coroutine[Any, Any, ReplayResult]) -> ReplayResult:
    with ThreadPoolExecutor(1, thread_name_prefix="dialoom") as thread:  # the caller may have an event loop
        return thread.submit(asyncio.run, run_in_daemon_threads(replaying)).result()


def check_replay(
    path: Path, live: Sequence[str], requirements: Sequence[str], allow: Sequence[str], root: Path
) -> None:
    """Play a saved case as a test. The code that the case refers to is trusted.

    Args:
        path: The case.
        live: The roles that reply again.
        requirements: Requirements on the scores, in place of the recorded judgements.
        allow: Conditions to accept, which otherwise fail a requirement; see `Run.require`.
        root: The folder in which files and modules are looked up that are not in the folder of the case.

    Raises:
        AssertionError: If the result is not the recorded one, or a requirement is not met.
        RunError: In the same cases as `areplay` and `check_replay_requirements`.
    """
    result = _run_in_thread(play_case(read_case(path), Trust(True), folders=[path.parent, root], live=live))
    details = [*result.lines, *result.scores, *result.departures]
    if requirements and not result.departures:
        unmet = [each for each in check_replay_requirements(result, requirements, allow=allow) if not each.is_met]
        if unmet:
            raise AssertionError("\n".join([*map(str, unmet), *details, find_worst_conversation(result, unmet[0])]))
    elif not result.is_same:
        raise AssertionError(
            "\n".join([f"{path.name} differs from the recorded conversation", *details, *result.changed])
        )


def check_replay_requirements(
    result: ReplayResult,
    requirements: Sequence[str | Requirement],
    *,
    is_confident: bool = False,
    allow: Collection[str] = (),
) -> list[RequirementResult]:
    """Check requirements on the scores of a replay, and return whether they are met.

    Raises:
        RunError: If the replayed conversation did not end and so has no scores, or a requirement cannot be checked.
    """
    if result.outcome is None:
        raise RunError(f"the case could not be played to its end: {'; '.join(result.departures)}")
    if not result.live:
        raise RunError("requirements need a role that replies again; name at least one in 'live'", setting="live")
    parsed = [Requirement.parse(each) if isinstance(each, str) else each for each in requirements]
    return check_outcome(_build_episode(result), result.recipe, result.bindings.by_role, parsed, is_confident, allow)


def _build_episode(result: ReplayResult) -> Episode:
    assert result.outcome is not None, "only a replay with an outcome has scores"
    return Episode(result.scenario.id, result.scenario.facets(), "done", result.outcome)


class _CheckTracker:
    """A record of whether any expectation made from one call of `expect` was checked."""

    is_checked = False

    def __del__(self) -> None:
        if not self.is_checked:
            warnings.warn(_NOTHING_CHECKED, RuntimeWarning, stacklevel=2)


_NOTHING_CHECKED = "expect(...) has checked nothing; end it with at_least, at_most or not_worse_than"


@dataclass(frozen=True, slots=True)
class Expectation:
    """An expectation about the scores of a run or a replay; see `expect`.

    Example:
        >>> scored = dialoom.expect(dialoom.open_run("run.db"), allow=["offline"]).metric("task_completion")
        >>> _ = scored.at_least(0.5)

    Attributes:
        of: The run, or the replay.
        allow: Conditions to accept, which otherwise fail an expectation; see `Run.require`.
        judging: The set of judgements of a run; by default the oldest.
        where: Only scenarios of a run that match this expression.
        name: The metric.
        k: If set, the number of trials of a scenario that must all succeed.
        is_confident: Whether the whole 95 % interval must meet the expectation, not only the mean.
    """

    of: RunReader | ReplayResult
    allow: tuple[str, ...] = ()
    judging: str | None = None
    where: str | None = None
    name: str = ""
    k: int | None = None
    is_confident: bool = False
    _tracker: _CheckTracker = field(default_factory=_CheckTracker, repr=False, compare=False)

    def __bool__(self) -> bool:
        """Return true after a check.

        Raises:
            RunError: If nothing was checked, as in `assert expect(run).metric("resolved")`.
        """
        if not self._tracker.is_checked:
            raise RunError(_NOTHING_CHECKED)
        return True

    def metric(self, name: str) -> Expectation:
        """Return an expectation about one metric, such as `resolved` or `tone (assistant)`."""
        return changed(self, name=name)

    def pass_k(self, k: int) -> Expectation:
        """Return an expectation about pass^k: the probability that k trials of a scenario all succeed.

        Raises:
            RunError: If k is less than 1.
        """
        if k < 1:
            self._tracker.is_checked = True  # no second message
            raise RunError(f"k must be at least 1, got {k}", setting="k")
        return changed(self, k=k)

    def confident(self) -> Expectation:
        """Return an expectation that the whole 95 % interval must meet, not only the mean."""
        return changed(self, is_confident=True)

    def at_least(self, bound: float) -> Expectation:
        """Check that the mean is at least `bound`. The mean of verdicts is the share that is true, from 0 to 1.

        Raises:
            AssertionError: If the expectation is not met; the message contains the value, the reason and the worst
                conversation.
            RunError: If the expectation cannot be checked; see `Run.require`.
        """
        return self._check_bound(">=", bound)

    def at_most(self, bound: float) -> Expectation:
        """Check that the mean is at most `bound`; the same errors are raised as by `at_least`."""
        return self._check_bound("<=", bound)

    def not_worse_than(self, baseline: RunReader | PathLike) -> Expectation:
        """Check that the metric (every metric, if none is given) is not significantly worse than in another run.

        Raises:
            AssertionError, RunError: In the same cases as `at_least`. Apart from the role under evaluation, the two
                runs must have the same settings.
        """
        self._tracker.is_checked = True
        if not isinstance(self.of, RunReader):
            raise RunError("not_worse_than compares runs, but this is a replay")
        results = self.of.require(
            not_worse_than=baseline,
            metrics=[self.name] if self.name else [],
            allow=self.allow,
            judging=self.judging,
            where=self.where,
        )
        return self._ensure_met(results)

    def _check_bound(self, sign: str, bound: float) -> Expectation:
        self._tracker.is_checked = True
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise RunError(f"the bound must be a number, such as 0.8, got {bound!r}", setting="bound")
        if not self.name:
            raise RunError("name a metric first: expect(run).metric('resolved').at_least(0.8)")
        requirement = Requirement(self.name, sign, bound, None if self.k is None else True, self.k)
        if isinstance(self.of, ReplayResult):
            if self.of.outcome is None:
                raise AssertionError("\n".join(["the case could not be played to its end", *self.of.departures]))
            results = check_replay_requirements(
                self.of, [requirement], is_confident=self.is_confident, allow=self.allow
            )
        else:
            results = self.of.require(
                requirement, is_confident=self.is_confident, allow=self.allow, judging=self.judging, where=self.where
            )
        return self._ensure_met(results)

    def _ensure_met(self, results: Sequence[RequirementResult]) -> Expectation:
        unmet = [each for each in results if not each.is_met]
        if not unmet:
            return self
        conversation = find_worst_conversation(self.of, unmet[0], self.judging, self.where)
        raise AssertionError("\n".join([*map(str, unmet), *([conversation] if conversation else [])]))


def expect(
    of: RunReader | ReplayResult,
    *,
    allow: Sequence[str] = (),
    judging: str | None = None,
    where: str | None = None,
) -> Expectation:
    """Return an expectation about a run's or a replay's scores, for tests; its checks raise `AssertionError`.

    Example:
        >>> expected = dialoom.expect(dialoom.open_run("run.db"), allow=["offline"])
        >>> _ = expected.metric("task_completion").at_least(0.5)
        >>> expected.metric("personalization").at_least(4)
        Traceback (most recent call last):
            ...
        AssertionError: ...

    Args:
        of: A run, or the result of `dialoom.replay` with live roles.
        allow: Conditions to accept, which otherwise fail the expectation: `offline`, `missing`, `constant`,
            `unfinished`, `unhealthy`; see `Run.require`.
        judging: The set of judgements; by default the oldest.
        where: Only scenarios that match this expression.
    """
    return Expectation(of, tuple(sorted(parse_allowed(allow))), judging, where)


_MAX_LINES = 40


def find_worst_conversation(
    of: RunReader | ReplayResult, unmet: RequirementResult, judging: str | None = None, where: str | None = None
) -> str:
    """Return the conversation with the worst score of a requirement's metric, as text; empty if nothing was scored.

    A missing score is worse than any other. If several conversations have the worst score, the first is returned.
    """
    episodes = of.episodes(judging, where=where) if isinstance(of, RunReader) else [_build_episode(of)]
    worst: tuple[float, Episode, str] | None = None
    for episode in episodes:
        for each in episode.outcome.judgements:
            if unmet.metric not in (each.metric, f"{each.metric} ({each.target})", format_subject(each)):
                continue
            rank = float("-inf") if each.score is None else (-1 if unmet.is_upper else 1) * float(each.score)
            if worst is None or rank < worst[0]:
                score = "no score" if each.score is None else each.score
                worst = rank, episode, f"{each.metric} {score}: {each.explanation}"
    if worst is None:
        return ""
    _, episode, score = worst
    lines = [f"{line.role}: {line.spoken}" for line in episode.outcome.messages]
    omitted = [f"({len(lines) - _MAX_LINES} earlier messages)"] if len(lines) > _MAX_LINES else []
    return sanitize("\n".join([f"the worst conversation, {episode.id}: {score}", *omitted, *lines[-_MAX_LINES:]]))


def format_junit(name: str, results: Sequence[RequirementResult], conversations: Sequence[str]) -> str:
    """Return checked requirements as JUnit XML, with one test case for each.

    Args:
        name: The name of the suite, such as the run's file.
        results: The checked requirements.
        conversations: The worst conversation for each requirement; an empty string if there is none.
    """
    failures = str(sum(not each.is_met for each in results))
    suite = ElementTree.Element("testsuite", name=sanitize(name), tests=str(len(results)), failures=failures)
    for each, conversation in zip(results, conversations, strict=True):
        case = ElementTree.SubElement(suite, "testcase", classname=sanitize(name), name=sanitize(each.requirement))
        if not each.is_met:
            ElementTree.SubElement(case, "failure", message=sanitize("; ".join(each.reasons))).text = conversation
        ElementTree.SubElement(case, "system-out").text = sanitize(str(each))
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def format_markdown_summary(name: str, results: Sequence[RequirementResult], conversations: Sequence[str]) -> str:
    """Return checked requirements as Markdown for a pull request; the arguments are those of `format_junit`."""
    met = sum(each.is_met for each in results)
    lines = [f"### {quote_code(name)}: {met} of {len(results)} requirements met", ""]
    lines += ["| | requirement | value, 95 % interval | |", "|---|---|---|---|"]
    for each in results:
        cells = [escape_markdown(text) for text in (each.requirement, each.value, "; ".join(each.reasons))]
        lines.append(f"| {'met' if each.is_met else '**not met**'} | {' | '.join(cells)} |")
    for each, conversation in zip(results, conversations, strict=True):
        if conversation and not each.is_met:
            lines += ["", f"{escape_markdown(each.requirement)}:", ""]
            lines += [f"    {line}" for line in conversation.splitlines()]
    return "\n".join(lines) + "\n"
