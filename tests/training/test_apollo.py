"""APOLLO's rows and reward in TRL: TRL's message format, a step of GRPO and one of SFT on a tiny model."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer
from trl.chat_template_utils import add_response_schema, parse_response, qwen3_chat_template

import dialoom
from dialoom.apollo_reward import reward, tool_definitions, tool_functions
from tests.training.test_trl import ONE_STEP

_TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}> {{ message['content'] }} <end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)
_MARKS = ["<unk>", "<pad>", "<end>", "<system>", "<user>", "<assistant>"]
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> dialoom.Run:
    """Play three samples, whose history is the relevant session and another, with an offline model."""
    options = {"history_sessions": (2,), "limit": 3}
    path = tmp_path_factory.mktemp("apollo") / "run.db"
    return dialoom.play("apollo", path=path, options=options, models={"assistant": "offline/generic"})


def tokenizer_of(words: list[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer of these words only."""
    known = {word: number for number, word in enumerate(dict.fromkeys([*_MARKS, *words]))}
    made = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<end>",
        additional_special_tokens=_MARKS[3:],
        chat_template=_TEMPLATE,
    )


def tiny_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """Return a model of a few thousand weights, drawn with a fixed seed."""
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return LlamaForCausalLM(config)


def test_grpo_takes_a_step(run: dialoom.Run, tmp_path: Path) -> None:
    rows = run.dataset("grpo", options={"rows": "step"}).filter(lambda row: row["gold_calls"] == "[]")
    assert len(rows) == 3
    tokenizer = tokenizer_of(["[Finish]"])
    model = tiny_model(tokenizer)
    before = model.lm_head.weight.detach().clone()
    seen: list[tuple[Any, float]] = []

    def recorded_reward(completions: list[Any], gold_calls: list[str], **columns: Any) -> list[float]:
        found = reward(completions, gold_calls, **columns)
        seen.extend(zip(completions, found, strict=True))
        return found

    step = {**ONE_STEP, "per_device_train_batch_size": 16, "num_generations": 16, "max_completion_length": 3}
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=recorded_reward,
        args=GRPOConfig(output_dir=str(tmp_path), learning_rate=0.01, **step),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    assert math.isfinite(trainer.train().training_loss)
    assert [value for _, value in seen] == [float("[Finish]" in said["content"]) for (said,), _ in seen]
    assert {value for _, value in seen} == {0.0, 1.0}
    (logged,) = [entry["reward"] for entry in trainer.state.log_history if "reward" in entry]
    assert logged == pytest.approx(sum(value for _, value in seen) / len(seen))
    assert not torch.equal(before, trainer.model.lm_head.weight)


def test_sft_learns_the_right_calls_only(run: dialoom.Run, tmp_path: Path) -> None:
    """Labels are -100 except on what the agent should say and the token that ends it."""
    rows: Dataset = run.dataset("sft", options={"rows": "step"})
    tokenizer = tokenizer_of([word for row in rows for word in row["completion"][0]["content"].split()])
    trainer = SFTTrainer(
        model=tiny_model(tokenizer),
        args=SFTConfig(output_dir=str(tmp_path), max_length=None, **ONE_STEP),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    learned: Counter[str] = Counter()
    for batch in trainer.get_train_dataloader():
        for labels in batch["labels"]:
            learned[tokenizer.decode(labels[labels != -100])] += 1
    assert learned == Counter(f"{' '.join(row['completion'][0]['content'].split())} <end>" for row in rows)
    assert math.isfinite(trainer.train().training_loss)


def test_completions_are_read_as_trl_reads_them(run: dialoom.Run) -> None:
    tokenizer = qwen_like()
    functions = {function.__name__: function for function in tool_functions()}
    for row in run.dataset("grpo"):
        read: Rows = []
        unparsed: Rows = []
        for call in json.loads(row["gold_calls"]):
            text = f"<think>\nThis one.\n</think>\n\n<tool_call>\n{json.dumps(call)}\n</tool_call><|im_end|>"
            ids = tokenizer(text)["input_ids"]
            said = parse_response(tokenizer, ids, prefix=[])
            (made,) = said["tool_calls"]
            output = functions[made["function"]["name"]](**made["function"]["arguments"])
            assert "error" not in json.loads(output)
            read += [said, {"role": "tool", "name": call["name"], "content": str(output)}]
            unparsed.append(parse_response(tokenizer, ids))
        assert not any("tool_calls" in message for message in unparsed)
        assert reward([read, unparsed, read[2:], unparsed[1:]], [row["gold_calls"]] * 4) == [1.0, 1.0, 0.0, 0.0]


def test_trl_derives_the_definitions_from_the_functions() -> None:
    for function, definition in zip(tool_functions(), tool_definitions(), strict=True):
        derived, expected = get_json_schema(function)["function"], definition["function"]
        assert (derived["name"], derived["description"]) == (expected["name"], expected["description"])
        assert _shape(derived["parameters"]) == _shape(expected["parameters"])


def _shape(schema: dict[str, Any]) -> dict[str, Any]:
    properties = {
        name: (each["type"], each["description"], each.get("enum")) for name, each in schema["properties"].items()
    }
    return {"properties": properties, "required": schema["required"]}


def qwen_like() -> PreTrainedTokenizerFast:
    """Return a tokenizer of bytes with Qwen's template, whose calls TRL can parse."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=qwen3_chat_template
    )
    return add_response_schema(tokenizer)
