"""The ALOE recipe: a preference tree for each persona, and the training sets made of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar

from dialoom.graphs.capabilities import (
    Exporter,
    WithExports,
    WithGate,
    WithJudging,
    WithLabels,
    WithOutline,
    WithProgress,
    WithPrompts,
    WithRoles,
)
from dialoom.graphs.gate.talk import Said, Talk
from dialoom.graphs.outcome import Episode, Judgement, Line, Outcome
from dialoom.graphs.recipe import Graph, Recipe
from dialoom.graphs.reporting.facet import Facet
from dialoom.graphs.reporting.outline import Outline
from dialoom.graphs.reporting.table import Table
from dialoom.graphs.stage import Stage, node

from . import nodes
from .display import outline
from .exports import EXPORTERS
from .nodes import PREFERRED, REJECTED, TreeState
from .options import AloeOptions
from .report import tables
from .scenario import SPOKEN, AloeScenario


class Aloe(Recipe, WithRoles, WithPrompts, WithJudging, WithGate, WithLabels, WithOutline, WithProgress, WithExports):
    """Preference trees of personas that are revealed bit by bit."""

    name = "aloe"
    summary = "Trees of preferred and rejected replies to users who reveal themselves bit by bit (ALOE)."
    languages = ("en",)
    roles: ClassVar[Mapping[str, float]] = {
        "user": 0.8,
        "induction": 0.0,
        "preferred": 0.7,
        "rejected": 0.7,
        "judge": 0.0,
    }
    reply_limits: ClassVar[Mapping[str, int]] = dict.fromkeys(("user", "preferred", "rejected"), SPOKEN)
    prompts = ("aloe/user", "aloe/induction", "aloe/preferred", "aloe/rejected", "aloe/judge-pair")
    reply_types = nodes.REPLY_TYPES
    options_type = AloeOptions
    scenario_type = AloeScenario
    metrics = ("pair",)
    facets = (Facet("persona", splits=True),)

    def roles_used(self, options: AloeOptions) -> Mapping[str, float]:
        """All but the judge, who only verifies pairs."""
        return {role: value for role, value in self.roles.items() if options.verify_pairs or role != "judge"}

    def scenarios(
        self,
        options: AloeOptions,
        draw: random.Random,  # noqa: ARG002
        note: Callable[[str], None],  # noqa: ARG002
    ) -> Iterator[AloeScenario]:
        """A tree per persona, in the file's order."""
        for persona in options.people()[: options.limit]:
            yield AloeScenario(
                person=persona.id,
                profile=persona.profile,
                personality=persona.personality,
                rounds=options.rounds,
                branching=options.branching,
            )

    def graph(self, options: AloeOptions) -> Graph:
        """A message; what it reveals beside a reply that knows nothing; a reply that knows; on from one of them."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and looking at a run needs no graph

        builder = StateGraph(TreeState, context_schema=Stage)
        for work in (nodes.user, nodes.induction, nodes.preferred, nodes.rejected, nodes.follow):
            builder.add_node(work.__name__, node(work))
        builder.add_edge(START, "user")
        builder.add_edge("user", "induction")
        builder.add_edge("user", "rejected")
        builder.add_edge("induction", "preferred")
        if options.verify_pairs:
            builder.add_node("verify", node(nodes.verify))
            builder.add_edge(["preferred", "rejected"], "verify")
            builder.add_edge("verify", "follow")
        else:
            builder.add_edge(["preferred", "rejected"], "follow")

        async def after_follow(state: TreeState) -> str:
            return END if nodes.is_complete(state, options.rounds) else "user"

        builder.add_conditional_edges("follow", after_follow, ["user", END])
        return builder

    def initial(self, scenario: AloeScenario) -> dict[str, Any]:  # noqa: ARG002
        """One open path, nothing said."""
        return {"rounds": [], "open": [""], "judgements": [], "unread": []}

    def outcome(self, scenario: AloeScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """The tree as details; as messages, the conversation along its first path."""
        rounds = sorted(state.get("rounds", []), key=lambda done: (len(done["path"]), done["path"]))
        path = nodes.first_path(rounds)
        return Outcome(
            messages=tuple(nodes.lines_along(rounds, path)),
            ended_by="error" if failed else "all_rounds",
            counts={
                "rounds": len(path),
                "pairs": len(rounds),
                "paths": len(state.get("open", [])),
                **({"unread_inductions": len(unread)} if (unread := state.get("unread")) else {}),
            },
            details={"persona": {"id": scenario.person, **scenario.persona()}, "rounds": rounds},
            judgements=tuple(Judgement.model_validate(value) for value in state.get("judgements", [])),
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Finished rounds of the longest path."""
        return {"round": max(map(len, state.get("open", [])), default=0)}

    def judging_roles(self) -> Mapping[str, float]:
        """The judge, whose words on pairs are kept as a set of judgements if there are any."""
        return {"judge": self.roles["judge"]}

    def outline(self, episode: Episode) -> Outline:
        """The tree, round for round."""
        return outline(episode)

    def played_by(self, scenario: AloeScenario) -> Mapping[str, str]:
        """The persona."""
        return scenario.persona()

    def spoken(self, reply: str) -> str:
        """A line without stage directions."""
        return nodes.without_directions(reply)

    def talks(self, scenario: AloeScenario, outcome: Outcome) -> Iterator[Talk]:
        """Every reply of the tree at the end of what was said before it; each line is looked at once."""
        facts, rounds = self.facts(scenario), outcome.details["rounds"]
        along = nodes.first_path(rounds)
        for done in rounds:
            path = done["path"]
            before = [Said(line["speaker"], line["content"]) for line in nodes.conversation(rounds, path, "assistant")]
            on_first = 2 * len(path) if along.startswith(path) else None
            is_cut = {role: why == "length" for role, why in done.get("broken_off", {}).items()}
            user = Said("user", done["user"], on_first, path, is_cut.get("user", False))
            for number, (reply, role) in enumerate(((PREFERRED, "preferred"), (REJECTED, "rejected"))):
                message = None if on_first is None or not along.startswith(path + reply) else on_first + 1
                last = Said(role, done[role], message, path, is_cut.get(role, False))
                yield Talk([*before, user, last], facts, since=len(before) + bool(number))

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:
        """What was said before a pair, and the pair, without a word of which reply knew the persona."""
        depth = (judgement.turn or 1) - 1
        # A verdict for each path of a round, in the order of the paths, which is that of the rounds.
        verdicts = [each for each in outcome.judgements if each.turn == judgement.turn]
        pairs = [done for done in outcome.details["rounds"] if len(done["path"]) == depth]
        # Verdicts may be alike word for word, so it is the very one that tells the pair.
        place = next((place for place, each in enumerate(verdicts) if each is judgement), None)
        done = pairs[verdicts.index(judgement) if place is None else place]
        before = nodes.conversation(outcome.details["rounds"], done["path"], "assistant")
        return [
            *(Line(role=line["speaker"], content=line["content"]) for line in before),
            Line(role="user", content=done["user"]),
            Line(role="the reply in question", content=done["preferred"]),
            Line(role="another reply", content=done["rejected"]),
        ]

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """What the trees hold, by round."""
        return tables(episodes)

    def exporters(self) -> Mapping[str, Exporter]:
        """The release's shape, the tree, and training sets."""
        return EXPORTERS


RECIPE = Aloe()
