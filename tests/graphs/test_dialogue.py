"""Recipes composed from values: turns, judges and checks, played, judged again and reported without further code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dialoom
from dialoom import Check, DialoomError, Judge, Turns
from dialoom.graphs.dialogue import without_marker
from tests.graphs.support import Support, judge, played_by

USER = played_by(["I want it done.", "It is blue.", "Thanks. **DONE**"])
AGENT = played_by(["Which colour?", "Done, case AB-1."])
PLAYERS = {"user": USER, "assistant": AGENT}


def played(path: Path, recipe: Any = Support, **players: Any) -> dialoom.Run:
    """Return a run of the recipe."""
    return dialoom.play(recipe, path=path / "run.db", models={**PLAYERS, "judge": judge, **players})


def test_a_recipe_of_values_is_played_judged_and_checked(tmp_path: Path) -> None:
    """The marker ends the conversation and is heard by nobody; judgements stand in the recipe's order."""
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


def test_a_judge_sees_its_rubric_and_no_field_that_it_does_not_name(tmp_path: Path) -> None:
    """The rubric is rendered over the scenario; the judge of tone never learns the goal."""
    asked: list[str] = []

    async def noting(messages: list[Any]) -> str:
        asked.append("\n".join(message["content"] for message in messages))
        return await judge(messages)

    played(tmp_path, judge=noting)
    resolved = [text for text in asked if "The goal was reached: return a kettle" in text]
    tone = [text for text in asked if "5 - warm" in text]
    assert (len(resolved), len(tone)) == (1, 4)
    assert all("<assistant>Done, case AB-1.</assistant>" in text for text in resolved)
    assert not any("kettle" in text for text in tone)
    assert sum("Done, case" in text for text in tone) == 2  # the first turn is judged without the second


def test_a_second_judging_asks_the_same_and_is_kept_apart(tmp_path: Path) -> None:
    """First and second judging differ in the model alone; checks are part of both sets."""
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


def test_an_unparsed_judgement_is_made_again_alone(tmp_path: Path) -> None:
    """`retry --unparsed` asks about nothing that is judged already."""
    asked: list[str] = []

    async def silent(messages: list[Any]) -> str:
        return "no idea" if any("5 - warm" in each["content"] for each in messages) else await judge(messages)

    played(tmp_path, judge=silent)

    async def telling(messages: list[Any]) -> str:
        asked.append(messages[-1]["content"])
        return await judge(messages)

    run = dialoom.retry(tmp_path / "run.db", unparsed=True, recipe=Support, models={**PLAYERS, "judge": telling})
    assert len(asked) == 4
    assert all(each.status == "ok" for episode in run.episodes() for each in episode.outcome.judgements)


def test_the_turns_are_bounded_and_the_default_report_has_every_metric(tmp_path: Path) -> None:
    """A user who never ends is stopped after `max_turns`."""
    run = played(tmp_path, user=played_by(["Hello?", "And?"]))
    episode = next(iter(run.episodes()))
    assert (episode.outcome.ended_by, len(episode.outcome.messages)) == ("max_turns", 6)
    table = next(table for table in run.report().tables if table.name == "scores")
    assert list(table.columns) == [
        "scenarios",
        "gave_number %",
        "resolved %",
        *(f"tone assistant turn {turn}" for turn in (1, 2, 3)),
    ]


def test_a_check_that_raises_is_an_error_and_one_that_does_not_apply_is_nothing(tmp_path: Path) -> None:
    """Neither becomes a score."""

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
        "Errors: checks that raised an exception or returned no score; they count in no mean. Over all scenarios: "
        f"beyond {count}, broken {count}, endless {count}, text {count}."
    ) in table.notes
    assert "unparsed" not in table.columns


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Judge("tone"), "judge 'tone' needs a rubric or the id of a prompt, and not both"),
        (lambda: Judge("tone", rubric="x", scale=(5, 1)), "judge 'tone': scale must go from low to high, got (5, 1)"),
        (lambda: Judge("tone", rubric={1: "x"}), "judge 'tone': a rubric with numbered levels needs a scale"),
        (
            lambda: Judge("tone", rubric={7: "x"}, scale=(1, 5)),
            "judge 'tone': level 7 must be within the scale, 1 to 5",
        ),
        (lambda: Turns(max_turns=0), "max_turns must be at least 1, got 0"),
        (lambda: Turns(order=()), "order must name at least one role, got ()"),
    ],
)
def test_a_value_that_cannot_work_is_refused_when_it_is_made(made: Any, message: str) -> None:
    """With what would be right."""
    with pytest.raises(DialoomError) as caught:
        made()
    assert message in str(caught.value)


def test_a_rubric_that_names_no_field_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    """The message names the judge, the field and the fields that there are."""

    class Mistaken(Support):
        """Callers, judged by mistake."""

        judges = [Judge("resolved", rubric="Reached: {{ gaol }}")]

    with pytest.raises(DialoomError, match="judge 'resolved' asks for 'gaol', which Errand does not have; it has goal"):
        played(tmp_path, Mistaken)
    assert not (tmp_path / "run.db").exists()


def test_a_field_outside_the_allow_list_is_refused(tmp_path: Path) -> None:
    """`sees` bounds what a judge may be shown."""

    class Blind(Support):
        """Callers, judged blindly."""

        judges = [Judge("resolved", rubric="Reached: {{ goal }}", sees=())]

    with pytest.raises(DialoomError, match="judge 'resolved' asks for 'goal' but sees nothing of the scenario"):
        played(tmp_path, Blind)


@pytest.mark.parametrize(
    ("text", "bare"),
    [("Thanks. DONE", "Thanks."), ("Thanks **DONE**.", "Thanks"), ("DONE", ""), ("Undone.", "Undone.")],
)
def test_an_end_marker_is_removed_with_what_sets_it_off(text: str, bare: str) -> None:
    """Only where it stands as a word."""
    assert without_marker(text, "DONE")[0] == bare
