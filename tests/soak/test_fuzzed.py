"""The suite's fuzz tests of run files, releases, replies and answers, with more examples."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings

from tests.conftest import Command
from tests.hostile.test_damaged import ANY_COMMAND, EDITS, FLIPS, check_crafted, check_flipped
from tests.hostile.test_fuzzed import (
    BYTES,
    ENTRIES,
    HOSTILE,
    MODELS,
    PLACES,
    REPLIES,
    VALUES,
    Provider,
    check_answer,
    check_figures,
    check_lines,
    check_release,
    check_reply,
    check_run,
)
from tests.server import Response

MANY = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


@given(EDITS, ANY_COMMAND)
@MANY
def test_many_crafted_rows(
    dialoom: Command, tmp_path: Path, damaged: Path, edits: list[tuple[int, int]], command: int
) -> None:
    check_crafted(dialoom, tmp_path, damaged, edits, command)


@given(FLIPS, ANY_COMMAND)
@MANY
def test_many_flipped_bytes(
    dialoom: Command, tmp_path: Path, damaged: Path, flips: list[tuple[int, int]], command: int
) -> None:
    check_flipped(dialoom, tmp_path, damaged, flips, command)


@given(PLACES, VALUES)
@MANY
def test_any_of_many_releases_is_planned_or_refused(tmp_path: Path, way: list[int], value: Any) -> None:
    check_release(tmp_path, way, value)


@given(ENTRIES, BYTES)
@MANY
def test_any_of_many_lines_is_planned_or_refused(tmp_path: Path, entry: Any, tail: bytes) -> None:
    check_lines(tmp_path, entry, tail)


@given(REPLIES)
@settings(max_examples=4_000)
def test_any_of_many_replies_is_of_its_type_or_refused(text: str) -> None:
    check_reply(text)


@given(VALUES)
@settings(max_examples=4_000)
def test_any_of_many_figures_is_known_or_not(figure: object) -> None:
    check_figures(figure)


@given(MODELS, HOSTILE)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_of_many_answers_is_a_reply_or_a_dialoom_error(
    provider: Provider, runner: asyncio.Runner, model: str, hostile: Response
) -> None:
    check_answer(provider, runner, model, hostile)


@given(HOSTILE)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_of_many_answers_to_one_dialogue_does_not_affect_the_others(
    provider: Provider, tmp_path: Path, hostile: Response
) -> None:
    check_run(provider, tmp_path, hostile)
