"""Transcripts: a recipe for conversations that were recorded elsewhere, which replays and can continue them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, ClassVar, NamedTuple

from langchain_core.messages import BaseMessage

from dialoom.inputs import DataError
from dialoom.prompts import Utterance

from . import DialogueState, Facet, Facts, Graph, Line, Outcome, RecipeError, Scene, Stage, Turns, Update, node
from .conversation import speaker_of, to_messages
from .outcome import SYSTEM
from .scenario import MAX_LABEL_CHARACTERS
from .simulation import SimulatedTalk, Simulation, SimulationOptions, build_simulation
from .study import ASSISTANT, USER, Study
from .transcript_rows import (
    LABEL_PREFIX,
    MAX_FACET_CHARACTERS,
    RECORDED,
    TRANSCRIPT,
    Reader,
    RecordedTalk,
    find_files,
    is_label,
    parse_talk,
    read_rows,
    read_talks,
)


class Transcript(SimulatedTalk):
    """A recorded conversation.

    Attributes:
        name: The conversation's id in its file; empty if there is none.
        person: The columns that rubrics and briefs use as `person`.
        task: The columns that rubrics and briefs use as `task`.
        columns: The other values of the conversation's row.
        lines: The conversation's messages.
        tools: The tools that the assistant was offered, in the file's form.
        ended_by: The reason why the conversation ended.
    """

    columns: dict[str, Any] = {}
    lines: tuple[Line, ...]
    tools: tuple[dict[str, Any], ...] = ()
    ended_by: str = RECORDED

    @property
    def label(self) -> str:
        """The conversation's id in its file; if there is none, the beginning of the user's first line."""
        return (self.name or next((line.content for line in self.lines if line.role == USER), ""))[
            :MAX_LABEL_CHARACTERS
        ]

    def facets(self) -> dict[str, Any]:
        """Return the short values of the conversation's row, with the user's identity as `person` if it is known.

        An identity may be long, such as a hash; a description counts as one only if it is short.
        """
        # If the row states no person, its columns are those of the person.
        stated = {} if self.person == self.columns else self.person
        known = {"user_id": self.columns.get("user_id"), **stated}
        identities = map(known.get, ("id", "name", "user_id", "description"))
        found = {"person": next((value for value in identities if value not in (None, "")), None), **self._values}
        return {
            name: value
            for name, value in found.items()
            if isinstance(value, str | int | float)
            and (len(str(value)) <= MAX_FACET_CHARACTERS or (name == "person" and value != known.get("description")))
        }

    def described(self) -> dict[str, Any]:
        """Return all values of the conversation's row, and its id as `conversation`."""
        return {**({"conversation": self.name} if self.name else {}), **self._values}

    @property
    def _values(self) -> dict[str, Any]:
        """The values of the row, of its person and of its task.

        The prefix `person_` or `task_` is added to a name that the row or its person has, too, also if the values are
        equal: otherwise, a group by this name would lack the conversations in which they are.
        """
        found = dict(self.columns)
        for prefix, values in (("person", self.person), ("task", self.task)):
            if values != self.columns:  # the row states them
                found |= {f"{prefix}_{name}" if name in found else name: value for name, value in values.items()}
        return found

    def as_row(self) -> dict[str, Any]:
        """Return the columns of a `dialogues` export from which an import reads the conversation."""
        stated = {"person": self.person, "task": self.task}
        return {
            "scenario": self.columns,
            **({"name": self.name} if self.name else {}),
            **{name: values for name, values in stated.items() if values != self.columns},
            **({"tools": [*self.tools]} if self.tools else {}),
        }

    def id_of(self, values: Mapping[str, Any]) -> str:
        """Return the id. It has 16 digits of the hash, because 10 may coincide among a million conversations."""
        digest = hashlib.sha256(json.dumps(values, ensure_ascii=False).encode()).hexdigest()[:16]
        label = re.sub(r"[^0-9A-Za-z]+", "-", self.label).strip("-")
        return f"{label or 'talk'}-{digest}"


class Transcripts(Simulation):
    """Conversations that were recorded elsewhere. If a study is given, it supplies judges, checks and a user.

    When a scenario itself is played, the graph replays the recording without calling models. On a fork, the study's
    roles speak.
    """

    name = TRANSCRIPT
    scenario_type: ClassVar[type[SimulatedTalk]] = Transcript
    facets = (Facet("person", unit="users"),)

    def scenarios(
        self, options: SimulationOptions, draw: Random, note: Callable[[str], None]
    ) -> Iterator[SimulatedTalk]:
        """Refuse to plan, because the conversations are imported.

        Raises:
            RecipeError: Always.
        """
        raise RecipeError("recipe 'transcript': its conversations must be imported from a file", setting="recipe")

    def initial(self, scenario: Transcript) -> dict[str, Any]:
        """Return the initial state."""
        return {**super().initial(scenario), "upcoming": scenario.lines[0].role}

    def graph(self, options: Any) -> Graph:
        """Return the graph: it replays recorded lines in order or, on a fork, lets the roles speak in turn.

        The graph has no nodes of judges.
        """
        from langgraph.graph import END, START, StateGraph  # slow to import, and not needed to read a run

        builder = StateGraph(_TranscriptState, context_schema=Stage)
        builder.add_node(RECORDED, node(_replay_line))
        targets = [RECORDED, *self.turns.roles, END]
        builder.add_conditional_edges(START, _make_router(self.turns, END), targets)
        builder.add_conditional_edges(RECORDED, _make_router(self.turns, END), targets)
        for role in self.turns.roles:
            builder.add_node(role, node(self._make_role_node(role)))
            builder.add_conditional_edges(role, _make_router(self.turns, END), targets)
        return builder

    def recorded_outcome(self, scenario: Transcript) -> Outcome:
        """Return the outcome of a recording, as the graph would compute it."""
        turns = sum(line.role == self.turns.order[-1] and not line.tool_calls for line in scenario.lines)
        return Outcome(messages=scenario.lines, ended_by=scenario.ended_by, counts={f"{self.turns.unit}s": turns})

    def facts(self, scenario: SimulatedTalk) -> Facts:
        """Return the facts for the gate's rules. They do not include the intended ending, which is unknown."""
        return Facts(languages=self.languages, task=" ".join(str(value) for value in scenario.task.values()))

    def build_history(self, role: str, messages: Sequence[BaseMessage]) -> list[Utterance]:
        """Return the conversation for a role. Only the assistant receives system messages."""
        if role != ASSISTANT:
            messages = [message for message in messages if speaker_of(message) != SYSTEM]
        return super().build_history(role, messages)

    def _make_role_node(self, role: str) -> Callable[[DialogueState, Scene], Awaitable[Update]]:
        """Return the node of a role. It replays the recording or, on a fork, asks the role."""
        speak = self.speaker(role)

        async def run(state: DialogueState, scene: Scene) -> Update:
            return {**await speak(state, scene), "upcoming": ""} if scene.is_fork else await _replay_line(state, scene)

        run.__name__ = role
        return run


class _TranscriptState(DialogueState, total=False):
    """The state of a transcript.

    Attributes:
        upcoming: The role of the next recorded line; empty after the last line, and on a fork.
    """

    upcoming: str


async def _replay_line(state: DialogueState, scene: Scene) -> Update:
    """Add the next recorded line."""
    lines, index = scene.scenario.lines, len(state["messages"])
    if index >= len(lines):
        return {"ended_by": scene.scenario.ended_by}
    next_index = index + 1
    ended = {"ended_by": scene.scenario.ended_by} if next_index == len(lines) else {}
    upcoming = "" if ended else lines[next_index].role
    return {"messages": to_messages(lines[:next_index])[index:], "upcoming": upcoming, **ended}


def _make_router(turns: Turns, end: str) -> Callable[[Any], Awaitable[str]]:
    async def after_line(state: Any) -> str:
        if state["ended_by"]:
            return end
        if upcoming := state.get("upcoming"):
            return upcoming if upcoming in turns.roles else RECORDED
        messages = [message for message in state["messages"] if message.name in turns.order]
        return turns.following(messages) if messages else turns.order[0]

    return after_line


def read_transcripts(path: Path, reader: Reader | None = None) -> Iterator[tuple[int, Transcript | DataError]]:
    """Yield the conversations of a file or folder as scenarios; see `read_talks`."""
    for number, found in read_talks(path, reader):
        yield number, found if isinstance(found, DataError) else _build_transcript(found)


def _build_transcript(talk: RecordedTalk) -> Transcript:
    return Transcript(**vars(talk))


class LabelledRow(NamedTuple):
    """A conversation in a file that people have labelled.

    Attributes:
        id: The conversation's id as a scenario.
        line: The line or the number of its row.
        labels: The values under `label:NAME`, by the annotator's name.
    """

    id: str
    line: int
    labels: Mapping[str, Any]


def read_labelled_rows(path: Path) -> Iterator[LabelledRow]:
    """Yield the conversations in a file or folder that hold people's labels.

    Raises:
        DataError: If a file, or a row with labels, cannot be read.
    """
    for file in find_files(path):
        for number, row in read_rows(file, None):
            if isinstance(row, Mapping):
                labels = {name[len(LABEL_PREFIX) :].strip(): label for name, label in row.items() if is_label(name)}
                if "" in labels:
                    raise DataError(
                        file, f"a key {LABEL_PREFIX!r} has no annotator's name; rename it to {LABEL_PREFIX}NAME", number
                    )
                if labels:
                    yield LabelledRow(_build_transcript(parse_talk(row, file, number)).id, number, labels)


def build_transcripts(study: Study | None = None, folders: tuple[str, ...] = ()) -> Transcripts:
    """Return the recipe of transcripts, with the judges, checks and briefs of a study."""
    recipe = build_simulation(study or Study(name=TRANSCRIPT), folders, base=Transcripts)
    assert isinstance(recipe, Transcripts)
    return recipe
