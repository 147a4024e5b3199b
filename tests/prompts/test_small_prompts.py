"""The shipped set of short prompts, and sets of prompts that override one another."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom.graphs import WithPrompts
from dialoom.prompts import PromptLibrary
from dialoom.runs.configuration.recipes import find_recipe
from tests.conftest import ROOT, Command

STUDY = str(ROOT / "docs/examples/studies/support.toml")
METHODS = ("zero-shot", "reminder", "cot", "rag", "self-critic")

RUNS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "personalens": ("personalens", {"users": "1", "setting": ("vanilla", "all")}, {"user", "assistant", "judge"}),
    "aloe": ("aloe", {"verify_pairs": True}, {"user", "preferred", "rejected", "induction", "judge"}),
    "aloe-eval": ("aloe-eval", {}, {"user", "judge"}),
    "prefeval": ("prefeval", {"turns": (2,), "method": METHODS}, {"assistant", "judge"}),
    "choices": ("prefeval", {"turns": (2,), "task": ("classification",), "method": METHODS}, {"assistant"}),
    "apollo": ("apollo", {"history_sessions": (1,), "framework": ("reminder",)}, {"assistant"}),
    "native": ("apollo", {"history_sessions": (1,), "protocol": "native"}, {"assistant"}),
    "study": (STUDY, {}, {"user", "judge"}),
}
"""Recipes with their options, and the roles whose prompts must be the short ones."""


def text_of(library: PromptLibrary) -> str:
    """Return the text of all prompts, joined."""
    return "".join(prompt.source for prompt in library.values())


UNFILLED = re.compile(r"\{\{|\{%|%[A-Z]+%")


@pytest.mark.parametrize("name", RUNS)
def test_dialogue_recipes_play_with_short_prompts(name: str, tmp_path: Path) -> None:
    recipe, options, roles = RUNS[name]
    standard = WithPrompts.of(find_recipe(recipe)[1]).library()
    run = dialoom.play(recipe, path=tmp_path / "run.db", prompts="small", options=options, sample=10)
    assert run.status().done == run.status().total
    sent = [call for number in range(1, len(run) + 1) for call in run.calls(number)]
    small = WithPrompts.of(run.recipe).library(["small"])
    assert len(text_of(small)) < len(text_of(standard))
    replaced = {id_ for id_ in small if small[id_].hash != standard[id_].hash}
    assert {call["role"] for call in sent if call["prompt"] in replaced} == roles
    assert {call["prompt"] for call in sent} - replaced <= {"aloe/assistant", "support/assistant"}, (
        "prompts without a short version"
    )
    for call in sent:
        for each in run.request(call["call"]).messages:
            assert not UNFILLED.search(each.message["content"]), call["prompt"]
    assert run.config.prompts == ("small",)


def library_of(*sets: str) -> PromptLibrary:
    return WithPrompts.of(find_recipe(STUDY)[1]).library(sets)


def test_short_texts_contain_all_that_the_originals_ask_for() -> None:
    """They keep a judge's criterion, scale and target, the study's end markers and its own texts."""
    standard, small = library_of(), library_of("small")
    assert {id_: prompt.front.reply for id_, prompt in small.items()} == {
        id_: prompt.front.reply for id_, prompt in standard.items()
    }
    for text in ("DONE", "QUIT", "task.order", "person.portrait"):
        assert text in small["support/user"].source
    for text in ("from 1 to 5", "cold or rude", "Judge the assistant"):
        assert text in small["support/judge-tone"].source


def test_last_set_wins(tmp_path: Path, dialoom: Command) -> None:
    """A folder after the short prompts replaces them, and vice versa; this includes the texts of studies."""
    folder = tmp_path / "mine"
    (folder / "dialogue").mkdir(parents=True)
    (folder / "dialogue" / "opening.txt").write_text("=== user ===\nBegin.\n")
    judge = library_of()["support/judge-tone"].source
    (folder / "tone.md").write_text(judge + "Be strict.\n")
    mine = library_of("small", str(folder))
    assert "\nBegin.\n" in mine["support/user"].source and "Be strict." in mine["support/judge-tone"].source
    assert mine["support/judge-resolved"].hash == library_of("small")["support/judge-resolved"].hash
    last = library_of(str(folder), "small")
    assert "\nBegin.\n" not in last["support/user"].source
    assert "Be strict." in last["support/judge-tone"].source, "no shipped file replaces the study's own prompt"
    options = ("--prompts", "small", "--prompts", "mine", "--sample", 1)
    dialoom("run", STUDY, *options, "-o", "run.db")
    assert f", prompts small, {folder}\n" in dialoom("status", "run.db").stdout
    assert f"prompts:\n- small\n- {folder}\n" in dialoom("status", "run.db", "--config").stdout
    assert "Prompts: small, mine.\n" in dialoom("report", "run.db").stdout
    dialoom("run", STUDY, "--sample", 1, "-o", "standard.db")
    assert "Prompts: run.db: small, mine; standard.db: standard." in dialoom("report", "run.db", "standard.db").stdout
    dialoom("export", "run.db", "--format", "sft", "-o", "set.jsonl")
    assert "with the prompts `small`, `mine`\n" in (tmp_path / "set.jsonl.card.md").read_text()


def test_folder_named_small_is_written_with_its_path(tmp_path: Path, dialoom: Command) -> None:
    (tmp_path / "small" / "dialogue").mkdir(parents=True)
    (tmp_path / "small" / "dialogue" / "opening.txt").write_text("=== user ===\nBegin.\n")
    for given, recorded in (("small", "small"), ("./small", str(tmp_path / "small"))):
        dialoom("run", STUDY, "--prompts", given, "--sample", 1, "-o", f"{len(given)}.db")
        assert f"prompts:\n- {recorded}\n" in dialoom("status", f"{len(given)}.db", "--config").stdout


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("", "", "tiny: no such folder of prompts; the shipped sets are small"),
        ("opening.md.txt", "", "replaces no shipped text; the shipped texts are judge-score.txt"),
        ("judge-score.txt", "=== user ===\n%CRITERION% %TARGET% %LOW%", "lacks %HIGH%"),
    ],
)
def test_unusable_set_is_refused(tmp_path: Path, dialoom: Command, name: str, text: str, message: str) -> None:
    if name:
        (tmp_path / "tiny" / "dialogue").mkdir(parents=True)
        (tmp_path / "tiny" / "dialogue" / name).write_text(text)
    assert message in dialoom("run", STUDY, "--prompts", "tiny", "-o", "run.db", code=2).stderr
    assert not (tmp_path / "run.db").exists()
