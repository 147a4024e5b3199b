"""People, goals and traits of recorded users. A model infers them and quotes the user as evidence (docs/seeding.md)."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

from pydantic import Field

from dialoom.inputs import DataError, Frozen
from dialoom.roles import UnparsedReplyError
from dialoom.text import CHARACTER, pluralize

from .generation import GenerationRecipe, Loop, generation_graph
from .judge import Graph
from .outcome import USER, Episode, Line, Outcome
from .personal_data import build_masker
from .recipe import AbsolutePath, RecipeError, RecipeOptions
from .scenario import MAX_LABEL_CHARACTERS, Scenario
from .stage import Scene, Update
from .study import ASSISTANT
from .tables.table import Cell, Outline, Span, Table
from .traits import measure_manner
from .transcript_rows import RecordedTalk, find_files, read_talks

PROMPT = "transcript_people/infer"
PARTS = ("person", "goal", "traits")
INFERRED, NOT_SHOWN, UNPARSED = "inferred", "not shown", "unparsed"
"""Results of a statement. `not shown`: the conversation does not show it. `unparsed`: the reply is invalid, or the
evidence is not a quote of the user.
"""

_MAX_LISTED_ERRORS = 20
"""Maximum number of broken rows that an error message lists; further rows are only counted."""


class TranscriptPeopleOptions(RecipeOptions):
    """The options of the recipe `transcript-people`."""

    talks: AbsolutePath | None = Field(
        None,
        alias="from_transcripts",
        description="Your conversations, in any format that 'dialoom import' reads. A model infers who the users are, "
        "what they want and how they behave, and the study's users imitate them.",
    )
    skip_broken: bool = Field(False, description="Leave out conversations that cannot be used; they are counted.")


class RecordedUser(Scenario):
    """A recorded conversation, with personal data masked, from which statements about the user are inferred.

    Attributes:
        name: The conversation's id in its file; empty if there is none.
        lines: The lines of user and assistant.
    """

    name: str
    lines: tuple[Line, ...]

    @property
    def label(self) -> str:
        """The conversation's id in its file; if there is none, the beginning of the user's first line."""
        return (self.name or self.user_lines[0])[:MAX_LABEL_CHARACTERS]

    @property
    def user_lines(self) -> list[str]:
        """The user's lines."""
        return [line.content for line in self.lines if line.role == USER]


class Statement(Frozen):
    """A statement about the user, and the user's words that show it."""

    statement: str = ""
    evidence: list[str] = []


class InferredUser(Frozen):
    """What a conversation shows of its user."""

    person: Statement
    goal: Statement
    traits: list[Statement] = Field(max_length=8)


class InferenceState(TypedDict, total=False):
    """The state that is checkpointed: the checked statements by `person`, `goal` and `traits`."""

    found: dict[str, list[dict[str, Any]]]


class TranscriptPeople(GenerationRecipe):
    """Persons, goals and traits inferred from recorded conversations, each supported by a quote of the user."""

    name = "transcript-people"
    roles = {"analyst": 0.0}
    prompts = (PROMPT,)
    reply_types = {"inferred-user": InferredUser}
    options_type = TranscriptPeopleOptions
    scenario_type = RecordedUser

    def scenarios(
        self, options: TranscriptPeopleOptions, draw: random.Random, note: Callable[[str], None]
    ) -> Iterator[RecordedUser]:
        """Yield the conversations, with personal data masked. If conversations are equal, only the first is used.

        Raises:
            DataError: If a file as a whole cannot be read, or contains no conversation.
            RecipeError: If conversations cannot be used, and the option `skip_broken` is not set. The message states
                the file and line of each.
        """
        if options.talks is None:
            raise RecipeError("talks must be a file or folder of conversations, got none", setting="talks")
        if not options.talks.exists():
            raise DataError(options.talks, "there is no such file")
        mask, seen, counts, broken = build_masker(), set[str](), Counter[str](), list[str]()
        for file, number, row in ((path, *each) for path in find_files(options.talks) for each in read_talks(path)):
            try:
                found = _build_recorded_user(row, file, number, mask)
            except DataError as error:
                broken.append(str(error))
                continue
            counts["equal"] += found.id in seen
            if found.id not in seen:
                seen.add(found.id)
                counts["masked"] += found.lines != _select_spoken_lines(row)
                if not broken or options.skip_broken:
                    yield found
        if broken and not options.skip_broken:
            more = f"\nand {len(broken) - _MAX_LISTED_ERRORS:,} more" if len(broken) > _MAX_LISTED_ERRORS else ""
            problems = "\n".join(broken[:_MAX_LISTED_ERRORS])
            raise RecipeError(f"{problems}{more}\n{pluralize(len(broken), 'unusable conversations')}; nothing was sent")
        if not seen:
            raise DataError(options.talks, "contains no usable conversation; give at least one")
        note(f"{pluralize(len(seen), 'conversations')}; personal data was masked in {counts['masked']:,}")
        if counts["equal"]:
            note(f"{pluralize(counts['equal'], 'equal conversations')} left out")
        if broken:
            note(f"{pluralize(len(broken), 'unusable conversations')} left out, the first: {broken[0]}")

    def graph(self, options: TranscriptPeopleOptions) -> Graph:
        """Return a graph with a single node, which makes one call."""
        return generation_graph(InferenceState, Loop(infer))

    def initial(self, scenario: RecordedUser) -> dict[str, Any]:
        """Return the empty state."""
        return {"found": {}}

    def outcome(self, scenario: RecordedUser, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the statements with evidence and results, the user's first line, and the figures of their manner."""
        found: Mapping[str, Sequence[Mapping[str, Any]]] = state.get("found") or {}
        results = Counter(each["result"] for part in found.values() for each in part)
        lines = scenario.user_lines
        return Outcome(
            messages=(),
            ended_by="error" if failed else "inferred",
            counts={result.replace(" ", "_"): results[result] for result in (INFERRED, NOT_SHOWN, UNPARSED)},
            details={
                **found,
                "opening": lines[0],
                "opens": next(line.role for line in scenario.lines),
                "manner": measure_manner(lines),
            },
        )

    def outline(self, episode: Episode) -> Outline | None:
        """Return the statements, each with its result and the words that show it."""
        details = episode.outcome.details
        parts = [_outline_statement(part, each) for part in PARTS for each in details.get(part, [])]
        return Outline([Span(str(details["opening"]), "user")], parts)

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return tables of the results of each kind of statement, and of the reasons for unparsed statements."""
        results, reasons = Counter[tuple[str, str]](), Counter[str]()
        for details, part in ((episode.outcome.details, part) for episode in episodes for part in PARTS):
            results.update((part, each["result"]) for each in details.get(part, []))
            reasons.update(each["reason"].partition(":")[0] for each in details.get(part, []) if each["reason"])
        kinds = (INFERRED, NOT_SHOWN, UNPARSED)
        rows: list[Sequence[Cell]] = [[part, *(results[part, kind] for kind in kinds)] for part in PARTS]
        notes = [f"Unparsed, {reason}: {count:,}." for reason, count in sorted(reasons.items())]
        return [Table("inferred", "Statements about the users by result", ["statement", *kinds], rows, notes)]


def _outline_statement(part: str, each: Mapping[str, Any]) -> Outline:
    """Return a statement as an outline."""
    result = f"{part}, {each['result']}" + (f" ({each['reason']})" if each["reason"] else "")
    words = [Outline([Span(f"“{quote}”", "note")]) for quote in each["evidence"]]
    return Outline([Span(f"{result}: ", "note"), Span(each["statement"])], words)


def _build_recorded_user(
    row: RecordedTalk | DataError, file: Path, number: int, mask: Callable[[str], str]
) -> RecordedUser:
    """Return a row's conversation, with personal data masked.

    Raises:
        DataError: If the row cannot be read, or the user says nothing.
    """
    if isinstance(row, DataError):
        raise row
    lines = tuple(Line(role=line.role, content=mask(line.content)) for line in _select_spoken_lines(row))
    if not any(line.role == USER for line in lines):
        roles = ", ".join(dict.fromkeys(line.role for line in row.lines))
        raise DataError(file, f"has no line with text of the role {USER!r}; its roles are {roles}", number)
    return RecordedUser(name=mask(row.name), lines=lines)


def _select_spoken_lines(row: RecordedTalk | DataError) -> tuple[Line, ...]:
    """Return the texts of user and assistant, without instructions, tool calls and their results."""
    lines = () if isinstance(row, DataError) else row.lines
    messages = (line for line in lines if line.role in (USER, ASSISTANT) and line.content.strip())
    return tuple(Line(role=line.role, content=line.content) for line in messages)


async def infer(_: InferenceState, scene: Scene[RecordedUser]) -> Update:
    """Request the statements about the user, and check their evidence."""
    history = [{"speaker": line.role, "content": line.content} for line in scene.scenario.lines]
    try:
        reply: InferredUser = await scene.ask(PROMPT, history=history)
    except UnparsedReplyError:
        nothing = [_build_result("", [], UNPARSED, "the reply could not be read")]
        return {"found": {"person": nothing, "goal": nothing, "traits": nothing}}
    lines = [" ".join(line.split()) for line in scene.scenario.user_lines]
    given = {"person": [reply.person], "goal": [reply.goal], "traits": reply.traits}
    return {
        "found": {part: [_check_statement(each, lines) for each in statements] for part, statements in given.items()}
    }


_CJK_BOUNDARY = rf"(?<={CHARACTER})|(?={CHARACTER})"
"""A place beside a character of Chinese or Japanese, where a quote may begin or end."""


def _check_statement(given: Statement, lines: Sequence[str]) -> dict[str, Any]:
    """Return a statement with its result. Every quote must occur in a line of the user, as whole words."""
    statement = " ".join(given.statement.split())
    quotes = [" ".join(quote.split()).strip("\"'“”‘’ ") for quote in given.evidence]
    if not statement:
        return _build_result("", [], NOT_SHOWN, "")
    if not quotes:
        return _build_result(statement, quotes, UNPARSED, "without evidence")
    for quote in quotes:
        pattern = re.compile(rf"(?:(?<!\w)|{_CJK_BOUNDARY}){re.escape(quote)}(?:(?!\w)|{_CJK_BOUNDARY})")
        if not quote or not any(pattern.search(line) for line in lines):
            return _build_result(statement, quotes, UNPARSED, f"not the user's words: {quote}")
    return _build_result(statement, quotes, INFERRED, "")


def _build_result(statement: str, evidence: list[str], result: str, reason: str) -> dict[str, Any]:
    return {"statement": statement, "evidence": evidence, "result": result, "reason": reason}


RECIPE = TranscriptPeople()
