"""Random trees in the form of `Outcome.details`. Texts contain their paths, so no two texts of a tree are equal."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from dialoom import Episode, Judgement, Outcome


@st.composite
def details(draw: st.DrawFn, most_rounds: int = 6, most_branching: int = 3) -> dict[str, Any]:
    """Return a tree that forks in its first rounds, and possibly elsewhere."""
    depth = draw(st.integers(1, most_rounds))
    branching = draw(st.integers(0, min(depth, most_branching)))
    rounds: list[dict[str, Any]] = []
    level = [""]
    for number in range(depth):
        following: list[str] = []
        for path in sorted(level):
            both = number < branching or (len(level) < 8 and draw(st.booleans()) and draw(st.booleans()))
            followed = ["p", "r"] if both else [draw(st.sampled_from("pr"))]
            rounds.append(round_at(path, followed, draw(st.sampled_from([True, False, None]))))
            following += [path + step for step in followed]
        level = following
    persona = {"id": draw(st.sampled_from(["ada", "ben"])), "profile": "She bakes.", "personality": "She is blunt."}
    return {"persona": persona, "rounds": rounds}


def round_at(path: str, followed: list[str], verified: bool | None = None) -> dict[str, Any]:
    """Return a round whose texts contain its path."""
    return {
        "path": path,
        "user": f"message at [{path}]",
        "preferred": f"reply to [{path}] p",
        "rejected": f"reply to [{path}] r",
        "followed": followed,
        "inferred_profile": f"She bakes, as of [{path}]." if path else None,
        "inferred_personality": None,
        "verified": verified,
        "named": None,
    }


def episode(tree: dict[str, Any], state: str = "done") -> Episode:
    """Return the episode of a tree, with the judgements of its verdicts."""
    judgements = tuple(
        Judgement(
            metric="pair",
            target="preferred",
            turn=len(each["path"]) + 1,
            score=each["verified"],
            status="unparsed" if each["verified"] is None else "ok",
            explanation=f"after {each['path']}: so" if each["path"] else "so",
        )
        for each in tree["rounds"]
    )
    ended = "all_rounds" if state == "done" else "error"
    outcome = Outcome(messages=(), ended_by=ended, details=tree, judgements=judgements)
    return Episode(
        id=f"{tree['persona']['id']}-1", facets={"persona": tree["persona"]["id"]}, state=state, outcome=outcome
    )
