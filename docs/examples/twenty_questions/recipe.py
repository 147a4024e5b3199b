"""A recipe in one file: one role keeps a secret word, the other has twenty questions to find it, a third may judge.

dialoom run docs/examples/twenty_questions/recipe.py:RECIPE --judge -o words.db
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph
from pydantic import Field

from dialoom.graphs import (
    Episode,
    Judgement,
    Outcome,
    Recipe,
    RecipeOptions,
    Scenario,
    Scene,
    Stage,
    Table,
    Tally,
    intervals,
    node,
)
from dialoom.graphs.conversation import appended, joined, lines, said, utterances
from dialoom.roles import UnparsedReplyError
from dialoom.roles.offline import Draws, MarkedRequest, Words, heard, understudy


class Options(RecipeOptions):
    """Each field is a flag of `dialoom run`."""

    words: str = Field("piano,heron,glacier", description="The secrets, separated by commas.")
    questions: int = Field(20, ge=1, description="How many questions there are.")
    judge: bool = Field(False, description="Have a judge say whether every answer was true.")


class Secret(Scenario):
    """One game. Its id follows from these fields."""

    word: str
    questions: int

    @property
    def label(self) -> str:
        """The beginning of its id."""
        return self.word

    def facets(self) -> dict[str, Any]:
        """What exports show."""
        return {"word": self.word}


class GameState(TypedDict):
    """What is checkpointed after each node."""

    messages: Annotated[list[BaseMessage], appended]
    judgements: Annotated[list[dict[str, Any]], joined]


async def guesser(state: GameState, scene: Scene) -> dict[str, Any]:
    """Asks a question, or names the word."""
    text = await scene.ask("twenty_questions/guesser", history=utterances(state["messages"]))
    return {"messages": [said("guesser", text, len(state["messages"]))]}


async def keeper(state: GameState, scene: Scene) -> dict[str, Any]:
    """Answers yes or no."""
    history = utterances(state["messages"])
    text = await scene.ask("twenty_questions/keeper", history=history, word=scene.scenario.word)
    return {"messages": [said("keeper", text, len(state["messages"]))]}


async def judge(state: GameState, scene: Scene) -> dict[str, Any]:
    """Says whether the keeper was honest; a reply that cannot be read is no verdict."""
    asked = {"history": utterances(state["messages"]), "word": scene.scenario.word}
    try:
        reply = await scene.ask("twenty_questions/judge", **asked)
    except UnparsedReplyError as error:
        judgement = Judgement(metric="honesty", target="keeper", status="unparsed", explanation=str(error))
    else:
        judgement = Judgement(metric="honesty", target="keeper", score=reply.verdict, explanation=reply.explanation)
    return {"judgements": [judgement.model_dump()]}


def found(messages: list[BaseMessage]) -> bool:
    """Whether the last answer was that the word is found."""
    return bool(messages) and messages[-1].name == "keeper" and "found" in str(messages[-1].content).lower()


class TwentyQuestions(Recipe):
    """All that dialoom needs to know of the game."""

    name = "twenty-questions"
    summary = "One role keeps a word, the other has twenty questions."
    roles = {"guesser": 0.7, "keeper": 0.0, "judge": 0.0}  # noqa: RUF012
    prompts = ("twenty_questions/guesser", "twenty_questions/keeper", "twenty_questions/judge")
    metrics = ("honesty",)
    templates = Path(__file__).parent / "prompts"
    options_type = Options
    scenario_type = Secret

    def roles_used(self, options: Options) -> Mapping[str, float]:
        """The judge only if it is asked for."""
        return {role: warmth for role, warmth in self.roles.items() if role != "judge" or options.judge}

    def scenarios(self, options: Options, draw: Random, note: Callable[[str], None]) -> Iterator[Secret]:
        """One game per word."""
        for word in options.words.split(","):
            yield Secret(word=word.strip(), questions=options.questions)

    def graph(self, options: Options) -> StateGraph[Any, Any, Any, Any]:
        """Guesser and keeper in turn, until the word is found or the questions are used up."""
        builder = StateGraph(GameState, context_schema=Stage)
        builder.add_node("guesser", node(guesser))
        builder.add_node("keeper", node(keeper))
        last = END
        if options.judge:
            last = "judge"
            builder.add_node("judge", node(judge))
            builder.add_edge("judge", END)
        builder.add_edge(START, "guesser")
        builder.add_edge("guesser", "keeper")

        def after_keeper(state: GameState) -> str:
            over = found(state["messages"]) or len(state["messages"]) >= 2 * options.questions
            return last if over else "guesser"

        builder.add_conditional_edges("keeper", after_keeper, ["guesser", last])
        return builder

    def initial(self, scenario: Secret) -> dict[str, Any]:
        """Nothing said yet."""
        return {"messages": [], "judgements": []}

    def outcome(self, scenario: Secret, state: Mapping[str, Any], failed: bool = False) -> Outcome:
        """The talk, and why it ended."""
        messages = state["messages"]
        ended_by = "error" if failed else "found" if found(messages) else "out_of_questions"
        return Outcome(
            messages=lines(messages),
            ended_by=ended_by,
            counts={"questions": len(messages) // 2},
            judgements=tuple(Judgement.model_validate(each) for each in state["judgements"]),
        )

    def tables(self, episodes: Iterable[Episode]) -> list[Table]:
        """How many words were found, and how many keepers were honest."""
        is_found, is_honest = Tally(), Tally(judged=True)
        for episode in episodes:
            is_found.add(episode.outcome.ended_by == "found")
            for judgement in episode.outcome.judgements:
                if judgement.score is not None:
                    is_honest.add(bool(judgement.score))
        row = [is_found.estimate(), is_honest.estimate()]
        return [Table("found", "Words found", ["found %", "honest %"], [row], [intervals("words")])]


RECIPE = TwentyQuestions()


WORDS = Words(Path(__file__).parent / "words.toml")
"""What the understudies say: so that the game is played offline, too, by `offline/attentive`."""


@understudy("twenty_questions", "keeper")
def play_keeper(request: MarkedRequest, draws: Draws) -> str:
    """Says yes to what words.toml knows of the word, and no to all else."""
    word, question = request.part("word"), (request.said_by("user") or [""])[-1]
    if word in question:
        return WORDS.say("keeper.found", draws)
    known = any(trait in question for trait in WORDS.get(f"things.{word}", []))
    return WORDS.say("keeper.yes" if known else "keeper.no", draws)


@understudy("twenty_questions", "guesser")
def play_guesser(request: MarkedRequest, draws: Draws) -> str:
    """Asks for a trait that is still open, until one thing is left."""
    things, asked = dict(WORDS.get("things")), set()
    for question, reply in zip(request.said_by("assistant"), request.said_by("user"), strict=False):
        trait = (heard(WORDS.get("guesser.ask"), question) or {}).get("trait", "")
        asked.add(trait)
        things = {name: traits for name, traits in things.items() if (trait in traits) == reply.startswith("Yes")}
    untold = sorted({trait for traits in things.values() for trait in traits} - asked)
    if len(things) > 1 and untold:
        return WORDS.say("guesser.ask", draws, {"trait": draws.pick(untold)})
    return WORDS.say("guesser.guess", draws, {"word": next(iter(things), "nothing")})


@understudy("twenty_questions", "judge")
def play_judge(request: MarkedRequest, draws: Draws) -> str:
    """Finds an answer untrue if words.toml knows better."""
    traits = WORDS.get(f"things.{request.part('word')}", [])
    for question, reply in zip(request.said_by("guesser"), request.said_by("keeper"), strict=False):
        trait = (heard(WORDS.get("guesser.ask"), question) or {}).get("trait")
        if trait and (trait in traits) != reply.startswith("Yes"):
            return json.dumps({"verdict": False, "explanation": f"{question} {reply}"})
    return json.dumps({"verdict": True, "explanation": WORDS.say("judge.honest", draws)})
