"""Invented people for open chats, and the requests that the ALOE recipes would make about them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from dialoom.prompts import ChatMessage, PromptLibrary, Utterance
from dialoom.roles.gateway.tool_wire import wire_messages

from .asking import answer


@dataclass(frozen=True)
class Chatter:
    """One invented person."""

    profile: str
    personality: str


SHE = Chatter(
    "She works night shifts as a nurse at a children's hospital in Leeds. Her older sister runs a bakery, "
    "and she helps out "
    "there on Saturdays. She plays the cello in a small amateur orchestra. She has a one-eyed cat named "
    "Miso. She never eats "
    "meat. She cycles to work even when it snows. She is learning Portuguese with a tattered old textbook. "
    "She keeps a jar of "
    "coins for a trip to Lisbon. Her father taught her to repair clocks.",
    "She is dry and sarcastic. She is reserved with strangers. She hates being late and plans everything. "
    "She is loyal to her "
    "few friends. She worries too much about money. She is curious about how things work. She is stubborn. "
    "She is kind to "
    "animals and children.",
)
HE = Chatter(
    "He drives a city bus in Porto. He is married and has two small daughters. He grew up on a farm with "
    "goats and bees. He "
    "watches football with his neighbours every Sunday and shouts at the television. He bakes sourdough "
    "bread before his early "
    "shift. He collects old road maps. He can't stand coriander. He lost his mother two years ago. He wants "
    "to walk across "
    "Spain one day. He sings in the car when nobody listens.",
    "He is cheerful and talkative. He jokes about everything. He is generous with his time. He loses his "
    "temper in traffic. "
    "He is sentimental about the past. He is proud of his cooking. He is spontaneous. He always says what he thinks.",
)
THEY = Chatter(
    "They live above a pharmacy in Cork with their partner. They teach pottery to teenagers at a community "
    "centre. They walk "
    "their greyhound, Pepper, along the river at dawn. They grew up in Lagos and moved when they were nine. "
    "They bake plantain "
    "bread for their neighbours. They are allergic to peanuts. They restore old radios in their spare room. "
    "They swim in the "
    "sea every New Year's Day. They write letters to their grandmother every month.",
    "They are gentle and patient. They are imaginative. They dislike attention. They think deeply about "
    "small things. They "
    "are not competitive. They are optimistic about people. They are independent.",
)
I_FORM = Chatter(
    "I am a retired geography teacher. I live in a narrow house in Gdansk with too many maps. My wife, "
    "Hanna, paints birds. I "
    "play chess by post with a man in Chile. I make plum jam every September. I take the tram to the library "
    "on Tuesdays. I "
    "have two grandsons who call me Captain. I don't own a mobile phone. I grow dahlias in buckets on the roof.",
    "I am courteous and old-fashioned. I am methodical. I like to ponder things. I am modest. I am sceptical "
    "of anything new. "
    "I am a patient listener. I have a dry sense of humour.",
)
BARE = Chatter(
    "Works as a lifeguard at an outdoor pool.\nShares a flat with three friends from school.\nLoves spicy "
    "noodles and eats them "
    "for breakfast.\nHas a skateboard with a painted shark on it.\nSends a postcard to an aunt in Iceland "
    "every month.\nAllergic "
    "to cats.\nSaves for an old camper van.\nPlays the drums in a garage band.\nFalls asleep to podcasts "
    "about volcanoes.",
    "Energetic and always on the move.\nImpulsive.\nHonest to a fault.\nCan't sit still and gets bored "
    "easily.\nFriendly with "
    "everybody.\nConfident.\nForgetful.\nNever holds a grudge.",
)
BULLETS = Chatter(
    "- Lives in a houseboat in Utrecht with a parrot called Kapitein.\n- Repairs bicycles in a tiny "
    "workshop.\n- Divorced, with "
    "a teenage son who visits at weekends.\n- Cooks a huge pot of soup every Monday.\n- Reads detective "
    "novels in the bath.\n- "
    "Used to be a sailor.\n- Sleeps badly when the wind is up.\n- Hates shopping centres.",
    "- Grumpy in the morning\n- Blunt\n- Soft-hearted underneath\n- Handy and practical\n- Likes to be "
    "alone\n- Sarcastic\n- "
    "Keeps his word\n- Distrusts politicians",
)
ANXIOUS = Chatter(
    "She studies law in Bologna and shares a tiny flat with her cousin. She works part-time in a bookshop "
    "near the station. Her "
    "parents own an olive farm in Puglia. She calls her mother every evening at eight. She is afraid of "
    "flying. She dances "
    "tango on Thursdays. She keeps a diary in three languages. She has a scooter that breaks down all the "
    "time. She drinks her "
    "coffee with cinnamon.",
    "She is anxious before every exam. She overthinks what others say. She is warm and affectionate. She is "
    "a perfectionist. "
    "She apologises too often. She is romantic. She is determined to succeed. She is easily moved to tears.",
)
COMPANION = Chatter(
    "He and his husband run a small guesthouse on the coast of Wales. Every morning he swims in the sea "
    "before breakfast. His "
    "knees hurt since an accident with a ladder. He keeps six hens, who are named after queens. On "
    "Wednesdays he plays the "
    "accordion in the village pub. He is colour-blind. He reads the weather forecast aloud to the guests. "
    "His niece stays with "
    "them every summer. He makes marmalade that nobody else likes.",
    "He is hospitable. He has a loud laugh and teases his guests. He is even-tempered. He is a storyteller "
    "who talks to "
    "everyone. He is thrifty. He is nostalgic. He is not very organised.",
)
NAMED = Chatter(
    "Ayumi is a 29-year-old tailor from Nagoya. Ayumi's grandmother left her an old sewing machine. She sews "
    "costumes for a "
    "street theatre. She lives alone in one room with a balcony full of herbs. She climbs at an indoor wall "
    "twice a week. She "
    "has never learned to drive. She loves silent films. She sends voice messages to her brother in Toronto. "
    "She eats the same "
    "rice dish every Friday.",
    "She is quiet and observant. She is precise. She is ambitious. She is polite to everyone. She is "
    "adventurous when nobody "
    "expects it. She takes criticism to heart. She is self-reliant.",
)
WIDOWER = Chatter(
    "He is a widower of seventy-four and lives in a farmhouse in Vermont. He lost his wife three winters "
    "ago. He chops his own "
    "wood. He has a collie named Banjo. He mends the neighbours' fences for free. He has a weekly card game "
    "with two old "
    "friends. He listens to jazz records on Sunday afternoons. He suffers from insomnia. He writes his "
    "grandchildren a story "
    "for each birthday.",
    "He is a man of few words. He is stoic and steady. He is stubborn about doctors. He is generous. He is "
    "wary of strangers. "
    "He is humble. He is sentimental in secret.",
)
GAMER = Chatter(
    "Codes mobile games from a bedroom in Seoul. Lives with his parents and a fat hamster called Boss. Plays "
    "badminton with "
    "his sister on Saturdays. Stays up until three most nights. Orders fried chicken far too often. Collects "
    "enamel pins. Has "
    "a driving licence but no car. Volunteers at an animal shelter once a month. Hates phone calls.",
    "Introverted. Very funny once he feels at ease. Indecisive. Creative. Messy. Devoted to his family. "
    "Pessimistic about his "
    "own work.",
)
FARMER = Chatter(
    "She farms forty hectares outside Toowoomba. She gets up at four to feed the cattle. She has been "
    "married to Col for thirty "
    "years. Her three sons all moved to the city. She bakes pumpkin scones for the fire brigade. She flies a "
    "small plane. She "
    "follows cricket on the radio. She reads the encyclopaedia in alphabetical order. She broke her wrist "
    "last winter. She "
    "doesn't drink alcohol.",
    "She is no-nonsense and direct. She is hard-working. She is fearless. She laughs easily. She hates "
    "complaining. She is "
    "protective of her family. She is competitive at card games. She is curious about everything.",
)
PEOPLE = (SHE, HE, THEY, I_FORM, BARE, BULLETS, ANXIOUS, COMPANION, NAMED, WIDOWER, GAMER, FARMER)

_LIBRARY = PromptLibrary.load(
    [
        f"aloe/{name}"
        for name in ("user", "induction", "preferred", "rejected", "assistant", "judge-alignment", "judge-pair")
    ]
)


def ask(prompt: str, seed: int = 0, model: str = "attentive", **inputs: Any) -> str:
    """Render one of the ALOE prompts as the gateway sends it and have it answered.

    Whoever answers finds its own side of the history under its own name, as the graph shows it.
    """
    if prompt in ("preferred", "rejected"):
        sides = {"assistant": prompt}
        inputs["history"] = [
            {**line, "speaker": sides.get(line["speaker"], line["speaker"])} for line in inputs["history"]
        ]
    messages: list[ChatMessage] = _LIBRARY[f"aloe/{prompt}"].render(inputs)
    role = _LIBRARY[f"aloe/{prompt}"].front.role
    return answer(model, wire_messages(tuple(messages)), f"aloe/{prompt}", role, seed=seed, **inputs)


def said(speaker: str, content: str) -> Utterance:
    """Give one line of a history."""
    return {"speaker": speaker, "content": content}


@dataclass
class Talk:
    """A dialogue as it grew.

    Attributes:
        history: What was said.
        scores: The judge's score of each reply.
    """

    history: list[Utterance] = field(default_factory=list)
    scores: list[int] = field(default_factory=list)

    def lines(self, speaker: str) -> list[str]:
        """Give what one side said."""
        return [line["content"] for line in self.history if line["speaker"] == speaker]


def benchmark(who: Chatter, seed: int = 0, model: str = "attentive", rounds: int = 10) -> Talk:
    """Let a person talk with an assistant that sees nothing but the chat, judged round for round."""
    talk = Talk()
    for at in range(rounds):
        place = 1000 * seed + 10 * at
        line = ask("user", place, profile=who.profile, personality=who.personality, history=talk.history)
        talk.history.append(said("user", line))
        reply = ask("assistant", place + 1, model, history=talk.history)
        talk.history.append(said("assistant", reply))
        talk.scores.append(score(who, line, reply))
    return talk


def score(who: Chatter, message: str, answer: str, model: str = "attentive") -> int:
    """Give the judge's score of one answer."""
    reply = ask(
        "judge-alignment", model=model, profile=who.profile, personality=who.personality, message=message, answer=answer
    )
    return int(json.loads(reply)["score"])


def induce(who: Chatter, history: list[Utterance]) -> dict[str, str | None]:
    """Give what the induction finds."""
    found: dict[str, str | None] = json.loads(
        ask("induction", profile=who.profile, personality=who.personality, history=history)
    )
    return found
