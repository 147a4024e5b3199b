"""How well the rules cover languages, and that reports say so."""

from __future__ import annotations

import pytest

from dialoom import Line
from dialoom.graphs.gate import RULES, Facts, Talk, coverage, coverage_table, is_reduced
from tests.conftest import ROOT

SWAPPED = {
    "en": "Of course, how can I help you with that today?",
    "es": "Claro que sí, ¿en qué puedo ayudarle?",
    "pl": "Oczywiście, w czym mogę pomóc?",
    "ja": "もちろんです。どのようなご用件でしょうか。お手伝いいたします。",
}


def _found(line: str, languages: tuple[str, ...]) -> set[str]:
    talk = Talk.of([Line(role="user", content=line)], Facts(languages=languages))
    return {fault.kind for rule in RULES for fault in rule(talk)}


@pytest.mark.parametrize("language", SWAPPED)
def test_what_is_not_covered_is_not_found(language: str) -> None:
    """A role swap is found where there are words for it, whether the language is declared or recognised."""
    is_covered = coverage(language)["swapped_role"] != "none"
    assert ("swapped_role" in _found(SWAPPED[language], (language,))) == is_covered
    assert ("swapped_role" in _found(SWAPPED[language], ())) == is_covered


def test_words_that_blanks_do_not_separate_are_not_compared() -> None:
    """The same line again is a repetition in Korean, and is not noticed in Japanese and Chinese."""
    lines = {
        "ko": "저는 오늘 저녁에 시내에서 좋은 식당을 예약하고 싶어요",
        "ja": "今晩、町の中心で良いレストランを予約したいのですが、お願いします",
        "zh": "我今天晚上想在市中心预订一家好餐厅请帮帮我谢谢",
    }
    for language, line in lines.items():
        said = [Line(role=role, content=line if role == "user" else "…") for role in ("user", "assistant", "user")]
        talk = Talk.of(said, Facts(languages=(language,)))
        found = {fault.kind for rule in RULES for fault in rule(talk)}
        assert ("repetition" in found) == (coverage(language)["repetition"] != "none"), language


def test_only_english_is_covered_in_full_and_the_docs_show_it() -> None:
    """The table in docs/gate.md is the one that the word lists come to."""
    assert not is_reduced("en")
    assert is_reduced("de") and is_reduced("fi")
    assert coverage("de")["swapped_role"] == "some"
    assert coverage_table() in (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
