"""Understudies in recipes: dialogues end, lines are well formed, and scores change as documented."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import linear_regression, mean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dialoom
from dialoom.roles import offline

from .asking import answer

MALFORMED = re.compile(
    r"  |[{}<>\[\]|]|\.\.|,,|[.,]\?|\?\.|\bN/A\b|"
    r"\b[Aa] [aeiou]\w|\b[Aa]n [^aeiou\W]|\b([a-z]+) \1\b|^\s*$|^[a-z]|[.!?] [a-z]"
)


def play(folder: Path, recipe: str, assistant: str = "attentive", **options: object) -> dialoom.Run:
    """Play a recipe; the roles other than the assistant are attentive."""
    models = {"assistant": f"offline/{assistant}"} if recipe != "aloe" else {}
    return dialoom.play(
        recipe, path=folder / "run.db", model="offline/attentive", models=models, options=options, seed=1
    )


def scores(run: dialoom.Run, metric: str) -> list[float]:
    """Return all scores of a metric."""
    found = [each for episode in run.episodes() for each in episode.outcome.judgements if each.metric == metric]
    return [float(each.score) for each in found if each.score is not None]


@pytest.fixture(scope="module")
def personalens(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dialoom.Run]:
    """Return eight dialogues each of an attentive assistant with and without a summary, and of a generic one."""
    return {
        (assistant, setting): play(
            tmp_path_factory.mktemp("played"), "personalens", assistant, setting=(setting,), limit=8
        )
        for assistant, setting in (("attentive", "I"), ("attentive", "base"), ("generic", "I"))
    }


def test_scores_rise_with_attention_and_knowledge(personalens: dict[tuple[str, str], dialoom.Run]) -> None:
    knowing, attentive, generic = (mean(scores(run, "personalization")) for run in personalens.values())
    assert knowing > attentive + 0.5 and attentive > generic + 0.3
    done = [mean(scores(run, "task_completion")) for run in personalens.values()]
    assert done[0] > 0.8 > done[2]


def test_users_end_their_dialogues_once(personalens: dict[tuple[str, str], dialoom.Run]) -> None:
    for run in personalens.values():
        for episode in run.episodes():
            assert episode.outcome.ended_by == "user_terminated", episode.id
            assert {each.status for each in episode.outcome.judgements} == {"ok"}
            lines = [line.content for line in episode.outcome.messages if line.role == "user"]
            assert 2 <= len(lines) <= 14 and not any("TERMINATE" in line for line in lines)


def test_lines_are_well_formed_and_invent_no_fact(personalens: dict[tuple[str, str], dialoom.Run]) -> None:
    run = personalens["attentive", "I"]
    for number, episode in enumerate(run.episodes(), start=1):
        shown = run.scenario(number).model_dump_json()
        for line in episode.outcome.messages:
            own = re.sub("“[^”]*”", "“”", line.content)
            seam = MALFORMED.search(own)
            assert not seam or seam.group() in shown, line.content
            for fact in re.findall(r"\d[\d:.,]*\d|(?<=[a-z,] )[A-Z]\w+", own):
                assert fact in shown or fact in ("I", "AM", "PM", "Saturday", "Thursday", "Next"), line.content


def test_alignment_rises_with_attention_only(tmp_path: Path) -> None:
    slopes = []
    for assistant in ("attentive", "generic"):
        (tmp_path / assistant).mkdir()
        run = play(tmp_path / assistant, "aloe-eval", assistant, limit=6)
        rounds: dict[int, list[float]] = {}
        for episode in run.episodes():
            lines = [line.content for line in episode.outcome.messages]
            assert len(set(lines)) == len(lines) == 20, "no line is repeated"
            for each in episode.outcome.judgements:
                rounds.setdefault(each.turn or 0, []).append(float(each.score or 0))
        slopes.append(linear_regression([*rounds], [mean(each) for each in rounds.values()]).slope)
    assert slopes[0] > 0.08 and abs(slopes[1]) < 0.04


FACTS = {
    "She works at a bakery in Leeds and lives with her son.": "I work at a bakery in Leeds and live with my son.",
    "They teach maths and live with their two cats.": "I teach maths and live with my two cats.",
    "I work nights and my cat does not mind.": "I work nights and my cat does not mind.",
    "Likes long walks and avoids crowds.": "I like long walks and avoid crowds.",
    "Two cats, Miso and Tofu.": "Two cats, Miso and Tofu.",
    "Her grandmother taught her to sew.": "My grandmother taught me to sew.",
    "She has been learning Welsh since she was forty.": "I have been learning Welsh since I was forty.",
    "He is left-handed and does not drive.": "I am left-handed and do not drive.",
    "This person keeps bees.": "I keep bees.",
    "Elle s'appelle Zoë Žižka.": "Zoë Žižka",
}


def test_profiles_are_stated_in_the_first_person_and_learnt(tmp_path: Path) -> None:
    people = [{"id": str(number), "profile": fact, "personality": "Calm."} for number, fact in enumerate(FACTS)]
    (tmp_path / "people.jsonl").write_text("".join(json.dumps(person) + "\n" for person in people))
    run = play(tmp_path, "aloe", personas=tmp_path / "people.jsonl", limit=len(FACTS), rounds=1)
    facts = [*FACTS]
    for episode in run.episodes():
        fact = facts[int(episode.facets["persona"])]
        assert FACTS[fact] in episode.outcome.messages[0].content
    assert len(run) == len(FACTS)


def test_preferred_replies_win_once_something_is_known(tmp_path: Path) -> None:
    won = scores(play(tmp_path, "aloe", limit=6, rounds=4, verify_pairs=True), "pair")
    assert len(won) >= 6 and mean(won) >= 0.8


_TAGS = st.sampled_from(
    ["demographics", "affinities", "summary", "situation", "task", "conversation", "instruction", "goal", "profile"]
)
_PARTS = st.one_of(
    st.text(max_size=30),
    st.builds(lambda tag, body: f"<{tag}>{body}</{tag}>", _TAGS, st.text(max_size=30)),
    st.builds(lambda tag: f"<{tag} domain='Books'", _TAGS),
    st.sampled_from(["</summary>", "Genre: ;;N/A;", "I'd like dinner for two.", "She met her twice.", "TERMINATE"]),
    st.builds(lambda text: f'<affinities domain="Alarm">\nAlarm Time: {text}\n</affinities>', st.text(max_size=12)),
)
_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["system", "user", "assistant", "tool"]),
            "content": st.lists(_PARTS, max_size=5).map("\n".join),
        }
    ),
    max_size=6,
)
_PROMPTS = (
    *(f"personalens/{name}" for name in ("user", "assistant", "judge")),
    *(f"aloe/{name}" for name in ("user", "preferred", "rejected", "assistant", "induction", "judge")),
)


@settings(max_examples=100)
@given(
    messages=_MESSAGES,
    prompt=st.sampled_from(_PROMPTS),
    model=st.sampled_from(sorted(offline.SCRIPTED)),
    seed=st.none() | st.integers(0, 9),
)
def test_arbitrary_messages_get_an_answer(
    messages: list[dict[str, str]], prompt: str, model: str, seed: int | None
) -> None:
    assert answer(model, messages, prompt, seed=seed).strip()
