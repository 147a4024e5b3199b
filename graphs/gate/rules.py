"""The rules. Each reads a conversation and yields the faults that it detects, without calling models.

The rules about roles and prompts are in `roles`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from dialoom.graphs.gate.roles import (
    claimed_actions,
    glued_lines,
    leaked_prompts,
    swapped_roles,
    unfilled_blanks,
)
from dialoom.graphs.gate.talk import (
    LETTERS,
    LONGEST,
    PASSAGE,
    GateLine,
    Talk,
    Vocabulary,
    commonest_words,
    language_of,
    parts_of,
    script_of,
    spelt,
    stems,
    terms_of,
    units_of,
    vocabularies,
    words_of,
)
from dialoom.graphs.outcome import DialogueFault

_SENTENCE_END = re.compile(r"[.!?…。！？][\"”'’»)\]*_]*(?=\s|$)|[。！？]")
_BARE_ITEM = re.compile(r"(?:^|\n)[^\S\n]*(?:[-*•]|\d{1,3}[.)])\s*\Z")
_OPEN = re.compile(r"[,;(\[{“«—–/&+-]\Z|(?<=\s)\"\Z")
_FEWEST_LEFT, _FEWEST_IN_ONE, _FEWEST_IN_ALL, _LONG = 3, 8, 20, 14


def empty_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines without a letter, a digit or a symbol such as an emoji."""
    for line in talk.checked_lines():
        if not any(letter.isalnum() or unicodedata.category(letter) == "So" for letter in set(line.text)):
            yield line.fault("empty_line", line.shown())


def cut_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that are cut off, by the provider's finish reason or by their ending."""
    for line in talk.checked_lines():
        if line.is_cut:
            yield line.fault("cut_line", "…" + line.shown(max(0, len(line.text) - 80)))
        elif sureness := _breaks_off(line.text.rstrip(), talk.vocabulary):
            yield line.fault("cut_line", "…" + line.shown(max(0, len(line.text.rstrip()) - 80)), sureness)


def foreign_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines in a language other than the conversation's. Names, titles and single words do not count."""
    if not talk.facts.languages:
        return
    own = [each for code, each in vocabularies().items() if code in talk.facts.languages]
    for line in talk.checked_lines() if own else ():
        if sureness := _is_foreign(line.own[:LETTERS], own):
            yield line.fault("other_language", line.shown(), sureness)


def _breaks_off(text: str, language: Vocabulary) -> float:
    """Return the confidence (0 to 1) that a text is cut off."""
    if not any(map(str.isalnum, text[-2_000:])):
        return 0.0
    if text.count("```") % 2 or _BARE_ITEM.search(text[-40:]):
        return 0.9
    words = words_of(text[-60:])
    last_word = words[-1] if words and text[-1].isalpha() else ""
    if _OPEN.search(text[-3:]) or last_word in language.unfinished:
        return 0.9
    if not language.is_spaced and text.endswith(tuple(language.unfinished)):
        return 0.9
    if last_word in language.trailing and text[0].isupper() and len(words) >= _FEWEST_IN_ONE:
        return 0.6
    if not language.is_spaced:
        return 0.0
    return 0.6 if text[-1].isalpha() and _lacks_its_end(text[-2_000:]) else 0.0


def _lacks_its_end(text: str) -> bool:
    """Return whether a long text of sentences lacks the full stop at its end."""
    *before, left = _SENTENCE_END.split(text.rsplit("\n", 1)[-1])
    if before:
        return len(left.split()) >= _FEWEST_LEFT and len(text.split()) >= _FEWEST_IN_ALL
    return "\n" not in text and text[0].isupper() and "," in text and len(left.split()) >= _LONG


def _is_foreign(text: str, expected: list[Vocabulary]) -> float:
    if _is_of_another_script(text, expected):
        return 1.0
    words = words_of(text)
    hits = commonest_words(words)
    codes = {each.code for each in expected}
    own = max(hits[code] for code in codes)
    best = max((count for code, count in hits.items() if code not in codes), default=0)
    return 0.9 if best >= 3 and best >= 2 * own and best >= 0.2 * len(words) else 0.0


def _is_of_another_script(text: str, expected: list[Vocabulary]) -> bool:
    known = frozenset[str]().union(*(each.scripts for each in expected))
    if text.isascii() and "LATIN" in known:
        return False
    letters = [letter for letter in text if letter.isalpha()]
    scripts = Counter("LATIN" if letter < "ɐ" else script_of(letter) for letter in letters)
    other = sum(count for script, count in scripts.items() if script not in known)
    return other >= 4 and other > len(letters) / 2


def stray_markers(talk: Talk) -> Iterator[DialogueFault]:
    """Yield messages that contain an end marker. The marker of a regular ending has already been removed."""
    patterns = {
        marker: re.compile(rf"(?<![A-Za-z]){re.escape(marker)}(?![A-Za-z])") for marker in talk.facts.end_markers
    }
    for line in talk.checked_lines():
        if (marker := next((each for each in patterns if patterns[each].search(line.prose)), None)) is not None:
            yield line.fault("end_marker", marker)


_LAST, _FAREWELLS = 6, 2
_FEW = 3
_FEWEST_OF_TASK, _FEWEST_OF_SHORT, _FEWEST_SAID, _BEGINNING = 6, 4, 20, 4
"""Settings of the rule for unstated tasks: the minimum number of content words of a task, a lower minimum for users who
have written enough words, the number of words that is enough, and the number of letters by which words are compared.

Short tasks are often paraphrased, so they are only checked if the user has written enough.
"""

_FEWEST_OF_KNOWN = 3
"""The same for tasks with a known subject, and users who have written enough words."""

_FEWEST_OF_OFFERING = 2
"""The same for users who only offer help, however short their messages are."""

_FEWEST_MENTIONS, _FEWEST_IN_PASSING = 2, 12
"""The number of sentences that mention the subject of a task which is enough, and the minimum number of words of a
sentence that only mentions it in passing.
"""

_NUMBERED = re.compile(r"\d{4}")
"""A word with so many digits in it, such as the number of an order, does not tell what is wanted."""

_EARLY = 2
"""Maximum number of the user's lines in a conversation that counts as ending early."""


def early_preferences(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the opening reveals something that is not part of the task and must not be revealed."""
    facts = talk.facts
    if talk.since or not talk.lines or not facts.kept_back:
        return
    opening, stop = talk.lines[0], talk.vocabulary.stop
    if opening.role != facts.user:
        return
    opening_stems = stems(opening.words) - stems(words_of(facts.task))
    private = [item for text in facts.kept_back for item in text.split(",")]
    shown = [item.strip() for item in private if (own := stems(words_of(item)) - stems(stop)) and own <= opening_stems]
    stated = talk.vocabulary.likes.search(spelt(opening.own))
    if stated is not None and not talk.vocabulary.likes.search(spelt(facts.task)):
        yield opening.fault("early_preferences", stated[0], 0.9 if shown else 0.7)
    elif any(len(words_of(item)) > 1 for item in shown) or len(shown) > 1:
        yield opening.fault("early_preferences", ", ".join(shown), 0.8)


def unstated_tasks(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user's first two messages do not state any part of the task."""
    users = [line for line in talk.lines if line.role == talk.facts.user][:_EARLY]
    if len(users) < _EARLY and not (users and talk.ended_by):
        return
    if any(line is users[-1] for line in talk.checked_lines()) and _misses_the_task(users, talk):
        yield users[-1].fault("task_not_stated", users[-1].shown(), 0.8)


def _misses_the_task(lines: Sequence[GateLine], talk: Talk) -> bool:
    """Return whether no line of a user has two words of the task, no sentence states it, and not two mention it.

    Lines that all name its subject state it, too, except in words of trade.

    A task in another language is not compared.
    """
    words, task = talk.vocabulary, talk.facts.task
    if not words.is_split or language_of(task) not in (None, talk.language):
        return False
    task_words, subjects = _content(task, words), _subjects(task, words)
    per_word = 1 if words.is_spaced else _PER_WORD
    is_long = sum(len(line.words) for line in lines) >= per_word * _FEWEST_SAID
    fewest = (_FEWEST_OF_KNOWN if subjects else _FEWEST_OF_SHORT) if is_long else _FEWEST_OF_TASK
    if all(_offers(line, words) for line in lines):
        fewest = _FEWEST_OF_OFFERING
    if len(task_words) < per_word * fewest:
        return False
    task_words -= _beginnings(words.fillers | words.vague)
    if any(len(task_words & _beginnings(terms_of(line.text[:LONGEST]))) > 1 for line in lines):
        return False
    if len(lines) > 1 and all(_subjects(words.trade.sub(" ", spelt(line.own)), words) & subjects for line in lines):
        return False
    # A pair of characters is no whole word, so one of them alone does not state the task.
    task_words = task_words - _beginnings(words.numerals) if words.is_spaced else set()
    mentions = 0
    for line in lines:
        is_offer = _offers(line, words)
        is_known = bool(subjects) or bool(_subjects(line.own, words))
        for sentence in map(spelt, parts_of(line.own)):
            is_about = bool(_subjects(sentence, words) & subjects)
            is_named = is_about or not task_words.isdisjoint(_beginnings(words_of(sentence)))
            if not is_offer and _states(sentence, is_named, is_known, words):
                return False
            mentions += is_about and not words.addressing.search(sentence)
    return mentions < _FEWEST_MENTIONS


def _states(sentence: str, is_named: bool, is_known: bool, words: Vocabulary) -> bool:
    """Return whether a sentence states a task.

    A sentence with a word of the task or of its subject states it as a request or a need, or in a few words, unless it
    is about the other speaker. A request without such a word may put a task without a known subject in other words.

    Args:
        sentence: The sentence.
        is_named: Whether it has a word of the task or of its subject.
        is_known: Whether the task has a known subject.
        words: The language's words. Without a list of needs, sentences of any length state tasks.
    """
    if words.requests.search(sentence):
        return is_named or not is_known
    if not is_named or words.addressing.search(sentence):
        return False
    is_short = len(sentence.split()) < _FEWEST_IN_PASSING or "needs" not in words.sizes
    return is_short or words.needs.search(sentence) is not None


def _content(task: str, words: Vocabulary) -> set[str]:
    """Return the beginnings of a task's content words."""
    longer = 2 if words.is_spaced else 1
    found = {word for word in terms_of(task) if not _NUMBERED.search(word) and (len(word) > longer or word.isdigit())}
    return _beginnings(found - words.stop - words.fillers - words.vague)


def _offers(line: GateLine, words: Vocabulary) -> bool:
    """Return whether a line offers help, as an assistant does."""
    text = spelt(line.own)
    return words.offers.search(text) is not None or words.selves.search(text) is not None


def _subjects(text: str, words: Vocabulary) -> set[int | None]:
    """Return the numbers of the subjects that a text names."""
    return {found.lastindex for found in words.subjects.finditer(spelt(text))}


def _beginnings(words: Iterable[str]) -> set[str]:
    """Return the beginnings of words, so that forms of a word, such as `cooked` and `cook`, count as equal."""
    return {word[:_BEGINNING] for word in words}


def early_ends(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user ends a conversation before any part of the task was answered, asked about or done."""
    facts = talk.facts
    if not facts.user_ends or talk.ended_by != facts.user_ends:
        return
    users = [place for place, line in enumerate(talk.lines) if line.role == facts.user]
    if not users or len(users) > _EARLY:
        return
    last = talk.lines[users[-1]]
    before = [line for line in talk.lines[: users[-1]] if line.role != facts.user]
    if not any(_touches(line, talk) for line in before) or _leaves_unanswered(before, last, talk):
        yield last.fault("early_end", last.shown(), 0.8)


def endless_goodbyes(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user says goodbye, but the limit ends the conversation."""
    facts = talk.facts
    if not facts.limit or talk.ended_by != facts.limit:
        return
    lines = [line for line in talk.lines if line.role == facts.user][-_LAST:]
    farewells = [line for line in lines if _is_farewell(line, talk)]
    if len(farewells) >= _FAREWELLS:
        yield farewells[0].fault("no_end", farewells[0].shown(), 0.9)
    elif facts.user_ends and farewells and farewells[0] is lines[-1] and _is_farewell(lines[-1], talk, few=1):
        yield farewells[0].fault("no_end", farewells[0].shown(), 0.7)


def _is_farewell(line: GateLine, talk: Talk, few: int = _FEW) -> bool:
    """Return whether a line says goodbye, asks nothing, and has fewer than `few` other content words."""
    words, text = talk.vocabulary, spelt(line.own).replace("？", "?")
    rest = set(words_of(words.closings.sub(" ", text))) - words.stop
    return words.closings.search(text) is not None and "?" not in text and len(rest) < few


def _touches(line: GateLine, talk: Talk) -> bool:
    """Return whether a line is more than a greeting: it has content words or reports that something was done."""
    words = talk.vocabulary
    return bool(set(line.words) - words.stop - words.fillers) or words.dealt.search(spelt(line.own)) is not None


def _leaves_unanswered(before: list[GateLine], last: GateLine, talk: Talk) -> bool:
    """Return whether the user ends the conversation instead of answering a question that blocks the task."""
    words = talk.vocabulary
    if any(words.dealt.search(spelt(line.own)) for line in before):
        return False
    question = spelt(before[-1].own[-300:]).replace("？", "?")
    is_question = question.rstrip("\"'”) ").endswith("?") and words.asks.search(_last_sentence(question)) is not None
    return is_question and _is_farewell(last, talk)


def _last_sentence(text: str) -> str:
    return text.rstrip("?!. \"'”)").replace("!", ".").replace("?", ".").replace("。", ". ").rpartition(". ")[2]


_FEWEST_WORDS, _FEWEST_LONG = 6, 5
"""Minimum numbers of words, and of words of several letters, in lines that are compared. Shorter lines, such as thanks,
recur in conversations without faults.
"""

_LIKE_WORDS, _LIKE_PAIRS = 0.8, 0.6
"""Minimum shares (Dice's coefficient) of shared words and of shared word pairs in two lines that count as copies."""

_PER_WORD, _LIKE_CHARACTERS, _LIKE_CHARACTER_PAIRS = 2, 0.9, 0.85
"""In languages without spaces, where characters are compared: the number of characters that counts as a word, and the
minimum shares as above. Lines of equal topic and a wish that is read back have many characters in common.
"""

_AGAIN, _OWN_AGAIN, _SPOKEN_AGAIN = (0.5, 8), (0.46, 10), 2
"""A line also counts as a copy if such a share and number of its words are taken over from one earlier line, of the
other one or of one's own, and so many of them are such as `I` and `you`. A confirmation or a summary takes over other
words, and a short phrase of one's own may recur.
"""

_UNBROKEN_AGAIN = 12
"""Minimum length of a passage that is a copy in languages that leave out words such as `I`, with the share above."""

_EXCHANGED_AGAIN, _LONG_AGAIN = 14, 21
"""Minimum numbers of words taken over: from a line of one's own with other content, if `I` is among them; and whatever
the words.
"""

_LOOKED_BACK = 12
"""The number of earlier lines that are searched for a near-copy. Exact copies are searched in all earlier lines."""

_LOOP = 6
"""The number of consecutive messages (three turns) with almost no new words that count as a loop."""

_NEW_SHARE = 0.1
_T = TypeVar("_T", bound=Hashable)


def copied_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that nearly copy an earlier line of the speaker (`repetition`) or of the other speaker (`echo`).

    In texts that are not spoken, only exact copies are faults, because the recipe decides how similar texts may be.
    """
    seen: dict[tuple[bool, tuple[str, ...]], GateLine] = {}
    for place, line in enumerate(talk.lines):
        if _is_short(line, talk):
            continue
        is_users = line.role == talk.facts.user
        if place >= talk.since:
            nearby = talk.lines[max(0, place - _LOOKED_BACK) : place]
            for kind, whose in (("echo", not is_users), ("repetition", is_users)):
                if (whose, line.words) in seen:
                    yield line.fault(kind, line.shown())
                elif talk.is_spoken and any(
                    (each.role == talk.facts.user) == whose and _are_alike(line, each, talk)
                    for each in reversed(nearby)
                ):
                    yield line.fault(kind, line.shown(), 0.9)
        seen.setdefault((is_users, line.words), line)


def _is_short(line: GateLine, talk: Talk) -> bool:
    if not talk.vocabulary.is_spaced:
        return len(line.words) < _PER_WORD * _FEWEST_WORDS
    return len(line.words) < _FEWEST_WORDS or sum(len(word) > 1 for word in line.words) < _FEWEST_LONG


def loops(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault for each speaker if three turns contain almost no new words, or pairs of characters."""
    stop, is_spaced = talk.vocabulary.stop, talk.vocabulary.is_spaced
    known: set[str | tuple[str, str]] = set()
    stale: list[GateLine] = []
    reported: set[str] = set()
    for place, line in enumerate(talk.lines):
        content = set[str | tuple[str, str]](line.words if is_spaced else line.pairs) - stop
        new = content - known
        known |= content
        if line.words and len(new) > _NEW_SHARE * len(content):
            stale = []
            continue
        stale.append(line)
        if len(stale) < _LOOP or place < talk.since:
            continue
        for each in talk.lines[max(talk.since, place - 1) : place + 1]:
            if each.role not in reported:
                reported.add(each.role)
                yield each.fault("loop", each.shown(), 0.9)


def _are_alike(line: GateLine, before: GateLine, talk: Talk) -> bool:
    words, shared = talk.vocabulary, _taken_over(line, before)
    again = [line.own_words[place] for place in shared]
    per_word = 1 if words.is_spaced else _PER_WORD
    if len(before.words) < per_word * _FEWEST_WORDS:
        return False
    is_spoken = sum(word in words.persons for word in again) >= _SPOKEN_AGAIN
    share, fewest_again = _OWN_AGAIN if line.role == before.role else _AGAIN
    is_enough = len(again) >= per_word * fewest_again or len(again) == len(line.words)
    is_long = len(again) >= share * len(line.own_words)
    is_unbroken = is_long and words.is_dropping and _longest(shared) >= per_word * _UNBROKEN_AGAIN
    is_part = is_long and (len(again) >= per_word * _LONG_AGAIN or (is_spoken and is_enough) or is_unbroken)
    likes = (_LIKE_WORDS, _LIKE_PAIRS) if words.is_spaced else (_LIKE_CHARACTERS, _LIKE_CHARACTER_PAIRS)
    if not (is_part or _is_near(line, before, *likes)):
        return False
    new, missing = line.counted.keys() - before.counted.keys(), before.counted.keys() - line.counted.keys()
    if line.role == before.role:  # a repeated request, insistent or for another object, is not a copy
        if words.reminders.search(spelt(line.own)):
            return False
        if is_unbroken or not (new - words.stop and missing - words.stop):
            return True
        fewest = _LONG_AGAIN if words.oneself.isdisjoint(again) else _EXCHANGED_AGAIN
        content = (Counter(_question_words(each) - words.stop) for each in (line, before))
        return (is_part and len(again) >= per_word * fewest) or _dice(*content) > _LIKE_WORDS
    # A speaker who confirms the other's wish changes `my` to `your`.
    return is_part or not (new & words.persons and missing & words.persons)


def _question_words(line: GateLine) -> set[str]:
    """Return the words of a line's question, without the words after it, such as options.

    If there is no question, return all words.
    """
    question, mark, _ = line.text[:LONGEST].replace("？", "?").partition("?")
    return set(units_of(question)) if mark else set(line.words)


def _is_near(line: GateLine, before: GateLine, like_words: float, like_pairs: float) -> bool:
    """Return whether two whole lines are nearly the same, by the shares of words and of pairs that both have."""
    shorter, longer = sorted((len(line.words), len(before.words)))
    if longer > 1.4 * shorter:
        return False
    return _dice(line.counted, before.counted) >= like_words and _dice(line.pairs, before.pairs) >= like_pairs


def _taken_over(line: GateLine, before: GateLine) -> set[int]:
    """Return the places of a line's words in passages of an earlier line, or alone between two such passages."""
    there = set(before.passages)
    shared = {place + step for place, run in enumerate(line.passages) if run in there for step in range(PASSAGE)}
    shared |= {place + 1 for place in shared if place + 2 in shared}
    return shared


def _longest(places: set[int]) -> int:
    """Return the length of the longest sequence of consecutive places."""
    longest = length = 0
    for place in sorted(places):
        length = length + 1 if place - 1 in places else 1
        longest = max(longest, length)
    return longest


def _dice(one: Counter[_T], other: Counter[_T]) -> float:
    return 2 * (one & other).total() / (one.total() + other.total())


Rule = Callable[[Talk], Iterator[DialogueFault]]

RULES: tuple[Rule, ...] = (
    copied_lines,
    loops,
    swapped_roles,
    unstated_tasks,
    claimed_actions,
    leaked_prompts,
    stray_markers,
    glued_lines,
    empty_lines,
    cut_lines,
    foreign_lines,
    early_preferences,
    early_ends,
    endless_goodbyes,
)
"""All rules for conversations, in the order in which faults of the same line are reported."""

TEXT_RULES: tuple[Rule, ...] = (copied_lines, leaked_prompts, empty_lines, cut_lines, foreign_lines, unfilled_blanks)
"""All rules for texts that are not spoken."""
