"""The offline writer: it fills both pools, says the same when asked the same, and its people make sense."""

from __future__ import annotations

import json
import re

import pytest

from dialoom.personas import KINDS, THRESHOLD, LexicalEmbedder, PoolKind, shipped_seeds
from dialoom.personas.similarity import nearest_neighbours
from dialoom.prompts import PromptLibrary

from .asking import answer

PROMPTS = {"profile": "pools/profiles", "personality": "pools/personalities"}


def written(kind: PoolKind, count: int, seed: int = 0, examples: int = 5) -> list[str]:
    """What it writes when it is asked with our own prompt."""
    prompt = PromptLibrary.load(PROMPTS.values())[PROMPTS[kind]]
    shown = [seed.text for seed in shipped_seeds(kind)[:examples]]
    messages = prompt.render({"count": count, "examples": shown})
    items: list[str] = json.loads(answer("attentive", messages, PROMPTS[kind], "writer", seed=seed, count=count))[
        "items"
    ]
    return items


@pytest.mark.parametrize(("kind", "count"), [("profile", 300), ("personality", 300)])
def test_it_writes_as_many_unlike_texts_as_a_pool_needs(kind: PoolKind, count: int) -> None:
    """No two, nor any and a seed, are nearer than the threshold of the lexical filter."""
    texts = written(kind, count) + [seed.text for seed in shipped_seeds(kind)]
    assert len(set(texts)) == count + 20
    nearest = nearest_neighbours(LexicalEmbedder().embed(texts))
    assert max(near[1] for near in nearest if near) <= THRESHOLD


@pytest.mark.parametrize("kind", KINDS)
def test_the_request_and_the_seed_decide(kind: PoolKind) -> None:
    """The same for the same; other texts for another seed or other examples."""
    assert written(kind, 5) == written(kind, 5)
    assert not set(written(kind, 5)) & set(written(kind, 5, seed=1))
    assert not set(written(kind, 5)) & set(written(kind, 5, examples=4))


@pytest.mark.parametrize("kind", KINDS)
def test_texts_have_eight_to_ten_whole_sentences_about_one_person(kind: PoolKind) -> None:
    """Nothing of the notation is left, and nobody changes the pronoun."""
    for text in written(kind, 300):
        sentences = re.findall(r"[^.!?]+[.!?]", text)
        assert 8 <= len(sentences) <= 10, text
        assert not re.search(r"[{}\[\]|<>]|\s{2}", text), text
        first = re.match(r"She|He|They|This person", text)
        assert first, text
        others = {"She", "He", "They", "This person"} - {first[0]}
        assert not any(re.match(rf"\s*({'|'.join(others)})\b", sentence) for sentence in sentences), text


def test_lives_hold_together() -> None:
    """Diets, ages, households and cars contradict nothing."""
    for text in written("profile", 500):
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


def test_characters_hold_together() -> None:
    """Nobody is both one thing and its opposite."""
    opposites = [("in a crowd", "hours of solitude"), ("till tears", "solemn"), ("list", "heaps"), ("swallow", "a nod")]
    for text in written("personality", 300):
        assert not any(one in text and other in text for one, other in opposites), text
        assert not re.search(r"\b(?:[Hh]er|[Hh]is|[Hh]im|[Ss]?[Hh]e)\b", text), "fits people of any gender"


def test_a_bare_request_is_answered() -> None:
    """Lenient: without a count it writes one text."""
    said = answer("generic", [{"role": "system", "content": "Write!"}], "pools/profiles", "writer")
    assert len(json.loads(said)["items"]) == 1
