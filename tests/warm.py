"""Imports of everything a command may need, for the process that `tests.processes` forks."""

from __future__ import annotations

import gc
import importlib
import pkgutil
import tempfile
import threading

import dialoom
import dialoom.cli

gc.set_threshold(20_000, 20, 50)  # as in tests/conftest.py
for _module in pkgutil.walk_packages(dialoom.cli.__path__, f"{dialoom.cli.__name__}."):
    importlib.import_module(_module.name)
with tempfile.TemporaryDirectory() as _folder:  # LiteLLM, LangGraph and others import much on first use
    _run = dialoom.play("personalens", path=f"{_folder}/run.db", options={"limit": 1})
    _run.export("dialogues", f"{_folder}/dialogues.jsonl")
assert threading.active_count() == 1, "a forked process has none of its other threads"
gc.collect()
gc.freeze()
