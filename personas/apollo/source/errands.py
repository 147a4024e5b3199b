"""Sessions in which no preference is told: scripts for the tools of the unrelated domains, with true outputs."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..executor import Output, execute
from ..tools import PREFERENCE_DOMAINS, TOOLS, Parameter, Tool, Value
from ..world import World
from .content import as_said, capital, content, filled
from .pair import ApolloUser
from .session import ApolloSession, PastCall, Speech

_CONTENT = content("errands")
_SCRIPTS: Mapping[str, Sequence[Sequence[str]]] = _CONTENT["scripts"]
_DRAWS: Mapping[str, Sequence[Value]] = _CONTENT["draws"]
_TRIES, _OWN = 40, 0.4
SIZE = range(150, 451)  # tokens
_ONE_OF_MANY = re.compile(r"(?<![\d.])1 (gram|hour|litre|minute|point|portion|time)s\b")
_DIFFERENT = {"to_currency": "from_currency", "to_station": "from_station"}
UNRELATED_TOOLS = tuple(name for name, tool in TOOLS.items() if tool.domain not in PREFERENCE_DOMAINS)


def errand_scripts(tool: str) -> Sequence[Sequence[str]]:
    """What sessions about an unrelated tool go by."""
    return _SCRIPTS[tool]


def unrelated_sessions(world: World, user: ApolloUser, rounds: int, seed: int) -> list[ApolloSession]:
    """A user's sessions about other things: so many for each of the 31 tools, none with a call of another's."""
    draw, sessions, used = random.Random(f"errands {seed} {user.id}"), list[ApolloSession](), set[str]()
    for round_ in range(rounds):
        for name in UNRELATED_TOOLS:
            scripts = _SCRIPTS[name]
            for _ in range(_TRIES):
                script, answer = scripts[round_ % len(scripts)], partial(execute, world)
                turns = [*errand_turns(TOOLS[name], script, user.interests, draw, answer)]
                session = ApolloSession(
                    id=f"{user.id}-{name}-{round_ + 1}",
                    user=user.id,
                    kind="unrelated",
                    topic=f"{TOOLS[name].domain}/{name}",
                    turns=tuple(turns),
                )
                size = -(-len("\n".join(session.lines)) // 4)
                if size in SIZE and used.isdisjoint(session.asked) and not _told_twice(session):
                    break
            used |= session.asked
            sessions.append(session)
    return sessions


def _told_twice(session: ApolloSession) -> bool:
    """Whether a tool begins two answers with the same text, where what was asked between makes another one expected."""
    outputs = [turn.output for turn in session.turns if isinstance(turn, PastCall)]
    firsts = [next(iter((each[0] if isinstance(each, list) else each).values())) for each in outputs if each]
    told = [first for first in firsts if isinstance(first, str)]
    return len(told) > len(set(told))


def interests_shown(sessions: Iterable[ApolloSession]) -> dict[str, Value]:
    """What a user's calls of unrelated tools ask for more than once, and most: a value by the parameter's name.

    Of parameters that have a list of values, as the number of minutes is no interest.
    """
    asked: dict[str, Counter[Value]] = {}
    for session in sessions:
        calls = [turn for turn in session.turns if isinstance(turn, PastCall) and turn.name in UNRELATED_TOOLS]
        listed = [(name, value) for call in calls for name, value in call.arguments.items() if _is_listed(call, name)]
        for name, value in dict.fromkeys(listed):
            asked.setdefault(name, Counter())[value] += 1
    most = {name: values.most_common(1)[0] for name, values in asked.items()}
    return {name: value for name, (value, count) in sorted(most.items()) if count > 1}


def _is_listed(call: PastCall, name: str) -> bool:
    parameter = TOOLS[call.name].parameters.get(name)
    return parameter is not None and parameter.kind == "text" and bool(parameter.of)


def errand_turns(
    tool: Tool,
    script: Sequence[str],
    interests: Mapping[str, Value],
    draw: random.Random,
    answer: Callable[[Mapping[str, Any]], Output],
) -> Iterator[PastCall | Speech]:
    """A script's turns, one after the other: what all calls ask for is drawn first, as it may be said before them.

    Args:
        tool: What is called.
        script: Its lines.
        interests: The user's.
        draw: Where arguments and words come from.
        answer: What the tool says to a call.
    """
    arguments: dict[str, Value] = {}
    for parameter in tool.parameters.values():
        arguments[parameter.name] = _value(parameter, tool, interests, draw, arguments)
    asked, words = list[dict[str, Value]](), dict[str, Any]()
    for line in (line for line in script if line.startswith("call")):
        for name in line.split()[1:]:
            arguments = {**arguments, name: _value(tool.parameters[name], tool, interests, draw, arguments)}
        asked.append(arguments)
        words |= _words(arguments, [], len(asked))
    made = iter(enumerate(asked, start=1))
    for line in script:
        if line.startswith("call"):
            number, arguments = next(made)
            output = answer({"name": tool.name, "arguments": arguments})
            words |= _words(arguments, output, number)
            yield PastCall(name=tool.name, arguments=arguments, output=output)
        else:
            yield _speech(line, words, draw)


def _speech(line: str, words: Mapping[str, Any], draw: random.Random) -> Speech:
    mark, _, text = line.partition(" ")
    said = _ONE_OF_MANY.sub(r"1 \1", filled(text, words, draw))
    return Speech(speaker="user" if mark == "U" else "assistant", text=capital(said))


def _value(
    parameter: Parameter, tool: Tool, interests: Mapping[str, Value], draw: random.Random, given: Mapping[str, Value]
) -> Value:
    """Something for a parameter: what the user is interested in, or anything; never what was given already."""
    source = "homework" if (tool.name, parameter.name) == ("homework_checker", "text") else parameter.name
    taken = [given.get(parameter.name), given.get(_DIFFERENT.get(parameter.name, ""))]
    values = [value for value in parameter.of or _DRAWS[source] if value not in taken]
    own = interests.get(parameter.name)
    return own if own in values and draw.random() < _OWN else draw.choice(values)


def _words(arguments: Mapping[str, Value], output: Output, number: int) -> dict[str, Any]:
    """What braces stand for: arguments and columns of a call, the first or a later one, and of the output's rows."""
    call = str(number) if number > 1 else ""
    words: dict[str, Any] = dict(arguments)
    words["homework"] = arguments.get("text", "")
    rows = output if isinstance(output, list) else [output]
    for row, found in zip(("", "_b", "_c"), rows, strict=False):
        for column, value in found.items():
            words[f"{column}_out{row}" if column in arguments else f"{column}{row}"] = value
    for name, said in _CONTENT["words"].items():
        words[f"{name}_words"] = said.get(str(words.get(name)), words.get(name, ""))
    return {_numbered(name, call): as_said(value) for name, value in words.items()}


def _numbered(name: str, call: str) -> str:
    """A name with the number of the call, before the letter of a row."""
    row = name[-2:] if name.endswith(("_b", "_c")) else ""
    return f"{name.removesuffix(row)}{call}{row}"
