"""Scripted sessions, with and without a stated preference."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import pairwise, product
from typing import Any, NamedTuple

from dialoom.personas.apollo.calls import PREFERENCE_DOMAINS, TOOLS, Parameter, Tool, Value
from dialoom.personas.apollo.executor import Output, execute
from dialoom.personas.apollo.flows import (
    Flow,
    FlowRequest,
    FlowStep,
    Gold,
    If,
    Preference,
    Resident,
    Slots,
    follow_flow,
)
from dialoom.personas.apollo.flows.catalogue import Query, User
from dialoom.personas.apollo.world import World

from .phrases import capitalize, fill_template, format_spoken, load_content, phrases
from .source import ApolloSession, ApolloUser, PastCall, PreferenceForm, Speech

_CONTENT = load_content("errands")
SCRIPTS: Mapping[str, Sequence[Sequence[str]]] = _CONTENT["scripts"]
"""The scripts of sessions about each unrelated tool."""
_DRAWN_VALUES: Mapping[str, Sequence[Value]] = _CONTENT["draws"]
_MAX_TRIES, _INTEREST_SHARE = 40, 0.4
SESSION_TOKENS = range(150, 451)  # tokens
_PLURAL_AFTER_ONE = re.compile(r"(?<![\d.])1 (gram|hour|litre|minute|point|portion|time)s\b")
_DISTINCT_FROM = {"to_currency": "from_currency", "to_station": "from_station"}
UNRELATED_TOOLS = tuple(name for name, tool in TOOLS.items() if tool.domain not in PREFERENCE_DOMAINS)


def build_unrelated_sessions(world: World, user: ApolloUser, rounds: int, seed: int) -> list[ApolloSession]:
    """Return a user's unrelated sessions: `rounds` for each of the 31 tools.

    No session repeats a call of another session.
    """
    draw, sessions, used = random.Random(f"errands {seed} {user.id}"), list[ApolloSession](), set[str]()
    for round_ in range(rounds):
        for name in UNRELATED_TOOLS:
            scripts = SCRIPTS[name]
            for _ in range(_MAX_TRIES):
                script, answer = scripts[round_ % len(scripts)], partial(execute, world)
                session = ApolloSession(
                    id=f"{user.id}-{name}-{round_ + 1}",
                    user=user.id,
                    kind="unrelated",
                    topic=f"{TOOLS[name].domain}/{name}",
                    turns=tuple(generate_errand_turns(TOOLS[name], script, user.interests, draw, answer)),
                )
                size = -(-len("\n".join(session.lines)) // 4)
                if size in SESSION_TOKENS and used.isdisjoint(session.asked) and not _has_repeated_results(session):
                    break
            used |= session.asked
            sessions.append(session)
    return sessions


def _has_repeated_results(session: ApolloSession) -> bool:
    """Return whether two results of a session's calls begin with the same text."""
    outputs = [turn.output for turn in session.turns if isinstance(turn, PastCall)]
    firsts = [next(iter((each[0] if isinstance(each, list) else each).values())) for each in outputs if each]
    texts = [first for first in firsts if isinstance(first, str)]
    return len(texts) > len(set(texts))


def find_interests(sessions: Iterable[ApolloSession]) -> dict[str, Value]:
    """Return, by parameter, the value that a user's unrelated calls use most often, if it is used more than once.

    Only parameters with a list of values count. A number of minutes, for example, is not an interest.
    """
    counts: dict[str, Counter[Value]] = {}
    for session in sessions:
        calls = [turn for turn in session.turns if isinstance(turn, PastCall) and turn.name in UNRELATED_TOOLS]
        listed = [(name, value) for call in calls for name, value in call.arguments.items() if _is_listed(call, name)]
        for name, value in dict.fromkeys(listed):
            counts.setdefault(name, Counter())[value] += 1
    most = {name: values.most_common(1)[0] for name, values in counts.items()}
    return {name: value for name, (value, count) in sorted(most.items()) if count > 1}


def _is_listed(call: PastCall, name: str) -> bool:
    parameter = TOOLS[call.name].parameters.get(name)
    return parameter is not None and parameter.kind == "text" and bool(parameter.of)


def generate_errand_turns(
    tool: Tool,
    script: Sequence[str],
    interests: Mapping[str, Value],
    draw: random.Random,
    answer: Callable[[Mapping[str, Any]], Output],
) -> Iterator[PastCall | Speech]:
    """Yield a script's turns. The arguments of all calls are drawn first, because earlier turns may mention them.

    Args:
        tool: The tool to call.
        script: The script's lines.
        interests: The user's interests.
        draw: The random stream for arguments and words.
        answer: Returns the tool's result for a call.
    """
    arguments, drawn, words = dict[str, Value](), list[dict[str, Value]](), dict[str, Any]()
    for parameter in tool.parameters.values():
        arguments[parameter.name] = _draw_value(parameter, tool, interests, draw, arguments)
    for line in (line for line in script if line.startswith("call")):
        for name in line.split()[1:]:
            arguments = {**arguments, name: _draw_value(tool.parameters[name], tool, interests, draw, arguments)}
        drawn.append(arguments)
        words |= _build_words(arguments, [], len(drawn))
    made = iter(enumerate(drawn, start=1))
    for line in script:
        if line.startswith("call"):
            number, arguments = next(made)
            output = answer({"name": tool.name, "arguments": arguments})
            words |= _build_words(arguments, output, number)
            yield PastCall(name=tool.name, arguments=arguments, output=output)
        else:
            mark, _, text = line.partition(" ")
            text = _PLURAL_AFTER_ONE.sub(r"1 \1", fill_template(text, words, draw))
            yield Speech(speaker="user" if mark == "U" else "assistant", text=capitalize(text))


def _draw_value(
    parameter: Parameter, tool: Tool, interests: Mapping[str, Value], draw: random.Random, given: Mapping[str, Value]
) -> Value:
    """Draw a parameter's value: one of the user's interests or any other value, but never one that was already used."""
    source = "homework" if (tool.name, parameter.name) == ("homework_checker", "text") else parameter.name
    taken = [given.get(parameter.name), given.get(_DISTINCT_FROM.get(parameter.name, ""))]
    values = [value for value in parameter.of or _DRAWN_VALUES[source] if value not in taken]
    own = interests.get(parameter.name)
    return own if own in values and draw.random() < _INTEREST_SHARE else draw.choice(values)


def _build_words(arguments: Mapping[str, Value], output: Output, number: int) -> dict[str, Any]:
    """Return the values of a call's placeholders: the call's arguments, and the columns of the rows in its output."""
    call = str(number) if number > 1 else ""
    words: dict[str, Any] = {**arguments, "homework": arguments.get("text", "")}
    for row, found in zip(("", "_b", "_c"), output if isinstance(output, list) else [output], strict=False):
        for column, value in found.items():
            words[f"{column}_out{row}" if column in arguments else f"{column}{row}"] = value
    for name, forms in _CONTENT["words"].items():
        words[f"{name}_words"] = forms.get(str(words.get(name)), words.get(name, ""))
    return {_number_placeholder(name, call): format_spoken(value) for name, value in words.items()}


def _number_placeholder(name: str, call: str) -> str:
    """Return a placeholder's name with the number of the call inserted before the letter of a row."""
    row = name[-2:] if name.endswith(("_b", "_c")) else ""
    return f"{name.removesuffix(row)}{call}{row}"


REQUESTS = load_content("requests")


@dataclass(frozen=True, slots=True)
class StatedPreference:
    """A preference that a session states.

    Attributes:
        flow: The flow's name.
        form: The form in which it is stated.
        values: The preference's value for each facet.
    """

    flow: str
    form: PreferenceForm
    values: Mapping[str, Value]


def build_preference_turns(
    request: FlowRequest, gold: Gold, form: PreferenceForm, draw: random.Random
) -> list[PastCall | Speech]:
    """Return a session about a request: the request, the preferences, the calls, and the closing.

    The assistant makes no call before the user has stated the whole preference, and does not repeat any of it.
    """
    opening = build_opening_turns(request.preference, request.slots, form, draw)
    calls = [
        PastCall(name=call.name, arguments=dict(call.arguments), output=output)
        for call, output in zip(gold.calls, gold.outputs, strict=True)
    ]
    return [*opening, *calls, *build_closing_turns(calls[-1].name, calls[-1].output, draw)]


def build_opening_turns(
    preference: Preference, slots: Mapping[str, Value], form: PreferenceForm, draw: random.Random
) -> list[Speech]:
    """Return the turns before the first call: the request, then the preference facet by facet."""
    words = {**build_place_words(slots), "day": f"on {format_day_of_month(str(slots.get('date', slots['today'])))}"}
    turns = [_user_speech(fill_template(draw.choice(REQUESTS["flows"][preference.flow]["openings"]), words, draw))]
    used: set[str] = set()
    for number, (name, facet) in enumerate(phrases()[preference.flow].items()):
        if name in preference.values:
            ask, reply = facet.exchange(preference.values[name], form, draw, used)
            lead = draw.choice(REQUESTS["leads" if number else "greetings"])
            turns += [Speech(speaker="assistant", text=f"{lead} {ask}".strip()), _user_speech(reply)]
    return turns


def build_closing_turns(tool: str, output: Output, draw: random.Random) -> list[Speech]:
    """Return the turns after the last call's result."""
    answered = output[0] if isinstance(output, list) else output
    lines = REQUESTS["for_nothing" if answered.get("cost") == 0 else "done"][tool]
    done = fill_template(draw.choice(lines), {column: format_spoken(value) for column, value in answered.items()}, draw)
    return [
        Speech(speaker="assistant", text=done),
        _user_speech(fill_template(draw.choice(REQUESTS["farewells"]), {}, draw)),
    ]


def read_preference(turns: Iterable[tuple[str, str]]) -> StatedPreference | None:
    """Return the preference stated in a session of the scripted source; None if it states none.

    Args:
        turns: The speaker (`user` or `assistant`) and text of each turn, in order, without calls.
    """
    answers = [(question, text) for (asker, question), (_, text) in pairwise(turns) if asker == "assistant"]
    for flow, facets in phrases().items():
        found = {
            name: read
            for question, text in answers
            for name, facet in facets.items()
            if (read := facet.read(question, text))
        }
        if found:
            forms = [form for name, (form, _) in found.items() if not facets[name].plain] or ["explicit"]
            return StatedPreference(
                flow, max(forms, key=forms.count), {name: value for name, (_, value) in found.items()}
            )
    return None


def extract_speeches(session: ApolloSession) -> list[tuple[str, str]]:
    """Return the speaker and the text of each spoken turn of a session."""
    return [(turn.speaker, turn.text) for turn in session.turns if isinstance(turn, Speech)]


def extract_slots(flow: Flow, session: ApolloSession, user: ApolloUser) -> dict[str, Value]:
    """Return the slots of a session's request, derived from its calls."""
    slots: dict[str, Value] = {}
    for turn, step in product(session.turns, _list_steps(flow)):
        if isinstance(turn, PastCall) and turn.name == step.tool:
            slots |= _extract_request_slots(step, turn.arguments, user)
    return slots


def _list_steps(flow: Flow) -> list[FlowStep]:
    return [*flow.lookups, *([flow.last.then, flow.last.otherwise] if isinstance(flow.last, If) else [flow.last])]


def list_flow_tools(flow: Flow) -> tuple[str, ...]:
    """Return every tool that a flow may call, including both branches of a rule."""
    return tuple(dict.fromkeys(step.tool for step in _list_steps(flow)))


def _extract_request_slots(step: FlowStep, arguments: Mapping[str, Value], user: ApolloUser) -> dict[str, Value]:
    slots: dict[str, Value] = {}
    for name, expression in step.arguments.items():
        if isinstance(expression, Query) and name in arguments:
            slots[expression.slot] = arguments[name]
        elif expression == User("start"):
            slots["start"] = "home" if arguments.get(name) == user.home else "work"
    return slots


def build_place_words(slots: Mapping[str, Value]) -> dict[str, Any]:
    """Return the values of placeholders for places and nights."""
    start, nights = slots.get("start", "home"), int(slots.get("nights", 1))
    return {
        **slots,
        "from": f"from {start}",
        "at": f"at {start}",
        "nights": f"{NUMBERS[nights]} night{'s'[: nights > 1]}",
    }


def format_day_of_month(day: str) -> str:
    """Return a day as people say it, such as `9 March`."""
    return f"{date.fromisoformat(day).day} {date.fromisoformat(day):%B}"


NUMBERS: Mapping[int, str] = dict(enumerate("no one two three four five six".split()))


def _user_speech(text: str) -> Speech:
    return Speech(speaker="user", text=capitalize(text))


class SessionPiece(NamedTuple):
    """The turns up to the next call, and the next call, which is None at the end."""

    turns: Sequence[PastCall | Speech]
    call: dict[str, Any] | None


class NextCallError(Exception):
    """An exception for a call that has no result yet."""

    def __init__(self, call: Mapping[str, Any]) -> None:
        self.call = {"name": call["name"], "arguments": dict(call["arguments"])}


def build_preference_piece(
    preference: Preference,
    stated: Preference,
    form: PreferenceForm,
    resident: Resident,
    slots: Slots,
    outputs: Sequence[Output] | None,
    draw: random.Random,
) -> SessionPiece:
    """Return the next piece of a session that states a preference.

    Args:
        preference: The preference that the calls follow.
        stated: The preference that the session states, which is normally the same.
        form: The form in which it is stated.
        resident: The user's city and addresses.
        slots: The request's slots.
        outputs: The tools' results so far; None at the beginning.
        draw: The random stream for words.
    """
    try:
        made = follow_flow(preference, resident, slots, replay_outputs(outputs or ()))
    except NextCallError as next_:
        return SessionPiece(build_opening_turns(stated, slots, form, draw) if outputs is None else [], next_.call)
    return SessionPiece(build_closing_turns(made.calls[-1].name, made.outputs[-1], draw), None)


def build_errand_piece(
    tool: str, number: int, behind: int, outputs: Sequence[Output], draw: random.Random
) -> SessionPiece:
    """Return the next piece of a session about an unrelated tool. The whole session is drawn again for each piece.

    Args:
        tool: The tool to call.
        number: The index of its script.
        behind: The number of existing turns.
        outputs: The tool's results so far.
        draw: The random stream for arguments and words, the same for all pieces of a session.
    """
    scripts, turns = SCRIPTS[tool], list[PastCall | Speech]()
    try:
        for turn in generate_errand_turns(
            TOOLS[tool], scripts[number % len(scripts)], {}, draw, replay_outputs(outputs)
        ):
            turns.append(turn)
    except NextCallError as next_:
        return SessionPiece(turns[behind:], next_.call)
    return SessionPiece(turns[behind:], None)


def replay_outputs(outputs: Iterable[Output]) -> Callable[[Mapping[str, Any]], Output]:
    """Return a function that returns recorded results in order.

    It raises `NextCallError` for the first call without a result.
    """
    left = iter(outputs)

    def answer(call: Mapping[str, Any]) -> Output:
        for output in left:
            return output
        raise NextCallError(call)

    return answer
