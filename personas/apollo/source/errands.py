"""Sessions in which no preference is told: scripts for the tools of the unrelated domains, with true outputs."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..executor import Output, execute
from ..tools import PREFERENCE_DOMAINS, TOOLS, Parameter, Tool, Value
from ..world import World
from .content import capital, content, filled
from .pair import ApolloUser
from .session import ApolloSession, PastCall, Speech

_CONTENT = content("errands")
_SCRIPTS: Mapping[str, Sequence[Sequence[str]]] = _CONTENT["scripts"]
_DRAWS: Mapping[str, Sequence[Value]] = _CONTENT["draws"]
_TRIES, _OWN = 40, 0.4
_SIZE = range(150, 451)  # tokens
_ONE_OF_MANY = re.compile(r"(?<![\d.])1 (change|day|hour|mistake|piece|portion|time)s\b")
_DIFFERENT = {"to_currency": "from_currency", "to_station": "from_station"}
UNRELATED_TOOLS = tuple(name for name, tool in TOOLS.items() if tool.domain not in PREFERENCE_DOMAINS)


def unrelated_sessions(world: World, user: ApolloUser, rounds: int, seed: int) -> list[ApolloSession]:
    """A user's sessions about other things: so many for each of the 31 tools, no two the same."""
    draw, sessions, used = random.Random(f"errands {seed} {user.id}"), [], set[str]()
    for round_ in range(rounds):
        for name in UNRELATED_TOOLS:
            scripts = _SCRIPTS[name]
            for _ in range(_TRIES):
                turns = _played(world, TOOLS[name], scripts[round_ % len(scripts)], user, draw)
                session = ApolloSession(
                    id=f"{user.id}-{name}-{round_ + 1}",
                    user=user.id,
                    kind="unrelated",
                    topic=f"{TOOLS[name].domain}/{name}",
                    turns=tuple(turns),
                )
                text = "\n".join(session.lines)
                if text not in used and -(-len(text) // 4) in _SIZE:
                    break
            used.add(text)
            sessions.append(session)
    return sessions


def _played(
    world: World, tool: Tool, script: Sequence[str], user: ApolloUser, draw: random.Random
) -> list[PastCall | Speech]:
    """A script's turns. All calls are made first, as what is said may go before them."""
    arguments: dict[str, Value] = {}
    for parameter in tool.parameters.values():
        arguments[parameter.name] = _value(parameter, tool, user, draw, arguments)
    calls, words = list[PastCall](), dict[str, Any]()
    for number, line in enumerate((line for line in script if line.startswith("call")), start=1):
        for name in line.split()[1:]:
            arguments = {**arguments, name: _value(tool.parameters[name], tool, user, draw, arguments)}
        output = execute(world, {"name": tool.name, "arguments": arguments})
        calls.append(PastCall(name=tool.name, arguments=arguments, output=output))
        words |= _words(arguments, output, str(number) if number > 1 else "")
    made = iter(calls)
    return [next(made) if line.startswith("call") else _speech(line, words, draw) for line in script]


def _speech(line: str, words: Mapping[str, Any], draw: random.Random) -> Speech:
    mark, _, text = line.partition(" ")
    said = _ONE_OF_MANY.sub(r"1 \1", filled(text, words, draw))
    return Speech(speaker="user" if mark == "U" else "assistant", text=capital(said))


def _value(
    parameter: Parameter, tool: Tool, user: ApolloUser, draw: random.Random, given: Mapping[str, Value]
) -> Value:
    """Something for a parameter: what the user is interested in, or anything; never what was given already."""
    source = "homework" if (tool.name, parameter.name) == ("homework_checker", "text") else parameter.name
    taken = [given.get(parameter.name), given.get(_DIFFERENT.get(parameter.name, ""))]
    values = [value for value in parameter.of or _DRAWS[source] if value not in taken]
    own = user.interests.get(parameter.name)
    return own if own in values and draw.random() < _OWN else draw.choice(values)


def _words(arguments: Mapping[str, Value], output: Output, call: str) -> dict[str, Any]:
    """What braces stand for: arguments and columns of a call, and of the output's other rows."""
    words: dict[str, Any] = dict(arguments)
    words["homework"] = arguments.get("text", "")
    for name, said in _CONTENT["words"].items():
        words[f"{name}_words"] = said.get(str(arguments.get(name)), "")
    for row, found in zip(("", "_b", "_c"), output if isinstance(output, list) else [output], strict=False):
        for column, value in found.items():
            words[f"{column}_out{row}" if column in arguments else f"{column}{row}"] = value
    return {_numbered(name, call): _shown(value) for name, value in words.items()}


def _numbered(name: str, call: str) -> str:
    """A name with the number of the call, before the letter of a row."""
    row = name[-2:] if name.endswith(("_b", "_c")) else ""
    return f"{name.removesuffix(row)}{call}{row}"


def _shown(value: Any) -> Any:
    """As one writes it: without underscores, and whole numbers without a decimal."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value.replace("_", " ") if isinstance(value, str) else value
