"""The public names of dialoom. They are listed only here: type checkers and `__init__.py` read this file."""
# ruff: noqa: I001

from dialoom.api.charts import chart as chart
from dialoom.api.expecting import (
    Expectation as Expectation,
    areplay as areplay,
    expect as expect,
    replay as replay,
)
from dialoom.api.importing import (
    ImportResult as ImportResult,
    aimport_transcripts as aimport_transcripts,
    import_transcripts as import_transcripts,
)
from dialoom.api.operations import (
    Run as Run,
    aestimate as aestimate,
    ajudge as ajudge,
    aplan as aplan,
    aplay as aplay,
    aresume as aresume,
    aretry as aretry,
    areview as areview,
    estimate as estimate,
    judge as judge,
    open_run as open_run,
    plan as plan,
    play as play,
    resume as resume,
    retry as retry,
    review as review,
    step as step,
    stream as stream,
)
from dialoom.api.run import (
    describe as describe,
    report as report,
)
from dialoom.api.scorecards import (
    ascorecard as ascorecard,
    open_scorecard as open_scorecard,
    scorecard as scorecard,
)
from dialoom.api.operation_settings import (
    CallSettings as CallSettings,
    PlaySettings as PlaySettings,
)
from dialoom.api.simulating import (
    asimulate as asimulate,
    simulate as simulate,
)
from dialoom.api.trying import (
    JudgeTrial as JudgeTrial,
    atry_judge as atry_judge,
    try_judge as try_judge,
)
from dialoom.errors import (
    Advice as Advice,
    DialoomError as DialoomError,
)
from dialoom.graphs import (
    Check as Check,
    DialogueRecipe as DialogueRecipe,
    Episode as Episode,
    Judge as Judge,
    Judgement as Judgement,
    Line as Line,
    Outcome as Outcome,
    Recipe as Recipe,
    RecipeOptions as RecipeOptions,
    Scenario as Scenario,
    Turns as Turns,
)
from dialoom.roles.gateway.availability import (
    ProviderReachable as ProviderReachable,
    ProviderUnreachable as ProviderUnreachable,
)
from dialoom.roles.gateway.litellm_backend import tune_process as tune_process
from dialoom.roles.gateway.model_facts import load_env_file as load_env_file
from dialoom.roles.players import Session as Session
from dialoom.runs.control import (
    Control as Control,
    Ended as Ended,
    Event as Event,
    NodeMessage as NodeMessage,
    Notice as Notice,
    Planned as Planned,
    Retrying as Retrying,
    ScenarioDone as ScenarioDone,
    ScenarioFailed as ScenarioFailed,
    Started as Started,
    Stopping as Stopping,
)
from dialoom.runs.report import Report as Report
from dialoom.runs.scorecard import Scorecard as Scorecard
from dialoom.runs.stepping import (
    ReplayResult as ReplayResult,
    Stepper as Stepper,
)
from dialoom.settings import (
    Agent as Agent,
    Budget as Budget,
    Model as Model,
    Price as Price,
)
from dialoom.version import __version__ as __version__

__all__: list[str]
