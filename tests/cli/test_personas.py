"""`dialoom personas`: pools are built, resumed, checked, imported and combined, and invalid input is refused."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dialoom.personas import read_personas, read_pool
from tests.conftest import Command
from tests.processes import CommandProcess
from tests.server import Answer, completion, serving

BUILD = ["personas", "build", "--model", "offline/attentive"]


# The process sends itself the signal when it prints a line; a signal sent by a reader could be late.
_STOP_SCRIPT = """
import os, sys
line, number, write = sys.argv.pop(1), int(sys.argv.pop(1)), sys.stderr.write

def watched(text):
    written = write(text)
    if line in text:
        os.kill(os.getpid(), number)
    return written

sys.stderr.write = watched
from dialoom.cli import main
main()
"""


def stopped_at(
    folder: Path, line: str, number: int, *arguments: object, environment: Mapping[str, str] | None = None
) -> int:
    """Return the exit code of a command that received a signal when it printed the line."""
    with CommandProcess(folder, line, int(number), *arguments, script=_STOP_SCRIPT, environment=environment) as process:
        process.communicate()
        return process.returncode


def calls(dialoom: Command, run: str) -> int:
    """Return the number of calls a run has made."""
    return int(json.loads(dialoom("status", run, "--json").stdout)["calls"])


def test_both_pools_are_built_and_combined(dialoom: Command, tmp_path: Path) -> None:
    """The offline model writes 300 profiles and 70 personalities that pass the default lexical filter."""
    built = dialoom(*BUILD, "--kind", "profile", "--target", 300, "-o", "profiles.jsonl")
    assert "threshold 0.6: lexical similarity is about the share" in built.stdout
    assert "round 3: 20 of 20 kept, 80 in the pool" in built.stderr
    assert "wrote 300 texts to profiles.jsonl after 14 rounds: the target is reached" in built.stdout
    dialoom(*BUILD, "--kind", "personality", "--target", 70, "-o", "personalities.jsonl")
    pools = [read_pool(tmp_path / f"{name}.jsonl") for name in ("profiles", "personalities")]
    assert [len(pool) for pool in pools] == [300, 70]
    assert max(entry.similarity or 0 for pool in pools for entry in pool) <= 0.6

    dialoom("personas", "combine", "profiles.jsonl", "personalities.jsonl", "-n", 3310, "--seed", 5, "-o", "one.jsonl")
    dialoom("personas", "combine", "profiles.jsonl", "personalities.jsonl", "-n", 3310, "--seed", 5, "-o", "two.jsonl")
    people = read_personas(tmp_path / "one.jsonl")
    assert len({person.id for person in people}) == 3310
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    refused = dialoom("personas", "combine", "profiles.jsonl", "personalities.jsonl", "-n", 21001, "-o", "x", code=2)
    assert "give 21,000 pairs; give a number from 1 to 21,000" in refused.stderr


def test_pool_ends_after_unproductive_rounds(dialoom: Command) -> None:
    output = dialoom(
        *BUILD, "--kind", "profile", "--least", 21, "--stop-after", 2, "--patience", "10s", "-o", "p.jsonl"
    ).stdout
    assert "after 2 rounds" in output


def test_killed_pool_continues_to_the_same_bytes(dialoom: Command, tmp_path: Path) -> None:
    """After SIGKILL and SIGINT (exit code 3) the pool is completed; other settings are refused."""
    build = [*BUILD, "--target", 200, "--seed", 3]
    dialoom(*build, "-o", "whole.jsonl")
    assert stopped_at(tmp_path, "round 3:", signal.SIGKILL, *build, "-o", "pool.jsonl") == -signal.SIGKILL
    assert stopped_at(tmp_path, "round 5:", signal.SIGINT, *build, "-o", "pool.jsonl") == 3
    assert not (tmp_path / "pool.jsonl").exists()
    refused = dialoom(*BUILD, "--target", 100, "--threshold", 0.5, "-o", "pool.jsonl", code=2)
    assert "target: 200 then, 100 now; threshold: 0.6 then, 0.5 now; seed: 3 then, 0 now" in refused.stderr
    resumed = dialoom(*build, "-o", "pool.jsonl")
    assert "round 1:" not in resumed.stderr
    assert (tmp_path / "pool.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert calls(dialoom, "pool.run.db") == calls(dialoom, "whole.run.db") == 9


def test_edited_finished_pool_is_not_overwritten(dialoom: Command, tmp_path: Path) -> None:
    build = [*BUILD, "--target", 30, "-o", "pool.jsonl"]
    dialoom(*build)
    pool = tmp_path / "pool.jsonl"
    content = pool.read_text()
    assert "wrote 30 texts" in dialoom(*build).stdout
    assert pool.read_text() == content
    assert calls(dialoom, "pool.run.db") == 1
    pool.write_text(content.replace("She is", "She was", 1))
    assert "differs from the pool that its run made" in dialoom(*build, code=2).stderr
    (tmp_path / "pool.run.db").unlink()
    assert "pool.jsonl exists, but its run" in dialoom(*build, code=2).stderr


def writer_answer(body: dict[str, Any], _number: int) -> Answer:
    """Answer with five texts from the messages' hash; for an embedding, with a vector from each text's hash."""
    if "input" in body:
        vectors = [[byte - 128 for byte in hashlib.sha256(text.encode()).digest()] for text in body["input"]]
        data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        usage = {"prompt_tokens": 7, "total_tokens": 7}
        return 200, {"object": "list", "data": data[::-1], "model": "text-embedding-3-small", "usage": usage}
    hash_ = hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()
    return completion(json.dumps({"items": [f"This person has the number {hash_[place:][:8]}." for place in range(5)]}))


def test_provider_embeddings_are_requested_once(dialoom: Command, tmp_path: Path) -> None:
    build = ["personas", "build", "--model", "openai/gpt-4o-mini", "--target", 60]
    build += ["--embedder", "litellm:openai/text-embedding-3-small"]
    with serving(writer_answer) as server:
        variables = {"OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-none-of-yours"}
        environment = {**os.environ, **variables}
        dialoom(*build, "-o", "whole.jsonl", variables=variables)
        server.requests.clear()
        killed = stopped_at(tmp_path, "round 4:", signal.SIGKILL, *build, "-o", "pool.jsonl", environment=environment)
        assert killed == -signal.SIGKILL
        dialoom(*build, "-o", "pool.jsonl", variables=variables)
        embedded = [body["input"] for body in server.requests if "input" in body]
    assert (tmp_path / "pool.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    # Only a request that was in flight at the kill may be sent again, and nothing is embedded in two requests.
    again = [texts for texts, count in Counter(map(tuple, embedded)).items() if count > 1]
    assert len(again) <= 1
    assert max(Counter(text for texts in set(map(tuple, embedded)) for text in texts).values()) == 1
    status = json.loads(dialoom("status", "whole.run.db", "--json").stdout)
    assert status["roles"]["embedder"]["model"] == "embed:openai/text-embedding-3-small"
    assert status["roles"]["embedder"]["calls"] == status["roles"]["writer"]["calls"] + 1
    assert status["roles"]["embedder"]["cost"] is not None, "LiteLLM knows the price of this model"


def test_failed_writer_is_called_again_by_the_same_command(dialoom: Command, tmp_path: Path) -> None:
    """The exit code is 1 and no pool is written; once the writer works, the run is completed."""
    (tmp_path / "poet.py").write_text(
        "import json, pathlib\n"
        "async def write(messages):\n"
        "    if not pathlib.Path('well').exists():\n"
        "        return 'Roses are red.'\n"
        "    return json.dumps({'items': ['He collects thimbles.', 'She brews nettle beer.']})\n"
    )
    build = ["personas", "build", "--model", "python:poet:write", "--target", 22, "-o", "pool.jsonl"]
    failed = dialoom(*build, code=1)
    assert "the answer holds no JSON object" in failed.stderr
    assert not (tmp_path / "pool.jsonl").exists()
    (tmp_path / "well").touch()
    assert "wrote 22 texts" in dialoom(*build).stdout


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--threshold", "1.5"], "--threshold must be at most 1, got 1.5"),
        (["--threshold", "-0.1"], "--threshold must be at least 0, got -0.1"),
        (["--kind", "habit"], "--kind must be one of profile or personality, got 'habit'"),
        (["--embedder", "bert"], "'bert' is not an embedder; give lexical, st:MODEL"),
        (["--embedder", "litellm:nobody/knows"], "unknown model 'nobody/knows'"),
        (["--model", "offline/poet"], "unknown model 'offline/poet'"),
        (["--seeds", "none.jsonl"], "there is no such file"),
        (["--seeds", "empty.jsonl"], "the pool contains no texts"),
        (["--seeds", "broken.jsonl"], "broken.jsonl:2: not JSON"),
        (["--prompts", "none"], "no such folder"),
    ],
)
def test_wrong_pool_options_are_refused_and_write_nothing(
    dialoom: Command, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    """The exit code is 2, the message has one line, and no file is written."""
    (tmp_path / "empty.jsonl").write_text("\n")
    (tmp_path / "broken.jsonl").write_text('"fine"\n"cut o')
    refused = dialoom("personas", "build", *arguments, "-o", "pool.jsonl", code=2)
    assert expected in refused.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"empty.jsonl", "broken.jsonl"}


def test_pool_check_shows_counts_duplicates_and_neighbours(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text(
        '{"text": "He carves spoons out of birch.", "round": 2}\n'
        '"She repairs pinball machines."\n'
        '"Spoons of birch are carved by him."\n\n'
        '"She repairs pinball machines."\n'
    )
    shown = dialoom("personas", "check", "pool.jsonl").stdout
    assert "3 texts, 2 of them seeds, 2 rounds" in shown
    assert "1 pairs of nearest neighbours have a similarity above 0.6" in shown
    assert "lexical similarity is about the share of content words" in shown
    assert "line 5 has the same text as line 2" in shown
    assert "1.00  line 1: He carves spoons" in shown
    found = json.loads(dialoom("personas", "check", "pool.jsonl", "--json").stdout)
    assert found["nearest"][0]["lines"] == [1, 3]
    assert found["repaired"] == {"blank lines left out": 1}
    refused = dialoom("personas", "check", "pool.jsonl", "--embedder", "litellm:openai/x", code=2)
    assert "here, give lexical or st:" in refused.stderr


def test_threshold_is_suggested_from_the_pool(dialoom: Command, tmp_path: Path) -> None:
    """Of twenty texts, the threshold lets 19 pass: all but the copy. Below twenty texts no threshold is suggested."""
    texts = [f"word{number}a word{number}b common{number // 2}c common{number // 2}d" for number in range(19)]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(text) + "\n" for text in [*texts, f"{texts[0]} extra"]))
    found = json.loads(dialoom("personas", "check", "pool.jsonl", "--json").stdout)
    assert (found["passing"], found["suggested_threshold"]) == (19, 0.5)
    shown = dialoom("personas", "check", "pool.jsonl", "--threshold", 0.4).stdout
    assert (
        "with the threshold 0.4, a filter that reads the texts in this order keeps 10; "
        "of further texts like these, the threshold 0.5 keeps at least 95 %"
    ) in shown
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    assert json.loads(dialoom("personas", "check", "pool.jsonl", "--json").stdout)["suggested_threshold"] is None


def test_pool_file_of_a_release_is_imported(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "profile.jsonl").write_text('"She rows."\n"He fences.""He swims."\n"She sings."   \n')
    done = dialoom("personas", "import", "profile.jsonl", "-o", "pool.jsonl")
    assert "1 line with several values split; 1 line with spaces at their end" in done.stdout
    assert "wrote 4 texts to pool.jsonl" in done.stdout
    assert [entry.text for entry in read_pool(tmp_path / "pool.jsonl")][1:3] == ["He fences.", "He swims."]
    assert "exists" in dialoom("personas", "import", "profile.jsonl", "-o", "pool.jsonl", code=2).stderr
    (tmp_path / "profile.jsonl").write_text('"She rows."\n{"name": "x"}\n')
    broken = dialoom("personas", "import", "profile.jsonl", "-o", "other.jsonl", code=2)
    assert (
        "profile.jsonl:2: holds an object with 'name'; a line must be a string or an object with a 'text'"
        in broken.stderr
    )


def test_budget_stops_a_pool_and_a_higher_one_continues(dialoom: Command, tmp_path: Path) -> None:
    """The exit code is 3; the same command with a higher `--max-calls` completes the same pool."""
    build = [*BUILD, "--target", 100]
    dialoom(*build, "-o", "whole.jsonl")
    stopped = dialoom(*build, "-o", "pool.jsonl", "--max-calls", 2, code=3)
    assert "pool.jsonl is not written yet; the same 'dialoom personas build' command continues" in stopped.stdout
    dialoom(*build, "-o", "pool.jsonl", "--max-calls", "none")
    assert (tmp_path / "pool.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
