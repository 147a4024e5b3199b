"""PersonaLens scenarios: a person, one of their tasks, and the information that the assistant gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict

from dialoom.graphs.scenario import Scenario
from dialoom.personas import Profile, Task

Setting = Literal["vanilla", "base", "D", "I", "S", "DI", "DS", "IS", "all"]
"""The assistant's information (table 4 of the paper): a minimal prompt, a personalizing prompt, and with the latter any
of D (demographics), I (summaries of past interactions), S (situation); `all` is D + I + S."""

SETTINGS: tuple[str, ...] = get_args(Setting)
TURN_LIMITS: Mapping[str, int] = {"single": 20, "multi": 30}
"""Turns after which a dialogue is ended (footnote 2 of the paper)."""


class DomainContext(BaseModel):
    """The person's data in one domain of the task."""

    model_config = ConfigDict(frozen=True)
    name: str
    affinities: Mapping[str, str]
    summary: str


class PersonaLensScenario(Scenario):
    """All data of a dialogue. Affinities are for the user and the judge; the assistant never sees them."""

    user: str
    task: str
    setting: Setting
    demographics: Mapping[str, str]
    domains: tuple[DomainContext, ...]
    situation: Mapping[str, str]
    description: str
    intent: str
    goal: str
    relevant_affinities: tuple[str, ...]
    turn_limit: int

    @classmethod
    def of(cls, profile: Profile, task: Task, setting: Setting, turn_limit: int | None = None) -> PersonaLensScenario:
        """Return the scenario of a person's task in a setting, by default with the paper's turn limit."""
        domains = tuple(
            DomainContext(name=name, affinities=domain.preferences, summary=domain.summary)
            for name, domain in ((name, profile.domains[name]) for name in task.domains)
        )
        return cls(
            user=profile.user_id,
            task=task.id,
            setting=setting,
            demographics=profile.demographics.for_prompt(),
            domains=domains,
            situation=task.situation.for_prompt(),
            description=task.description,
            intent=task.intent,
            goal=task.goal,
            relevant_affinities=task.relevant_affinities,
            turn_limit=TURN_LIMITS[task.kind] if turn_limit is None else turn_limit,
        )

    @property
    def label(self) -> str:
        """Person, task and setting."""
        return f"{self.user} {self.task} {self.setting}"

    @property
    def kind(self) -> str:
        """`single` or `multi`, by the number of domains."""
        return "single" if len(self.domains) == 1 else "multi"

    def facets(self) -> dict[str, Any]:
        """Return person, task, domains, setting, and the kind of the task."""
        return {
            "user": self.user,
            "task": self.task,
            "domains": [domain.name for domain in self.domains],
            "setting": self.setting,
            "kind": self.kind,
        }

    def described(self) -> dict[str, Any]:
        """Return the facets, the task's texts and the situation."""
        return {
            **self.facets(),
            "description": self.description,
            "intent": self.intent,
            "goal": self.goal,
            "situation": dict(self.situation),
            "turn_limit": self.turn_limit,
        }

    def portrait(self) -> dict[str, Any]:
        """Return the demographics."""
        return {"person": dict(self.demographics)}

    def preferences(self) -> dict[str, str]:
        """Return the affinities of the task's domains."""
        return {f"{domain.name}: {name}": value for domain in self.domains for name, value in domain.affinities.items()}

    @property
    def most_replies(self) -> int:
        """The most messages of the assistant; the limit ends a dialogue before the last, with the user's."""
        return self.turn_limit + 1

    @property
    def assistant_prompt(self) -> str:
        """The id of the assistant's prompt."""
        return "personalens/assistant-vanilla" if self.setting == "vanilla" else "personalens/assistant"

    def for_assistant(self) -> dict[str, Any]:
        """Return the inputs of the assistant's prompt that the setting allows."""
        shown = "DIS" if self.setting == "all" else self.setting
        summaries = [{"domain": domain.name, "text": domain.summary} for domain in self.domains]
        return {
            "demographics": self.demographics if "D" in shown else None,
            "summaries": summaries if "I" in shown else [],
            "situation": self.situation if "S" in shown else None,
        }
