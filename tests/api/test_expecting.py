"""Expectations of runs and replays, the pytest plugin, and the regression test that docs/ci.md builds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import dialoom as api
from tests.conftest import ROOT, Command, MadeOnce
from tests.processes import CommandProcess

PAGE = (ROOT / "docs" / "ci.md").read_text()
PLUGIN = ("-p", "no:dialoom", "-p", "dialoom.pytest_plugin")  # with or without an installed entry point


def block(language: str, beginning: str) -> str:
    """Return the page's code block that begins with a text."""
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return next(each for each in found if each.startswith(beginning))


def _journey(dialoom: Command, folder: Path) -> None:
    (folder / "shop.py").write_text(block("python", "async def assistant"))
    (folder / "shop.toml").write_text(block("toml", "[people]"))
    (folder / "test_shop.py").write_text(block("python", "import dialoom"))
    (folder / "pytest.ini").write_text(block("ini", "[pytest]"))
    run, step, *script = block("console", "$ dialoom run").splitlines()
    dialoom(*run.split()[2:])
    dialoom(*step.split()[2:], input="\n".join(script) + "\n")


@pytest.fixture
def folder(made_once: MadeOnce, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder, prepared as docs/ci.md says."""
    found = made_once(_journey)
    monkeypatch.chdir(found)
    return found


def pytest_in(folder: Path, *arguments: Path | str) -> subprocess.CompletedProcess[str]:
    """Run pytest in a folder."""
    script = "import sys, pytest\nsys.exit(pytest.main(sys.argv[1:]))\n"
    command = ["-q", "-p", "no:xdist", "-p", "no:cacheprovider", *PLUGIN, *arguments]
    with CommandProcess(folder, *command, script=script) as process:
        out, err = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, out, err)


def test_fault_that_returns_fails_in_ci_and_passes_when_it_is_fixed(folder: Path, dialoom: Command) -> None:
    command = next(line for line in PAGE.splitlines() if line.startswith("    dialoom replay refund.case.json"))
    arguments = [word.strip('"') for word in re.findall(r'"[^"]*"|\S+', command)][1:]
    unmet = next(line for line in PAGE.splitlines() if line.startswith("NOT MET: cancelled"))
    well = (folder / "shop.py").read_text()
    passed = pytest_in(folder)
    assert passed.returncode == 0, passed.stdout
    assert "3 passed" in passed.stdout
    dialoom(*arguments, env={})

    (folder / "shop.py").write_text(well.replace("Order 17 is cancelled.", "We cannot cancel that."))
    failed = pytest_in(folder)
    assert failed.returncode == 1
    assert "2 failed, 1 passed" in failed.stdout
    for shown in (unmet, "assistant: We cannot cancel that.", "user: Please cancel order 17."):
        assert shown in failed.stdout
    assert unmet in dialoom(*arguments, code=1, env={}).stdout

    (folder / "shop.py").write_text(well + "# mended\n")
    assert pytest_in(folder).returncode == 0


def test_case_is_played_from_any_folder(folder: Path) -> None:
    cases, elsewhere = folder / "cases", folder / "elsewhere"
    cases.mkdir()
    elsewhere.mkdir()
    case = (folder / "refund.case.json").rename(cases / "refund.case.json")
    for where, arguments in ((folder, [case]), (cases, []), (elsewhere, ["-c", folder / "pytest.ini", case])):
        found = pytest_in(where, *arguments).stdout
        assert "1 passed" in found, found


WRONG = """
import dialoom

def test_requirement_of_an_unknown_metric():
    run = dialoom.open_run("shop.db", trust=True)
    dialoom.expect(run).metric("resolve").at_least(0)

def test_nothing():
    assert dialoom.expect(dialoom.open_run("shop.db", trust=True)).metric("cancelled")

def test_run_that_cannot_be_made(dialoom_run):
    dialoom_run("shop.toml", model="offline/placeholder", concurrency=0)

def test_replay_of_a_missing_role():
    dialoom.replay("refund.case.json", live=["clerk"], trust=True)
"""


def test_wrong_usage_fails_with_one_message(folder: Path) -> None:
    (folder / "test_shop.py").write_text(WRONG)
    (folder / "pytest.ini").write_text("[pytest]\ndialoom_live = assistant\ndialoom_require = cancel >= 100%\n")
    case = (folder / "refund.case.json").read_text()
    (folder / "broken.case.json").write_text(case[:100])
    (folder / "other.case.json").write_text(case.replace("python:shop:", "python:no_such_shop:"))
    shown = pytest_in(folder).stdout
    assert "7 failed" in shown
    for message in (
        "\nunknown metric 'cancel'; the run has resolved, cancelled",
        "unknown metric 'resolve'; the run has",
        "expect(...) has checked nothing; end it with at_least, at_most or not_worse_than",
        "concurrency must be at least 1, got 0",
        "unknown role 'clerk'",
        f"No module named 'no_such_shop'; it is neither in the working folder {folder} nor on Python's path\n",
        "broken.case.json:6: not JSON",
        '>       dialoom_run("shop.toml", model="offline/placeholder", concurrency=0)',
    ):
        assert message in shown
    assert not re.search(r"^(dialoom|runs|roles)/\S+\.py:\d+|/dialoom/\S+\.py:\d+|Traceback", shown, re.MULTILINE)
    assert len(shown.splitlines()) < 100


def test_unmet_expectation_shows_the_worst_conversation(folder: Path) -> None:
    run = api.open_run(folder / "shop.db", trust=True)
    expected = api.expect(run, allow=["offline"]).metric("cancelled")
    expected.at_least(0).at_most(1)
    with pytest.raises(AssertionError, match=r"(?s)NOT MET: pass.*the worst conversation, Ann-"):
        expected.pass_k(2).at_least(0.5)
    with pytest.raises(AssertionError, match="offline"):
        api.expect(run).metric("resolved").at_least(0)
    assert api.expect(run, allow="offline, missing").allow == ("missing", "offline")
    with pytest.raises(api.DialoomError, match=r"allow must be one of constant, .*, unhealthy, got 'online'"):
        api.expect(run, allow="online")
    with pytest.raises(api.DialoomError, match="a share must be from 0 to 1"):
        expected.at_least(80)
    with pytest.raises(api.DialoomError, match=r"the bound must be a number, such as 0\.8, got '80%'"):
        expected.at_least("80%")  # type: ignore[arg-type]
    with pytest.raises(api.DialoomError, match="k must be at least 1, got 0"):
        expected.pass_k(0)
    with pytest.warns(RuntimeWarning, match=r"expect\(\.\.\.\) has checked nothing"):
        api.expect(run).metric("cancelled")
    with pytest.raises(api.DialoomError, match="name a metric first"):
        api.expect(run).at_least(1)
    with pytest.raises(AssertionError, match="interval's lower end"):
        api.expect(api.replay("refund.case.json", live=["judge"]), allow=["offline"]).metric(
            "cancelled"
        ).confident().at_least(1)


def test_requirements_are_written_for_pull_requests(folder: Path, dialoom: Command) -> None:
    files = ["--junit", "found.xml", "--summary", "found.md", "--allow", "offline"]
    dialoom("require", "shop.db", "cancelled >= 0%", "cancelled <= 0%", "resolved < 0%", *files, code=1)
    suite = ElementTree.parse(folder / "found.xml").getroot()
    cases = {case.get("name"): case.find("failure") for case in suite}
    assert (suite.get("tests"), suite.get("failures")) == ("3", str(sum(each is not None for each in cases.values())))
    failure = cases["resolved < 0.0 %"]
    assert failure is not None
    assert failure.get("message") == "the value is too high"
    assert "the worst conversation, Ann-" in str(failure.text)
    summary = (folder / "found.md").read_text()
    assert "| met | cancelled >= 0.0 % |" in summary
    assert "| **not met** | resolved &lt; 0.0 % |" in summary


def test_plugin_imports_dialoom_only_when_it_is_used() -> None:
    code = "import sys, dialoom.pytest_plugin; print(sorted(n for n in sys.modules if n.startswith('dialoom')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['dialoom', 'dialoom.importing', 'dialoom.pytest_plugin']"
