"""Every line of the dialogues of all sample people reads as a line: no seams, nothing of anybody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import pytest

from dialoom.graphs.personalens.scenario import PersonaLensScenario
from dialoom.personas import samples

from .people import Case, play

SEAMS = re.compile(
    r"  |[{}<>\[\]|]|\.\.|,,|[.,]\?|\?\.|\bN/A\b|"
    r"\b[Aa] [aeiou]\w|\b[Aa]n [^aeiou\W]|\b([a-z]+) \1\b|^\s*$|^[a-z]|[.!?] [a-z]"
)
NAMES = ["amara", "gwen", "hiroshi"]


def cases(user: str) -> Iterator[Case]:
    """The tasks of one of the sample people."""
    release = samples()
    profile = release.profile(user)
    for task in release.tasks(profile, user):
        found = PersonaLensScenario.of(profile, task, "base")
        yield Case(
            dict(found.demographics),
            {domain.name: dict(domain.affinities) for domain in found.domains},
            {domain.name: domain.summary for domain in found.domains},
            dict(found.situation),
            found.intent,
            found.goal,
        )


def own_words(text: str) -> str:
    """What the understudies say of their own: without what they quote."""
    return re.sub("“[^”]*”", "“”", text)


@pytest.mark.parametrize("user", NAMES)
def test_no_line_shows_a_seam(user: str) -> None:
    """No double word or mark, no unfilled slot, no wrong article, no empty line, in any setting."""
    for case, setting in product(list(cases(user))[::2], ["vanilla", "base", "I", "all"]):
        values = " ".join(case.values)
        for role, text in play(case, setting):
            told = SEAMS.search(own_words(text))
            assert not told or told.group() in values, (setting, role, text)


@pytest.mark.parametrize("user", NAMES)
def test_nobody_says_what_belongs_to_another(user: str) -> None:
    """A conversation holds no preference of any other person that is not the person's own."""
    tasks = list(cases(user))
    own = " ".join([str(task) for task in tasks]).lower()
    others = {value for name in samples().user_ids() if name != user for case in cases(name) for value in case.values}
    foreign = [value for value in others if value.lower() not in own and len(value.split()) > 1]
    assert len(foreign) > 100
    said = "\n".join(text for case in tasks[::3] for _, text in play(case, "all"))
    assert not [value for value in foreign if value in said]


def test_no_fact_is_invented() -> None:
    """Every number and every name that is said stands in what one of the roles is shown."""
    for case in list(cases("amara"))[::2]:
        shown = f"{case} {' '.join(case.summaries.values())}"
        for _, text in play(case, "all"):
            for fact in re.findall(r"\d[\d:.,]*\d|(?<=[a-z,] )[A-Z]\w+", own_words(text)):
                assert fact in shown or fact in ("I", "TERMINATE", "AM", "PM", "Saturday", "Thursday", "Next"), text
