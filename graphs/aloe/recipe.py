"""The ALOE recipe: a preference tree for each persona, and the training sets made of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from dialoom.graphs.capabilities import (
    WithExports,
    WithGate,
    WithLabels,
    WithOutline,
    WithProgress,
    WithPrompts,
    WithRoles,
)
from dialoom.graphs.gate.talk import Said, Talk
from dialoom.graphs.judge import Judge, add_judges
from dialoom.graphs.outcome import Episode, Judgement, Line, Outcome
from dialoom.graphs.recipe import Graph, Recipe
from dialoom.graphs.reporting import Facet, Outline, Table
from dialoom.graphs.stage import Stage, node

from . import nodes, report, tree
from .exports import EXPORTERS
from .nodes import TreeState
from .scenario import SPOKEN, AloeOptions, AloeScenario


class Aloe(Recipe, WithRoles, WithPrompts, WithGate, WithLabels, WithOutline, WithProgress, WithExports):
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
    prompts = ("aloe/user", "aloe/induction", "aloe/preferred", "aloe/rejected")
    reply_types = nodes.REPLY_TYPES
    options_type = AloeOptions
    formats = EXPORTERS
    scenario_type = AloeScenario
    judges = (tree.PAIR,)
    facets = (Facet("persona", splits=True),)

    def judges_used(self, options: AloeOptions) -> Sequence[Judge]:
        """Return the judge of pairs, if pairs are verified."""
        return self.judges if options.verify_pairs else ()

    def scenarios(
        self,
        options: AloeOptions,
        draw: random.Random,  # noqa: ARG002
        note: Callable[[str], None],  # noqa: ARG002
    ) -> Iterator[AloeScenario]:
        """Yield a tree for each persona, in the file's order."""
        size = {"rounds": options.rounds, "branching": options.branching}
        for persona in options.people()[: options.limit]:
            texts = {"profile": persona.profile, "personality": persona.personality}
            yield AloeScenario(person=persona.id, **texts, **size)

    def graph(self, options: AloeOptions) -> Graph:
        """Return the graph: user; induction and rejected reply in parallel; preferred reply; judge; follow."""
        from langgraph.graph import END, START, StateGraph  # slow to import, and not needed to read a run

        builder = StateGraph(TreeState, context_schema=Stage)
        for work in (nodes.user, nodes.induction, nodes.preferred, nodes.rejected, nodes.follow):
            builder.add_node(work.__name__, node(work))
        builder.add_edge(START, "user")
        builder.add_edge("user", "induction")
        builder.add_edge("user", "rejected")
        builder.add_edge("induction", "preferred")
        for following in add_judges(builder, self, self.judges_used(options), then="follow") or ["follow"]:
            builder.add_edge(["preferred", "rejected"], following)

        async def after_follow(state: TreeState) -> str:
            return END if len(state["open"][0]) >= options.rounds else "user"

        builder.add_conditional_edges("follow", after_follow, ["user", END])
        return builder

    def initial(self, scenario: AloeScenario) -> dict[str, Any]:  # noqa: ARG002
        """Return the state with one open path without messages."""
        return {"rounds": [], "open": [""], "judgements": [], "unread": []}

    def outcome(self, scenario: AloeScenario, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """Return the tree as details and, as messages, the conversation along its first path.

        The current round is included, for the judge.
        """
        given: Any = state
        rounds = sorted(state.get("rounds", []), key=lambda done: (len(done["path"]), done["path"]))
        path, going_on = tree.first_path(rounds), [] if failed else nodes.under_way(given)
        unread = state.get("unread")
        return Outcome(
            messages=tuple(tree.lines_along(rounds, path)),
            ended_by="error" if failed else "all_rounds",
            counts={
                "rounds": len(path),
                "pairs": len(rounds),
                "paths": len(state.get("open", [])),
                **({"unread_inductions": len(unread)} if unread else {}),
            },
            details={"persona": {"id": scenario.person, **scenario.persona()}, "rounds": [*rounds, *going_on]},
            judgements=tuple(Judgement.model_validate(value) for value in state.get("judgements", [])),
        )

    def counted(self, state: Mapping[str, Any]) -> Mapping[str, int]:
        """Return the finished rounds of the longest path."""
        return {"round": max(map(len, state.get("open", [])), default=0)}

    def outline(self, episode: Episode) -> Outline:
        """Return the tree as an outline, round by round."""
        return report.outline(episode)

    def played_by(self, scenario: AloeScenario) -> Mapping[str, str]:
        """Return the persona."""
        return scenario.persona()

    def spoken(self, reply: str) -> str:
        """Return a line without stage directions."""
        return nodes.without_directions(reply)

    def talks(self, scenario: AloeScenario, outcome: Outcome) -> Iterator[Talk]:
        """Yield each reply of the tree with the lines before it; each line is checked once."""
        facts, rounds = self.facts(scenario), outcome.details["rounds"]
        along = tree.first_path(rounds)
        for done in rounds:
            path = done["path"]
            before = [Said(line["speaker"], line["content"]) for line in tree.conversation(rounds, path)]
            on_first = 2 * len(path) if along.startswith(path) else None
            is_cut = {role: why == "length" for role, why in done.get("broken_off", {}).items()}
            user = Said("user", done["user"], on_first, path, is_cut.get("user", False))
            for number, (reply, role) in enumerate(tree.REPLIES.items()):
                message = None if on_first is None or not along.startswith(path + reply) else on_first + 1
                last = Said(role, done[role], message, path, is_cut.get(role, False))
                yield Talk([*before, user, last], facts, since=len(before) + bool(number))

    def judged_lines(self, outcome: Outcome, judgement: Judgement) -> list[Line]:
        """Return the lines before a pair, and the pair, without a hint of which reply used the persona."""
        depth, rounds = (judgement.turn or 1) - 1, outcome.details["rounds"]
        # There is one verdict per path of a round, in the order of the paths, which is that of the rounds.
        verdicts = [each for each in outcome.judgements if each.turn == judgement.turn]
        pairs = [done for done in rounds if len(done["path"]) == depth]
        # Verdicts may be equal, so the judgement is found by identity.
        place = next((place for place, each in enumerate(verdicts) if each is judgement), None)
        done = pairs[verdicts.index(judgement) if place is None else place]
        before = tree.conversation(rounds, done["path"])
        return [
            *(Line(role=line["speaker"], content=line["content"]) for line in before),
            Line(role="user", content=done["user"]),
            Line(role="the reply in question", content=done["preferred"]),
            Line(role="another reply", content=done["rejected"]),
        ]

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """Return the tables of the trees by round."""
        return report.tables(episodes)


RECIPE = Aloe()
