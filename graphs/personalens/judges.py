"""The judges of PersonaLens: section 3 of the paper and figures 16 to 20; scores by turn are those of its figure 5."""

from __future__ import annotations

from dialoom.graphs.judge import Judge

_PROMPT = "personalens/judge-"
_PERSON = ("demographics", "domains", "situation", "description")

PERSONALIZATION_BY_TURN = Judge(
    "personalization", prompt=f"{_PROMPT}personalization", scale=(1, 4), sees=_PERSON, per_turn=True
)
JUDGES = (
    Judge("task_completion", prompt=f"{_PROMPT}task-completion", sees=("goal",), node="judge_task_completion"),
    Judge(
        "personalization", prompt=f"{_PROMPT}personalization", scale=(1, 4), sees=_PERSON, node="judge_personalization"
    ),
    *(
        Judge(metric, prompt=f"{_PROMPT}{metric}", scale=(1, 5), target=target, sees=())
        for metric in ("naturalness", "coherence")
        for target in ("user", "assistant")
    ),
)
