"""Who a user is: a profile made of a persona, which says nothing about what is preferred."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dialoom.graphs.asking import ask_each
from dialoom.graphs.stage import Scene, Update
from dialoom.personas.apollo import CallError
from dialoom.personas.apollo.source.drafts import UserDraft
from dialoom.personas.apollo.source.wording import profile_refusal

from .making import UNCHECKED, WriteState, ask_writer, draft_of, look, rows_of, shown_again, to_write
from .scenario import WriteScenario, world_of


async def introduce(state: WriteState, scene: Scene) -> Update:
    """The profile."""
    scenario: WriteScenario = scene.scenario
    asked = {
        id_: {
            "number": scenario.user,
            "seed": scenario.seed_persona,
            "city": scenario.city,
            **shown_again(state, id_, _written(state, id_)),
        }
        for id_ in to_write(state, "users", [scenario.user])
    }
    replies, refused = await ask_writer(scene, "apollo_write/profile", asked)
    place = {"city": scenario.city, "home": scenario.home, "work": scenario.work}
    made = [UserDraft(id=id_, user=id_, **place, **reply.model_dump()) for id_, reply in replies.items()]
    return {"drafts": {"users": rows_of(made)}, "refused": refused}


async def look_at_user(state: WriteState, scene: Scene) -> Update:
    """No word of it says anything about a preference, as far as rules and the checker can tell."""
    scenario: WriteScenario = scene.scenario
    world = world_of(scenario)

    def rules(draft: UserDraft) -> str | None:
        try:
            city = world.city(draft.city)
            for place in ("home", "work"):
                world.place(city, getattr(draft, place), place)
        except CallError as error:
            return f"place: {error}"
        return profile_refusal(draft)

    draft: UserDraft | None = draft_of(state, "users", scenario.user)

    async def checked(drafts: Mapping[str, UserDraft]) -> dict[str, str]:
        asked = {id_: {"user": draft.person().information("")[:2]} for id_, draft in drafts.items()}
        return said_wrong("profile", await ask_each(scene, "apollo_write/profile-check", asked))

    return await look(state, scene, "users", {draft.id: draft} if draft else {}, rules, checked)


def said_wrong(check: str, replies: Mapping[str, Any]) -> dict[str, str]:
    """What a checker's words come to: what is wrong, by id."""
    return {
        id_: UNCHECKED if reply is None else f"{check}: {reply.explanation or 'the checker finds it wrong'}"
        for id_, reply in replies.items()
        if reply is None or reply.verdict == "wrong"
    }


def _written(state: WriteState, id_: str) -> str:
    draft: UserDraft | None = draft_of(state, "users", id_)
    return "\n".join(draft.person().information("")[:2]) if draft else ""
