"""The rules. Each reads a conversation and yields the faults that it detects, without calling models.

The rules about roles and prompts are in `role_rules`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from dialoom.graphs.gate.role_rules import (
    find_claimed_actions,
    find_glued_lines,
    find_leaked_prompts,
    find_swapped_roles,
    find_unfilled_blanks,
)
from dialoom.graphs.gate.talk import (
    MAX_COMPARED_CHARACTERS,
    MAX_DETECTION_CHARACTERS,
    PASSAGE_LENGTH,
    GateLine,
    Talk,
    Vocabulary,
    count_common_words,
    detect_language,
    get_script,
    load_vocabularies,
    normalize,
    split_sentences,
    split_terms,
    split_units,
    split_words,
    stem_words,
)
from dialoom.graphs.outcome import DialogueFault

_SENTENCE_END = re.compile(r"[.!?…。！？][\"”'’»)\]*_]*(?=\s|$)|[。！？]")
_BARE_ITEM = re.compile(r"(?:^|\n)[^\S\n]*(?:[-*•]|\d{1,3}[.)])\s*\Z")
_OPEN_ENDING = re.compile(r"[,;(\[{“«—–/&+-]\Z|(?<=\s)\"\Z")
_MIN_UNENDED_WORDS, _MIN_TRAILING_WORDS, _MIN_TEXT_WORDS, _MIN_LONG_SENTENCE_WORDS = 3, 8, 20, 14


def find_empty_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines without a letter, a digit or a symbol such as an emoji."""
    for line in talk.checked_lines():
        if not any(letter.isalnum() or unicodedata.category(letter) == "So" for letter in set(line.text)):
            yield line.fault("empty_line", line.excerpt())


def find_cut_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that are cut off, by the provider's finish reason or by their ending."""
    for line in talk.checked_lines():
        if line.is_cut:
            yield line.fault("cut_line", "…" + line.excerpt(max(0, len(line.text) - 80)))
        elif confidence := _score_cut_off(line.text.rstrip(), talk.vocabulary):
            yield line.fault("cut_line", "…" + line.excerpt(max(0, len(line.text.rstrip()) - 80)), confidence)


def find_foreign_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines in a language other than the conversation's. Names, titles and single words do not count."""
    if not talk.facts.languages:
        return
    expected = [words for code, words in load_vocabularies().items() if code in talk.facts.languages]
    for line in talk.checked_lines() if expected else ():
        if confidence := _score_foreign(line.own_text[:MAX_DETECTION_CHARACTERS], expected):
            yield line.fault("other_language", line.excerpt(), confidence)


def _score_cut_off(text: str, vocabulary: Vocabulary) -> float:
    """Return the confidence (0 to 1) that a text is cut off."""
    if not any(map(str.isalnum, text[-2_000:])):
        return 0.0
    if text.count("```") % 2 or _BARE_ITEM.search(text[-40:]):
        return 0.9
    words = split_words(text[-60:])
    last_word = words[-1] if words and text[-1].isalpha() else ""
    if _OPEN_ENDING.search(text[-3:]) or last_word in vocabulary.unfinished:
        return 0.9
    if not vocabulary.is_spaced and text.endswith(tuple(vocabulary.unfinished)):
        return 0.9
    if last_word in vocabulary.trailing and text[0].isupper() and len(words) >= _MIN_TRAILING_WORDS:
        return 0.6
    if not vocabulary.is_spaced:
        return 0.0
    return 0.6 if text[-1].isalpha() and _lacks_full_stop(text[-2_000:]) else 0.0


def _lacks_full_stop(text: str) -> bool:
    """Return whether a long text of sentences lacks the full stop at its end."""
    *sentences, rest = _SENTENCE_END.split(text.rsplit("\n", 1)[-1])
    if sentences:
        return len(rest.split()) >= _MIN_UNENDED_WORDS and len(text.split()) >= _MIN_TEXT_WORDS
    return "\n" not in text and text[0].isupper() and "," in text and len(rest.split()) >= _MIN_LONG_SENTENCE_WORDS


def _score_foreign(text: str, expected: list[Vocabulary]) -> float:
    if _is_in_other_script(text, expected):
        return 1.0
    words = split_words(text)
    hits = count_common_words(words)
    codes = {each.code for each in expected}
    own_count = max(hits[code] for code in codes)
    best_other_count = max((count for code, count in hits.items() if code not in codes), default=0)
    return (
        0.9
        if best_other_count >= 3 and best_other_count >= 2 * own_count and best_other_count >= 0.2 * len(words)
        else 0.0
    )


def _is_in_other_script(text: str, expected: list[Vocabulary]) -> bool:
    known = frozenset[str]().union(*(each.scripts for each in expected))
    if text.isascii() and "LATIN" in known:
        return False
    letters = [letter for letter in text if letter.isalpha()]
    scripts = Counter("LATIN" if letter < "ɐ" else get_script(letter) for letter in letters)
    other = sum(count for script, count in scripts.items() if script not in known)
    return other >= 4 and other > len(letters) / 2


def find_stray_markers(talk: Talk) -> Iterator[DialogueFault]:
    """Yield messages that contain an end marker. The marker of a regular ending has already been removed."""
    patterns = {
        marker: re.compile(rf"(?<![A-Za-z]){re.escape(marker)}(?![A-Za-z])") for marker in talk.facts.end_markers
    }
    for line in talk.checked_lines():
        if (marker := next((each for each in patterns if patterns[each].search(line.prose)), None)) is not None:
            yield line.fault("end_marker", marker)


_LAST_USER_LINES, _MIN_FAREWELLS = 6, 2
_FAREWELL_WORD_LIMIT = 3
_MIN_TASK_WORDS, _MIN_SHORT_TASK_WORDS, _MIN_USER_WORDS, _PREFIX_LENGTH = 6, 4, 20, 4
"""Settings of the rule for unstated tasks: the minimum number of content words of a task, a lower minimum for users who
have written enough words, the number of words that is enough, and the number of letters by which words are compared.

Short tasks are often paraphrased, so they are only checked if the user has written enough.
"""

_MIN_KNOWN_TASK_WORDS = 3
"""The same for tasks with a known subject, and users who have written enough words."""

_MIN_OFFERED_TASK_WORDS = 2
"""The same for users who only offer help, however short their messages are."""

_MIN_MENTIONS, _MIN_PASSING_WORDS = 2, 12
"""The number of sentences that mention the subject of a task which is enough, and the minimum number of words of a
sentence that only mentions it in passing.
"""

_LONG_NUMBER = re.compile(r"\d{4}")
"""A word with so many digits in it, such as the number of an order, does not tell what is wanted."""

_MAX_EARLY_LINES = 2
"""Maximum number of the user's lines in a conversation that counts as ending early."""


def find_early_preferences(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the opening reveals something that is not part of the task and must not be revealed."""
    facts = talk.facts
    if talk.since or not talk.lines or not facts.kept_back:
        return
    opening, stop = talk.lines[0], talk.vocabulary.stop
    if opening.role != facts.user:
        return
    opening_stems = stem_words(opening.words) - stem_words(split_words(facts.task))
    private = [item for text in facts.kept_back for item in text.split(",")]
    revealed = [
        item.strip()
        for item in private
        if (content := stem_words(split_words(item)) - stem_words(stop)) and content <= opening_stems
    ]
    stated = talk.vocabulary.likes.search(normalize(opening.own_text))
    if stated is not None and not talk.vocabulary.likes.search(normalize(facts.task)):
        yield opening.fault("early_preferences", stated[0], 0.9 if revealed else 0.7)
    elif any(len(split_words(item)) > 1 for item in revealed) or len(revealed) > 1:
        yield opening.fault("early_preferences", ", ".join(revealed), 0.8)


def find_unstated_tasks(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user's first two messages do not state any part of the task."""
    user_lines = [line for line in talk.lines if line.role == talk.facts.user][:_MAX_EARLY_LINES]
    if len(user_lines) < _MAX_EARLY_LINES and not (user_lines and talk.ended_by):
        return
    if any(line is user_lines[-1] for line in talk.checked_lines()) and _misses_task(user_lines, talk):
        yield user_lines[-1].fault("task_not_stated", user_lines[-1].excerpt(), 0.8)


def _misses_task(lines: Sequence[GateLine], talk: Talk) -> bool:
    """Return whether no line of a user has two words of the task, no sentence states it, and not two mention it.

    Lines that all name its subject state it, too, except in words of trade.

    A task in another language is not compared.
    """
    vocabulary, task = talk.vocabulary, talk.facts.task
    if not vocabulary.is_split or detect_language(task) not in (None, talk.language):
        return False
    task_prefixes, subjects = _extract_content_prefixes(task, vocabulary), _find_subjects(task, vocabulary)
    per_word = 1 if vocabulary.is_spaced else _CHARACTERS_PER_WORD
    has_enough_words = sum(len(line.words) for line in lines) >= per_word * _MIN_USER_WORDS
    minimum = (_MIN_KNOWN_TASK_WORDS if subjects else _MIN_SHORT_TASK_WORDS) if has_enough_words else _MIN_TASK_WORDS
    if all(_offers_help(line, vocabulary) for line in lines):
        minimum = _MIN_OFFERED_TASK_WORDS
    if len(task_prefixes) < per_word * minimum:
        return False
    task_prefixes -= _truncate_words(vocabulary.fillers | vocabulary.vague)
    if any(
        len(task_prefixes & _truncate_words(split_terms(line.text[:MAX_COMPARED_CHARACTERS]))) > 1 for line in lines
    ):
        return False
    if len(lines) > 1 and all(
        _find_subjects(vocabulary.trade.sub(" ", normalize(line.own_text)), vocabulary) & subjects for line in lines
    ):
        return False
    # A pair of characters is no whole word, so one of them alone does not state the task.
    task_prefixes = task_prefixes - _truncate_words(vocabulary.numerals) if vocabulary.is_spaced else set()
    mentions = 0
    for line in lines:
        is_offer = _offers_help(line, vocabulary)
        is_known = bool(subjects) or bool(_find_subjects(line.own_text, vocabulary))
        for sentence in map(normalize, split_sentences(line.own_text)):
            is_about = bool(_find_subjects(sentence, vocabulary) & subjects)
            is_named = is_about or not task_prefixes.isdisjoint(_truncate_words(split_words(sentence)))
            if not is_offer and _states_task(sentence, is_named, is_known, vocabulary):
                return False
            mentions += is_about and not vocabulary.addressing.search(sentence)
    return mentions < _MIN_MENTIONS


def _states_task(sentence: str, is_named: bool, is_known: bool, vocabulary: Vocabulary) -> bool:
    """Return whether a sentence states a task.

    A sentence with a word of the task or of its subject states it as a request or a need, or in a few words, unless it
    is about the other speaker. A request without such a word may put a task without a known subject in other words.

    Args:
        sentence: The sentence.
        is_named: Whether it has a word of the task or of its subject.
        is_known: Whether the task has a known subject.
        vocabulary: The language's words. Without a list of needs, sentences of any length state tasks.
    """
    if vocabulary.requests.search(sentence):
        return is_named or not is_known
    if not is_named or vocabulary.addressing.search(sentence):
        return False
    is_short = len(sentence.split()) < _MIN_PASSING_WORDS or "needs" not in vocabulary.sizes
    return is_short or vocabulary.needs.search(sentence) is not None


def _extract_content_prefixes(task: str, vocabulary: Vocabulary) -> set[str]:
    """Return the beginnings of a task's content words."""
    min_length = 2 if vocabulary.is_spaced else 1
    found = {
        word
        for word in split_terms(task)
        if not _LONG_NUMBER.search(word) and (len(word) > min_length or word.isdigit())
    }
    return _truncate_words(found - vocabulary.stop - vocabulary.fillers - vocabulary.vague)


def _offers_help(line: GateLine, vocabulary: Vocabulary) -> bool:
    """Return whether a line offers help, as an assistant does."""
    text = normalize(line.own_text)
    return vocabulary.offers.search(text) is not None or vocabulary.selves.search(text) is not None


def _find_subjects(text: str, vocabulary: Vocabulary) -> set[int | None]:
    """Return the numbers of the subjects that a text names."""
    return {found.lastindex for found in vocabulary.subjects.finditer(normalize(text))}


def _truncate_words(words: Iterable[str]) -> set[str]:
    """Return the beginnings of words, so that forms of a word, such as `cooked` and `cook`, count as equal."""
    return {word[:_PREFIX_LENGTH] for word in words}


def find_early_ends(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user ends a conversation before any part of the task was answered, asked about or done."""
    facts = talk.facts
    if not facts.user_ends or talk.ended_by != facts.user_ends:
        return
    user_places = [place for place, line in enumerate(talk.lines) if line.role == facts.user]
    if not user_places or len(user_places) > _MAX_EARLY_LINES:
        return
    last = talk.lines[user_places[-1]]
    before = [line for line in talk.lines[: user_places[-1]] if line.role != facts.user]
    if not any(_has_content(line, talk) for line in before) or _leaves_unanswered(before, last, talk):
        yield last.fault("early_end", last.excerpt(), 0.8)


def find_endless_goodbyes(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault if the user says goodbye, but the limit ends the conversation."""
    facts = talk.facts
    if not facts.limit or talk.ended_by != facts.limit:
        return
    lines = [line for line in talk.lines if line.role == facts.user][-_LAST_USER_LINES:]
    farewells = [line for line in lines if _is_farewell(line, talk)]
    if len(farewells) >= _MIN_FAREWELLS:
        yield farewells[0].fault("no_end", farewells[0].excerpt(), 0.9)
    elif facts.user_ends and farewells and farewells[0] is lines[-1] and _is_farewell(lines[-1], talk, word_limit=1):
        yield farewells[0].fault("no_end", farewells[0].excerpt(), 0.7)


def _is_farewell(line: GateLine, talk: Talk, word_limit: int = _FAREWELL_WORD_LIMIT) -> bool:
    """Return whether a line says goodbye, asks nothing, and has fewer than `word_limit` other content words."""
    vocabulary, text = talk.vocabulary, normalize(line.own_text).replace("？", "?")
    rest = set(split_words(vocabulary.closings.sub(" ", text))) - vocabulary.stop
    return vocabulary.closings.search(text) is not None and "?" not in text and len(rest) < word_limit


def _has_content(line: GateLine, talk: Talk) -> bool:
    """Return whether a line is more than a greeting: it has content words or reports that something was done."""
    vocabulary = talk.vocabulary
    return (
        bool(set(line.words) - vocabulary.stop - vocabulary.fillers)
        or vocabulary.dealt.search(normalize(line.own_text)) is not None
    )


def _leaves_unanswered(before: list[GateLine], last: GateLine, talk: Talk) -> bool:
    """Return whether the user ends the conversation instead of answering a question that blocks the task."""
    vocabulary = talk.vocabulary
    if any(vocabulary.dealt.search(normalize(line.own_text)) for line in before):
        return False
    question = normalize(before[-1].own_text[-300:]).replace("？", "?")
    is_question = (
        question.rstrip("\"'”) ").endswith("?") and vocabulary.asks.search(_extract_last_sentence(question)) is not None
    )
    return is_question and _is_farewell(last, talk)


def _extract_last_sentence(text: str) -> str:
    return text.rstrip("?!. \"'”)").replace("!", ".").replace("?", ".").replace("。", ". ").rpartition(". ")[2]


_MIN_LINE_WORDS, _MIN_LONG_WORDS = 6, 5
"""Minimum numbers of words, and of words of several letters, in lines that are compared. Shorter lines, such as thanks,
recur in conversations without faults.
"""

_MIN_WORD_SIMILARITY, _MIN_PAIR_SIMILARITY = 0.8, 0.6
"""Minimum shares (Dice's coefficient) of shared words and of shared word pairs in two lines that count as copies."""

_CHARACTERS_PER_WORD, _MIN_CHARACTER_SIMILARITY, _MIN_CHARACTER_PAIR_SIMILARITY = 2, 0.9, 0.85
"""In languages without spaces, where characters are compared: the number of characters that counts as a word, and the
minimum shares as above. Lines of equal topic and a wish that is read back have many characters in common.
"""

_MIN_ECHOED, _MIN_REPEATED, _MIN_COPIED_PERSONS = (0.5, 8), (0.46, 10), 2
"""A line also counts as a copy if such a share and number of its words are taken over from one earlier line, of the
other one or of one's own, and so many of them are such as `I` and `you`. A confirmation or a summary takes over other
words, and a short phrase of one's own may recur.
"""

_MIN_UNBROKEN_WORDS = 12
"""Minimum length of a passage that is a copy in languages that leave out words such as `I`, with the share above."""

_MIN_EXCHANGED_WORDS, _MIN_LONG_COPY_WORDS = 14, 21
"""Minimum numbers of words taken over: from a line of one's own with other content, if `I` is among them; and whatever
the words.
"""

_MAX_EARLIER_LINES = 12
"""The number of earlier lines that are searched for a near-copy. Exact copies are searched in all earlier lines."""

_LOOP_MESSAGES = 6
"""The number of consecutive messages (three turns) with almost no new words that count as a loop."""

_MAX_NEW_SHARE = 0.1
_T = TypeVar("_T", bound=Hashable)


def find_copied_lines(talk: Talk) -> Iterator[DialogueFault]:
    """Yield lines that nearly copy an earlier line of the speaker (`repetition`) or of the other speaker (`echo`).

    In texts that are not spoken, only exact copies are faults, because the recipe decides how similar texts may be.
    """
    seen: dict[tuple[bool, tuple[str, ...]], GateLine] = {}
    for place, line in enumerate(talk.lines):
        if _is_short(line, talk):
            continue
        is_from_user = line.role == talk.facts.user
        if place >= talk.since:
            nearby = talk.lines[max(0, place - _MAX_EARLIER_LINES) : place]
            for kind, is_same_side in (("echo", not is_from_user), ("repetition", is_from_user)):
                if (is_same_side, line.words) in seen:
                    yield line.fault(kind, line.excerpt())
                elif talk.is_spoken and any(
                    (each.role == talk.facts.user) == is_same_side and _are_alike(line, each, talk)
                    for each in reversed(nearby)
                ):
                    yield line.fault(kind, line.excerpt(), 0.9)
        seen.setdefault((is_from_user, line.words), line)


def _is_short(line: GateLine, talk: Talk) -> bool:
    if not talk.vocabulary.is_spaced:
        return len(line.words) < _CHARACTERS_PER_WORD * _MIN_LINE_WORDS
    return len(line.words) < _MIN_LINE_WORDS or sum(len(word) > 1 for word in line.words) < _MIN_LONG_WORDS


def find_loops(talk: Talk) -> Iterator[DialogueFault]:
    """Yield a fault for each speaker if three turns contain almost no new words, or pairs of characters."""
    stop, is_spaced = talk.vocabulary.stop, talk.vocabulary.is_spaced
    known_content: set[str | tuple[str, str]] = set()
    stale_lines: list[GateLine] = []
    reported: set[str] = set()
    for place, line in enumerate(talk.lines):
        content = set[str | tuple[str, str]](line.words if is_spaced else line.pair_counts) - stop
        new = content - known_content
        known_content |= content
        if line.words and len(new) > _MAX_NEW_SHARE * len(content):
            stale_lines = []
            continue
        stale_lines.append(line)
        if len(stale_lines) < _LOOP_MESSAGES or place < talk.since:
            continue
        for each in talk.lines[max(talk.since, place - 1) : place + 1]:
            if each.role not in reported:
                reported.add(each.role)
                yield each.fault("loop", each.excerpt(), 0.9)


def _are_alike(line: GateLine, before: GateLine, talk: Talk) -> bool:
    vocabulary, copied_places = talk.vocabulary, _find_copied_words(line, before)
    copied = [line.own_words[place] for place in copied_places]
    per_word = 1 if vocabulary.is_spaced else _CHARACTERS_PER_WORD
    if len(before.words) < per_word * _MIN_LINE_WORDS:
        return False
    is_spoken = sum(word in vocabulary.persons for word in copied) >= _MIN_COPIED_PERSONS
    share, min_count = _MIN_REPEATED if line.role == before.role else _MIN_ECHOED
    is_enough = len(copied) >= per_word * min_count or len(copied) == len(line.words)
    is_long = len(copied) >= share * len(line.own_words)
    is_unbroken_copy = (
        is_long and vocabulary.is_dropping and _measure_longest_run(copied_places) >= per_word * _MIN_UNBROKEN_WORDS
    )
    is_partial_copy = is_long and (
        len(copied) >= per_word * _MIN_LONG_COPY_WORDS or (is_spoken and is_enough) or is_unbroken_copy
    )
    similarities = (
        (_MIN_WORD_SIMILARITY, _MIN_PAIR_SIMILARITY)
        if vocabulary.is_spaced
        else (_MIN_CHARACTER_SIMILARITY, _MIN_CHARACTER_PAIR_SIMILARITY)
    )
    if not (is_partial_copy or _is_near(line, before, *similarities)):
        return False
    new, missing = (
        line.word_counts.keys() - before.word_counts.keys(),
        before.word_counts.keys() - line.word_counts.keys(),
    )
    if line.role == before.role:  # a repeated request, insistent or for another object, is not a copy
        if vocabulary.reminders.search(normalize(line.own_text)):
            return False
        if is_unbroken_copy or not (new - vocabulary.stop and missing - vocabulary.stop):
            return True
        minimum = _MIN_LONG_COPY_WORDS if vocabulary.oneself.isdisjoint(copied) else _MIN_EXCHANGED_WORDS
        content = (Counter(_extract_question_words(each) - vocabulary.stop) for each in (line, before))
        return (is_partial_copy and len(copied) >= per_word * minimum) or _dice(*content) > _MIN_WORD_SIMILARITY
    # A speaker who confirms the other's wish changes `my` to `your`.
    return is_partial_copy or not (new & vocabulary.persons and missing & vocabulary.persons)


def _extract_question_words(line: GateLine) -> set[str]:
    """Return the words of a line's question, without the words after it, such as options.

    If there is no question, return all words.
    """
    question, mark, _ = line.text[:MAX_COMPARED_CHARACTERS].replace("？", "?").partition("?")
    return set(split_units(question)) if mark else set(line.words)


def _is_near(line: GateLine, before: GateLine, word_similarity: float, pair_similarity: float) -> bool:
    """Return whether two whole lines are nearly the same, by the shares of words and of pairs that both have."""
    shorter, longer = sorted((len(line.words), len(before.words)))
    if longer > 1.4 * shorter:
        return False
    return (
        _dice(line.word_counts, before.word_counts) >= word_similarity
        and _dice(line.pair_counts, before.pair_counts) >= pair_similarity
    )


def _find_copied_words(line: GateLine, before: GateLine) -> set[int]:
    """Return the places of a line's words in passages of an earlier line, or alone between two such passages."""
    earlier_hashes = set(before.passage_hashes)
    places = {
        place + step
        for place, run in enumerate(line.passage_hashes)
        if run in earlier_hashes
        for step in range(PASSAGE_LENGTH)
    }
    places |= {place + 1 for place in places if place + 2 in places}
    return places


def _measure_longest_run(places: set[int]) -> int:
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
    find_copied_lines,
    find_loops,
    find_swapped_roles,
    find_unstated_tasks,
    find_claimed_actions,
    find_leaked_prompts,
    find_stray_markers,
    find_glued_lines,
    find_empty_lines,
    find_cut_lines,
    find_foreign_lines,
    find_early_preferences,
    find_early_ends,
    find_endless_goodbyes,
)
"""All rules for conversations, in the order in which faults of the same line are reported."""

TEXT_RULES: tuple[Rule, ...] = (
    find_copied_lines,
    find_leaked_prompts,
    find_empty_lines,
    find_cut_lines,
    find_foreign_lines,
    find_unfilled_blanks,
)
"""All rules for texts that are not spoken."""
