"""The pool's graph, with arbitrary written texts: which are kept, which are left out, and when it ends."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom.graphs import RecipeError, Stage
from dialoom.graphs.pools import RECIPE, PoolOptions, PoolScenario, PoolTexts
from dialoom.personas import DataError, LexicalEmbedder
from dialoom.personas.similarity import VectorIndex
from dialoom.roles import UnparsedReplyError

words = st.sampled_from("heron otter lemon glacier piano canal violin thistle ferry lantern".split())
texts = st.lists(words, min_size=0, max_size=5).map(" ".join)
batches = st.lists(st.lists(texts, min_size=1, max_size=6), max_size=12)


class Writer:
    """A player of every role that writes one batch a round, and nothing new after the last."""

    def __init__(self, batches: list[list[str]]) -> None:
        self.batches = list(batches)
        self.shown: list[list[str]] = []

    def __getitem__(self, prompt_id: str) -> Any:
        async def role(inputs: dict[str, Any], at: Any) -> PoolTexts:  # noqa: ARG001
            self.shown.append(inputs["examples"])
            return PoolTexts(items=self.batches.pop(0) if self.batches else [inputs["examples"][0]])

        return role


def built(seeds: list[str], writer: Writer, **options: Any) -> tuple[dict[str, Any], list[str]]:
    """Run the graph and return the final state and the messages."""
    chosen = PoolOptions(**options)
    scenario = PoolScenario.of(chosen, seeds)
    notices: list[str] = []
    stage = Stage(scenario, writer, "thread", 0, tell=notices.append)  # type: ignore[arg-type]
    graph = RECIPE.graph(chosen).compile()
    state = asyncio.run(graph.ainvoke(RECIPE.initial(scenario), {"recursion_limit": 1000}, context=stage))
    return state, notices


class UnparseableWriter(Writer):
    """A writer some of whose replies are unparseable."""

    def __init__(self, batches: list[list[str]], unread: set[int]) -> None:
        super().__init__(batches)
        self.unread = unread
        self.asked = 0

    def __getitem__(self, prompt_id: str) -> Any:
        async def role(inputs: dict[str, Any], at: Any) -> PoolTexts:
            self.asked += 1
            if self.asked in self.unread:
                raise UnparsedReplyError(prompt_id, "Here they are", "the answer holds no JSON object")
            return PoolTexts.model_validate(await super(UnparseableWriter, self).__getitem__(prompt_id)(inputs, at))

        return role


def test_unparseable_reply_costs_one_round() -> None:
    writer = UnparseableWriter([["a red boat"], ["two green kites"]], {2, 3, 5, 6})
    state, notices = built(["one seed"], writer, target=9, stop_after=3)
    assert [entry["text"] for entry in state["entries"]] == ["one seed", "a red boat", "two green kites"]
    assert state["unread"] == [2, 3, 5, 6] and state["ended_by"] == "bottleneck"
    assert "round 2: the writer's reply could not be parsed" in notices
    outcome = RECIPE.outcome(PoolScenario.of(PoolOptions(), ["one seed"]), state)
    assert outcome.counts["unread_rounds"] == 4
    with pytest.raises(UnparsedReplyError):
        built(["one seed"], UnparseableWriter([["a red boat"]], {2, 3, 4}), target=9, stop_after=3)


@settings(max_examples=60)
@given(st.lists(texts.filter(bool), min_size=1, max_size=6), batches, st.floats(0, 1), st.integers(1, 12))
def test_kept_texts_are_within_the_threshold_and_others_above_it(
    seeds: list[str], written: list[list[str]], threshold: float, target: int
) -> None:
    state, _ = built(seeds, Writer(written), threshold=threshold, target=target)
    kept = [entry["text"] for entry in state["entries"]]
    assert kept[: len(set(seeds))] == [*dict.fromkeys(seeds)]
    vectors = LexicalEmbedder().embed(kept)
    for place, vector in enumerate(vectors):
        nearest = VectorIndex(vectors[:place]).nearest(vector)
        entry = state["entries"][place]
        assert entry["round"] == 0 or nearest is None or nearest[1] <= threshold
        assert (entry["neighbour"], entry["similarity"]) == (
            (None, None) if nearest is None else (state["entries"][nearest[0]]["id"], round(nearest[1], 4))
        )
    assert [entry["round"] for entry in state["entries"]] == sorted(entry["round"] for entry in state["entries"])
    if state["ended_by"] == "bottleneck":
        seen = [text for batch in written[: len(state["rounds"]) - 1] for text in batch if text]
        left_out = LexicalEmbedder().embed([text for text in seen if " ".join(text.split()) not in kept])
        assert all(nearest[1] > threshold for vector in left_out if (nearest := VectorIndex(vectors).nearest(vector)))
    for figures, batch in zip(state["rounds"][1:], written, strict=False):
        assert figures["kept"] + figures["too_near"] + figures["unseen"] == len(batch)


def test_pool_grows_to_its_target_and_no_further() -> None:
    writer = Writer([["heron otter", "lemon piano"], ["canal ferry", "violin thistle", "lantern glacier"]])
    state, notices = built(["red sky"], writer, target=4)
    assert [entry["text"] for entry in state["entries"]] == ["red sky", "heron otter", "lemon piano", "canal ferry"]
    assert state["ended_by"] == "target"
    assert notices == [
        "the pool starts with 1 seeds",
        "round 1: 2 of 2 kept, 3 in the pool",
        "round 2: 1 of 3 kept, 4 in the pool, which is full: 2 were not needed",
    ]


def test_rounds_that_keep_too_few_texts_end_the_pool() -> None:
    same = ["heron otter"]
    writer = Writer([same, same, ["lemon piano"], same, same, ["canal ferry"]])
    state, _ = built(["red sky"], writer, target=50, stop_after=2)
    assert [figures["kept"] for figures in state["rounds"]] == [1, 1, 0, 1, 0, 0]
    assert state["ended_by"] == "bottleneck"
    writer = Writer([["heron otter"], ["lemon piano"], ["canal ferry"]])
    state, _ = built(["red sky"], writer, target=50, stop_after=2, least=2)
    assert [figures["kept"] for figures in state["rounds"]] == [1, 1, 1]


def test_writer_is_shown_texts_of_the_pool() -> None:
    seeds = ["heron", "otter", "lemon", "glacier", "piano", "canal", "violin"]
    writers = [Writer([]), Writer([])]
    for writer in writers:
        built(seeds, writer, examples=3, stop_after=6)
    assert writers[0].shown == writers[1].shown
    assert all(len(set(shown)) == 3 and set(shown) <= set(seeds) for shown in writers[0].shown)
    assert any(one != other for one, other in pairwise(writers[0].shown))


def planned(**options: Any) -> list[str]:
    """Return the notes of planning."""
    notes: list[str] = []
    list(RECIPE.scenarios(PoolOptions(**options), None, notes.append))  # type: ignore[arg-type]
    return notes


def test_planning_states_the_thresholds_meaning_and_corrections(tmp_path: Path) -> None:
    seeds = tmp_path / "seeds.jsonl"
    seeds.write_text('"She rows."\n\n"He fences."  \n')
    notes = planned(seeds=seeds)
    assert notes[0].startswith("threshold 0.6: lexical similarity is about the share of content words")
    assert notes[1] == "seeds: 1 blank line left out; 1 line with spaces at their end"
    seeds.write_text("")
    with pytest.raises(DataError, match="the pool contains no texts"):
        planned(seeds=seeds)


def test_embedder_that_is_not_installed_is_refused_when_planning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(RecipeError, match=r"embedder: .* pip install 'dialoom\[st\]'"):
        planned(embedder="st:another-model")
