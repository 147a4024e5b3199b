"""The settings of runs, each declared once. This module is below all layers.

A setting is an item of one of the typed dictionaries below. Its type is that of the keyword argument in Python. Its
`Field` has the default, the bounds and the description, and its `Flag` describes it for the command line and YAML
files. `build_settings_model` makes the pydantic model that checks the settings.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    Strict,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from dialoom.errors import SettingError

SettingsT = TypeVar("SettingsT", bound=Mapping[str, object])

PathLike: TypeAlias = str | os.PathLike[str]

DEFAULT_CONCURRENCY, MAX_CONCURRENCY = 16, 10_000
"""The default and the maximum number of concurrent scenarios; each is a task with its own state."""

MAX_TRIALS = 10_000
"""The maximum number of trials, which are all planned before the first is played."""

SHIPPED_PROMPTS = ("small",)
"""The shipped sets of prompts that can replace a recipe's own prompts: the names of folders in `prompts/`."""

MAX_REPLY_TOKENS = 10_000_000
"""The upper bound of `max_reply`: no model's reply is longer, so a larger value must be a typing error."""

FLAG_FAULTS = "flag"
"""The default treatment of a simulated user's fault: it is recorded with the outcome."""

_SECONDS_BY_UNIT = {"s": 1, "m": 60, "h": 3600}


def as_mapping(value: Any) -> dict[str, Any]:
    """Return a setting as a mapping by role or model; the key of a value for all of them is the empty name."""
    if value is None:
        return {}
    return {**value} if isinstance(value, Mapping) else {"": value}


@dataclass(frozen=True, slots=True)
class ByName:
    """The annotation of a setting that can be given by role or by model, or for all roles or models.

    Attributes:
        item: The type of each value.
        of: What the names identify: `role` or `model`.
        is_for_all: Whether one value may be given for all roles or models.
    """

    item: Any
    of: Literal["role", "model"] = "role"
    is_for_all: bool = True

    @property
    def is_text(self) -> bool:
        """Return whether the values are strings, so that a value such as `5` is not read as a number."""
        return self.item in (str, Any) or get_origin(self.item) is Literal

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of a dictionary; it also accepts a single value."""
        items = core_schema.dict_schema(core_schema.str_schema(), handler.generate_schema(self.item))
        return core_schema.no_info_before_validator_function(self._to_mapping, items)

    def _to_mapping(self, value: Any) -> Any:
        if value is not None and not isinstance(value, Mapping) and not self.is_for_all:
            raise ValueError(f"a mapping by {self.of}")
        return as_mapping(value)


@dataclass(frozen=True, slots=True)
class ValidatedAs:
    """The annotation of a setting that is checked by, and converted to, a type other than the declared one."""

    type_: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of the other type."""
        return handler.generate_schema(self.type_)


@dataclass(frozen=True, slots=True)
class Flag:
    """The annotation of a setting that the command line and YAML files can give.

    Attributes:
        panel: The panel of the command's help that lists the setting.
        metavar: The placeholder for the value in the help; a choice of names and `none` are added where they apply.
        name: The name of the flag and the YAML key, if it differs from the setting's name.
        is_removable: Whether `none` removes the value.
        is_repeatable: Whether there may be several values.
        is_in_files: Whether YAML files can give the setting; false if only the command line can, as a stranger may have
            written the file.
        short: Additional flags of one letter.
    """

    panel: Literal["Models", "Limits", "Output", "Advanced"]
    metavar: str = ""
    name: str = ""
    is_removable: bool = False
    is_repeatable: bool = False
    is_in_files: bool = True
    short: str = ""


def resolve_prompt_sets(value: Any) -> Any:
    """Return sets of prompts, given as one or several: names of shipped sets, and folders as absolute paths."""
    sets = value if isinstance(value, list | tuple) else () if value is None else [value]
    return tuple(
        str(Path(each).expanduser().absolute())
        if isinstance(each, str | os.PathLike) and each not in SHIPPED_PROMPTS
        else each
        for each in sets
    )


def check_lists(**arguments: Any) -> None:
    """Check that arguments, given by name, are lists or other collections, and not single strings or paths.

    Raises:
        SettingError: If one is not.
    """
    for name, value in arguments.items():
        if isinstance(value, str | os.PathLike | Mapping) or not isinstance(value, Iterable):
            raise SettingError(f"{name} must be a list, got {value!r:.60}", setting=name)


def parse_names(value: Any) -> Any:
    """Return the names in a comma-separated string, or a list unchanged."""
    return tuple(filter(None, (name.strip() for name in value.split(",")))) if isinstance(value, str) else value


def _parse_seconds(value: Any) -> Any:
    """Return a number of seconds, given as a number or as text such as `90s`, `10m` or `2h`."""
    if isinstance(value, str) and value[-1:] in _SECONDS_BY_UNIT:
        try:
            return float(value[:-1]) * _SECONDS_BY_UNIT[value[-1]]
        except ValueError as error:
            raise ValueError("a number of seconds, or a time such as 90s, 10m or 2h") from error
    return value


def _parse_failure_limit(value: Any) -> Any:
    """Return a number of failed scenarios (at least 1), or a percentage such as `5%`, as text."""
    text = str(value).strip()
    if not re.fullmatch(r"0*[1-9]\d*|\d{1,2}(\.\d+)?\s?%", text, re.ASCII):
        raise ValueError("a number of scenarios of at least 1, or a percentage from 0% to below 100% such as 5%")
    return text


_WITH_OTHER_SETTINGS = "among settings"
"""The context of a validation whose errors are reworded together with those of other settings."""


class Budget(BaseModel):
    """Upper bounds of a run's calls, tokens and cost; `None` for no bound.

    Example:
        >>> budget = dialoom.Budget(max_calls=5)
        >>> dialoom.play("personalens", path="bounded.db", options={"limit": 2}, budget=budget).status().pending
        2
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    max_calls: Annotated[
        int | None,
        Field(ge=0, description="The maximum number of answered calls of the whole run."),
        Flag("Limits", "N", is_removable=True),
    ] = None
    max_tokens: Annotated[
        int | None,
        Field(ge=0, description="The maximum number of tokens of the whole run, input and output together."),
        Flag("Limits", "N", is_removable=True),
    ] = None
    max_cost: Annotated[
        float | None,
        Field(ge=0, allow_inf_nan=False, description="The maximum cost of the whole run, in US dollars."),
        Flag("Limits", "USD", is_removable=True),
    ] = None

    @model_validator(mode="wrap")
    @classmethod
    def _check_bounds(cls, value: Any, handler: Callable[[Any], Self], info: ValidationInfo) -> Self:
        try:
            return handler(value)
        except ValidationError as error:
            if info.context == _WITH_OTHER_SETTINGS:
                raise
            problem = error.errors()[0]
            raise build_setting_error({**problem, "loc": ("budget", *problem["loc"])}) from error

    def with_changes(self, overrides: Budget | None) -> Budget:
        """Return this budget with the bounds that another budget sets; a bound that it sets to `None` is removed."""
        if overrides is None:
            return self
        return self.model_copy(update=overrides.model_dump(include=overrides.model_fields_set))

    @property
    def is_bounded(self) -> bool:
        """Return whether any bound is set."""
        return any(bound is not None for bound in (self.max_calls, self.max_tokens, self.max_cost))


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    Example:
        >>> prices = {"offline/attentive": dialoom.Price(input=0.15, output=0.6)}
        >>> run = dialoom.play("personalens", path="priced.db", options={"limit": 1}, prices=prices)

    Attributes:
        cached_input: Price of input that the provider reads from its prompt cache; by default the price of other input.
    """

    input: float
    output: float
    cached_input: float | None = None

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached_input"):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not ((is_number and 0 <= value < math.inf) or (name == "cached_input" and value is None)):
                raise SettingError(
                    f"the {name} price must be at least 0 US dollars per million tokens, got {value!r:.60}",
                    setting="prices",
                )

    def compute_cost(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0) -> float:
        """Return the cost in US dollars. Cached tokens are included in the input tokens."""
        cached_tokens = min(cached_tokens, input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        uncached_tokens = input_tokens - cached_tokens
        return (uncached_tokens * self.input + cached_tokens * cached_price + output_tokens * self.output) / 1_000_000


def _check_user_fault(value: str) -> str:
    """Check a treatment of faulty lines of the simulated user, and return it."""
    if not re.fullmatch(rf"{FLAG_FAULTS}|retry [1-9]\d?", value):
        raise ValueError(f"{FLAG_FAULTS}, or 'retry N' with N from 1 to 99")
    return value


def _parse_price(value: Any) -> Any:
    """Return a price from `IN,OUT[,CACHED]`, or from a list of these."""
    if isinstance(value, Price | dict):
        return value
    try:
        return Price(*map(float, value if isinstance(value, list | tuple) else str(value).split(",")))
    except (TypeError, ValueError, SettingError) as error:
        raise ValueError("IN,OUT or IN,OUT,CACHED in US dollars per million tokens, each at least 0") from error


Reply: TypeAlias = Callable[..., Any]
"""A function, async or not, that gets the chat messages a model would receive and returns a reply. A reply is a string,
a chat message as a dictionary, an `AIMessage`, or a generator of the reply's pieces. A function with a parameter
`tools` gets the tools offered by the request, and may reply with a message that has `tool_calls`. A function with a
parameter `session` gets a `Session`.
"""


@runtime_checkable
class LangChainModel(Protocol):
    """A LangChain chat model, or another runnable that gets messages and returns an `AIMessage` or a string."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        """Return the reply to the messages."""
        ...


@runtime_checkable
class CompiledGraph(Protocol):
    """A compiled LangGraph graph whose state has `messages`."""

    async def ainvoke(self, input: Any, config: Any = None) -> Any:
        """Return the final state."""
        ...

    async def aget_state(self, config: Any) -> Any:
        """Return the state of a thread. It is never called; it only distinguishes graphs from other objects."""
        ...


GraphFactory: TypeAlias = Callable[[list[Any]], CompiledGraph]
"""A plain function that gets `tools` (a LangChain tool for each tool of the request) and returns a compiled graph."""

PlayerObject: TypeAlias = Reply | LangChainModel | CompiledGraph | GraphFactory

Player: TypeAlias = str | PlayerObject
"""A model's name (LiteLLM's, `offline/...`, `python:...`, `graph:...`), a function or a generator, a compiled graph, a
function of `tools` that returns a compiled graph, or a LangChain chat model or runnable."""

Structured: TypeAlias = Literal["auto", "schema", "json", "prompt"]
"""The constraint on the form of a reply: a JSON schema, JSON mode, or the prompt alone. `auto` selects the strictest
constraint that the model is known to support or does not reject.
"""

Temperature: TypeAlias = float | Literal["none"]
"""A sampling temperature from 0 to 2, or `"none"` to send no temperature, for models that reject the parameter."""

SessionForm: TypeAlias = Literal["user", "metadata", "headers"]
"""Where a request to a model identifies the session: in `user` (the person's id), in `metadata`, or in headers."""

Synchronous: TypeAlias = Literal["normal", "full"]
"""The failures that a commit survives: process crashes (`normal`), or also power cuts (`full`)."""

UserFault: TypeAlias = Annotated[str, AfterValidator(_check_user_fault)]
OptionalTemperature: TypeAlias = Annotated[
    float | None,
    Field(ge=0, le=2, allow_inf_nan=False),
    BeforeValidator(lambda given: None if given == "none" else given),
]
ReplyTokens: TypeAlias = Annotated[int | None, Field(ge=0, le=MAX_REPLY_TOKENS)]
_PerMinute: TypeAlias = Annotated[int | None, Field(ge=1, le=10**12)]


@dataclass(frozen=True, slots=True)
class Model:
    """A player with its own settings, which override those of its role.

    Example:
        >>> judge = dialoom.Model("offline/generic", temperature=0.0, max_reply=500)
        >>> run = dialoom.play("personalens", path="judged.db", models={"judge": judge}, options={"limit": 1})

    Attributes:
        player: The player.
        temperature: As in `PlayerSettings`; `None`, here and below, for the setting of the role.
        api_base: The address of the model's server, if it is not the provider's own.
        max_reply: As in `PlayerSettings`.
        params: Further sampling parameters by name.
        structured: As in `PlayerSettings`.
        stateful: Whether the player keeps state between calls; it then gets only new messages.
        takes_tools: Whether the model accepts tools natively although LiteLLM's table does not list it.
        session: As in `PlayerSettings`.
        name: The name, in the run's file and in reports, of a function, graph or LangChain model given as an object; by
            default the object's own name.
    """

    player: Player
    temperature: Temperature | None = None
    api_base: str | None = None
    max_reply: int | None = None
    params: Mapping[str, Any] | None = None
    structured: Structured | None = None
    stateful: bool = False
    takes_tools: bool = False
    session: SessionForm | None = None
    name: str | None = None


class Agent(Model):
    """Your own assistant or other player, with its settings; the same as `Model`.

    Example:
        >>> agent = dialoom.Agent(my_agent, name="shop agent")  # a function, a LangGraph graph, a model's name, ...
        >>> run = dialoom.play("personalens", path="agent.db", models={"assistant": agent}, options={"limit": 1})
    """

    __slots__ = ()


ModelLike: TypeAlias = Player | Model
Players: TypeAlias = ModelLike | list[ModelLike] | tuple[ModelLike, ...]
"""The player of a role; or several players, for judges and for models of the user."""


class PlayerSettings(TypedDict, total=False):
    """Settings of players and their replies. A value for one role overrides the value for all roles."""

    models: Annotated[
        Mapping[str, Players] | None,
        ByName(Any, is_for_all=False),
        Field(
            description="The player of each role: any LiteLLM model, python:module:function, graph:file.py:name or, by "
            "default, a scripted stand-in: offline/attentive, or offline/placeholder in roles that it cannot play. "
            "Several judges judge one after the other; with several models of the user, each scenario is played with "
            "each of them."
        ),
        Flag("Models", "[ROLE=]MODEL", name="model"),
    ]
    temperature: Annotated[
        Temperature | Mapping[str, Temperature | None] | None,
        ByName(OptionalTemperature),
        Field(description="Sampling temperature from 0 to 2; 'none' sends none, for models that reject it."),
        Flag("Models", "T", is_removable=True),
    ]
    api_base: Annotated[
        str | Mapping[str, str] | None,
        ByName(str),
        Field(description="The address at which the model is served, if not its provider's own."),
        Flag("Models", "URL"),
    ]
    structured: Annotated[
        str | Mapping[str, str] | None,
        ByName(Structured),
        Field(
            description="How replies are constrained to their form: schema (JSON schema), json (JSON mode), prompt "
            "(instructions alone), or auto for the strictest that the model supports. [default: auto]"
        ),
        Flag("Models", "HOW"),
    ]
    max_reply: Annotated[
        int | Mapping[str, int | None] | None,
        ByName(ReplyTokens),
        Field(
            description="The maximum number of tokens of a reply, reasoning included; 0 for no limit. "
            "[default: the recipe's own]"
        ),
        Flag("Models", "N", is_removable=True),
    ]
    stateful: Annotated[
        str | Sequence[str] | None,
        ValidatedAs(Annotated[tuple[str, ...], Strict(False), BeforeValidator(parse_names)]),
        Field(
            description="Roles whose players keep state between calls: they get only new messages, and a resumed run "
            "restores their state after the last reply (see docs/sessions.md)."
        ),
        Flag("Models", "ROLE[,ROLE]"),
    ]
    takes_tools: Annotated[
        str | Sequence[str] | None,
        ValidatedAs(Annotated[tuple[str, ...], Strict(False), BeforeValidator(parse_names)]),
        Field(
            description="Roles whose models accept tools natively although LiteLLM's table does not list them; "
            "other models get no tools unless the table lists them."
        ),
        Flag("Models", "ROLE[,ROLE]"),
    ]
    session: Annotated[
        str | Mapping[str, str] | None,
        ByName(SessionForm),
        Field(
            description="Where requests to a model identify the conversation and the person: user, metadata or "
            "headers. [default: nowhere]"
        ),
        Flag("Models", "WHERE"),
    ]
    params: Annotated[
        Mapping[str, Mapping[str, Any]] | None,
        ByName(Any, is_for_all=False),
        Field(
            description="Further sampling parameters by role and name: top_p, stop, seed, reasoning_effort, ..., and "
            "extra_body for parameters that only the provider knows."
        ),
        Flag("Models", "[ROLE.]KEY=VALUE", name="param"),
    ]


BudgetLike: TypeAlias = Budget | Mapping[str, Any] | None
"""A budget, or its bounds by name."""

Rates: TypeAlias = int | Mapping[str, int | None] | None
"""A rate limit for every model, or by model; `None` removes a model's limit."""


class LimitSettings(TypedDict, total=False):
    """Budget, prices, rates, time limits and context windows. The run's file stores the values given last.

    A setting also needs a field in `CallLimits` (`roles/gateway/gateway.py`), in the form in which it is stored.
    """

    budget: Annotated[
        BudgetLike,
        ValidatedAs(Annotated[Budget | None, Strict(False)]),
        Field(description="Bounds of the whole run's consumption; bounds that are not given stay unchanged."),
    ]
    prices: Annotated[
        Mapping[str, Price] | None,
        ByName(Annotated[Price, BeforeValidator(_parse_price)], "model", is_for_all=False),
        Field(description="US dollars per million tokens, for models whose price LiteLLM does not know."),
        Flag("Limits", "IN,OUT[,CACHED]", name="price"),
    ]
    rpm: Annotated[
        Rates,
        ByName(_PerMinute, "model"),
        Field(description="The maximum number of requests per minute."),
        Flag("Limits", "N", is_removable=True),
    ]
    tpm: Annotated[
        Rates,
        ByName(_PerMinute, "model"),
        Field(description="The maximum number of tokens per minute."),
        Flag("Limits", "N", is_removable=True),
    ]
    context: Annotated[
        Mapping[str, int | None] | None,
        ByName(Annotated[int | None, Field(ge=1, le=10**9)], "model", is_for_all=False),
        Field(
            description="The context window in tokens, request and reply together; a request that cannot fit is not "
            "sent. [default: LiteLLM's table]"
        ),
        Flag("Limits", "N", is_removable=True),
    ]
    timeout: Annotated[
        float | Mapping[str, float | None] | None,
        ByName(Annotated[float | None, Field(ge=0, le=86_400, allow_inf_nan=False)]),
        Field(
            description="Seconds after which one attempt at a call is abandoned and repeated (a call of an MCP tool "
            "is not repeated); 0 removes the value. [default: 600 for models and tools]"
        ),
        Flag("Limits", "SECONDS", is_removable=True),
    ]


class ProcessSettings(LimitSettings, total=False):
    """Settings of how this process makes calls. They change no reply and, unlike `LimitSettings`, are not stored.

    A setting that the gateway reads also needs a field of that name in `GatewaySettings` (`roles/gateway/gateway.py`).
    """

    concurrency: Annotated[
        int,
        Field(
            default=DEFAULT_CONCURRENCY,
            ge=1,
            le=MAX_CONCURRENCY,
            description="Maximum number of scenarios in progress at once, and of concurrent calls to each model. "
            "The run's file does not store it: give it again to resume the run.",
        ),
        Flag("Limits", "N"),
    ]
    fail_on_error: Annotated[
        int | str | None,
        ValidatedAs(Annotated[str, BeforeValidator(_parse_failure_limit)]),
        Field(
            default=None,
            description="Stop after this number of failed scenarios, or when more than this percentage of the finished "
            "scenarios (at least 20) has failed.",
        ),
        Flag("Limits", "N|P%"),
    ]
    patience: Annotated[
        float,
        ValidatedAs(Annotated[float, Field(ge=0), BeforeValidator(_parse_seconds)]),
        Field(
            default=600.0,
            description="How long to wait for a provider that cannot be reached, before the run is stopped (it can be "
            "resumed): seconds, or a time such as 90s, 10m or 2h. With 0, scenarios fail instead.",
        ),
        Flag("Limits", "TIME"),
    ]
    cache: Annotated[
        PathLike | None,
        ValidatedAs(
            Annotated[
                Path | None,
                BeforeValidator(lambda given: Path(given) if isinstance(given, str | os.PathLike) else given),
            ]
        ),
        Field(description="A file through which replies are shared with other runs that have the same seed."),
        Flag("Advanced", "FILE"),
    ]
    synchronous: Annotated[
        Synchronous,
        Field(
            default="normal",
            description="The failures that a commit survives: process crashes ('normal'), or also power cuts ('full').",
        ),
        Flag("Advanced", "normal|full"),
    ]
    workers: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_CONCURRENCY,
            description="Play with this number of processes; concurrency, budget and rates apply to all together. "
            "Needs dialoom[ray].",
        ),
        Flag("Advanced", "N"),
    ]
    ray: Annotated[
        str | None,
        Field(description="Play on the Ray cluster at this address: auto, or HOST:PORT. Needs dialoom[ray]."),
        Flag("Advanced", "ADDRESS"),
    ]
    otel: Annotated[
        bool,
        Field(default=False, description="Send an OpenTelemetry span of each call to OTEL_EXPORTER_OTLP_ENDPOINT."),
        Flag("Advanced"),
    ]
    strict_params: Annotated[
        bool,
        Field(
            default=False,
            description="Refuse models to which a parameter would not be sent as configured, instead of reporting it.",
        ),
        Flag("Models"),
    ]
    replay_only: Annotated[
        bool,
        Field(default=False, description="Make no calls; every reply must already be recorded."),
        Flag("Advanced"),
    ]
    trust: Annotated[
        bool,
        Field(
            default=False,
            description="Trust the code and addresses that the file refers to, even if they were not specified on "
            "this machine.",
        ),
        Flag("Advanced", is_in_files=False),
    ]


class RunSettings(PlayerSettings, total=False):
    """The settings of a new run, apart from its recipe.

    A setting that affects results also needs a field of `RunConfig`, to which `resolve_new_run` of the API passes it.
    """

    model: Annotated[
        ModelLike | None,
        ValidatedAs(Any),
        Field(description="The player of every role that is not in `models`."),
    ]
    prompts: Annotated[
        PathLike | Sequence[PathLike] | None,
        ValidatedAs(Annotated[tuple[str, ...], Strict(False), BeforeValidator(resolve_prompt_sets)]),
        Field(
            default=(),
            description="Prompts that replace the recipe's prompts with the same ids: your own folder, or 'small' "
            "(short prompts for small models). If several are given, later ones override earlier ones. A folder with "
            "the name small is given as ./small.",
        ),
        Flag("Models", "DIR|small", is_repeatable=True),
    ]
    options: Annotated[
        Mapping[str, Any] | BaseModel | None, ValidatedAs(Any), Field(description="The options of the recipe, by name.")
    ]
    seed: Annotated[
        int, Field(default=0, description="The seed from which all random draws are derived."), Flag("Advanced", "N")
    ]
    sample: Annotated[
        int | None,
        Field(
            ge=1,
            description="Draw this number of scenarios with the seed, spread evenly over people, settings and other "
            "facets.",
        ),
        Flag("Advanced", "N"),
    ]
    trials: Annotated[
        int,
        Field(
            default=1,
            ge=1,
            le=MAX_TRIALS,
            description="Play each scenario this number of times, independently; `resume` can add trials to a run.",
        ),
        Flag("Advanced", "N"),
    ]
    on_user_fault: Annotated[
        str,
        ValidatedAs(UserFault),
        Field(
            default=FLAG_FAULTS,
            description="How faulty lines of the simulated user are treated: flag records the fault with the outcome; "
            "'retry N' requests the line again up to N times, before the other side sees it.",
        ),
        Flag("Advanced", "flag|'retry N'"),
    ]


@lru_cache
def build_settings_model(settings_type: Any) -> type[BaseModel]:
    """Return the pydantic model of a typed dictionary's settings; those without a default are `None` if not given."""
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    model = create_model(
        settings_type.__name__, __config__=config, **{**get_type_hints(settings_type, include_extras=True)}
    )
    for field in model.model_fields.values():
        if field.is_required():
            field.default = None
    model.model_rebuild(force=True)
    return model


def validate_settings(settings_type: type[SettingsT], settings: SettingsT, *, is_text: bool = False) -> SettingsT:
    """Return checked settings with all defaults; those that can be given by role or model are mappings.

    Args:
        settings_type: The typed dictionary that declares them.
        settings: The settings; `None` means that a setting is not given.
        is_text: Whether numbers may be given as strings, as on the command line.

    Raises:
        SettingError: If a setting is invalid or unknown; the message states its name, its value and what it must be.
    """
    model = build_settings_model(settings_type)
    for name in sorted(settings.keys() - model.model_fields.keys()):
        raise SettingError(f"{name} is not a setting; {_suggest_setting(name, list(model.model_fields))}", setting=name)
    values = {name: value for name, value in settings.items() if value is not None}
    if is_text:
        check_truth(model, values)
    try:
        return cast(
            SettingsT,
            dict(model.model_validate(values, strict=None if is_text else True, context=_WITH_OTHER_SETTINGS)),
        )
    except ValidationError as error:
        raise build_setting_error(error.errors()[0]) from error


def check_truth(model: type[BaseModel], values: Mapping[str, object]) -> None:
    """Refuse true and false where a number is needed: pydantic would take them as 1 and 0.

    Raises:
        SettingError: If a value is true or false and must be something else.
    """
    try:
        model.model_validate(values, strict=True, context=_WITH_OTHER_SETTINGS)
    except ValidationError as error:
        for problem in error.errors():
            if isinstance(problem["input"], bool):
                raise build_setting_error(problem) from error


def select_settings(settings_type: type[SettingsT], settings: Mapping[str, object]) -> SettingsT:
    """Return only the settings that a typed dictionary declares."""
    return cast(
        SettingsT,
        {name: value for name, value in settings.items() if name in build_settings_model(settings_type).model_fields},
    )


def describe_settings(settings_type: Any) -> str:
    """Return a typed dictionary's docstring extended by the description of each setting."""
    lines = [
        textwrap.fill(f"{name}: {field.description}", 110, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for name, field in build_settings_model(settings_type).model_fields.items()
    ]
    return "\n".join([str(settings_type.__doc__), "", "    Attributes:", *lines])


def validate_value(name: str, type_: Any, value: Any, of: str = "") -> Any:
    """Return one value of a setting, checked by its type.

    Args:
        name: The setting.
        type_: The type of its values.
        value: The value.
        of: The role, if the value is for one role.

    Raises:
        SettingError: If a setting is invalid; the message states its name, its value and what it must be.
    """
    try:
        return _get_adapter(type_).validate_python(value, strict=True)
    except ValidationError as error:
        raise build_setting_error({**error.errors()[0], "loc": (name, of)}) from error


_get_adapter: Callable[[Any], TypeAdapter[Any]] = lru_cache(TypeAdapter)


def build_setting_error(problem: ErrorDetails) -> SettingError:
    """Return the error of an invalid setting: its name, what it must be, and its value."""
    name, *names = (str(each) for each in problem["loc"] if each)
    if name == "budget" and names and problem["type"] == "extra_forbidden":
        bounds = ", ".join(Budget.model_fields)
        return SettingError(f"budget can only have the bounds {bounds}, got {names[0]!r}", setting=name)
    if name == "budget" and names:
        name = names.pop(0)
    label = " of ".join([name, *names[:1]])
    return SettingError(f"{label} must be {describe_requirement(problem)}, got {problem['input']!r:.60}", setting=name)


def describe_requirement(problem: ErrorDetails) -> str:
    """Return a text that completes 'must be', such as 'at least 1'."""
    error_type, context = problem["type"], problem.get("ctx", {})
    if error_type in _BOUND_TEXTS:
        word, key = _BOUND_TEXTS[error_type]
        bound = context[key]
        return f"{word} {int(bound) if bound == int(bound) else bound:,}"
    if error_type == "value_error":
        return str(context["error"])
    if error_type == "literal_error":
        return f"one of {context['expected']}".replace("'", "")
    if error_type == "string_pattern_mismatch":
        return f"a text of the form {context['pattern']}"
    return next((word for start, word in _TYPE_TEXTS.items() if error_type.startswith(start)), problem["msg"])


def _suggest_setting(name: str, names: list[str]) -> str:
    """Return a hint for an unknown setting: where to give it, a setting with a similar name, or all settings."""
    if name in Budget.model_fields:
        return f"this bound is part of the budget: budget=dialoom.Budget({name}=...)"
    return suggest_name(name, names, "settings")


def suggest_name(name: str, names: Sequence[str], kind: str) -> str:
    """Return a hint for an unknown name: a similar name, or all names of its kind, such as `settings`."""
    if matches := get_close_matches(name, names, 1):
        return f"did you mean {matches[0]}?"
    return f"the {kind} are {', '.join(names)}"


_BOUND_TEXTS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}
_TYPE_TEXTS = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "string_too_short": "a text that is not empty",
    "string": "a text",
    "tuple": "a list",
    "is_instance": "a path",
    "dict": "a mapping",
    "mapping": "a mapping",
    "model": "a Budget or its bounds by name, such as {'max_calls': 100}",
    "callable": "a function",
    "dataclass": "a dialoom.Price, or a list [IN, OUT]",
}
