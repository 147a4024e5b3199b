"""The training sets in TRL: its own checks, and one step of each trainer on a tiny model."""

from __future__ import annotations

import copy
import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import load_dataset
from transformers import LlamaConfig, LlamaForCausalLM, LlamaForSequenceClassification, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer
from trl.data_utils import apply_chat_template, is_conversational, unpair_preference_dataset

from tests.training.conftest import Load

FORMATS = ("sft", "dpo", "kto", "reward")
ONE_STEP: dict[str, Any] = {
    "max_steps": 1,
    "per_device_train_batch_size": 4,
    "use_cpu": True,
    "bf16": False,
    "report_to": [],
    "save_strategy": "no",
    "logging_steps": 1,
    "disable_tqdm": True,
    "seed": 1,
}


def text(messages: list[dict[str, str]]) -> str:
    """Return messages as the chat template renders them."""
    return "".join(f"<{message['role']}> {message['content']} <end>" for message in messages)


@pytest.mark.parametrize("format_", FORMATS)
def test_both_encodings_give_equal_rows(load: Load, format_: str) -> None:
    rows, again = load(format_), load(format_, "parquet")
    assert len(rows) > 20
    assert rows.features == again.features
    assert rows.to_list() == again.to_list()
    assert all(is_conversational(row) for row in rows)
    assert "null" not in json.dumps(rows.to_list())


@pytest.mark.parametrize("format_", FORMATS)
def test_chat_template_applies_to_every_row(load: Load, tokenizer: PreTrainedTokenizerFast, format_: str) -> None:
    for row in load(format_):
        made = apply_chat_template(row, tokenizer)
        assert made["prompt"] == text(row["prompt"]) + "<assistant> "
        for key in {"completion", "chosen", "rejected"} & set(row):
            (reply,) = row[key]
            assert made[key] == f"{reply['content']} <end>"
        assert made.get("label") == row.get("label")


def test_kto_is_the_preference_set_unpaired(load: Load) -> None:
    exported = load("kto").to_list()
    unpaired = unpair_preference_dataset(load("dpo")).to_list()
    assert _counted(exported) == _counted(unpaired)
    assert all(one["prompt"] != other["prompt"] for one, other in itertools.pairwise(exported))


def test_folder_of_splits_loads_by_its_card(exports: Path, tmp_path: Path) -> None:
    splits = load_dataset(str(exports / "split"), cache_dir=str(tmp_path))
    assert set(splits) == {"train", "test"}
    first = {name: {row["prompt"][0]["content"] for row in rows} for name, rows in splits.items()}
    assert first["train"]
    assert first["test"]
    assert not first["train"] & first["test"]


def test_sft_learns_the_preferred_reply_only(
    load: Load, tokenizer: PreTrainedTokenizerFast, tiny: LlamaConfig, tmp_path: Path
) -> None:
    """Labels are -100 except on the reply and the token that ends it; one step gives a finite loss."""
    rows = load("sft")
    trainer = SFTTrainer(
        model=LlamaForCausalLM(tiny),
        args=SFTConfig(output_dir=str(tmp_path), **ONE_STEP),
        train_dataset=rows,
        processing_class=tokenizer,
    )
    learned: Counter[str] = Counter()
    read: Counter[str] = Counter()
    for batch in trainer.get_train_dataloader():
        for ids, labels in zip(batch["input_ids"], batch["labels"], strict=True):
            learned[tokenizer.decode(labels[labels != -100])] += 1
            read[tokenizer.decode(ids[ids != tokenizer.pad_token_id])] += 1
    assert learned == Counter(f"{row['completion'][0]['content']} <end>" for row in rows)
    assert _spaceless(read) == _spaceless(Counter(text([*row["prompt"], *row["completion"]]) for row in rows))
    assert math.isfinite(trainer.train().training_loss)


def test_dpo_takes_a_step(load: Load, tokenizer: PreTrainedTokenizerFast, tiny: LlamaConfig, tmp_path: Path) -> None:
    """At first the model equals its reference, so the loss is log 2; the step changes its weights."""
    model = LlamaForCausalLM(tiny)
    before = model.lm_head.weight.detach().clone()
    trainer = DPOTrainer(
        model=model,
        ref_model=copy.deepcopy(model),
        args=DPOConfig(output_dir=str(tmp_path), **ONE_STEP),
        train_dataset=load("dpo"),
        processing_class=tokenizer,
    )
    assert trainer.train().training_loss == pytest.approx(math.log(2), abs=1e-3)
    assert not torch.equal(before, trainer.model.lm_head.weight)


def test_reward_model_takes_a_step(
    load: Load, tokenizer: PreTrainedTokenizerFast, tiny: LlamaConfig, tmp_path: Path
) -> None:
    tiny.num_labels = 1
    trainer = RewardTrainer(
        model=LlamaForSequenceClassification(tiny),
        args=RewardConfig(output_dir=str(tmp_path), **ONE_STEP),
        train_dataset=load("reward"),
        processing_class=tokenizer,
    )
    assert math.isfinite(trainer.train().training_loss)


def _counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def _spaceless(texts: Counter[str]) -> Counter[str]:
    """Return the texts without spaces, which a tokenizer of words does not keep."""
    return Counter({"".join(key.split()): count for key, count in texts.items()})
