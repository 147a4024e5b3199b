"""LangGraph's own suite for checkpoint savers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from dialoom.runs.store.checkpoints import RunSaver


async def test_the_conformance_suite_passes_with_all_capabilities(tmp_path: Path) -> None:
    """put, put_writes, get_tuple, list, delete_thread, delete_for_runs, copy_thread, prune."""
    files = iter(range(100))

    @checkpointer_test(name="RunSaver")
    async def saver() -> AsyncIterator[RunSaver]:
        async with RunSaver.open(tmp_path / f"{next(files)}.db") as opened:
            yield opened

    report = await validate(saver)
    for capability in Capability:
        result = report.results[capability.value]
        assert result.detected and result.passed, f"{capability.value}: {result.failures}"
    assert sum(result.tests_passed for result in report.results.values()) > 70
