"""APOLLO's reward as trainers call it: hand-computed values for completions in every form; it needs no dependencies."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialoom import apollo_reward
from dialoom.apollo_reward import compute_score, reward, tool_definitions, tool_functions
from dialoom.personas.apollo import TOOLS, World, execute
from dialoom.personas.apollo.scores import format_call, strip_reasoning
from dialoom.roles.gateway.completions import split_reasoning

Call = dict[str, Any]


def weather(city: str) -> Call:
    """Return a call that differs from others in its city."""
    return {"name": "get_weather", "arguments": {"city": city, "date": "2027-03-01"}}


A, B, X = map(weather, ("Hollin", "Marrow", "Else"))
GOLD = json.dumps([A, B])


def native(*calls: Call, as_text: bool = False) -> list[dict[str, Any]]:
    """Return messages as TRL has them after running tools: each call's turn and output, then a final turn."""
    made: list[dict[str, Any]] = []
    for call in calls:
        arguments = json.dumps(call["arguments"]) if as_text else call["arguments"]
        function = {"name": call["name"], "arguments": arguments}
        made.append({"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": function}]})
        made.append({"role": "tool", "name": call["name"], "content": "{}"})
    return [*made, {"role": "assistant", "content": "[Finish]"}]


def written(*calls: Call) -> str:
    """Return a rollout as one text, as verl decodes it."""
    turns = (f"{format_call(call)}\nuser\n<tool_response>\n{{}}\n</tool_response>\nassistant\n" for call in calls)
    return "".join(turns) + "[Finish]"


@pytest.mark.parametrize(
    ("calls", "accuracy", "f1"),
    [
        ([A, B], 1.0, 1.0),
        ([B, A], 0.0, 1.0),
        ([A], 0.0, 2 / 3),
        ([A, A, B], 0.0, 1.0),
        ([A, X], 0.0, 0.5),
        ([A, B, X], 0.0, 0.8),
        ([], 0.0, 0.0),
    ],
)
def test_reward_is_accuracy_in_every_form(calls: list[Call], accuracy: float, f1: float) -> None:
    """The table in section 12 of the protocol, for calls in messages, as text and in one text; verl also gets F1."""
    in_turns = [{"role": "assistant", "content": format_call(call)} for call in calls]
    plain = [{"name": call["name"], "arguments": call["arguments"]} for call in calls]
    completions = [
        native(*calls),
        native(*calls, as_text=True),
        [*in_turns, {"role": "assistant", "content": "[Finish]"}],
        [{"role": "assistant", "content": None, "tool_calls": plain}],
        [{"role": "assistant", "content": [{"type": "text", "text": "".join(map(format_call, calls))}]}],
        written(*calls),
    ]
    assert reward(completions, [GOLD] * len(completions), prompts=[], domain=["x"]) == [accuracy] * len(completions)
    score = compute_score("dialoom/apollo", written(*calls), GOLD, {"index": "1"}, more=None)
    assert score == {"score": accuracy, "acc": accuracy, "f1": pytest.approx(f1)}


def test_each_completion_has_its_own_gold() -> None:
    assert reward([written(A), written(A)], [json.dumps([A]), json.dumps([B])]) == [1.0, 0.0]
    with pytest.raises(ValueError):
        reward([written(A)], [])


NO_CALLS = [
    f"<think>{format_call(A)}</think>{format_call(B)}",
    f"{format_call(B)}<think>I could do {format_call(A)}",
    f"<tool_response>{format_call(A)}</tool_response>{format_call(B)}",
    f"<think>It says <tool_response></think>{format_call(B)}",
    f"<tool_response><think></tool_response>{format_call(B)}<tool_response>cut {format_call(A)}",
    f"Shall I {format_call(A)}? No.</think>{format_call(B)}",
    f"<think>a</think>{format_call(B)}<tool_response>1</tool_response>Or {format_call(A)}?</think>[Finish]",
]


@pytest.mark.parametrize("rollout", NO_CALLS)
def test_calls_in_reasoning_and_tool_outputs_do_not_count(rollout: str) -> None:
    assert reward([rollout], [json.dumps([B])]) == [1.0]
    assert compute_score("", rollout, json.dumps([B]))["score"] == 1.0


def test_message_is_read_without_reasoning_and_outputs() -> None:
    content = f"<think>{format_call(X)}</think>{format_call(A)}"
    assert reward([[{"role": "assistant", "content": content}]], [json.dumps([A])]) == [1.0]
    content = f"<tool_response>{format_call(X)}</tool_response>{format_call(A)}"
    assert reward([[{"role": "assistant", "content": content}]], [json.dumps([A])]) == [0.0]
    others = [{"role": role, "content": format_call(X)} for role in ("tool", "user", "system")]
    assert reward([[*others, {"role": "assistant", "content": format_call(A)}]], [json.dumps([A])]) == [1.0]


def test_broken_call_counts_as_wrong() -> None:
    for block in ('{"name": ', "[1]", '{"arguments": {}}', "", json.dumps({**B, "arguments": {"city": "Hollin"}})):
        score = compute_score("", f"{format_call(A)}<tool_call>{block}</tool_call>", json.dumps([A]))
        assert [score["acc"], score["f1"]] == pytest.approx([0.0, 2 / 3])
    for broken in (None, 3, {}, {"function": None}, {"function": {"name": 3}}, {"name": "get_weather"}):
        message = {"role": "assistant", "tool_calls": [A, broken]}
        assert reward([[message]], [json.dumps([A])]) == [0.0]


def test_finishing_is_correct_if_no_call_is_left() -> None:
    finish = [{"role": "assistant", "content": "[Finish]"}]
    silent = [{"role": "assistant", "content": "All done."}]
    assert reward([finish, silent, native(A)], ["[]"] * 3) == [1.0, 0.0, 0.0]
    assert compute_score("", "<think>[Finish]</think>Well.", "[]") == {"score": 0.0, "acc": 0.0, "f1": 0.0}


def test_unreadable_gold_is_an_error_and_not_zero() -> None:
    for gold in ("{}", "no JSON", "[1]", json.dumps([{"name": "no_such_tool", "arguments": {}}])):
        with pytest.raises(ValueError):
            reward([written(A)], [gold])


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
junk = (
    scalars | st.lists(scalars, max_size=2) | st.dictionaries(st.sampled_from(["name", "text", "arguments"]), scalars)
)
messages = st.lists(scalars | st.fixed_dictionaries({"content": junk, "tool_calls": junk | st.lists(junk, max_size=2)}))
tags = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<Thought>",
            "</thought >",
            "<tool_call>",
            "</tool_call>",
            "<tool_response>",
            "</tool_response>",
            "{",
        ]
    )
    | st.text(max_size=3)
).map("".join)


@settings(max_examples=60)
@given(junk | messages | tags)
def test_no_completion_raises(completion: Any) -> None:
    assert reward([completion], [GOLD]) == [0.0]


@settings(max_examples=80)
@given(tags)
def test_reward_and_gateway_agree_on_reasoning(text: str) -> None:
    stripped, _ = split_reasoning(text)
    assert strip_reasoning(text).strip() == stripped.strip()


def test_tools_are_typed_and_documented_functions() -> None:
    functions = {function.__name__: function for function in tool_functions(seed=3)}
    assert list(functions) == list(TOOLS) == [each["function"]["name"] for each in tool_definitions()]
    world = World(3)
    assert json.loads(functions["get_weather"](**A["arguments"])) == execute(world, A)
    assert "date" in json.loads(functions["get_weather"](city="Hollin"))["error"]
    for name, tool in TOOLS.items():
        signature, required = (
            inspect.signature(functions[name]),
            tool.definition()["function"]["parameters"]["required"],
        )
        assert list(signature.parameters) == list(tool.parameters)
        assert [each.name for each in signature.parameters.values() if each.default is each.empty] == required
        for parameter in tool.parameters.values():
            assert f"    {parameter.name}: {parameter.says}" in str(functions[name].__doc__)
            assert get_args(signature.parameters[parameter.name].annotation) == parameter.of
    assert signature.return_annotation is str
    assert [each.__name__ for each in tool_functions(["get_weather"])] == ["get_weather"]
    with pytest.raises(ValueError, match="get_wether"):
        tool_functions(["get_wether"])


def test_reward_works_by_its_path_without_dialoom() -> None:
    path = Path(apollo_reward.__file__)
    call = [A, B]
    check = (
        f"text, gold = {written(*call)!r}, {GOLD!r}\n"
        "for made in (module.compute_score('', text, gold)['score'], module.reward([text], [gold])[0]): print(made)\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names) - before))\n"
    )
    begin = "import sys\nbefore = {name.split('.')[0] for name in sys.modules}\n"
    by_path = (
        "import importlib.util\n"
        f"spec = importlib.util.spec_from_file_location('custom_module', {str(path)!r})\n"
        "module = importlib.util.module_from_spec(spec)\nspec.loader.exec_module(module)\n"
    )
    by_name = f"sys.path.insert(0, {str(path.parent.parent)!r})\nimport dialoom.apollo_reward as module\n"
    for how, found in ((by_path, ["dialoom_apollo"]), (by_name, ["dialoom", "dialoom_apollo"])):
        done = subprocess.run(
            [sys.executable, "-I", "-c", begin + how + check], capture_output=True, text=True, check=True, cwd="/"
        )
        assert done.stdout.splitlines() == ["1.0", "1.0", str(found)]
