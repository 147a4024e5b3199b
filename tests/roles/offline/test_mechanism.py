"""The parts common to all understudies, and the writer of pools."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dialoom
from dialoom.personas import DEFAULT_THRESHOLD, POOL_KINDS, LexicalEmbedder, PoolKind, load_seeds
from dialoom.personas.similarity import find_nearest_neighbours
from dialoom.prompts import PromptLibrary
from dialoom.roles import offline
from dialoom.roles.offline import (
    Draws,
    MarkedRequest,
    NoUnderstudyError,
    Words,
    match_template,
    read_request,
    understudy,
)
from dialoom.roles.offline.words import say

from .asking import answer

ROOT = Path(__file__).resolve().parents[3]


def test_parts_lines_and_instructions_are_distinguished() -> None:
    request = read_request(
        [
            {"role": "system", "content": '<menu day="Monday">Soup: leek\nBread: N/A</menu>'},
            {"role": "user", "content": "<instruction>Begin.</instruction>"},
            {"role": "assistant", "content": "Soup? <menu>no menu</menu>"},
            {"role": "user", "content": "Here you are.\n\n<instruction>Go on. <mood>glad</mood></instruction>"},
        ],
        "inn/guest",
        "user",
    )
    assert request.role == "user" and request.part("mood") == "glad" and "bill" not in request
    assert [part.attributes["day"] for part in request.parts("menu")] == ["Monday"]
    assert request.fields("menu") == {"soup": "leek"}
    assert request.said_by("user") == ["Soup? <menu>no menu</menu>"]
    assert request.said_by("assistant") == ["Here you are."]


def test_flat_prompt_is_read() -> None:
    text = "Guess!\n<conversation>\n<guesser>Is it big?</guesser>\n</conversation>"
    request = read_request([{"role": "user", "content": text}], "game/keeper", "Keeper")
    assert request.role == "keeper" and request.said_by("guesser") == ["Is it big?"]


def test_tag_in_a_chat_message_is_text() -> None:
    text = "<demographics>\nage: 9\n</demographics>"
    request = read_request(
        [{"role": "system", "content": "Help."}, {"role": "user", "content": text}], "inn/waiter", "assistant"
    )
    assert "demographics" not in request and request.said_by("user") == [text]


def test_templates_fill_their_slots_and_can_be_read_back(tmp_path: Path) -> None:
    (tmp_path / "words.toml").write_text(
        'plain = "it is {noun}"\n[order]\nsoup = ["<I take|give me> {soup}[ with {extra}].", "nothing but {bread} ."]\n'
    )
    words = Words(tmp_path / "words.toml")
    texts = {words.say("order.soup", Draws(seed), {"soup": "leek soup"}) for seed in range(9)}
    assert texts == {"I take leek soup.", "Give me leek soup."}
    assert words.say("order.soup", Draws(1), {"bread": "rye"}) == "Nothing but rye."
    assert [words.say(name, Draws(1)) for name in ("plain", "order", "none")] == ["", "", ""]
    assert match_template(words.get("order.soup"), "Give me leek soup with salt.") == {
        "soup": "leek soup",
        "extra": "salt",
    }
    assert match_template(words.get("order.soup"), "I want soup.") is None
    with pytest.raises(ValueError, match="unbalanced"):
        say(["one <two"], Draws(1))


def test_own_understudy_plays_its_role() -> None:
    @understudy("inn", "waiter")
    def plain(_request: MarkedRequest, draws: Draws) -> str:
        return f"What would you like? {draws.number(0, 999)}"

    @understudy("inn", "waiter", marks=("menu",))
    def with_menu(request: MarkedRequest, _draws: Draws) -> str:
        return f"We have {request.part('menu')}, {request.model}."

    def asked(system: str) -> str:
        return answer("generic", [{"role": "system", "content": system}], "inn/waiter", seed=1)

    assert offline.plays("inn", "waiter") and asked("<menu>soup</menu>") == "We have soup, generic."
    assert asked("") == asked("") != asked("Be quick.")


def test_understudies_play_only_their_own_system() -> None:
    @understudy("court", "judge")
    def judge(_request: MarkedRequest, _draws: Draws) -> str:
        return "Guilty."

    messages = [{"role": "user", "content": "He did it."}]
    assert answer("attentive", messages, "court/judge") == "Guilty."
    assert answer("attentive", messages, "personalens/judge-coherence", "judge") != "Guilty."
    with pytest.raises(NoUnderstudyError, match=r"'user' of 'court'.*@understudy\('court', 'user'\).*play judge"):
        answer("attentive", messages, "court/user")


def test_role_without_an_understudy_is_named() -> None:
    assert offline.plays("aloe", "judge") and not offline.plays("inn", "judge")
    with pytest.raises(NoUnderstudyError, match=r"'astronaut'.*@understudy.*writer"):
        answer("attentive", [], "pools/astronaut")
    with pytest.raises(ValueError, match="attentive"):
        answer("clever", [], "pools/writer")


def test_import_is_cheap_and_answers_do_not_depend_on_the_process() -> None:
    request = [
        {"role": "system", "content": '<summary domain="Books">She loves fantasy and mystery.</summary> personal'},
        {"role": "user", "content": "I need a good book."},
    ]
    code = (
        "import sys, json\nfrom dialoom.roles import offline\n"
        "assert not [name for name in sys.modules if 'offline.personalens' in name]\n"
        "print(offline.play('attentive', json.loads(sys.argv[1]), 'personalens/assistant', 'assistant', seed=5).words)"
    )
    replies = {
        subprocess.run(
            [sys.executable, "-c", code, json.dumps(request)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("0", "4242")
    }
    assert (
        replies == {answer("attentive", request, "personalens/assistant", seed=5)}
        and "fantasy and mystery" in replies.pop()
    )


def test_documented_example_plays_its_game(tmp_path: Path) -> None:
    example = ROOT / "docs" / "examples" / "twenty_questions"
    run = dialoom.play(
        f"{example / 'recipe.py'}:RECIPE",
        path=tmp_path / "run.db",
        options={"words": "piano,heron,glacier", "judge": True},
    )
    episodes = list(run.episodes())
    assert [episode.outcome.ended_by for episode in episodes] == ["found"] * 3
    assert [episode.outcome.messages[-2].content for episode in episodes] == [
        f"Is it {word}?" for word in ("piano", "heron", "glacier")
    ]
    assert [episode.outcome.judgements[0].score for episode in episodes] == [True] * 3
    page = (ROOT / "docs" / "design" / "understudies.md").read_text(encoding="utf-8")
    (function,), (words,) = (re.findall(rf"```{kind}\n(.*?)```", page, re.DOTALL) for kind in ("python", "toml"))
    assert function in (example / "recipe.py").read_text(encoding="utf-8")
    assert words in (example / "words.toml").read_text(encoding="utf-8")


PROMPTS = {"profile": "pools/profiles", "personality": "pools/personalities"}


def write_texts(kind: PoolKind, count: int, seed: int = 0, examples: int = 5) -> list[str]:
    """Return the texts that the writer returns for the shipped prompt."""
    prompt = PromptLibrary.load(PROMPTS.values())[PROMPTS[kind]]
    shown = [seed.text for seed in load_seeds(kind)[:examples]]
    messages = prompt.render({"count": count, "examples": shown})
    items: list[str] = json.loads(answer("attentive", messages, PROMPTS[kind], "writer", seed=seed, count=count))[
        "items"
    ]
    return items


@pytest.mark.parametrize(("kind", "count"), [("profile", 300), ("personality", 300)])
def test_writer_writes_enough_dissimilar_texts_for_a_pool(kind: PoolKind, count: int) -> None:
    texts = write_texts(kind, count) + [seed.text for seed in load_seeds(kind)]
    assert len(set(texts)) == count + 20
    nearest = find_nearest_neighbours(LexicalEmbedder().embed(texts))
    assert max(near[1] for near in nearest if near) <= DEFAULT_THRESHOLD


@pytest.mark.parametrize("kind", POOL_KINDS)
def test_texts_depend_on_request_and_seed(kind: PoolKind) -> None:
    assert write_texts(kind, 5) == write_texts(kind, 5)
    assert not set(write_texts(kind, 5)) & set(write_texts(kind, 5, seed=1))
    assert not set(write_texts(kind, 5)) & set(write_texts(kind, 5, examples=4))


@pytest.mark.parametrize("kind", POOL_KINDS)
def test_texts_have_eight_to_ten_whole_sentences_about_one_person(kind: PoolKind) -> None:
    for text in write_texts(kind, 300):
        sentences = re.findall(r"[^.!?]+[.!?]", text)
        assert 8 <= len(sentences) <= 10, text
        assert not re.search(r"[{}\[\]|<>]|\s{2}", text), text
        first = re.match(r"She|He|They|This person", text)
        assert first, text
        others = {"She", "He", "They", "This person"} - {first[0]}
        assert not any(re.match(rf"\s*({'|'.join(others)})\b", sentence) for sentence in sentences), text


def test_profiles_contradict_nothing() -> None:
    for text in write_texts("profile", 500):
        age = int(re.findall(r"(?:is|are) (\d+)", text)[0])
        if "vegetarian" in text:
            assert not re.search(r"mackerel|chicken|goulash|kebab|halal|taxidermist", text), text
        if "coeliac" in text:
            assert not re.search(r"rye|noodles|porridge|pizza|stout", text), text
        if "retired" in text:
            assert age >= 66
        if "grandchildren" in text or "pacemaker" in text:
            assert age >= 62
        if age >= 62:
            assert not re.search(r"[Hh](?:er|is) (?:father|mother|parents)|judo|baby of", text), text
        if "no driving licence" in text:
            assert not re.search(r"hatchback|shares? a car|convertible", text), text


def test_personalities_contradict_nothing() -> None:
    opposites = [("in a crowd", "hours of solitude"), ("till tears", "solemn"), ("list", "heaps"), ("swallow", "a nod")]
    for text in write_texts("personality", 300):
        assert not any(one in text and other in text for one, other in opposites), text
        assert not re.search(r"\b(?:[Hh]er|[Hh]is|[Hh]im|[Ss]?[Hh]e)\b", text), "a personality fits any gender"


def test_bare_request_is_answered_with_one_text() -> None:
    reply = answer("generic", [{"role": "system", "content": "Write!"}], "pools/profiles", "writer")
    assert len(json.loads(reply)["items"]) == 1
