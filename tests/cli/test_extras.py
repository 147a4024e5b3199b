"""Commands whose extra is not installed print one message and write nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command, MadeOnce
from tests.processes import COMMAND, CommandProcess

_PLAYERS = ("--model", "offline/attentive")


@pytest.mark.parametrize(
    ("library", "extra", "line"),
    [
        ("ray", "ray", "run personalens --limit 1 --model offline/attentive --workers 2 -o new.db"),
        ("ray", "ray", "run personalens --limit 1 --model offline/attentive --ray auto -o new.db"),
        ("opentelemetry", "otel", "run personalens --limit 1 --model offline/attentive --otel -o new.db"),
        ("mcp", "mcp", "run study.toml --model offline/generic --mcp server -o new.db"),
        ("sentence_transformers", "st", "run persona-pool --embedder st:model -o new.db"),
        ("sentence_transformers", "st", "run prefeval --limit 1 --method rag --embedder st:model -o new.db"),
        ("ray", "ray", "judge run.db --model offline/attentive --workers 2"),
        ("pyarrow", "parquet", "export run.db --as parquet -o new"),
        ("pyarrow", "parquet", "describe rows.parquet -o new"),
        ("datasketch", "describe", "describe run.db -o new"),
        ("phonenumbers", "describe", "describe run.db -o new"),
        ("sentence_transformers", "st", "describe run.db --embedder st:model -o new"),
        ("nicegui", "studio", "studio run.db --no-browser"),
    ],
)
def test_missing_extra_is_found_before_anything_is_written(
    made_once: MadeOnce, library: str, extra: str, line: str
) -> None:
    folder = made_once(_run)
    (folder / "rows.parquet").write_bytes(b"PAR1")
    (folder / "study.toml").write_text('[people]\nrows = ["Ada"]\n')
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    script = f"import sys\nsys.modules[{library!r}] = None\n{COMMAND}"
    with CommandProcess(folder, *line.split(), script=script) as command:
        output, errors = command.communicate()
    assert command.returncode == 2, errors
    assert output == ""
    assert errors.count("\n") == 1 and errors.startswith("dialoom: ")
    assert f"dialoom[{extra}]" in errors and "pip install" in errors
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before
    assert not (folder / "new").exists()


def test_notice_about_missing_charts_follows_the_page(made_once: MadeOnce) -> None:
    folder = made_once(_run)
    script = f"import sys\nsys.modules['matplotlib'] = None\n{COMMAND}"
    for line in ("describe run.db -o described", "report run.db -o reported"):
        with CommandProcess(folder, *line.split(), script=script) as command:
            output, errors = command.communicate()
        assert command.returncode == 0, errors
        page, notice, *written = output.splitlines()
        assert page == f"{line.split()[-1]}/report.html: open it in a browser"
        assert notice.startswith("no charts were drawn") and "pip install 'dialoom[plots]'" in notice
        assert written and all((folder / name).is_file() for name in written)


def _run(dialoom: Command, _folder: Path) -> None:
    dialoom("run", "personalens", "--limit", 1, *_PLAYERS, "-o", "run.db")
