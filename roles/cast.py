"""The roles of a run, by prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pydantic import BaseModel

from dialoom.prompts import Prompt, PromptLibrary

from . import offline
from .binding import ATTENTIVE, OFFLINE, PLACEHOLDER, ModelBinding
from .errors import BindingError
from .gateway import Caller
from .replies import reply_type
from .role import Role


class NoUnderstudiesError(BindingError):
    """No understudy is registered for a role that is assigned to an offline model.

    Args:
        role: The role.
        model: The offline model.
    """

    def __init__(self, role: str, model: str) -> None:
        self.reason = f"no understudy plays the role {role!r}"
        super().__init__(
            f"models: role {role!r} is left to {model}, and {self.reason}: give it a model, or register an understudy; "
            f"{PLACEHOLDER} plays any role",
            setting="models",
        )


class Cast:
    """The roles of a run: a `Role` for each prompt, played by the model of the prompt's role.

    Args:
        library: The run's prompts.
        models: The model of each role.
        gateway: The gateway that calls are made through.
        reply_types: A recipe's own reply types, besides the general ones (see `reply_type`).

    Raises:
        BindingError: If a prompt's role has no model or its reply type is unknown.
    """

    def __init__(
        self,
        library: PromptLibrary,
        models: Mapping[str, ModelBinding],
        gateway: Caller,
        reply_types: Mapping[str, type[BaseModel]] | None = None,
    ) -> None:
        check_cast(library, models, reply_types)
        self._models = models
        self._roles = {
            prompt.id: Role(prompt, models[prompt.front.role], reply_type(prompt.front.reply, reply_types), gateway)
            for prompt in library.values()
        }

    def __getitem__(self, prompt_id: str) -> Role:
        """Return the role that plays a prompt.

        Raises:
            BindingError: If the recipe has no such prompt, or its role is not used with these options.
        """
        try:
            return self._roles[prompt_id]
        except KeyError:
            known = _listed(self._roles)
            raise BindingError(
                f"prompt {prompt_id!r} is asked for and cannot be played: it is not among the recipe's prompts, or its "
                f"role not among the roles that these options use; there are {known}"
            ) from None

    def played_by(self, role: str, prompt_id: str) -> Role:
        """Return another role that plays a prompt in place of the prompt's own.

        Raises:
            BindingError: If it has no model, or the prompt cannot be played.
        """
        if role not in self._models:
            raise BindingError(f"role {role!r} is to play {prompt_id!r} and has no model; {_listed(self._models)} have")
        return replace(self[prompt_id], binding=self._models[role], name=role)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def stand_ins(library: Mapping[str, Prompt]) -> dict[str, str]:
    """Return the offline model that plays each role of a run's prompts.

    Args:
        library: The prompts by id.

    Returns:
        `offline/attentive` for roles with an understudy of their own, `offline/placeholder` for all others.
    """
    found: dict[str, str] = {}
    for prompt in library.values():
        role = prompt.front.role
        is_played = offline.plays(prompt.id.partition("/")[0], role) and found.get(role) != PLACEHOLDER
        found[role] = ATTENTIVE if is_played else PLACEHOLDER
    return found


def check_understudies(library: PromptLibrary, models: Mapping[str, ModelBinding]) -> None:
    """Check that every role assigned to an understudy has one.

    Raises:
        NoUnderstudiesError: If one has none; the message names the role and what would be valid.
    """
    for prompt in library.values():
        role = prompt.front.role
        model = models[role].model
        if model.startswith(OFFLINE) and model != PLACEHOLDER and not offline.plays(prompt.id.partition("/")[0], role):
            raise NoUnderstudiesError(role, model)


def check_cast(
    library: PromptLibrary,
    models: Mapping[str, ModelBinding],
    reply_types: Mapping[str, type[BaseModel]] | None = None,
) -> None:
    """Check that every prompt's role has a model and that its reply type is known.

    Raises:
        BindingError: If a prompt's role has no model or its reply type is unknown.
    """
    for prompt in library.values():
        if prompt.front.role not in models:
            raise BindingError(f"prompt {prompt.id!r} is of the role {prompt.front.role!r}, which has no model")
        try:
            reply_type(prompt.front.reply, reply_types)
        except KeyError:
            names = ", ".join(["text", "verdict", "score-LOW-HIGH", *sorted(reply_types or {})])
            raise BindingError(
                f"prompt {prompt.id!r} has the reply type {prompt.front.reply!r}; there are {names}"
            ) from None
