"""Recipes composed from values: turns, judges, checks, scenes, options and shared objects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from pydantic import ValidationError

import dialoom
from dialoom import Check, DialoomError, Judge, Line, RecipeOptions, Scenario, Turns
from dialoom.graphs import DialogueFault, Estimate, RecipeError, Scene, Shared, Stage, stream
from dialoom.graphs.apollo.scenario import ApolloOptions
from dialoom.graphs.conversation import append_messages, lines, said
from dialoom.graphs.dialogue import remove_marker
from dialoom.graphs.gate import Gate
from dialoom.graphs.personalens import PersonaLensOptions
from dialoom.graphs.prefeval.scenario import PrefEvalOptions
from dialoom.graphs.prefeval_pairs.scenario import PairsOptions
from dialoom.graphs.recipe import chosen
from dialoom.graphs.scenario import ByHash, SharedValueCache
from dialoom.prompts import Prompt, PromptLibrary
from dialoom.roles import BindingError, Cast, Gateway, ModelBinding
from dialoom.roles.offline import Draws, MarkedRequest, understudy
from tests.graphs.support import Support, judge, linked_columns, scripted
from tests.ledgers import MemoryLedger

USER = scripted(["I want it done.", "It is blue.", "Thanks. **DONE**"])
AGENT = scripted(["Which colour?", "Done, case AB-1."])
PLAYERS = {"user": USER, "assistant": AGENT}


def played(path: Path, recipe: Any = Support, **players: Any) -> dialoom.Run:
    """Return a run of the recipe."""
    return dialoom.play(recipe, path=path / "run.db", models={**PLAYERS, "judge": judge, **players})


def test_recipe_of_values_is_played_judged_and_checked(tmp_path: Path) -> None:
    episode = next(iter(played(tmp_path).episodes()))
    assert [(line.role, line.content) for line in episode.outcome.messages] == [
        ("user", "I want it done."),
        ("assistant", "Which colour?"),
        ("user", "It is blue."),
        ("assistant", "Done, case AB-1."),
        ("user", "Thanks."),
    ]
    assert (episode.outcome.ended_by, dict(episode.outcome.counts)) == ("end_marker", {"turns": 2})
    assert [(each.metric, each.turn, each.score) for each in episode.outcome.judgements] == [
        ("resolved", None, True),
        ("gave_number", None, True),
        ("tone", 1, 4),
        ("tone", 2, 4),
    ]
    assert dict(episode.facets) == {"goal": "return a kettle"}


def test_scores_of_a_turn_that_not_all_conversations_reach_are_not_linked(tmp_path: Path) -> None:
    async def user(messages: list[Any]) -> str:
        return await USER(messages if "kettle" in str(messages) else [*messages, *messages])

    run = played(tmp_path, user=user)
    (scores,) = run.report()["scores"].rows
    assert [cell.n for cell in scores if isinstance(cell, Estimate)] == [2, 2, 2, 1]
    linked = {column for table, column in linked_columns(run) if table == "scores"}
    assert linked == {"gave_number %", "resolved %", "tone assistant turn 1"}


def test_judge_sees_its_rubric_and_only_the_fields_it_names(tmp_path: Path) -> None:
    requests: list[str] = []

    async def recording(messages: list[Any]) -> str:
        requests.append("\n".join(message["content"] for message in messages))
        return await judge(messages)

    played(tmp_path, judge=recording)
    resolved = [text for text in requests if "The goal was reached: return a kettle" in text]
    tone = [text for text in requests if "5 - warm" in text]
    assert (len(resolved), len(tone)) == (1, 4)
    assert all("<assistant>Done, case AB-1.</assistant>" in text for text in resolved)
    assert not any("kettle" in text for text in tone)
    assert sum("Done, case" in text for text in tone) == 2  # the first turn is judged without the second


def test_second_judging_makes_the_same_calls_and_is_kept_separately(tmp_path: Path) -> None:
    played(tmp_path)

    async def strict(messages: list[Any]) -> str:
        return (await judge(messages)).replace("true", "false").replace("4", "2")

    run = dialoom.judge(tmp_path / "run.db", strict, name="strict", recipe=Support)
    scores = [
        [(each.metric, each.turn, each.score) for each in next(iter(run.episodes(judging=name))).outcome.judgements]
        for name in ("run", "strict")
    ]
    assert [key[:2] for key in scores[0]] == [key[:2] for key in scores[1]]
    assert [score for *_, score in scores[1]] == [False, True, 2, 2]


def test_only_unparsed_judgements_are_repeated(tmp_path: Path) -> None:
    requests: list[str] = []

    async def silent(messages: list[Any]) -> str:
        return "no idea" if any("5 - warm" in each["content"] for each in messages) else await judge(messages)

    played(tmp_path, judge=silent)

    async def telling(messages: list[Any]) -> str:
        requests.append(messages[-1]["content"])
        return await judge(messages)

    run = dialoom.retry(tmp_path / "run.db", unparsed=True, recipe=Support, models={**PLAYERS, "judge": telling})
    assert len(requests) == 4
    assert all(each.status == "ok" for episode in run.episodes() for each in episode.outcome.judgements)


def test_turns_are_limited_and_default_report_has_every_metric(tmp_path: Path) -> None:
    run = played(tmp_path, user=scripted(["Hello?", "And?"]))
    episode = next(iter(run.episodes()))
    assert (episode.outcome.ended_by, len(episode.outcome.messages)) == ("max_turns", 6)
    table = next(table for table in run.report().tables if table.name == "scores")
    assert list(table.columns) == [
        "scenarios",
        "gave_number %",
        "resolved %",
        *(f"tone assistant turn {turn}" for turn in (1, 2, 3)),
    ]


def test_ending_without_a_reason_fails_the_scenario_and_says_so(tmp_path: Path) -> None:
    class Ending(Support):
        turns = Turns(until=lambda _scenario, _messages: cast(Any, True))

    (episode, *_) = played(tmp_path, Ending).episodes()
    assert episode.error is not None
    assert episode.error.startswith("TypeError: until must return the reason as a text, or an empty text, got True")


def test_failing_check_is_an_error_and_inapplicable_check_is_no_score(tmp_path: Path) -> None:
    def broken(_conversation: Any) -> bool:
        raise ValueError("no such order")

    class Checked(Support):
        """Callers, checked."""

        name = "checked"
        judges = []
        checks = [
            Check("broken", broken),
            Check("silent", lambda _conversation: None),
            Check("text", lambda _conversation: "yes"),  # type: ignore[arg-type, return-value]
            Check("endless", lambda _conversation: float("inf")),
            Check("beyond", lambda _conversation: 7, scale=(1, 5)),
            Check("said", lambda conversation: bool(conversation.text("assistant"))),
        ]

    run = dialoom.play(Checked, path=tmp_path / "run.db", models={"user": USER, "assistant": AGENT})
    episode = next(iter(run.episodes()))
    assert [(each.metric, each.score, each.status, each.explanation) for each in episode.outcome.judgements] == [
        ("broken", None, "error", "ValueError: no such order"),
        ("text", None, "error", "a check returns a verdict, a number or None, got str"),
        ("endless", None, "error", "a score must be finite, got inf"),
        ("beyond", None, "error", "a score must be from 1 to 5, got 7"),
        ("said", True, "ok", ""),
    ]
    table = run.report()["scores"]
    count = len(run)
    assert table.columns[-1] == "errors" and [row[-1] for row in table.rows] == [4 * count]
    assert (
        "Errors: checks that raised an exception or returned no score; they are excluded from all means. "
        f"In the scenarios of this table: beyond {count}, broken {count}, endless {count}, text {count}."
    ) in table.notes
    assert "unparsed" not in table.columns


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Judge("tone"), "judge 'tone' needs either a rubric or the id of a prompt"),
        (lambda: Judge("tone", rubric="x", scale=(5, 1)), "judge 'tone': scale must go from low to high, got (5, 1)"),
        (lambda: Judge("topic", rubric="x", labels=["a", "b"]), "judge 'topic': labels need `read`, a function that"),
        (lambda: Judge("tone", rubric={1: "x"}), "judge 'tone': a rubric with numbered levels needs a scale"),
        (
            lambda: Judge("tone", rubric={7: "x"}, scale=(1, 5)),
            "judge 'tone': level 7 must be within the scale, 1 to 5",
        ),
        (lambda: Turns(max_turns=0), "max_turns must be at least 1, got 0"),
        (lambda: Turns(order=()), "order must name at least one role, got ()"),
        (lambda: Check("code", cast(Any, "AB-")), "the function of check 'code' must be callable, got 'AB-'"),
    ],
)
def test_impossible_value_is_refused_when_it_is_made(made: Any, message: str) -> None:
    with pytest.raises(DialoomError) as caught:
        made()
    assert message in str(caught.value)


def test_rubric_that_names_no_field_is_refused_before_playing(tmp_path: Path) -> None:
    class Mistaken(Support):
        """Callers, with a mistake in the judge."""

        judges = [Judge("resolved", rubric="Reached: {{ gaol }}")]

    with pytest.raises(
        DialoomError,
        match="judge 'resolved' declares the input 'gaol', which Errand does not have; its fields are goal",
    ):
        played(tmp_path, Mistaken)
    assert not (tmp_path / "run.db").exists()


def test_field_outside_the_allow_list_is_refused(tmp_path: Path) -> None:
    class Blind(Support):
        """Callers, with a judge that sees no field."""

        judges = [Judge("resolved", rubric="Reached: {{ goal }}", sees=())]

    with pytest.raises(
        DialoomError, match="judge 'resolved' declares the input 'goal' but may see nothing of the scenario"
    ):
        played(tmp_path, Blind)


@pytest.mark.parametrize(
    ("text", "bare"),
    [("Thanks. DONE", "Thanks."), ("Thanks **DONE**.", "Thanks"), ("DONE", ""), ("Undone.", "Undone.")],
)
def test_end_marker_is_removed_as_a_word(text: str, bare: str) -> None:
    assert remove_marker(text, "DONE")[0] == bare


def test_plain_values_become_messages() -> None:
    before = [said("user", "Hello.", 0), said("assistant", "Good day.", 1)]
    edited = {"type": "ai", "id": "1-assistant", "name": "assistant", "content": "Hi there."}
    new = {"type": "human", "id": "2-user", "name": "user", "content": "A question."}
    after = append_messages(before, [edited, new])
    assert [(line.role, line.content) for line in lines(after)] == [
        ("user", "Hello."),
        ("assistant", "Hi there."),
        ("user", "A question."),
    ]
    assert after[1] == said("assistant", "Hi there.", 1)


def test_message_without_an_id_is_refused() -> None:
    with pytest.raises(ValueError, match=r"needs an id before it is added to the state: 'Hello\.'"):
        append_messages([], [{"role": "user", "content": "Hello."}])


PROMPT = "---\nid: play\nversion: 1\nrole: player\ninputs: [word]\nreply: text\n---\n=== user ===\nSay {{ word }}.\n"


@understudy("play", "player")
def play(request: MarkedRequest, draws: Draws) -> str:
    """Return a reply drawn at random."""
    return f"{request.prompt} {draws.number(0, 999)}"


class Word(Scenario):
    """A scenario of one word."""

    word: str

    @property
    def label(self) -> str:
        """Return the word."""
        return self.word

    def facets(self) -> dict[str, Any]:
        """Return the word."""
        return {"word": self.word}


def staged(ledger: MemoryLedger, sample: int = 0) -> Stage:
    """Return a stage with one role, played by the offline model."""
    library = PromptLibrary([Prompt.parse(PROMPT, "t")])
    models = {"player": ModelBinding(model="offline/generic", temperature=0.0)}
    return Stage(Word(word="heron"), Cast(library, models, Gateway(ledger)), "thread", seed=5, sample=sample)


async def test_call_at_the_same_place_is_answered_from_the_ledger() -> None:
    ledger = MemoryLedger()
    for step in (1, 1, 2):
        await Scene(staged(ledger), "node", step).ask("play", word="heron")
    assert len(ledger.begun) == 2
    scene = Scene(staged(ledger), "node", 1)
    await scene.ask("play", word="heron")
    await scene.ask("play", word="heron")
    assert len(ledger.begun) == 3
    assert [place.ordinal for _, place, _ in ledger.begun] == [0, 0, 1]


async def test_new_sample_is_a_call_with_its_own_seed() -> None:
    ledger = MemoryLedger()
    for sample in (0, 1, 1):
        await Scene(staged(ledger, sample), "node", 1).ask("play", word="heron")
    assert [place.sample for _, place, _ in ledger.begun] == [0, 1]
    assert len({place.seed for _, place, _ in ledger.begun}) == 2


async def test_several_models_play_one_part_under_their_own_names() -> None:
    ledger = MemoryLedger()
    source = PROMPT.replace("id: play", "id: gate/play").replace("player", "reviewer")
    library = PromptLibrary([Prompt.parse(source, "t")])
    models = {
        "reviewer": ModelBinding(model="offline/generic", temperature=0.0),
        "reviewer-2": ModelBinding(model="offline/attentive", temperature=0.0),
    }
    scene = Scene(Stage(Word(word="heron"), Cast(library, models, Gateway(ledger)), "thread", seed=5), "node", 1)
    await scene.ask("gate/play", word="heron")
    await scene.ask_role("reviewer-2", "gate/play", word="heron")
    assert [(request.role, request.model) for _, _, request in ledger.begun] == [
        ("reviewer", "offline/generic"),
        ("reviewer-2", "offline/attentive"),
    ]
    with pytest.raises(
        BindingError,
        match=r"'reviewer-3' should play 'gate/play' but has no model; the roles with models are",
    ):
        await scene.ask_role("reviewer-3", "gate/play", word="heron")


def test_streams_are_private_and_repeatable() -> None:
    import random

    state = random.getstate()
    one = [stream(1, "s", "p").random() for _ in range(2)]
    assert one[0] == one[1]
    assert len({stream(*where).random() for where in [(1, "s", "p"), (2, "s", "p"), (1, "t", "p"), (1, "s", "q")]}) == 4
    assert random.getstate() == state


def test_id_of_a_scenario_follows_from_its_content() -> None:
    assert Word(word="heron").id == Word(word="heron").id
    assert Word(word="heron").id != Word(word="hero n").id
    assert Word(word="heron").id.startswith("heron-")


class FaultFindingGate(Gate):
    """A gate that finds a fault in the first lines that it checks."""

    def __init__(self, rejected: int) -> None:
        self.left = rejected

    def find_line_faults(self, scenario: Any, history: Sequence[Line], line: Line) -> list[DialogueFault]:
        self.left -= 1
        return [DialogueFault(role=line.role, kind="echo")] if self.left >= 0 else []


async def test_rejected_line_is_requested_again_at_the_same_place() -> None:
    ledger = MemoryLedger()
    for _ in range(2):
        stage = replace(staged(ledger), gate=FaultFindingGate(2), retries=3)
        await Scene(stage, "node", 1).ask_user("play", [], str, word="heron")
    assert [(place.ordinal, place.ask) for _, place, _ in ledger.begun] == [(0, 1), (0, 3), (0, 5)]
    assert len({place.seed for _, place, _ in ledger.begun}) == 3
    stage = replace(staged(MemoryLedger()), gate=FaultFindingGate(9), retries=1)
    assert await Scene(stage, "node", 1).ask_user("play", [], str, word="heron"), "the last one is accepted as it is"


@pytest.mark.parametrize("options", [ApolloOptions, PrefEvalOptions, PairsOptions])
def test_folder_of_an_embedder_is_found_from_elsewhere(
    options: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert options(embedder="st:model").embedder == f"st:{tmp_path / 'model'}"
    assert options(embedder="st:all-MiniLM").embedder == "st:all-MiniLM"
    with pytest.raises(ValueError, match="'words' is not an embedder"):
        options(embedder="words")


@pytest.mark.parametrize(
    ("options", "name"), [(ApolloOptions, "source"), (PrefEvalOptions, "pairs"), (PersonaLensOptions, "profiles")]
)
def test_paths_are_absolute(options: type[RecipeOptions], name: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for given in ("here", "~/here"):
        assert getattr(options.model_validate({name: given}), name) == tmp_path / "here"


@pytest.mark.parametrize(("options", "axis"), [(ApolloOptions, "framework"), (PrefEvalOptions, "method")])
def test_axis_has_each_value_once_and_at_least_one(options: type[RecipeOptions], axis: str) -> None:
    made = options.model_validate({axis: ["reminder", "rag", "reminder"]})
    assert getattr(made, axis) == ("reminder", "rag")
    with pytest.raises(ValueError, match="give at least one value"):
        options.model_validate({axis: []})


def test_names_are_separated_by_commas() -> None:
    assert chosen("topics", " b, a,b ", "abc") == ["b", "a"]
    assert chosen("topics", "all", "abc") == ["a", "b", "c"]
    for nothing in ("d", "", ","):
        with pytest.raises(RecipeError, match=rf"topics: there is no '{nothing}'; the names are a, b, c"):
            chosen("topics", nothing, "abc")


TURNS = tuple(Line(role="user", content=f"turn {number}") for number in range(100))


class Item(Scenario):
    """A scenario of a number and shared turns."""

    number: int
    turns: Shared[tuple[Line, ...]]

    @property
    def label(self) -> str:
        """Return the number."""
        return str(self.number)

    def facets(self) -> dict[str, Any]:
        """Return the number."""
        return {"number": self.number}


def test_id_of_a_scenario_has_the_hash_of_its_shared_part() -> None:
    item = Item(number=1, turns=Shared(TURNS))
    assert item.id == Item(number=1, turns=Shared(tuple(TURNS))).id
    assert item.id != Item(number=1, turns=Shared(TURNS[1:])).id
    documents: dict[str, str] = {}
    by_hash = item.model_dump(mode="json", context=ByHash(documents.__setitem__))
    assert by_hash == {"number": 1, "turns": {"$shared": next(iter(documents))}}
    whole = item.model_dump(mode="json")
    assert whole["turns"][3] == {"role": "user", "content": "turn 3"}
    again = Item.model_validate(whole)
    assert again == item and again.id == item.id


def test_scenarios_read_again_share_one_object() -> None:
    plain = Item(number=1, turns=Shared(TURNS)).model_dump(mode="json")["turns"]
    fetched: list[str] = []

    def fetch(hash_: str) -> Any:
        fetched.append(hash_)
        return plain

    shared = SharedValueCache(fetch)
    rows = [{"number": number, "turns": {"$shared": "ab" * 16}} for number in range(5)]
    items = [Item.model_validate(row, context=shared) for row in rows]
    assert {id(item.turns) for item in items} == {id(items[0].turns)}
    assert items[0].turns.value == TURNS
    assert fetched == ["ab" * 16]
    with pytest.raises(ValidationError, match=r"turns\.0\.content"):
        Item.model_validate({"number": 1, "turns": [{"role": "user"}]})


MANY = 1_000_000


@pytest.mark.parametrize(
    ("line", "bare", "is_ended"),
    [
        ("Thanks! TERMINATE", "Thanks!", True),
        ("Thanks! **TERMINATE**", "Thanks!", True),
        ('Bye. "TERMINATE". And one more thing.', "Bye. And one more thing.", True),
        ("TERMINATE TERMINATE", "", True),
        ("They TERMINATED it.", "They TERMINATED it.", False),
        (" " * MANY + "x" + "*" * MANY, "x" + "*" * MANY, False),
        ("x" + " *" * MANY + "TERMINATE" + " " * MANY, "x", True),
    ],
    ids=[
        "at the end",
        "emphasized",
        "in the middle",
        "twice",
        "another word",
        "none in a million spaces",
        "after a million spaces",
    ],
)
def test_marker_is_removed_from_a_line_of_any_length(line: str, bare: str, is_ended: bool) -> None:
    assert remove_marker(line, "TERMINATE") == (bare, is_ended)
