"""The run file: one SQLite database that records everything that happened (see `docs/store.md`)."""

from .judgement_sets import OWN_JUDGEMENTS, PANEL, JudgementSet, judges_of, panel_of
from .listing import Choices, Neighbours, ScenarioPage, ScenarioQuery, ScenarioRow
from .plan import JudgeWork, PlayWork, Work
from .runfile import RunFile
from .status import Status, Usage
from .store import RunStore

__all__ = [
    "OWN_JUDGEMENTS",
    "PANEL",
    "Choices",
    "JudgeWork",
    "JudgementSet",
    "Neighbours",
    "PlayWork",
    "RunFile",
    "RunStore",
    "ScenarioPage",
    "ScenarioQuery",
    "ScenarioRow",
    "Status",
    "Usage",
    "Work",
    "judges_of",
    "panel_of",
]
