"""dialoom: language models talk to each other in named roles, and everything that happens is kept.

    import dialoom
    run = dialoom.play("personalens", path="run.db", options={"limit": 8})
    print(run.report())

The five folders beside this package at the repository's root (`runs`, `graphs`, `roles`, `prompts`, `personas`) are
linked into it, so they are imported, installed and documented under one name: `dialoom.runs`, `dialoom.graphs`, ...
Names are imported when they are first used: `import dialoom` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from os.path import isfile
from typing import TYPE_CHECKING, Any

from dialoom.importing import collection_paused
from dialoom.version import __version__

if TYPE_CHECKING:
    from dialoom.api.charts import chart
    from dialoom.api.operations import (
        Run,
        aestimate,
        ajudge,
        aplan,
        aplay,
        aresume,
        aretry,
        areview,
        estimate,
        judge,
        open_run,
        plan,
        play,
        resume,
        retry,
        review,
        step,
        stream,
    )
    from dialoom.api.run import describe, report
    from dialoom.api.scorecards import ascorecard, open_scorecard, scorecard
    from dialoom.api.settings import CallSettings, PlaySettings
    from dialoom.api.simulating import asimulate, simulate
    from dialoom.errors import Advice, DialoomError
    from dialoom.graphs import (
        Check,
        DialogueRecipe,
        Episode,
        Judge,
        Judgement,
        Line,
        Outcome,
        Recipe,
        RecipeOptions,
        Scenario,
        Turns,
    )
    from dialoom.roles.gateway.availability import ProviderReachable, ProviderUnreachable
    from dialoom.roles.gateway.litellm_backend import tune_process
    from dialoom.roles.gateway.provider_keys import load_env_file
    from dialoom.roles.session import Session
    from dialoom.runs.progress import (
        Began,
        Control,
        Ended,
        Event,
        NodeSaid,
        Noted,
        Planned,
        Retrying,
        ScenarioDone,
        ScenarioFailed,
        Stopping,
    )
    from dialoom.runs.report import Report
    from dialoom.runs.scorecard import Scorecard
    from dialoom.runs.stepping import Stepper
    from dialoom.settings import Agent, Budget, Model, Price

if isfile(f"{__path__[0]}/runs"):  # noqa: PTH113 - pathlib would take longer than the rest of this module
    raise ImportError(
        "dialoom/runs is a text file where a symbolic link belongs: this checkout was made without links; "
        "in it, 'git config core.symlinks true' and 'git checkout -- dialoom' make them (Windows: in Developer Mode)"
    )

_HOMES = {
    "dialoom.errors": ("Advice", "DialoomError"),
    "dialoom.graphs": (
        "Check",
        "DialogueRecipe",
        "Episode",
        "Judge",
        "Judgement",
        "Line",
        "Outcome",
        "Recipe",
        "RecipeOptions",
        "Scenario",
        "Turns",
    ),
    "dialoom.api.charts": ("chart",),
    "dialoom.roles.session": ("Session",),
    "dialoom.settings": ("Agent",),
    "dialoom.roles.binding": ("Model",),
    "dialoom.roles.gateway.budget": ("Budget",),
    "dialoom.roles.gateway.provider_keys": ("load_env_file",),
    "dialoom.roles.gateway.litellm_backend": ("tune_process",),
    "dialoom.roles.gateway.availability": ("ProviderUnreachable", "ProviderReachable"),
    "dialoom.roles.gateway.prices": ("Price",),
    "dialoom.api.operations": (
        "Run",
        "aestimate",
        "ajudge",
        "aplan",
        "aplay",
        "aresume",
        "aretry",
        "areview",
        "estimate",
        "judge",
        "open_run",
        "plan",
        "play",
        "resume",
        "retry",
        "review",
        "step",
        "stream",
    ),
    "dialoom.api.run": (
        "describe",
        "report",
    ),
    "dialoom.api.scorecards": (
        "ascorecard",
        "open_scorecard",
        "scorecard",
    ),
    "dialoom.api.settings": (
        "CallSettings",
        "PlaySettings",
    ),
    "dialoom.api.simulating": (
        "asimulate",
        "simulate",
    ),
    "dialoom.runs.progress": (
        "Began",
        "Control",
        "Ended",
        "Event",
        "NodeSaid",
        "Noted",
        "Planned",
        "Retrying",
        "ScenarioDone",
        "ScenarioFailed",
        "Stopping",
    ),
    "dialoom.runs.report": ("Report",),
    "dialoom.runs.scorecard": ("Scorecard",),
    "dialoom.runs.stepping": ("Stepper",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Advice",
    "Agent",
    "Began",
    "Budget",
    "CallSettings",
    "Check",
    "Control",
    "DialogueRecipe",
    "DialoomError",
    "Ended",
    "Episode",
    "Event",
    "Judge",
    "Judgement",
    "Line",
    "Model",
    "NodeSaid",
    "Noted",
    "Outcome",
    "Planned",
    "PlaySettings",
    "Price",
    "ProviderReachable",
    "ProviderUnreachable",
    "Recipe",
    "RecipeOptions",
    "Report",
    "Retrying",
    "Run",
    "Scenario",
    "ScenarioDone",
    "ScenarioFailed",
    "Scorecard",
    "Session",
    "Stepper",
    "Stopping",
    "Turns",
    "__version__",
    "aestimate",
    "ajudge",
    "aplan",
    "aplay",
    "aresume",
    "aretry",
    "areview",
    "ascorecard",
    "asimulate",
    "chart",
    "describe",
    "estimate",
    "judge",
    "load_env_file",
    "open_run",
    "open_scorecard",
    "plan",
    "play",
    "report",
    "resume",
    "retry",
    "review",
    "scorecard",
    "simulate",
    "step",
    "stream",
    "tune_process",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with collection_paused():
        value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
