"""Sent parameters against configured ones, by the log of a server that rejects what the provider would reject."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dialoom.roles import Gateway, ModelBinding
from dialoom.roles.errors import BindingError, PermanentProviderError
from dialoom.roles.gateway.families import MAX_TOKENS, Family, find_family, fit_parameters, load_families
from dialoom.roles.gateway.gateway import check_parameters, describe_changed_parameters, ensure_unchanged
from dialoom.roles.gateway.litellm_backend import load_litellm
from dialoom.roles.gateway.model_facts import supports_tools
from dialoom.roles.replies import score_type
from tests.ledgers import MemoryLedger, make_place
from tests.roles.gateway.asking import KEY, QUICK, request
from tests.server import Answer, completion, error, serving

THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
MODELS: dict[str, dict[str, Any]] = {
    "openai/gpt-5-mini": {},
    "openrouter/openai/gpt-5-mini": {},
    "litellm_proxy/gpt-5-mini": {"reasoning_effort": "low"},
    "openai/o4-mini": {},
    "openai/ft:o4-mini-2025-04-16:acme::c9": {},
    "anthropic/claude-sonnet-4-5": THINKING,
    "openrouter/anthropic/claude-sonnet-4.5": THINKING | {"top_p": 0.9},
    "anthropic/claude-opus-4-7": {},
    "gemini/gemini-2.5-flash": {"top_p": 0.9},
    "deepseek/deepseek-reasoner": {},
    "openai/gpt-4o-mini": {"top_p": 0.9, "stop": ["END"]},
    "openai/house": {"top_p": 0.9, "frequency_penalty": 0.5, "verbosity": "low"},
    "openrouter/acme/house": {"verbosity": "low"} | THINKING,
    "ollama_chat/house": {"presence_penalty": 0.5},
}
ANTHROPIC, DEEPSEEK = {"returns": "thinking_blocks"}, {"returns": "reasoning_content"}
FACTS: list[tuple[str, str, dict[str, Any]]] = [  # what the table on the page does not show
    ("OpenAI's chat models", "gpt-5-chat-latest gpt-5-chat", {}),
    ("OpenAI's models with optional reasoning", "gpt-5.1 azure/gpt-5.4-mini gpt-5.2-2025-12-11", {"responses": True}),
    (
        "OpenAI's models that reason unless told not to",
        "gpt-5.5 gpt-6 openrouter/openai/gpt-5.6-luna",
        {"responses": True, "by_default": True},
    ),
    (
        "OpenAI's reasoning models",
        "gpt-5 gpt-5-mini-2025-08-07 gpt-5.1-codex gpt-5.4-pro o1 o3-mini azure/o4-mini ft:o4-mini:acme::c9",
        {"responses": True, "by_default": True, "system": "developer"},
    ),
    (
        "Claude models that always think",
        "claude-mythos-5 claude-fable-5 claude-opus-5-5",
        ANTHROPIC | {"by_default": True},
    ),
    (
        "Claude models without budgets",
        "claude-opus-4-7 openrouter/anthropic/claude-opus-4.8 claude-sonnet-5",
        ANTHROPIC,
    ),
    ("Claude 4.6 models", "claude-opus-4-6 bedrock/us.anthropic.claude-sonnet-4-6", ANTHROPIC),
    ("Claude models", "claude-sonnet-4-5-20250929 openrouter/anthropic/claude-3.7-sonnet claude-opus-4-1", ANTHROPIC),
    ("Gemini models", "gemini-2.5-pro vertex_ai/gemini-3-flash-preview", {"returns": "signatures", "by_default": True}),
    (
        "DeepSeek's reasoning models",
        "deepseek-reasoner bedrock/us.deepseek.r1-v1:0 openrouter/deepseek/deepseek-r1",
        DEEPSEEK | {"by_default": True},
    ),
    ("DeepSeek's hybrid models", "deepseek-v4-pro deepseek-v4-flash", DEEPSEEK | {"by_default": True}),
    ("DeepSeek's chat models", "deepseek-chat openrouter/deepseek/deepseek-v3.2", DEEPSEEK),
    (
        "Kimi models that think",
        "kimi-k2-thinking kimi-k2.5 kimi-k2-thinking-turbo",
        DEEPSEEK | {"by_default": True},
    ),
    (
        "Grok models without efforts",
        "xai/grok-4 grok-code-fast-1 grok-4-0709 grok-4-1-fast-reasoning grok-4.20-0309-reasoning",
        {"by_default": True},
    ),
    ("Grok's reasoning models", "grok-3-mini xai/grok-4.3 grok-4.20-multi-agent-0309", {"by_default": True}),
]
LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "num_predict")
DOCS = Path(__file__).parents[3] / "docs" / "models.md"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the providers' keys in the environment."""
    for name in ("OPENAI", "ANTHROPIC", "OPENROUTER", "GEMINI", "DEEPSEEK", "LITELLM_PROXY"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)


def rejection(body: dict[str, Any]) -> str | None:
    """Return a parameter that the provider's documentation says it rejects for the body's model; `None` if none."""
    model = str(body.get("model", "gemini")).rpartition("/")[2]
    thinks = body.get("thinking", {}).get("type") == "enabled"
    known = {"temperature", "top_p", "stop", "seed", "frequency_penalty", "presence_penalty", "logit_bias"}
    rejected: set[str] = set()
    if re.match(r"(ft:)?(gpt-5|o4)", model):
        rejected = known - {"seed"} | {"max_tokens"}
    elif model.startswith("claude"):
        rejected = known - {"temperature", "top_p"}
        if thinks or model.endswith("opus-4-7") or "top_p" in body:
            rejected.add("temperature")
        if thinks and body.get("top_p", 1) < 0.95:
            rejected.add("top_p")
        if thinks and body.get("max_tokens", 4096) <= body["thinking"]["budget_tokens"]:
            rejected.add("max_tokens")
    elif model.startswith("deepseek-reasoner"):
        rejected = {"temperature", "top_p", "seed"}
        if body.get("response_format", {}).get("type") == "json_schema":
            rejected.add("response_format")
    return next(iter(sorted(rejected & body.keys())), None)


def answer(body: dict[str, Any], _number: int) -> Answer:
    """Return the provider's answer in its own form, or status 400 for a parameter that it does not accept."""
    if (name := rejection(body)) is not None:
        return error(400, f"Unsupported parameter: '{name}'", "unsupported_parameter", "invalid_request_error")
    text = '{"score": 4}'
    if "contents" in body:
        candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
        return 200, {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3}}
    if str(body["model"]).startswith("claude"):
        usage = {"input_tokens": 5, "output_tokens": 3}
        message = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "usage": usage}
        return 200, {**message, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    if "options" in body:
        counts = {"prompt_eval_count": 5, "eval_count": 3, "done": True, "done_reason": "stop"}
        return 200, {"model": body["model"], "message": {"role": "assistant", "content": text}, **counts}
    return completion(text)


def sent_of(body: dict[str, Any]) -> dict[str, Any]:
    """Return the sampling parameters of a logged body, by LiteLLM's names."""
    flat = {**body, **body.get("generationConfig", {}), **body.get("options", {})}
    limits = [flat[name] for name in LIMITS if name in flat]
    assert len(limits) <= 1
    return {**flat, **({MAX_TOKENS: limits[0]} if limits else {})}


async def sent_and_changed(model: str, params: dict[str, Any], **fields: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the parameters in the server's log and the changes in the call's record, by parameter."""
    ledger = MemoryLedger()
    fields = {"temperature": 0.7, **fields}
    with serving(answer) as server:
        given = replace(request(server.url, model, "Answer in JSON."), params=params, **fields)
        await Gateway(ledger, QUICK).complete(given, make_place())
        assert len(server.requests) == 1  # none was rejected
    (record,) = ledger.records.values()
    assert record.completion is not None
    changes = (record.completion.changes or "").split("; ")
    return sent_of(server.requests[0]), {each.partition(" ")[0]: each for each in changes if each}


@pytest.mark.parametrize("model", MODELS)
async def test_parameters_are_sent_as_configured_or_recorded_as_changed(model: str) -> None:
    params = MODELS[model]
    sent, changes = await sent_and_changed(model, params, max_reply=300)
    configured = {"temperature": 0.7, MAX_TOKENS: 300, "seed": 5, **params}
    assert changes.keys() <= configured.keys()
    for name, value in configured.items():
        if name in changes:
            assert sent.get(name) != value
            became = re.search(r"sent as ([\d.]+)", changes[name])
            assert sent.get(name) == (float(became[1]) if became else None), changes[name]
        elif name == "reasoning_effort":
            assert "low" in (sent.get(name), sent.get("reasoning", {}).get("effort"))
        else:
            assert sent.get(name) == value, name


async def test_value_above_a_familys_maximum_is_lowered_and_recorded() -> None:
    sent, changes = await sent_and_changed("anthropic/claude-sonnet-4-5", {}, temperature=1.5)
    assert sent["temperature"] == 1
    assert "accept at most 1" in changes["temperature"]


async def test_model_gets_equal_parameters_under_all_names_with_an_address() -> None:
    names = ("temperature", MAX_TOKENS, "seed", "top_p", "stop")
    for models in (
        ("openai/gpt-5-mini", "openrouter/openai/gpt-5-mini", "litellm_proxy/gpt-5-mini"),
        ("anthropic/claude-sonnet-4-5", "openrouter/anthropic/claude-sonnet-4.5"),
        ("gemini/gemini-2.5-flash", "openrouter/google/gemini-2.5-flash"),
    ):
        found = [
            await sent_and_changed(model, THINKING if "claude" in model else {}, max_reply=300) for model in models
        ]
        assert len({str([sent.get(name) for name in names]) + str(changes) for sent, changes in found}) == 1


@pytest.mark.parametrize(
    "models",
    [
        "openai/gpt-5-mini openrouter/openai/gpt-5-mini litellm_proxy/gpt-5-mini azure/gpt-5-mini azure_ai/gpt-5-mini",
        "openai/o4-mini openrouter/openai/o4-mini azure/o4-mini",
        "anthropic/claude-sonnet-4-5 openrouter/anthropic/claude-sonnet-4.5 vertex_ai/claude-sonnet-4-5@20250929 "
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0 azure_ai/claude-sonnet-4-5",
        "anthropic/claude-opus-4-7 openrouter/anthropic/claude-opus-4.7 vertex_ai/claude-opus-4-7",
        "gemini/gemini-2.5-flash openrouter/google/gemini-2.5-flash vertex_ai/gemini-2.5-flash",
        "deepseek/deepseek-reasoner openrouter/deepseek/deepseek-r1 bedrock/us.deepseek.r1-v1:0",
    ],
)
def test_every_name_of_a_model_has_the_same_changes(models: str) -> None:
    binding = ModelBinding(model="", temperature=0.7, max_reply=300, params={"top_p": 0.9, "stop": ["END"]})
    named = {model: binding.model_copy(update={"model": model}) for model in models.split()}
    found = describe_changed_parameters(named)
    assert len({found.get(model) for model in named}) == 1
    assert {supports_tools(model) for model in named} == {True}


@pytest.mark.parametrize("model", ["azure/gpt-5-mini", "azure/gpt-5.4", "openai/gpt-5-mini", "hosted_vllm/gpt-5-mini"])
async def test_deployment_gets_the_parameters_of_its_model(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_API_KEY", KEY)
    monkeypatch.setenv("AZURE_API_VERSION", "2025-01-01-preview")
    params = {"reasoning_effort": "low", "top_p": 0.9}
    bodies, changes, costs = [], [], []
    for named in ({}, {"deployment": "ours"}):
        with serving(lambda _body, _number: completion("4", 1000, 1000)) as server:
            ledger = MemoryLedger()
            given = replace(request(server.url, model, max_reply=300), temperature=0.7, params=params | named)
            done = await Gateway(ledger, QUICK).complete(given, make_place())
            bodies.append({**server.requests[0], "at": server.paths[0]})
        changes.append(done.changes)
        costs.append(done.cost)
    own = model.partition("/")[2]
    assert bodies[1] == {**bodies[0], "model": "ours", "at": bodies[0]["at"].replace(own, "ours")} != bodies[0]
    assert str(changes[0]).replace(model, "ours") == str(changes[1]).replace(f"{model.partition('/')[0]}/ours", "ours")
    assert costs[0] == costs[1]


@pytest.mark.parametrize(
    ("model", "named", "is_other"),
    [
        ("openai/gpt-4o", "gpt-4o", False),
        ("openai/gpt-4o", "gpt-4o-2024-08-06", False),
        ("openai/gpt-4o-2024-08-06", "gpt-4o", False),
        ("openai/gpt-4o-2024-08-06", "gpt-4o-2024-05-13", True),
        ("openai/gpt-4o", "gpt-4o-mini-2024-07-18", True),
        ("openai/gpt-4", "gpt-4o", True),
        ("openrouter/mistralai/mistral-large-latest", "mistralai/Mistral-Large-2411", False),
        ("openrouter/qwen/qwen3-8b:free", "qwen/qwen3-8b", False),
        ("hosted_vllm/llama3", "llama3:latest", False),
        ("hosted_vllm/claude-3-5-sonnet@20240620", "claude-3-5-sonnet-20240620", False),
        ("openai/local", "/models/tiny; q4.gguf", True),
        ("openai/local", "", False),
    ],
)
async def test_reply_of_another_model_is_recorded(model: str, named: str, is_other: bool) -> None:
    def other(_body: dict[str, Any], _number: int) -> Answer:
        status, body = completion("4")
        return status, {**body, "model": named}

    with serving(other) as server:
        done = await Gateway(MemoryLedger(), QUICK).complete(request(server.url, model), make_place())
    assert done.text == "4"
    text = f"replies name another model, {named!r}".replace(";", ",")
    assert [each for each in (done.changes or "").split("; ") if each.startswith("replies")] == [text] * is_other


def test_deployment_is_refused_where_models_are_called_by_their_names() -> None:
    cast = {"user": ModelBinding(model="anthropic/claude-opus-4-7", temperature=None, params={"deployment": "ours"})}
    with pytest.raises(BindingError, match=r"params: user\.deployment: anthropic has no deployment names"):
        check_parameters(cast)


async def test_model_without_schemas_gets_json_mode_under_every_name() -> None:
    for model in ("deepseek/deepseek-reasoner", "openrouter/deepseek/deepseek-r1"):
        sent, _ = await sent_and_changed(model, {}, reply_type=score_type(1, 5))
        assert sent["response_format"] == {"type": "json_object"}


async def test_system_prompt_is_sent_once() -> None:
    with serving(answer) as server:
        await Gateway(MemoryLedger(), QUICK).complete(request(server.url, "openai/o4-mini"), make_place())
        roles = [message["role"] for message in server.requests[0]["messages"]]
    assert roles in (["developer", "user"], ["system", "user"])


def test_effort_reserves_tokens_for_thinking() -> None:
    def limit(params: dict[str, Any]) -> str:
        binding = ModelBinding(model="anthropic/claude-sonnet-4-5", temperature=None, max_reply=2048, params=params)
        return describe_changed_parameters({"user": binding}, with_seed=False).get("user", "")

    assert limit({"reasoning_effort": "low"}) == limit({"reasoning_effort": "none"}) == ""
    assert "max_tokens 2048 sent as 4096" in limit({"reasoning_effort": "medium"})
    assert limit({"thinking": {"type": "disabled", "budget_tokens": 4096}}) == ""


def test_budget_becomes_an_effort_where_no_budget_is_accepted() -> None:
    load_litellm()  # sets the options that keep it from downloading its model table
    from litellm.llms.anthropic.common_utils import AnthropicModelInfo

    for tokens, effort in ((1024, "low"), (2048, "medium"), (5000, "high"), (16384, "xhigh")):
        params = {"thinking": {"type": "enabled", "budget_tokens": tokens}}
        for model in ("anthropic/claude-opus-4-7", "openrouter/anthropic/claude-opus-4.7", "bedrock/claude-mythos-5"):
            assert fit_parameters(model, params)[0] == {"reasoning_effort": effort}
        assert AnthropicModelInfo._legacy_budget_to_effort("claude-opus-4-7", tokens, "anthropic") == effort
        assert fit_parameters("anthropic/claude-opus-4-6", params)[0] == params
    disabled = {"thinking": {"type": "disabled"}}
    assert fit_parameters("anthropic/claude-opus-4-7", disabled)[0] == disabled
    assert fit_parameters("anthropic/claude-fable-5", disabled)[0] == {}


def test_what_litellm_leaves_out_is_recorded() -> None:
    def changes(model: str, **params: Any) -> str:
        binding = ModelBinding(model=model, temperature=None, params=params)
        return describe_changed_parameters({"user": binding}, with_seed=False).get("user", "")

    assert changes("openai/gpt-5", reasoning_effort="none") == (
        "reasoning_effort 'none' not sent (LiteLLM does not send it to openai/gpt-5)"
    )
    assert changes("openai/gpt-5", reasoning_effort="low") == changes("openai/gpt-5.1", reasoning_effort="none") == ""
    assert "verbosity 'low' not sent" in changes("openai/gpt-4o", verbosity="low")
    for model in ("openai/house", "openrouter/acme/house"):
        assert changes(model, verbosity="low", **THINKING) == ""


LOW, BUDGET = {"reasoning_effort": "low"}, {"thinking": {"type": "enabled", "budget_tokens": 1500}}
NONE, MINIMAL = {"reasoning_effort": "none"}, {"reasoning_effort": "minimal"}


@pytest.mark.parametrize(
    ("model", "params", "sent"),
    [
        ("deepseek/deepseek-v4-pro", {"reasoning_effort": "high"}, {"thinking": {"type": "enabled"}}),
        ("deepseek/deepseek-v4-pro", NONE, None),
        ("deepseek/deepseek-v4-pro", BUDGET, {"type": "enabled"}),
        ("ollama_chat/house", LOW, {"think": True}),
        ("ollama_chat/house", MINIMAL, {"think": False}),
        ("ollama_chat/house", NONE, None),
        ("ollama_chat/gpt-oss:20b", LOW, None),
        ("gemini/gemini-3-pro-preview", MINIMAL, {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": True}}),
        ("gemini/gemini-3-pro-preview", NONE, {"thinkingConfig": {"thinkingLevel": "low", "includeThoughts": False}}),
        ("gemini/gemini-3-pro-preview", BUDGET, {"thinkingConfig": {"includeThoughts": True}}),
        ("gemini/gemini-3-pro-preview", LOW, None),
        ("gemini/gemini-2.5-flash", LOW, None),
        ("gemini/gemini-2.5-flash", NONE, None),
        ("gemini/gemini-2.5-flash", BUDGET, None),
        ("hosted_vllm/house", BUDGET, {"reasoning_effort": "low"}),
        ("hosted_vllm/house", LOW, None),
        ("openrouter/acme/house", {"reasoning_effort": "max"}, "xhigh"),
        ("anthropic/claude-sonnet-4-5", LOW, None),
        ("anthropic/claude-sonnet-4-5", MINIMAL, {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
    ],
)
async def test_reasoning_parameter_that_litellm_translates_is_recorded(
    model: str, params: dict[str, Any], sent: Any
) -> None:
    ((name, value),) = params.items()
    binding = ModelBinding(model=model, temperature=None, max_reply=2000, params=params)
    text = describe_changed_parameters({"user": binding}, with_seed=False).get("user", "")
    change = f"{name} {value!r:.60} sent as {sent!r} (LiteLLM translates it for {model})"
    assert (change in text) == (sent is not None) and (f"{name} " in text) == (sent is not None)
    arrived, changes = await sent_and_changed(model, params, max_reply=2000)
    assert changes.get(name) == (change if sent is not None else None)
    if isinstance(sent, dict) and name not in arrived:
        assert sent.items() <= arrived.items()
    elif sent is not None:
        assert arrived[name] == sent


@pytest.mark.parametrize(
    ("model", "params"),
    [("openai/claude-sonnet-4-5", BUDGET), ("together_ai/deepseek-ai/DeepSeek-R1", {"reasoning_effort": "low"})],
)
async def test_parameter_that_litellm_does_not_list_is_sent_by_name_in_openais_format(
    model: str, params: dict[str, Any]
) -> None:
    with serving(lambda _body, _number: completion("heron")) as server:
        given = replace(request(server.url, model, max_reply=4000), params=params)
        ledger = MemoryLedger()
        await Gateway(ledger, QUICK).complete(given, make_place())
    assert params.items() <= server.requests[0].items()
    assert ledger.records[0].changes is None


async def test_temperature_that_litellm_adds_is_recorded() -> None:
    binding = ModelBinding(model="gemini/gemini-3-pro-preview", temperature=None)
    change = "temperature sent as 1.0 (LiteLLM adds it for gemini/gemini-3-pro-preview)"
    assert describe_changed_parameters({"user": binding}) == {"user": change}
    assert describe_changed_parameters({"user": binding.model_copy(update={"temperature": 1.0})}) == {}


PARAMETERS: list[dict[str, Any]] = [
    {"top_p": 0.9, "stop": ["END"]},
    {"top_k": 7, "min_p": 0.05, "repetition_penalty": 1.25, "num_ctx": 4096, "extra_body": {"wild": "card"}},
    {"verbosity": "low", "frequency_penalty": 0.5, "logit_bias": {"50256": -100}},
    *(LOW, NONE, BUDGET, {"thinking": {"type": "disabled"}}),
]


def leaves(value: Any) -> list[Any]:
    """Return the values in nested lists and dictionaries."""
    if isinstance(value, dict | list):
        return [leaf for each in (value.values() if isinstance(value, dict) else value) for leaf in leaves(each)]
    return [value]


@pytest.mark.parametrize(
    "model",
    "openai/gpt-5-mini openai/gpt-5.1 openai/gpt-5.5 openai/o4-mini openai/gpt-4o-mini openai/house "
    "openai/responses/gpt-5-mini azure/gpt-5-mini azure/house azure/gpt-4o azure_ai/claude-sonnet-4-5 "
    "openrouter/openai/gpt-5-mini openrouter/anthropic/claude-sonnet-4.5 openrouter/x-ai/grok-4 openrouter/acme/house "
    "anthropic/claude-sonnet-4-5 anthropic/claude-opus-4-6 anthropic/claude-opus-4-7 gemini/gemini-2.5-flash "
    "gemini/gemini-3-pro-preview deepseek/deepseek-reasoner deepseek/deepseek-chat xai/grok-4 xai/grok-3-mini "
    "mistral/magistral-medium-latest dashscope/qwen-max hosted_vllm/house ollama_chat/house moonshot/kimi-k2-thinking "
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0 bedrock/us.deepseek.r1-v1:0".split(),
)
async def test_every_value_arrives_or_is_recorded_and_refused_if_strict(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_API_VERSION", "2025-01-01-preview")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", *(f"{each}_API_KEY" for each in OTHERS)):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("AWS_REGION_NAME", "eu-central-1")
    for params in PARAMETERS:
        with serving(lambda _body, _number: error(400, "no")) as server:
            ledger = MemoryLedger()
            given = replace(request(server.url, model, max_reply=300), temperature=0.7, seed=918273, params=params)
            with pytest.raises(PermanentProviderError):
                await Gateway(ledger, QUICK).complete(given, make_place())
            (body,), (record,) = server.requests, ledger.records.values()
            changed = {each.partition(" ")[0] for each in (record.changes or "").split("; ")}
            found = leaves({name: part for name, part in body.items() if name not in ("messages", "contents", "input")})
            for name, value in {"temperature": 0.7, MAX_TOKENS: 300, "seed": 918273, **params}.items():
                wanted = value.get("budget_tokens", value["type"]) if name == "thinking" else value
                is_level = name == "reasoning_effort" and ("think" in json.dumps(body) or value == "none")
                arrived = all(each in found for each in leaves(wanted))
                assert not arrived if name in changed else arrived or is_level, (name, body)
            with pytest.raises(PermanentProviderError) as refused:
                await Gateway(ledger, QUICK.model_copy(update={"strict_params": True})).complete(
                    given, make_place(step=2)
                )
            assert (
                ("strict_params" in str(refused.value)) == (len(server.requests) == 1) == bool(changed - {"seed", ""})
            )


OTHERS = ("AZURE", "AZURE_AI", "DASHSCOPE", "MISTRAL", "MOONSHOT", "XAI")


def test_every_family_has_its_models_facts_and_litellms_budgets() -> None:
    constants = load_litellm().constants
    shown = {"name", "pattern", "source", "rejects", "fixed", "at_most", "at_least", "either", "thinking", "limit"}
    assert [name for name, _, _ in FACTS] == [family.name for family in load_families()]
    for family, (name, models, facts) in zip(load_families(), FACTS, strict=True):
        for model in models.split():
            found = find_family(model)
            assert found is not None and found.name == name, model
        assert (
            family.model_dump(exclude=shown | {"thinks", "schema_", "tools", "budgets"}, exclude_defaults=True) == facts
        ), name
        for effort, tokens in family.budgets.items():
            default = getattr(constants, f"DEFAULT_REASONING_EFFORT_{effort.upper()}_THINKING_BUDGET")
            assert tokens == max(default, constants.ANTHROPIC_MIN_THINKING_BUDGET_TOKENS), (name, effort)


def test_responses_api_is_known_to_take_no_seed() -> None:
    for model in ("openai/gpt-5-pro", "openai/o3-pro", "openai/responses/gpt-5-mini"):
        found = describe_changed_parameters({"user": ModelBinding(model=model, temperature=None)})
        assert found == {"user": "seed not sent (the Responses API has no such parameter)"}
    assert describe_changed_parameters({"user": ModelBinding(model="openai/gpt-5-mini", temperature=None)}) == {}


def test_families_agree_with_litellms_table() -> None:
    litellm = load_litellm()
    flags = ("supports_sampling_params", "supports_adaptive_thinking", "supports_legacy_thinking", "thinking_always_on")
    efforts = ("default_reasoning_effort", "supports_none_reasoning_effort")
    own = {name: entry for name, entry in litellm.model_cost.items() if "/" not in name and entry.get("mode") == "chat"}
    for name, entry in own.items():
        if (family := find_family(name)) is None:
            continue
        samples, adapts, budgets, always = (entry.get(flag) for flag in flags)
        if entry["litellm_provider"] == "anthropic":
            assert (samples is False) == ("temperature" in family.fixed), name
            assert family.thinks == ("either" if budgets else "adaptive" if adapts else "budget"), name
            assert bool(always) == family.by_default, name
        elif entry["litellm_provider"] == "openai" and "temperature" in family.thinking:
            default, has_none = (entry.get(effort) for effort in efforts)
            assert has_none and (default == "none") is not family.by_default, name


def test_given_parameter_that_the_model_does_not_accept_is_refused_under_every_name() -> None:
    for model in ("openai/gpt-5", "openrouter/openai/gpt-5"):
        with pytest.raises(
            BindingError, match=r"params: judge\.top_p would not be sent to .*: OpenAI's reasoning models"
        ):
            check_parameters({"judge": ModelBinding(model=model, temperature=None, params={"top_p": 0.9})})


def test_strict_mode_names_all_changes_but_that_of_the_seed() -> None:
    models = {
        "user": ModelBinding(model="openai/gpt-5-mini", temperature=0.7),
        "assistant": ModelBinding(model="azure/o3", temperature=0.2),
        "judge": ModelBinding(model="anthropic/claude-sonnet-4-5", temperature=0.5),
        "other": ModelBinding(model="offline/attentive", temperature=0.5),
    }
    with pytest.raises(BindingError, match=r"user .*temperature 0\.7 not sent.*assistant .*temperature 0\.2") as caught:
        ensure_unchanged(models)
    assert "judge" not in str(caught.value)
    ensure_unchanged({"user": models["user"].model_copy(update={"temperature": 1.0}), "judge": models["judge"]})
    assert set(describe_changed_parameters(models)) == {"user", "assistant", "judge"}


def row(family: Family) -> str:
    """Return a family's row in the table of docs/models.md."""
    others = [
        *(f"`{name}` only if it is {value:g}" for name, value in family.fixed.items()),
        *(f"`{name}` at most {value:g}" for name, value in family.at_most.items()),
        *([f"no `{family.either[0]}` with `{family.either[1]}`"] if family.either else []),
        *(f"`{name}` at least {value:g} while thinking" for name, value in family.at_least.items()),
        *([f"the reply's limit as `{family.limit}`"] if family.limit != MAX_TOKENS else []),
        *(["the reply's limit above the budget of thinking"] if family.thinks in ("budget", "either") else []),
        *(["a budget of thinking as an effort"] if family.thinks == "adaptive" else []),
    ]
    lists = [", ".join(f"`{name}`" for name in sorted(names)) for names in (family.rejects, family.thinking)]
    flags = [{True: "yes", False: "no", None: ""}[known] for known in (family.tools, family.schema_)]
    cells = [family.name, *lists, "; ".join(others), *flags]
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def test_page_has_the_table() -> None:
    lines = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert lines[2:] == [row(family) for family in load_families()]


async def test_encrypted_reasoning_is_sent_back_with_tool_calls() -> None:
    def responses(body: dict[str, Any], number: int) -> Answer:
        if body.keys() & {"temperature", "seed", "max_tokens", "messages", "stop"}:
            return error(400, "Unsupported parameter", "unsupported_parameter", "invalid_request_error")
        thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "sealed"}
        call = {"type": "function_call", "id": "fc", "call_id": "c", "name": "look", "arguments": "{}"}
        usage = {
            "input_tokens": 5,
            "output_tokens": 9,
            "total_tokens": 14,
            "output_tokens_details": {"reasoning_tokens": 7},
        }
        whole = {"id": "r", "object": "response", "created_at": 0, "model": body["model"], "status": "completed"}
        return 200, {**whole, "output": [thought, {**call, "status": "completed"}], "usage": usage, "tools": []}

    tool: Any = {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}
    with serving(responses) as server:
        given = request(server.url, "openai/responses/gpt-5-mini", tools=(tool,), max_reply=300)
        first = await Gateway(MemoryLedger(), QUICK).complete(given, make_place())
        turns: Any = (
            {"role": "assistant", "content": "", "tool_calls": list(first.tool_calls), "carried": first.carried},
            {"role": "tool", "content": "seen", "tool_call_id": first.tool_calls[0]["id"]},
        )
        await Gateway(MemoryLedger(), QUICK).complete(
            replace(given, messages=given.messages + turns), make_place(step=2)
        )
    assert first.reasoning_tokens == 7 and "seed not sent" in str(first.changes)
    sent_and_changed, again = server.requests
    assert sent_and_changed["store"] is False and sent_and_changed["include"] == ["reasoning.encrypted_content"]
    assert sent_and_changed["max_output_tokens"] == 300 and sent_and_changed["instructions"] == "You are brief."
    kinds = [(item.get("type"), item.get("encrypted_content")) for item in again["input"]]
    assert kinds[1:] == [("reasoning", "sealed"), ("function_call", None), ("function_call_output", None)]
