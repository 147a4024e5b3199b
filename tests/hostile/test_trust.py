"""Run files from elsewhere execute no code, and keys are never shown."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import dialoom
from dialoom.roles.gateway.secrets import redact
from dialoom.runs.configuration.trust import Trust, player_references
from dialoom.runs.errors import TrustError
from tests.conftest import ROOT, Command

EXAMPLE = ROOT / "docs" / "examples" / "twenty_questions"
_GAME = """
async def guesser(messages):
    return "Is it a heron?"

async def keeper(messages):
    return "You have found it."
"""
_TRACE = "\nimport pathlib\npathlib.Path(__file__ + '.ran').touch()\n"


@pytest.fixture
def own_run(dialoom: Command, tmp_path: Path) -> Path:
    """Return a finished run of this machine; its recipe and players are files that now leave a trace when imported."""
    (tmp_path / "recipe.py").write_text((EXAMPLE / "recipe.py").read_text())
    (tmp_path / "words.toml").write_text((EXAMPLE / "words.toml").read_text())
    (tmp_path / "prompts").symlink_to(EXAMPLE / "prompts")
    (tmp_path / "strange_game.py").write_text(_GAME)
    players = [f"--model={role}=python:strange_game:{role}" for role in ("guesser", "keeper")]
    dialoom("run", "recipe.py:RECIPE", *players, "--words", "heron,otter", "-o", "r.db")
    for source in (tmp_path / "recipe.py", tmp_path / "strange_game.py"):
        source.write_text(source.read_text() + _TRACE)
    return tmp_path / "r.db"


@pytest.fixture
def foreign_run(own_run: Path) -> Path:
    """Return the run as if it came from another machine: this one has no record of it."""
    with sqlite3.connect(own_run) as connection:
        connection.execute("UPDATE run SET value = 'ffff' WHERE key = 'id'")
        connection.execute("UPDATE scenarios SET state = 'pending' WHERE position = 1")
        connection.execute("DELETE FROM outcomes WHERE scenario = 1")
        connection.execute("DELETE FROM judgements WHERE scenario = 1")
    return own_run


def imported_files(folder: Path, act: Callable[[], object]) -> set[str]:
    """Return the names of the files that were imported by an action."""
    sys.modules.pop("strange_game", None)
    act()
    found = {path.name.removesuffix(".py.ran") for path in folder.glob("*.ran")}
    for path in folder.glob("*.ran"):
        path.unlink()
    return found


REFUSED = [
    ("report", "r.db"),
    ("export", "r.db", "-o", "out.jsonl"),
    ("agree", "r.db", "--sample", 1, "-o", "labels.csv"),
    ("show", "r.db", 1, "--json"),
    ("show", "r.db", 2),
    ("step", "r.db", 1, "--script", "/dev/null"),
    ("step", "r.db", "--where", "state == 'done'", "--script", "/dev/null"),
    ("resume", "r.db"),
    ("retry", "r.db", "--scenario", 1),
    ("judge", "r.db", "--model", "judge=offline/attentive"),
]
ALLOWED = [
    ("status", "r.db"),
    ("status", "r.db", "--config"),
    ("show", "r.db"),
    ("show", "r.db", 1),
    ("report", "r.db", "--cost"),
    ("compact", "r.db"),
    ("export", "r.db", "--help"),
]


@pytest.mark.usefixtures("foreign_run")
def test_run_from_elsewhere_executes_no_code(dialoom: Command, tmp_path: Path) -> None:
    def refused() -> None:
        for command in REFUSED:
            errors = dialoom(*command, code=2).stderr
            assert f"r.db names the recipe recipe.py:RECIPE, which would run {tmp_path}/recipe.py" in errors, command
            assert "add --trust" in errors, command

    def shown() -> None:
        for command in ALLOWED:
            dialoom(*command)
        assert "Is it a heron?" in dialoom("show", "r.db", 1).stdout

    assert imported_files(tmp_path, refused) == set()
    assert imported_files(tmp_path, shown) == set()
    error_output = dialoom("resume", "r.db", code=2).stderr
    assert "the player python:strange_game:keeper, which would run" in error_output


@pytest.mark.usefixtures("foreign_run")
def test_trusted_run_is_used_with_a_notice(dialoom: Command, tmp_path: Path) -> None:
    lines = dialoom("resume", "r.db", "--trust").stdout
    assert "allowed to use the recipe recipe.py:RECIPE" in lines
    assert "allowed to use the player python:strange_game:guesser" in lines
    assert f"{tmp_path}/recipe.py has changed since the run was created" in lines
    assert dialoom("report", "r.db", "--trust").stdout
    assert "2 lines" in dialoom("export", "r.db", "-o", "out.jsonl", "--trust").stdout
    dialoom("report", "r.db", code=2)


@pytest.mark.usefixtures("own_run")
def test_own_run_is_trusted_under_any_name(dialoom: Command, tmp_path: Path) -> None:
    shutil.move(tmp_path / "r.db", tmp_path / "moved.db")
    assert "Code had changed" not in dialoom("report", "moved.db").stdout
    assert imported_files(tmp_path, lambda: dialoom("retry", "moved.db", "--scenario", 1)) == {"recipe", "strange_game"}
    done = dialoom("report", "moved.db")
    assert "recipe.py has changed since the run was created" in done.stderr
    assert "allowed to use" not in done.stderr
    assert "Code had changed when the run was continued: recipe.py, strange_game.py." in " ".join(done.stdout.split())


@pytest.mark.usefixtures("own_run")
def test_another_file_under_the_same_name_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "mail").mkdir()
    for name in ("recipe.py", "r.db"):
        shutil.move(tmp_path / name, tmp_path / "mail" / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path / "mail")
        with pytest.raises(
            TrustError, match=r"which would run .*/mail/recipe\.py.* was made here, but with code in another place"
        ):
            dialoom.open_run("r.db").report()


@pytest.mark.usefixtures("own_run")
def test_trust_list_is_private_to_its_user(dialoom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    dialoom("report", "r.db", code=2)
    dialoom("run", "recipe.py:RECIPE", "--model=python:strange_game:keeper", "--words", "heron", "-o", "s.db")
    (kept,) = folder.rglob("*.jsonl")
    assert kept.stat().st_mode & 0o777 == 0o600
    dialoom("report", "s.db")
    kept.chmod(0o666)
    dialoom("report", "s.db", code=2)
    shutil.rmtree(folder)
    folder.write_text("in the way")
    dialoom("run", "recipe.py:RECIPE", "--model=python:strange_game:keeper", "--words", "heron", "-o", "t.db")
    dialoom("report", "t.db", code=2)


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """Return a planned run of one dialogue, with an installed recipe and the offline model."""
    return dialoom.plan("personalens", path=tmp_path / "plain.db", options={"limit": 1}).path


def change_assistant(path: Path, **more: Any) -> None:
    """Change the assistant in a run's configuration."""
    with sqlite3.connect(path) as connection:
        config = json.loads(connection.execute("SELECT value FROM run WHERE key = 'config'").fetchone()[0])
        config["models"]["assistant"].update(more)
        connection.execute("UPDATE run SET value = ? WHERE key = 'config'", (json.dumps(config),))


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (
            {"model": "openai/gpt-4o", "api_base": "http://evil.example/v1"},
            "at http://evil.example/v1, to which your key",
        ),
        ({"model": "openai/gpt-4o", "api_base": "http://127.0.0.1:9"}, "at http://127.0.0.1:9, to which your key"),
        ({"model": "huggingface/https://evil.example"}, "at huggingface/https://evil.example"),
        ({"model": "graph:evil.py:GRAPH"}, "the player graph:evil.py:GRAPH, which would run /"),
        ({"model": "python:evil.part:f"}, "the player python:evil.part:f, which would run evil.part"),
    ],
)
def test_player_named_by_an_untrusted_file_is_not_called(plain: Path, more: dict[str, str], text: str) -> None:
    change_assistant(plain, **more)
    run = dialoom.open_run(plain)
    actions: list[Callable[[], object]] = [run.resume, lambda: dialoom.resume(plain), lambda: dialoom.retry(plain)]
    for action in actions:
        with pytest.raises(TrustError) as caught:
            action()
        assert text in str(caught.value)
        assert "trust=True" in str(caught.value)


async def test_branch_or_judge_named_by_an_untrusted_file_is_not_called(plain: Path) -> None:
    with sqlite3.connect(plain) as connection:
        row = connection.execute("SELECT models FROM judgement_sets").fetchone()
        judges = {role: {**each, "model": "graph:evil.py:G"} for role, each in json.loads(row[0]).items()}
        connection.execute("UPDATE judgement_sets SET models = ?", (json.dumps(judges),))
        branch = (0, "other", "thread", None, 1, '{"assistant": "graph:worse.py:G"}', "main")
        connection.execute("INSERT INTO branches VALUES (?, ?, ?, ?, ?, ?, ?)", branch)
    with pytest.raises(TrustError, match=r"graph:evil\.py:G"):
        await dialoom.aretry(plain, unparsed=True)
    with pytest.raises(TrustError, match=r"graph:worse\.py:G"):
        async with dialoom.open_run(plain).step(1, branch="other"):
            pass


async def test_embedder_named_by_an_untrusted_file_is_not_loaded(tmp_path: Path) -> None:
    options = {"kind": "profile", "target": 3}
    run = await _planned_pool(tmp_path, options)
    with sqlite3.connect(run.path) as connection:
        content = json.loads(connection.execute("SELECT content FROM scenarios").fetchone()[0])
        content["embedder"] = "st:./evil"
        connection.execute("UPDATE scenarios SET content = ?", (json.dumps(content),))
    with pytest.raises(TrustError, match=r"the model st:\./evil, which would be loaded here"):
        await dialoom.aresume(run.path)


async def _planned_pool(folder: Path, options: dict[str, Any]) -> dialoom.Run:
    return await dialoom.aplan("persona-pool", path=folder / "pool.db", options=options)


def test_source_named_by_an_untrusted_file_is_not_read(plain: Path, tmp_path: Path) -> None:
    with sqlite3.connect(plain) as connection:
        config = json.loads(connection.execute("SELECT value FROM run WHERE key = 'config'").fetchone()[0])
        config["options"]["profiles"] = str(tmp_path / "private")
        connection.execute("UPDATE run SET value = ? WHERE key = 'config'", (json.dumps(config),))
        connection.execute("DELETE FROM run WHERE key = 'planned'")
        connection.execute("DELETE FROM scenarios")
    with pytest.raises(TrustError, match="private, which planning would read"):
        dialoom.resume(plain)


@pytest.mark.usefixtures("own_run")
def test_case_executes_no_code_unless_saved_here(dialoom: Command, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("save case.json\n")
    dialoom("step", "r.db", 1, "--script", "lines.txt")
    assert "the same path" in dialoom("replay", "case.json").stdout
    case = tmp_path / "case.json"
    case.write_text(case.read_text().replace("heron", "crane"))
    for found in tmp_path.glob("*.ran"):
        found.unlink()
    refused = dialoom("replay", "case.json", code=2).stderr
    assert "the case names the recipe recipe.py:RECIPE" in refused
    assert not list(tmp_path.glob("*.ran"))
    assert "allowed to use the recipe" in dialoom("replay", "case.json", "--trust", code=1).stderr


def test_study_next_to_a_case_is_compared_without_its_code(
    dialoom: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    study = '[people]\nrows = [{ name = "Ann", goal = "cancel" }]\n[user]\nbrief = "You want to {{ person.goal }}."\n'
    (tmp_path / "shop.toml").write_text(study)
    dialoom("run", "shop.toml", "--model", "offline/placeholder", "-o", "shop.db")
    dialoom("step", "shop.db", 1, input="save case.json\n")
    check = '[[check]]\nmetric = "told"\npython = "checks.py:told"\n'
    (tmp_path / "shop.toml").write_text(study + check)
    (tmp_path / "checks.py").write_text("open('ran', 'w')\ndef told(conversation): return True\n")
    assert "shop.toml has changed" in dialoom("replay", "case.json").stdout
    assert not (tmp_path / "ran").exists()


def test_trust_notice_is_printed_once() -> None:
    lines: list[str] = []
    trust = Trust(everything=True, tell=lines.append)
    for _ in range(3):
        trust.check("r.db", "id", player_references("graph:g.py:G"), {})
    assert len(lines) == 1


KEY = "Zq7/vT+m2Lx9Kd4/Wb6Rn8Hs3Jp5Gf1C"
UNCHANGED = "it says: the model does not exist, see https://docs.example.com/errors (request req_0123456789)"


def _encoded(before: str) -> str:
    return base64.b64encode(f"{before}{KEY} and more".encode()).decode()


FORMS = {
    "whole": KEY,
    "first part": KEY[:11],
    "last part": KEY[-9:],
    "middle part": f"...{KEY[7:18]}...",
    "slashes escaped": KEY.replace("/", "\\/"),
    "unicode escapes": KEY.replace("/", "\\u002f").replace("+", "\\u002B"),
    "JSON in JSON": json.dumps(json.dumps({"key": KEY.replace("/", "\\/")})),
    "in a URL": quote(KEY, safe=""),
    "on several lines": "\n".join(KEY[start : start + 6] for start in range(0, len(KEY), 6)),
    "on several indented lines": "\n    ".join(KEY[start : start + 5] for start in range(0, len(KEY), 5)),
    "line ends escaped": "\\n".join(KEY[start : start + 7] for start in range(0, len(KEY), 7)),
    "pieces in quotes": '" "'.join(KEY[start : start + 5] for start in range(0, len(KEY), 5)),
    "lower case": KEY.lower(),
    "hexadecimal": KEY.encode().hex(),
    **{f"base64 after {count} bytes": _encoded("user:"[:count]) for count in range(4)},
    "base64, escaped": _encoded("").replace("/", "\\/"),
    "part of base64": _encoded("u:")[8:30],
    "base64 for URLs": _encoded("u").replace("+", "-").replace("/", "_"),
    "base64 on several lines": base64.encodebytes(f"Basic {KEY * 3}".encode()).decode(),
}


@pytest.mark.parametrize("written", FORMS.values(), ids=FORMS)
def test_key_is_removed_in_every_form(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("STRANGE_API_KEY", KEY)
    redacted_text = redact(f"{UNCHANGED}: {written}: bye")
    assert redacted_text.startswith(f"{UNCHANGED}: ")
    assert redacted_text.endswith(": bye")
    assert "[STRANGE_API_KEY]" in redacted_text
    left = redacted_text.removeprefix(UNCHANGED).replace("[STRANGE_API_KEY]", "")
    for form in (KEY.lower(), KEY.encode().hex(), *(_encoded("abc"[:count]).lower()[4:42] for count in range(3))):
        assert not any(form[start : start + 8] in "".join(left.lower().split()) for start in range(len(form) - 7))


def test_parts_of_paths_and_addresses_are_not_redacted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "credentials.json"
    file.touch()
    monkeypatch.setenv("SOME_CREDENTIALS", str(file))
    monkeypatch.setenv("HOOK_TOKEN", "https://docs.example.com/hook/17")
    assert redact(f"{tmp_path / 'run.db'}: {UNCHANGED}") == f"{tmp_path / 'run.db'}: {UNCHANGED}"
    assert redact(f"at {file}") == "at [SOME_CREDENTIALS]"


def test_long_error_is_searched_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANGE_API_KEY", KEY)
    text = redact("x" * 50_000 + " " + "x" * 50_000 + f" {KEY} " + "y" * 10_000_000)
    assert len(text) < 300_000
    assert "[STRANGE_API_KEY]" in text
