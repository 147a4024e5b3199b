"""What options of several recipes have in common holds for each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dialoom import RecipeOptions
from dialoom.graphs import RecipeError
from dialoom.graphs.apollo.scenario import ApolloOptions
from dialoom.graphs.option_types import chosen
from dialoom.graphs.personalens.recipe import PersonaLensOptions
from dialoom.graphs.prefeval.scenario import PrefEvalOptions
from dialoom.graphs.prefeval_pairs.scenario import PairsOptions


@pytest.mark.parametrize("options", [ApolloOptions, PrefEvalOptions, PairsOptions])
def test_an_embedders_folder_is_found_again_from_elsewhere(
    options: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a run may be resumed from another folder; a model's name stays a name."""
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert options(embedder="st:model").embedder == f"st:{tmp_path / 'model'}"
    assert options(embedder="st:all-MiniLM").embedder == "st:all-MiniLM"
    with pytest.raises(ValueError, match="'words' is no embedder"):
        options(embedder="words")


@pytest.mark.parametrize(
    ("options", "name"), [(ApolloOptions, "source"), (PrefEvalOptions, "pairs"), (PersonaLensOptions, "profiles")]
)
def test_paths_are_absolute(options: type[RecipeOptions], name: str, tmp_path: Path, monkeypatch: Any) -> None:
    """And a tilde is somebody's home."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("here", "~/here"):
        assert getattr(options.model_validate({name: given}), name) == tmp_path / "here"


@pytest.mark.parametrize(("options", "axis"), [(ApolloOptions, "framework"), (PrefEvalOptions, "method")])
def test_an_axis_has_each_value_once_and_at_least_one(options: type[RecipeOptions], axis: str) -> None:
    """In the order in which they were given."""
    made = options.model_validate({axis: ["reminder", "rag", "reminder"]})
    assert getattr(made, axis) == ("reminder", "rag")
    with pytest.raises(ValueError, match="give at least one"):
        options.model_validate({axis: []})


def test_names_are_chosen_by_commas() -> None:
    """What there is not is told with what there is."""
    assert chosen("topics", " b, a,b ", "abc") == ["b", "a"]
    assert chosen("topics", "all", "abc") == ["a", "b", "c"]
    for nothing in ("d", "", ","):
        with pytest.raises(RecipeError, match=rf"topics: there is no '{nothing}'; there are a, b, c"):
            chosen("topics", nothing, "abc")
