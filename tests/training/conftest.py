"""Training sets of a small run, and a model and a tokenizer that are made locally, without downloads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

from datasets import Dataset, load_dataset
from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import LlamaConfig, PreTrainedTokenizerFast

from tests.conftest import read_jsonl
from tests.graphs.aloe.players import PEOPLE, PLAYERS, cast

_SPECIAL = ["<unk>", "<pad>", "<end>", "<user>", "<assistant>"]
_TEMPLATE = (
    "{% for message in messages %}<{{ message['role'] }}> {{ message['content'] }} <end>{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)
Load = Callable[..., Dataset]


@pytest.fixture(scope="session")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run of three trees of four rounds that fork once, exported as every training set."""
    folder = tmp_path_factory.mktemp("exports")
    (folder / "players.py").write_text(PLAYERS)
    (folder / "people.jsonl").write_text("".join(f"{json.dumps(person)}\n" for person in PEOPLE))
    roles = cast("user", "induction", "preferred", "rejected")
    run = ["run", "aloe", "--personas", "people.jsonl", *roles, "--rounds", "4", "--branching", "1", "-o", "tree.db"]
    _dialoom(folder, *run)
    for format_ in ("sft", "dpo", "kto", "reward"):
        for encoding in ("jsonl", "parquet"):
            out = f"{format_}.{encoding}"
            _dialoom(folder, "export", "tree.db", "--format", format_, "--as", encoding, "-o", out)
    _dialoom(folder, "export", "tree.db", "--format", "dpo", "--test-share", "0.3", "-o", "split")
    return folder


@pytest.fixture(scope="session")
def load(exports: Path, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """Return a function that loads a format's file with `datasets`."""
    cache = str(tmp_path_factory.mktemp("cache"))

    def loaded(format_: str, encoding: str = "jsonl") -> Dataset:
        builder = {"jsonl": "json", "parquet": "parquet"}[encoding]
        files = str(exports / f"{format_}.{encoding}")
        return load_dataset(builder, data_files=files, split="train", cache_dir=cache)

    return loaded


@pytest.fixture(scope="session")
def tokenizer(exports: Path) -> PreTrainedTokenizerFast:
    """Return a tokenizer of the words in these sets, with a chat template that marks the speakers."""
    words = Tokenizer(models.WordLevel(unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    texts = (
        message["content"]
        for row in read_jsonl(exports / "kto.jsonl")
        for message in [*row["prompt"], *row["completion"]]
    )
    words.train_from_iterator(texts, trainers.WordLevelTrainer(special_tokens=_SPECIAL))
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        unk_token="<unk>",
        pad_token="<pad>",
        eos_token="<end>",
        additional_special_tokens=_SPECIAL[3:],
        chat_template=_TEMPLATE,
    )


@pytest.fixture
def tiny(tokenizer: PreTrainedTokenizerFast) -> LlamaConfig:
    """Return the configuration of a model of a few thousand weights."""
    return LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )


def _dialoom(folder: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "dialoom", *arguments], cwd=folder, check=True, capture_output=True)
