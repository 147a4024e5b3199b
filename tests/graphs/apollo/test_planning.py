"""Which samples a run has: the axes, what each sample is made of, and options that cannot be used."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from benchmarks.apollo_size import plan, tables_of, text_of
from dialoom import Scenario
from dialoom.graphs import RecipeError
from dialoom.graphs.apollo import RECIPE
from dialoom.graphs.apollo.scenario import SAMPLE, ApolloOptions, ApolloScenario
from dialoom.graphs.shared import ByHash, SharedValues
from dialoom.personas.apollo.source import history
from tests.graphs.apollo.invented import source, write

MADE = source(["music", "food"], sets=2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source as a folder."""
    return write(tmp_path_factory.mktemp("apollo") / "source", MADE)


def planned(folder: Path, **options: Any) -> list[ApolloScenario]:
    """The samples of a run with these options."""
    chosen = ApolloOptions(source=folder, **options)
    return list(RECIPE.scenarios(chosen, random.Random(0), lambda _line: None))


def test_every_pair_comes_at_every_length_with_every_framework(folder: Path) -> None:
    """In this order; what samples share is one object, and the history is the source's own."""
    samples = planned(folder, length=("2k", "3000"), framework=("rag", "reminder"))
    assert [(each.pair.id, each.length, each.played.framework) for each in samples] == [
        (pair, length, framework) for pair in MADE.pairs for length in (2000, 3000) for framework in ("rag", "reminder")
    ]
    assert len({each.id for each in samples}) == len(samples)
    assert len({id(each.who.value) for each in samples}) == 1
    assert len({id(each.case.value) for each in samples}) == len(MADE.pairs)
    for sample in samples[::2]:
        made = history(MADE, sample.pair, length=sample.length)
        assert tuple(each.session for each in sample.history) == made.sessions
        assert (sample.place, sample.tokens, sample.case.value.tools) == (made.place, made.tokens, made.tools)
    assert {each.played.embedder for each in samples} == {"lexical", ""}


def test_what_samples_share_takes_less_room_than_the_source(tmp_path: Path) -> None:
    """It stands in the plan once, deflated."""
    path = tmp_path / "plan.db"
    assert plan(SAMPLE, path, length=("2k",)) == 54
    assert dict(tables_of(path))["documents"] < 0.7 * text_of(SAMPLE)


def test_a_sample_read_from_a_file_is_the_same(folder: Path) -> None:
    """Dumped by hash, it is a row of some numbers; its id stays."""
    (sample,) = planned(folder, length=("2k",), evolving="yes", limit=1)
    kept: dict[str, str] = {}
    row = sample.model_dump(mode="json", context=ByHash(kept.__setitem__))
    assert set(row) == {"who", "case", "setting", "length", "tokens", "order"}
    again: Scenario = ApolloScenario.model_validate(row, context=SharedValues(lambda hash_: json.loads(kept[hash_])))
    assert (again.id, again) == (sample.id, sample)


def test_places_and_changed_preferences_are_axes_of_their_own(folder: Path) -> None:
    """All places among so many sessions; earlier preferences before the one that holds."""
    at = planned(folder, history_sessions=(4,), position=("all",), limit=4)
    assert [(each.place, len(each.order), each.length) for each in at] == [(place, 4, 0) for place in (1, 2, 3, 4)]
    assert [each.place for each in planned(folder, history_sessions=(4,), position=("3",))] == [3] * 4
    both = planned(folder, length=("2k",), evolving="both")
    assert [each.is_evolving for each in both[:2]] == [False, True]
    for sample in both[1::2]:
        *earlier, last = sample.places
        assert len(earlier) == len(sample.case.value.stale) == 1 and earlier[0] < last
        assert sample.history[last - 1].session.id == sample.pair.session


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"users": "nobody"}, "users: there is no 'nobody'; there are u1"),
        ({"history_sessions": (400,)}, "history_sessions: "),
        ({"history_sessions": (4,), "position": ("5",)}, "position 5: there are 4 sessions"),
        ({"length": ("900k",)}, "length: "),
    ],
)
def test_an_option_that_the_source_cannot_meet_is_named(folder: Path, options: dict[str, Any], told: str) -> None:
    """With what there is."""
    with pytest.raises(RecipeError) as error:
        planned(folder, **options)
    assert str(error.value).startswith(told)
    assert error.value.setting == told.split()[0].rstrip(":")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"length": ("2 miles",)}, "give tokens"),
        ({"length": ("0k",)}, "give tokens"),
        ({"history_sessions": (0,)}, "give numbers from 1"),
        ({"history_sessions": (4,), "position": ("first",)}, "give a number from 1, or all"),
        ({"position": ("1",)}, "give history_sessions, too"),
        ({"length": ("2k",), "history_sessions": (4,)}, "give one of them"),
        ({"history_sessions": (4,), "position": ("1",), "evolving": "yes"}, "evolving has several"),
        ({"framework": ()}, "give at least one"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], told: str) -> None:
    """Before a source is read."""
    with pytest.raises(ValidationError, match=told):
        ApolloOptions(**options)


def test_the_shipped_sample_is_played_without_a_source() -> None:
    """At every length of the paper."""
    samples = list(RECIPE.scenarios(ApolloOptions(limit=4), random.Random(0), lambda _line: None))
    assert [each.length for each in samples] == [2000, 4000, 8000, 12000]
    assert all(0.9 * each.length <= each.tokens <= each.length for each in samples)


def test_users_that_nothing_was_trained_on_are_told(folder: Path) -> None:
    """As a facet of their samples; nothing is told unless somebody says so."""
    assert all("split" not in each.facets() for each in planned(folder, length=("2k",)))
    (user,) = MADE.users
    assert {each.facets()["split"] for each in planned(folder, length=("2k",), test_users=user)} == {"test"}
    with pytest.raises(RecipeError, match=f"test_users: there is no 'u9'; there are {user}"):
        planned(folder, test_users="u9")
