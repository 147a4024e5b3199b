"""The gate's rules against a corpus of dialogues, and their coverage of languages."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from dialoom import Line
from dialoom.graphs.gate import (
    REQUIRED_LISTS,
    RULES,
    Facts,
    PromptWords,
    Talk,
    coverage,
    find_copied_forms,
    has_reduced_coverage,
)
from dialoom.graphs.gate.rules import TEXT_RULES
from dialoom.graphs.gate.talk import load_vocabularies
from dialoom.prompts import FunctionCall, Prompt
from tests.conftest import ROOT
from tests.gate_figures import labelled_table, languages_table, planted, planted_table

from .cases import cases, explanations

PRECISION, RECALL = 0.95, 0.85
WITH_BLANKS = """---
id: own/judge
version: 1
role: judge
inputs: []
reply: text
---
=== user ===
Answer: {"score": 1 to 5, "explanation": "what decided it, with the words that show it"}
Answer: {"score": 1 to 5, "explanation": "what decided it, in a sentence or two"}
Answer: {"score": 1 to 5, "explanation": "what decided it, in one or two sentences"}
Answer: {"better": "first" or "second", "explanation": "what decided it, in one sentence"}
Answer: {"score": 1 to 4, "explanation": "the moments that decided it, and what would have been better"}
Answer: {"profile": "the known part of the profile" or null, "personality": "the known part of the personality" or null}
"""
"""Forms of replies with blanks, as users often write them; the prompts that come with dialoom have none."""


def test_corpus_is_large_enough() -> None:
    """There are at least 400 sound and 400 faulty dialogues, few duplicates, and halves of similar size."""
    kinds = Counter((bool(case.planted), case.is_held_out) for case in cases())
    sound, faulty = (kinds[which, False] + kinds[which, True] for which in (False, True))
    assert sound >= 400 and faulty >= 400
    assert len({tuple(case.lines) for case in cases()}) > 0.97 * (sound + faulty)
    assert 0.35 < (kinds[True, True] + kinds[False, True]) / (sound + faulty) < 0.65


def test_every_rule_reaches_its_precision_and_recall_on_the_test_half() -> None:
    poor = {
        kind: counts
        for kind, counts in planted().items()
        if counts[1] < PRECISION * (counts[1] + counts[2]) or counts[1] < RECALL * counts[0]
    }
    assert poor == {}


def test_documentation_has_the_measured_figures() -> None:
    text = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")
    assert planted_table() in text
    assert labelled_table() in text
    assert languages_table() in text


WISH = "Mornings are mine: I bake two loaves before the tram comes, feed the hens behind the house and read the paper."
TAIL = " After that the day belongs to everybody else, which suits me well enough."


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        # A line that both speakers have said before has both faults.
        (["Good.", WISH, WISH, WISH], [(2, "echo"), (3, "echo"), (3, "repetition")]),
        # A copy with an addition is a copy; a wish that is read back has other pronouns.
        ([WISH, WISH + TAIL], [(1, "echo")]),
        (
            [
                WISH,
                "So you bake two loaves before your tram comes, feed your hens and read your paper. Shall I note it?",
            ],
            [],
        ),
        # Half of a line is copied with a few changed words; a draft or a summary may repeat the content.
        (
            [
                "I'm so glad you're here, and I'd love to share some amazing stories with you. This week was long.",
                "I'm so glad you're here, and I'd love to share some wonderful stories with you. What about you?",
            ],
            [(1, "echo")],
        ),
        (
            [
                "Tell Jo that our meeting moves to Tuesday at nine and that he should bring the blue folder.",
                "I'd write: “Hi Jo, our meeting moves to Tuesday at nine. Please bring the blue folder.” Shall I?",
                "Yes, and add the address.",
                "Done: our meeting moves to Tuesday at nine, he should bring the blue folder, address below.",
            ],
            [],
        ),
        # Tags are leaks where prompts have theirs, even if no prompt has these; HTML tags in a conversation are not.
        (["Hello there.\n<remark>\nTwelve sentences.", "Fine.</remark>"], [(0, "prompt_leak"), (1, "prompt_leak")]),
        (["How do I begin a paragraph?", "With a tag:\n<p>\nand it ends by </p>, or put <name> in a form."], []),
        # Two kinds of service phrases, or three about messages and roles, are faults; fewer are not.
        (["Don't worry, your request is next.", "Good."], [(0, "swapped_role")]),
        (["Don't worry, I am in no hurry.", "Good."], []),
        # An assistant may quote the request within a sentence, but not begin with it.
        (["I need your help: block my card.", "Your request, I need your help, is noted."], []),
        (["Please block my card.", "About that, I need your help."], [(1, "swapped_role")]),
        (["I need your help.", "I need your help. Which card?"], [(1, "swapped_role")]),
        (["I need your help.", "Good morning! I need your help."], [(1, "swapped_role")]),
        (["It is a conversation in which you've been asked to play the assistant.", "Is it?"], [(0, "prompt_leak")]),
        (["It is a conversation in which you've been asked to come.", "Is it?"], []),
        # A third speaker's label in the lines of either side is a fault; headings are not.
        (
            ["Well?\nMarlow: I can wait for you.", "Marlow: Thank you for that."],
            [(0, "glued_lines"), (1, "glued_lines")],
        ),
        (["Subject: my bill\nIs it paid?", "Yes.\nNote: you pay twelve euros next month."], []),
    ],
)
def test_typical_faults_of_real_models_are_found_at_their_line(lines: list[str], found: list[tuple[int, str]]) -> None:
    said = [Line(role=("user", "assistant")[place % 2], content=text) for place, text in enumerate(lines)]
    talk = Talk.of(said, Facts(languages=("en",)))
    assert [(fault.message, fault.kind) for rule in RULES for fault in rule(talk) if fault.kind != "loop"] == found


TASK = "Cancel the gym membership at the end of the year and get the deposit of forty euros back."
BIRDSONG = "Set an alarm with loud birdsong for the early shift at the bakery."


@pytest.mark.parametrize(
    ("lines", "task", "ended_by", "found"),
    [
        (["Hello!", "Hi!", "Nice weather today."], TASK, "", [2]),
        (["Hello!", "Hi!", "I want out of my gym."], TASK, "", []),
        # Only the user can state the task; a shared word or another request does not.
        (["Hello!", "Hi!", "Please get me out of there.", "Shall I cancel your membership?"], TASK, "", [2]),
        (["Hello!", "Hi!", "I hope that your membership in the choir makes you happy."], TASK, "", [2]),
        (
            ["Hello!", "Hi!", "I'm looking for a film."],
            BIRDSONG,
            "",
            [2],
        ),
        (["Hello!", "Hi!", "Can I get up with music?"], BIRDSONG, "", []),
        # A word in a long sentence does not state the task, unless the sentence says what is needed or wrong.
        (
            ["Hello!", "Hi!", "Deposits of sand and clay, says a book, are what all rivers carry to the sea."],
            TASK,
            "",
            [2],
        ),
        (["Hello!", "Hi!", "Twice now the money of the deposit that I paid there in spring is missing."], TASK, "", []),
        # A request may state the task in other words.
        (["Hello!", "Hi!", "Could you find a way out for me?"], TASK, "", []),
        (["Hello!", "Hi!"], TASK, "", []),
        (["Hello!", "Hi!"], TASK, "limit", [0]),
        (["Hello!", "Hi!", "Nice weather today."], "", "limit", []),
        (["Hello!", "Hi!", "Nice weather today."], "Out of the gym.", "limit", []),
        (
            ["Hello!", "Hi!", "Nice weather today."],
            "Den Vertrag im Sportstudio kündigen, und das ist alles",
            "limit",
            [],
        ),
    ],
)
def test_task_is_stated_by_the_second_message(lines: list[str], task: str, ended_by: str, found: list[int]) -> None:
    said = [Line(role=("user", "assistant")[place % 2], content=text) for place, text in enumerate(lines)]
    talk = Talk.of(said, Facts(languages=("en",), task=task), ended_by)
    assert [fault.message for rule in RULES for fault in rule(talk) if fault.kind == "task_not_stated"] == found


@pytest.mark.parametrize(
    ("line", "is_leaked"),
    [
        ("You want to cancel the gym membership at the end of the year.", True),
        ("The user wants the deposit back.", True),
        ("You need to cancel a gym membership.", True),
        ("You need to cancel a membership.", False),
        ("I want to cancel the gym membership at the end of the year.", False),
        ("Can you cancel the gym membership at the end of the year?", False),
    ],
)
def test_task_in_the_second_or_third_person_is_a_leak(line: str, is_leaked: bool) -> None:
    talk = Talk.of([Line(role="user", content=line)], Facts(languages=("en",), task=TASK))
    assert any(fault.kind == "prompt_leak" for rule in RULES for fault in rule(talk)) == is_leaked


@pytest.mark.parametrize(
    ("line", "is_leaked"),
    [
        ("Okay. You need to cancel a gym membership.", True),
        ("So you need to cancel a gym membership?", False),
        ("I read that you need to cancel a gym membership in writing.", False),
    ],
)
def test_statement_that_addresses_the_user_as_the_task_does_is_a_leak(line: str, is_leaked: bool) -> None:
    task = "You want your deposit back. You need to cancel a gym membership."
    talk = Talk.of([Line(role="user", content=line)], Facts(languages=("en",), task=task))
    assert any(fault.kind == "prompt_leak" for rule in RULES for fault in rule(talk)) == is_leaked


@pytest.mark.parametrize(
    ("asked", "found"), [("好的，消息要短句还是列表？要不要标签？", []), ("好的，要什么样的？", [2])]
)
def test_words_about_form_are_a_leak_only_if_they_are_new(asked: str, found: list[int]) -> None:
    lines = ["我想写一张贺卡。", asked, "请写短句，不要列表，消息里不要标签。"]
    said = [Line(role=("user", "assistant")[place % 2], content=line) for place, line in enumerate(lines)]
    talk = Talk.of(said, Facts(languages=("zh",)))
    assert [fault.message for rule in RULES for fault in rule(talk) if fault.kind == "prompt_leak"] == found


def test_claim_of_an_action_is_a_fault_only_before_the_first_call_of_a_tool() -> None:
    call = FunctionCall(id="1", name="refund", arguments="{}")
    lines = [
        Line(role="user", content="I want my money back."),
        Line(role="assistant", content="I've refunded the kettle."),
        Line(role="assistant", content="", tool_calls=(call,)),
        Line(role="tool", content="done", tool_call_id="1"),
        Line(role="assistant", content="I've refunded the jug, too."),
    ]
    for has_tools, found in ((True, [1]), (False, [])):
        talk = Talk.of(lines, Facts(languages=("en",)), has_tools=has_tools)
        assert [fault.message for rule in RULES for fault in rule(talk) if fault.kind == "claimed_action"] == found


@pytest.mark.parametrize(
    "lines",
    [
        [
            "I like places of this kind: hut or capsule.",
            "Here is one.",
            "As I said, I like places of this kind: hut or capsule.",
        ],
        [
            "I need a way to the library.",
            "What takes you there when the way is short? By bus, by bike, on foot or by car?",
            "A bike, as I am in a hurry then.",
            "What takes you there when the way is long? By bus, by car, on foot or by bike?",
        ],
        ["A room for two nights, please.", "What do we pay the hotel with? Credit card or bank transfer?"],
        ["You are here to help people, aren't you? Then please be able to help customers, too.", "Of course."],
        ["I have moved to the coast.", "How nice! I want to share a poem about the sea with you."],
    ],
)
def test_sound_dialogues_of_people_have_no_fault(lines: list[str]) -> None:
    said = [Line(role=("user", "assistant")[place % 2], content=line) for place, line in enumerate(lines)]
    assert [fault for rule in RULES for fault in rule(Talk.of(said, Facts(languages=("en",))))] == []


@pytest.mark.parametrize(
    "line",
    [
        "I'm excited to show my parents the city, can you plan a day for us?",
        "I'll do whatever it takes to get my money back.",
        "I understand that you are busy, but your colleague promised me an answer by Friday.",
        "I'd be glad to show you the photos of the damage.",
        "I can find the invoice for you if that helps.",
        "My son wants to become a tour guide, so we're looking for a language course.",
        "I'm happy to find that you also have vegan dishes. A table for two, please.",
        "I've answered two of your messages already, and nobody has called me.",
        "Could you please let me know what you need from my side?",
        "Sorry for the confusion, I meant Tuesday the 12th, not the 11th.",
        "I'll take care of the drinks, you only need to deliver the food.",
        "You could try my neighbour if I'm not at home.",
        "I have a few ideas for the gift, but I can't decide: a scarf, a book or a plant.",
        "I'm here to pick up a parcel, my number is 4471.",
        "Do you have any vegetarian options on the menu?",
        "Welcome to my world: the third broken dishwasher in a year. Please send somebody.",
        "Rest assured that I will not order from you again if this isn't solved.",
        "Can you tell me what you need from me?",
        "I'm not going to help you with your survey, I only want my money back.",
        "I'm glad to have your help with the tickets.",
        "Do not send me the first invoice again, please.",
        "Your answer in the chat was not what I hoped for. Is there another way?",
        "As I said in my previous message, the parcel never arrived.",
        "I was told to expect a reply within two days, but nobody wrote.",
        "My message was about the refund; the response was that I should wait.",
        "I'm going to play the guitar at my sister's wedding and need a hotel near Lisbon.",
        "Let's take one thing at a time: first the hotel, then the flights.",
        "Please answer in English, my German is bad.",
        "Who plays the main character in that film?",
        "The goal is to get to Rome before nine.",
        "Can you explain it in your own words?",
        "I'd like a caption of twenty words for the photo.",
        "The person wants the flat from June, so I need a contract by then.",
        "I got your message, but the answer was not what I asked for.",
        "Can you write the answer in a short sentence for my kid?",
    ],
)
def test_politeness_and_details_of_customers_are_no_fault(line: str) -> None:
    assert _found(line, ("en",)) == set()


@pytest.mark.parametrize(
    "line",
    [
        "I'm going to write a message to you now.",
        "Write a short reply to the customer.",
        "Your task is to find out why the parcel is late.",
        "I'm back in character, so here is my problem.",
        "Hello. Respond in one sentence. Do not mention the number.",
        "This user wants a reply by Friday.",
    ],
)
def test_users_who_state_their_instructions_leak_their_prompt(line: str) -> None:
    assert "prompt_leak" in _found(line, ("en",))


def test_judge_that_returns_the_blank_of_its_form_is_found() -> None:
    words = PromptWords.of([Prompt.parse(WITH_BLANKS, "of a user's own")])
    rows = explanations()
    found = [len(list(find_copied_forms([judgement], words))) == 1 for judgement, _ in rows]
    assert found == [is_copied for _, is_copied in rows]


def test_text_that_is_only_the_blank_of_its_form_is_a_leak() -> None:
    words = PromptWords.of([Prompt.parse(WITH_BLANKS, "of a user's own")])
    texts = {"a": "What decided it, in one sentence.", "b": WISH, "c": WISH, "d": WISH + TAIL}
    talk = replace(Talk.of_texts("writer", texts, Facts(languages=("en",))), prompts=words)
    found = [(fault.where, fault.kind) for rule in TEXT_RULES for fault in rule(talk)]
    assert found == [("c", "repetition"), ("a", "prompt_leak")]


_LINE_ENDS = pytest.param("\n" * 2**19 + "x", id="line ends")


@pytest.mark.parametrize("piece", ["Yes, and then? ", "<", "“", "'a", "User: ", "```", "[your ", "{{", _LINE_ENDS])
def test_huge_lines_are_read_in_time(piece: str) -> None:
    huge = (piece * (2**20 // len(piece)))[: 2**20]
    lines = [Line(role=role, content=huge) for role in ("user", "assistant") * 2]
    facts = Facts(
        languages=("en",), task="A table.", kept_back=("red",), end_markers=("END",), user_ends="u", limit="l"
    )
    talk = Talk.of(lines, facts, "l")
    found = [fault for rule in RULES for fault in rule(talk)]
    assert all(len(fault.excerpt) <= 200 for fault in found)


SWAPPED = {
    "en": "Of course, how can I help you with that today?",
    "es": "Claro que sí, ¿en qué puedo ayudarle?",
    "pl": "Oczywiście, w czym mogę pomóc?",
    "ja": "もちろんです。どのようなご用件でしょうか。お手伝いいたします。",
}


def _found(line: str, languages: tuple[str, ...]) -> set[str]:
    talk = Talk.of([Line(role="user", content=line)], Facts(languages=languages))
    return {fault.kind for rule in RULES for fault in rule(talk)}


@pytest.mark.parametrize(
    ("line", "is_foreign"),
    [
        ("Το ψωμί είναι καλό.", True),
        ("The Greek word for bread is ψωμί, and I bake it on Sundays.", False),
        ("Ω ω?", False),
    ],
)
def test_line_is_foreign_if_most_letters_are_of_another_script(line: str, is_foreign: bool) -> None:
    assert ("other_language" in _found(line, ("en",))) == is_foreign


@pytest.mark.parametrize("language", SWAPPED)
def test_role_swap_is_found_only_in_covered_languages(language: str) -> None:
    is_covered = coverage(language)["swapped_role"] != "none"
    assert ("swapped_role" in _found(SWAPPED[language], (language,))) == is_covered
    assert ("swapped_role" in _found(SWAPPED[language], ())) == is_covered


def test_languages_without_spaces_are_not_compared() -> None:
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


GUIDES = {
    "de": "Stelle höchstens drei Fragen zum Garten. Verrate niemals den Preis der gelben Tulpen.",
    "es": "Haz como mucho tres preguntas sobre el jardín. No reveles nunca el precio de los tulipanes amarillos.",
    "zh": "关于花园最多只提三个问题。永远不要透露黄色郁金香的价格。",
}


@pytest.mark.parametrize(
    ("language", "line", "found"),
    [
        ("de", "Den Preis der gelben Tulpen soll ich niemals verraten.", {"prompt_leak"}),
        ("es", "El precio de los tulipanes amarillos no debo revelarlo nunca.", {"prompt_leak"}),
        ("zh", "黄色郁金香的价格，我永远不要透露。", {"prompt_leak"}),
        ("de", "Was kosten die gelben Tulpen? Ich soll sie heute noch holen.", set()),
        ("es", "¿Qué precio tienen los tulipanes? Tengo que llevarlos hoy.", set()),
        ("zh", "黄色郁金香多少钱？我今天得买到。", set()),
        ("de", "Kunde: Wo stehen die Tulpen?", {"glued_lines"}),
        ("es", "Sí. Cliente: ¿dónde están los tulipanes?", {"glued_lines"}),
        ("zh", "好。顾客：郁金香放在哪里了？", {"glued_lines"}),
        ("zh", "我今天想去花园里看郁金香，但是因为", {"cut_line"}),
        ("zh", "欢迎光临，请问您想要什么颜色的？", {"swapped_role"}),
    ],
)
def test_instructions_labels_and_endings_are_recognised_in_other_languages(
    language: str, line: str, found: set[str]
) -> None:
    prompt = Prompt.compose("own/user", "user", f"=== system ===\n{GUIDES[language]}\n=== history ===")
    talk = Talk.of([Line(role="user", content=line)], Facts(languages=(language,)))
    talk = replace(talk, prompts=PromptWords.of([prompt]))
    assert {fault.kind for rule in RULES for fault in rule(talk)} == found


@pytest.mark.parametrize(
    ("line", "is_cut"), [("That is what I was looking at", False), ("Well that is what I was looking at", True)]
)
def test_long_line_that_ends_with_a_preposition_is_cut(line: str, is_cut: bool) -> None:
    talk = Talk.of([Line(role="user", content=line)], Facts(languages=("en",)))
    assert ("cut_line" in {fault.kind for rule in RULES for fault in rule(talk)}) == is_cut


def test_task_is_compared_by_characters_in_chinese() -> None:
    task, reply = "预订周五晚上去杭州的两张高铁票，要靠窗的座位。", Line(role="assistant", content="好。")
    for said, found in (
        (("在吗？今天可真冷啊。", "我刚下班，累得不行了。"), True),
        (("杭州的高铁票还有吗？", "靠窗的。"), False),
    ):
        lines = [Line(role="user", content=said[0]), reply, Line(role="user", content=said[1]), reply]
        talk = Talk.of(lines, Facts(task=task), "limit")
        assert talk.language == "zh"
        assert ("task_not_stated" in {fault.kind for rule in RULES for fault in rule(talk)}) == found


def test_documented_coverage_of_languages_follows_from_the_word_lists() -> None:
    assert not has_reduced_coverage("en")
    assert has_reduced_coverage("de") and has_reduced_coverage("fi")
    assert coverage("de")["swapped_role"] == "full" and coverage("fr")["swapped_role"] == "some"
    kinds = [kind for kind in coverage("en") if kind in REQUIRED_LISTS]  # the kinds of faults that need word lists
    rows = [["language", *(f"`{kind}`" for kind in kinds)], ["---"] * (len(kinds) + 1)]
    rows += [[f"`{code}`", *(coverage(code)[kind] for kind in kinds)] for code in load_vocabularies()]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    assert table in (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")


SHOP_PROMPT = """---
id: own/user
version: 1
role: user
inputs: [order]
reply: text
---
=== system ===
You are a customer of a bakery.
You like these things:
<wish>
Rye bread
</wish>
Your order number is {{ order }}. Keep your tastes to yourself for now, and never write more than nine words.
"""


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        # Only the first speaker to leak something is at fault.
        (["<wish> I want rye bread.", "You said <wish>, so it is rye."], [0]),
        (["I want rye bread.", "Fine. </wish>"], [1]),
        # Leaks of the names of the prompt's parts, of text before a fact, and of clauses of instructions.
        (["You're like this.", "How?", "Wish: two loaves."], [2]),
        (["Your order number is 12."], [0]),
        (["My order number is 12.", "Your order number is 12."], []),
        (["I will keep my tastes to yourself for now. Two loaves."], [0]),
        (["I want two loaves.", "Which ones?", "I'll keep it short, without tags or lists in my next message."], [2]),
        (["I want two loaves.", "Shall I put the list into a message?", "Yes, with my address."], []),
        # The task addressed to the user is a leak; in the user's words it is not.
        (["You want two loaves of rye bread cut in half before noon."], [0]),
        (["I want two loaves of rye bread, and you cut them before noon."], []),
    ],
)
def test_leaks_of_a_prompt_are_found_at_the_first_speaker(lines: list[str], found: list[int]) -> None:
    said = [Line(role=("user", "assistant")[place % 2], content=text) for place, text in enumerate(lines)]
    facts = Facts(languages=("en",), task="You want two loaves of rye bread cut in half before noon.")
    talk = replace(Talk.of(said, facts), prompts=PromptWords.of([Prompt.parse(SHOP_PROMPT, "of a test")]))
    assert [fault.message for rule in RULES for fault in rule(talk) if fault.kind == "prompt_leak"] == found


@pytest.mark.parametrize(
    ("text", "is_swapped"),
    [
        ("I see you're having trouble with the oven.", True),
        ("We don't ship to islands anymore, but we still have many models in blue.", True),
        ("What's your budget for the kitchen?", False),
        ("I'd recommend the tall one.", True),
        ("I'll see you at the fair tonight!", False),
        ("I'm glad you're here to support me.", False),
        ("My parcel is late. Can you tell me where it is?", False),
    ],
)
def test_users_who_act_as_the_shop_swap_roles(text: str, is_swapped: bool) -> None:
    assert ("swapped_role" in _found(text, ("en",))) == is_swapped


@pytest.mark.parametrize(
    ("text", "is_glued"),
    [
        ("A: I would rather have the one by the window.", True),
        ("Support agent: which one would you like?", True),
        ("A: the train", False),
        ("Which one?\nA: the slow train that stops everywhere\nB: the fast one", False),
    ],
)
def test_lines_with_the_label_of_a_speaker_are_glued(text: str, is_glued: bool) -> None:
    assert ("glued_lines" in _found(text, ("en",))) == is_glued


def test_task_with_a_known_subject_is_not_stated_by_another_request() -> None:
    task = "Find a hotel with a quiet room for two nights near the fair, and have it reserved."
    for lines, is_missing in (
        (["Hello!", "Hi!", "Could you find a job that suits my skills?"], True),
        (["Hello!", "Hi!", "I'm happy to help you with your hotel."], True),
        (["Hello!", "Hi!", "Could you find somewhere to sleep, a hotel perhaps?"], False),
    ):
        said = [Line(role=("user", "assistant")[place % 2], content=text) for place, text in enumerate(lines)]
        talk = Talk.of(said, Facts(languages=("en",), task=task))
        assert any(fault.kind == "task_not_stated" for rule in RULES for fault in rule(talk)) == is_missing


@pytest.mark.parametrize(
    ("text", "language", "is_swapped"),
    [
        ("Womit kann ich Ihnen heute dienen?", "de", True),
        ("Als digitaler Assistent kann ich dir ein Restaurant in der Nähe empfehlen.", "de", True),
        ("Ihre Bestellung wurde verschickt.", "de", True),
        ("Können Sie mir sagen, wo meine Bestellung bleibt?", "de", False),
        ("Ich kann Ihnen die Nummer der Bestellung geben.", "de", False),
        ("Estoy aquí para ayudarte con tu viaje.", "es", True),
        ("Gracias por su compra, no dude en escribir.", "es", True),
        ("¿Puede usted cambiar mi reserva, por favor?", "es", False),
        ("Mi hermana trabaja como asistente social y necesita un coche.", "es", False),
    ],
)
def test_users_swap_roles_in_german_and_spanish(text: str, language: str, is_swapped: bool) -> None:
    assert ("swapped_role" in _found(text, (language,))) == is_swapped


WISH_ZH = "我今天晚上想在市中心预订一家好餐厅，请帮帮我，谢谢。"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([WISH_ZH, WISH_ZH[:-4] + "。"], [(1, "echo")]),
        ([WISH_ZH, "您今天晚上想在市中心预订一家好餐厅，对吗？", "对。"], []),
        ([WISH_ZH, "几位？", WISH_ZH], [(2, "repetition")]),
        (["我想知道怎么去那里。", "你可以坐地铁去那里。"] * 5, [(6, "loop"), (7, "loop")]),
        (["今晩八時に二人でレストランを予約したいです。", "今晩八時に二人でレストランのご予約ですね。"], []),
    ],
)
def test_characters_of_chinese_and_japanese_are_compared(lines: list[str], found: list[tuple[int, str]]) -> None:
    said = [Line(role=("user", "assistant")[place % 2], content=text) for place, text in enumerate(lines)]
    talk = Talk.of(said, Facts(languages=("ja" if "の" in lines[-1] else "zh",)))
    assert [(fault.message, fault.kind) for rule in RULES for fault in rule(talk)] == found
