"""What the gate reads of a tree: every line once, at the end of the path that led to it."""

from __future__ import annotations

from dialoom import Outcome
from dialoom.graphs.aloe import RECIPE
from dialoom.graphs.aloe.tree import AloeScenario
from dialoom.graphs.gate import Gate

LONG = "The beans came up in the night, all twenty of them."


def test_faults_of_a_tree_say_on_which_path_and_whose_reply() -> None:
    """A reply that nobody followed is looked at as well; a line that two paths share is told of once."""
    texts = {
        "": ("I went to see my beans.", LONG, "As far as I know they grow from [your name] seeds."),
        "p": ("So they did, and the slugs know it.", "Bad for you.", LONG),
        "r": ("Which seeds do you mean?", "Those.", "How nice."),
    }
    rounds = [
        {"path": path, "user": user, "preferred": preferred, "rejected": rejected, "followed": followed}
        for (path, (user, preferred, rejected)), followed in zip(texts.items(), (["p", "r"], ["p"], ["r"]), strict=True)
    ]
    scenario = AloeScenario(person="ada", profile="She bakes.", personality="She is blunt.", rounds=2, branching=1)
    outcome = Outcome(messages=(), ended_by="all_rounds", details={"rounds": rounds})
    faults = Gate(RECIPE, []).faults(scenario, outcome)
    assert faults is not None
    found = [(each.who, each.kind, each.where) for each in faults]
    assert sorted(found) == [("rejected", "prompt_leak", ""), ("rejected", "repetition", "p")]
    nothing = outcome.model_copy(update={"details": {"rounds": []}})
    assert Gate(RECIPE, []).passed(scenario, nothing).faults is None
