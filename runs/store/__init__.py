"""The run file: one SQLite database that records everything that happened (see `docs/store.md`)."""

from .branches import MAIN, Branch, Point, StepCall
from .episodes import PromotedBranch, RecordedEpisode
from .judgement_sets import OWN_JUDGEMENTS, PANEL, JudgementSet, judges_of, panel_of
from .ledger import CommonCall
from .listing import Choices, Neighbours, ScenarioPage, ScenarioQuery, ScenarioRow
from .plan import JudgeWork, PlayWork, Work
from .runfile import RunFile
from .status import CheckErrors, Status, Usage
from .store import RunStore

__all__ = [
    "MAIN",
    "OWN_JUDGEMENTS",
    "PANEL",
    "Branch",
    "CheckErrors",
    "Choices",
    "CommonCall",
    "JudgeWork",
    "JudgementSet",
    "Neighbours",
    "PlayWork",
    "Point",
    "PromotedBranch",
    "RecordedEpisode",
    "RunFile",
    "RunStore",
    "ScenarioPage",
    "ScenarioQuery",
    "ScenarioRow",
    "Status",
    "StepCall",
    "Usage",
    "Work",
    "judges_of",
    "panel_of",
]
