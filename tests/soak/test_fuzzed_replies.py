"""The suite's fuzz over replies and over what servers send, with a budget that finds more."""

from __future__ import annotations

import asyncio
from pathlib import Path

from hypothesis import HealthCheck, given, settings

from tests.hostile.test_fuzzed_answers import HOSTILE, MODELS, Provider, check_answer, check_run
from tests.hostile.test_fuzzed_replies import REPLIES, VALUES, check_figures, check_reply
from tests.server import Response


@given(REPLIES)
@settings(max_examples=4_000)
def test_any_of_many_replies_is_of_its_type_or_refused(text: str) -> None:
    """Nothing else comes of it."""
    check_reply(text)


@given(VALUES)
@settings(max_examples=4_000)
def test_any_of_many_figures_is_known_or_not(figure: object) -> None:
    """Nothing else comes of it."""
    check_figures(figure)


@given(MODELS, HOSTILE)
@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_of_many_answers_is_a_reply_or_an_error_of_ours(
    provider: Provider, runner: asyncio.Runner, model: str, hostile: Response
) -> None:
    """Nothing else comes of it."""
    check_answer(provider, runner, model, hostile)


@given(HOSTILE)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_of_many_answers_to_one_dialogue_leaves_the_others_alone(
    provider: Provider, tmp_path: Path, hostile: Response
) -> None:
    """Whatever it is."""
    check_run(provider, tmp_path, hostile)
