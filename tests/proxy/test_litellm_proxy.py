"""Runs with models behind LiteLLM's own proxy: replies, usage, cost, and errors for a wrong key or model."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command
from tests.proxy.conftest import MASTER_KEY, MODELS, Proxy

CASES, ROUNDS = 2, 2
CALLS = CASES * ROUNDS * 3
PROVIDERS = {"openai": "OPENAI_API_KEY", "litellm_proxy": "LITELLM_PROXY_API_KEY"}


def environment() -> dict[str, str]:
    """Return the environment without API keys: only the file has one."""
    return {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}


def plan(proxy: Proxy, provider: str, key: str, folder: Path, **others: str) -> list[object]:
    """Return the arguments of a short run; the key is in a file, and each role has its own address."""
    (folder / "keys.env").write_text(f"{PROVIDERS[provider]}={key}\n")
    models = {"user": "chatty", "assistant": "chatty", "judge": "strict", **others}
    cast = [part for role, model in models.items() for part in ("--model", f"{role}={provider}/{model}")]
    places = [part for role in models for part in ("--api-base", f"{role}={proxy.url}")]
    run = ["run", "aloe-eval", "--rounds", ROUNDS, "--limit", CASES, "-o", "run.db", "--env-file", "keys.env"]
    return [*run, *cast, *places]


def status_of(dialoom: Command) -> dict[str, Any]:
    """Return the run's status."""
    return dict(json.loads(dialoom("status", "run.db", "--json").stdout))


def rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query on the run file."""
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        return connection.execute(query).fetchall()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_replies_and_usage_are_the_proxys_and_unknown_prices_stay_unknown(
    proxy: Proxy, dialoom: Command, tmp_path: Path, provider: str
) -> None:
    dialoom(*plan(proxy, provider, MASTER_KEY, tmp_path), env=environment())
    status = status_of(dialoom)
    assert (status["scenarios"]["done"], status["calls"], status["failed_calls"]) == (CASES, CALLS, 0)
    replies = dict(
        rows(tmp_path, "SELECT role, content FROM calls JOIN texts ON texts.id = reply GROUP BY role, content")
    )
    assert replies == {"user": MODELS["chatty"], "assistant": MODELS["chatty"], "judge": MODELS["strict"]}
    usages = [proxy.usage(model) for model in ("chatty", "chatty", "strict")]
    each = CASES * ROUNDS
    assert status["tokens"] == {
        "input": each * sum(usage["prompt_tokens"] for usage in usages),
        "output": each * sum(usage["completion_tokens"] for usage in usages),
    }
    assert status["cost"] is None
    assert rows(tmp_path, "SELECT score FROM judgements") == [(4.0,)] * each
    for path in tmp_path.glob("run.db*"):
        assert MASTER_KEY.encode() not in path.read_bytes()


def test_stated_price_gives_the_cost(proxy: Proxy, dialoom: Command, tmp_path: Path) -> None:
    prices = ["--price", "openai/chatty=1000,2000", "--price", "openai/strict=1000,2000", "--max-cost", 100]
    dialoom(*plan(proxy, "openai", MASTER_KEY, tmp_path), *prices, env=environment())
    status = status_of(dialoom)
    tokens = status["tokens"]
    assert status["cost"] == pytest.approx((tokens["input"] * 1000 + tokens["output"] * 2000) / 1e6)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_wrong_key_is_reported_at_once(proxy: Proxy, dialoom: Command, tmp_path: Path, provider: str) -> None:
    """Each scenario fails after one attempt; the error names the variable for the key and does not show the key.

    A proxy without a database knows its master key only; it answers any other key with status 400.
    """
    wrong = "sk-none-of-the-proxys-11aa22bb"
    done = dialoom(*plan(proxy, provider, wrong, tmp_path), env=environment(), code=1)
    failed = rows(tmp_path, "SELECT attempts, error FROM calls")
    assert [attempts for attempts, _ in failed] == [1] * CASES
    for _, error in failed:
        assert f"a key that the provider accepts is needed in {PROVIDERS[provider]}" in error
    for text in (done.stdout, done.stderr, *(error for _, error in failed)):
        assert wrong not in text


@pytest.mark.parametrize(
    ("model", "advice"),
    [("nobody", "there is no such model"), ("forgetful", "give the role user a model with a longer context")],
)
def test_permanent_error_fails_at_once_with_advice(
    proxy: Proxy, dialoom: Command, tmp_path: Path, model: str, advice: str
) -> None:
    dialoom(*plan(proxy, "openai", MASTER_KEY, tmp_path, user=model), env=environment(), code=1)
    failed = rows(tmp_path, "SELECT attempts, error FROM calls")
    assert [attempts for attempts, _ in failed] == [1] * CASES
    for _, error in failed:
        assert advice in error
