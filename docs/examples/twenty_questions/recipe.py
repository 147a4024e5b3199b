"""A recipe in one file: one role keeps a secret word, another asks up to twenty questions, a third may judge.

dialoom run docs/examples/twenty_questions/recipe.py:RECIPE --judge -o words.db
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from langchain_core.messages import BaseMessage
from pydantic import Field

from dialoom.graphs import Check, DialogueRecipe, Judge, RecipeOptions, Scenario, Turns
from dialoom.roles.offline import Draws, MarkedRequest, Words, match_template, understudy


class Options(RecipeOptions):
    """The options; each field is a flag of `dialoom run`."""

    words: str = Field("piano,heron,glacier", description="The secret words, separated by commas.")
    questions: int = Field(20, ge=1, description="Maximum number of questions.")
    judge: bool = Field(False, description="Have a judge decide whether every answer was true.")


class Secret(Scenario):
    """One game. Its id is derived from these fields, and reports group by them."""

    word: str
    questions: int


def find_end(_game: Secret, messages: list[BaseMessage]) -> str:
    """Return `found` if the keeper says that the word was found, otherwise an empty text."""
    return "found" if messages[-1].name == "keeper" and "found" in str(messages[-1].content).lower() else ""


class TwentyQuestions(DialogueRecipe):
    """Twenty questions: one role keeps a word, another guesses it."""

    name = "twenty-questions"
    prompts = {"guesser": "twenty_questions/guesser", "keeper": "twenty_questions/keeper"}
    roles = {"guesser": 0.7, "keeper": 0.0, "judge": 0.0}
    templates = Path(__file__).parent / "prompts"
    options_type = Options
    scenario_type = Secret
    turns = Turns(("guesser", "keeper"), "questions", until=find_end, unit="question", limit_reason="out_of_questions")
    judges = [Judge("honesty", prompt="twenty_questions/judge", target="keeper")]
    checks = [Check("found", lambda game: game.outcome.ended_by == "found", target="guesser")]

    def scenarios(self, options: Options, draw: Random, note: Callable[[str], None]) -> Iterator[Secret]:
        """Yield one game per word."""
        yield from (Secret(word=word.strip(), questions=options.questions) for word in options.words.split(","))


RECIPE = TwentyQuestions()


WORDS = Words(Path(__file__).parent / "words.toml")  # the offline model's lines


@understudy("twenty_questions", "keeper")
def play_keeper(request: MarkedRequest, draws: Draws) -> str:
    """Answer yes to a trait that words.toml gives the word, otherwise no."""
    word, question = request.part("word"), (request.said_by("user") or [""])[-1]
    if word in question:
        return WORDS.say("keeper.found", draws)
    is_true = any(trait in question for trait in WORDS.get(f"things.{word}", []))
    return WORDS.say("keeper.yes" if is_true else "keeper.no", draws)


@understudy("twenty_questions", "guesser")
def play_guesser(request: MarkedRequest, draws: Draws) -> str:
    """Ask about a trait that is still open, until one word is left."""
    words, asked = dict(WORDS.get("things")), set()
    for question, reply in zip(request.said_by("assistant"), request.said_by("user"), strict=False):
        asked.add(trait := (match_template(WORDS.get("guesser.ask"), question) or {}).get("trait", ""))
        words = {name: traits for name, traits in words.items() if (trait in traits) == reply.startswith("Yes")}
    open_traits = sorted({trait for traits in words.values() for trait in traits} - asked)
    if len(words) > 1 and open_traits:
        return WORDS.say("guesser.ask", draws, {"trait": draws.pick(open_traits)})
    return WORDS.say("guesser.guess", draws, {"word": next(iter(words), "nothing")})


@understudy("twenty_questions", "judge")
def play_judge(request: MarkedRequest, draws: Draws) -> dict[str, object]:
    """Decide whether every answer agrees with words.toml."""
    traits = WORDS.get(f"things.{request.part('word')}", [])
    for question, reply in zip(request.said_by("guesser"), request.said_by("keeper"), strict=False):
        trait = (match_template(WORDS.get("guesser.ask"), question) or {}).get("trait")
        if trait and (trait in traits) != reply.startswith("Yes"):
            return {"verdict": False, "explanation": f"{question} {reply}"}
    return {"verdict": True, "explanation": WORDS.say("judge.honest", draws)}
