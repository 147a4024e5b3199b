"""Invented people and tasks, and the requests that a pipeline would make about them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .asking import answer

Message = dict[str, str]


@dataclass(frozen=True)
class Case:
    """One person with one task."""

    demographics: dict[str, str]
    affinities: dict[str, dict[str, str]]
    summaries: dict[str, str]
    situation: dict[str, str]
    intent: str
    goal: str

    @property
    def values(self) -> list[str]:
        """Every single affinity value."""
        found = [value for names in self.affinities.values() for text in names.values() for value in text.split(";")]
        return [value.strip() for value in found if value.strip() not in ("", "N/A", "no preference", "[Redacted]")]


MIRA = {
    "age": "25-34 years old",
    "gender": "Female",
    "employment_status": "Working part-time",
    "english_proficiency": "Fluent",
    "reside_country": "Portugal",
}
OTTO = {"age": "65 and over", "gender": "Male", "english_proficiency": "Intermediate", "reside_country": "Austria"}
EVENING = {
    "Location": "Porto, Portugal",
    "Device": "Smartphone",
    "Time of Day": "Evening",
    "Day of the Week": "Tuesday",
    "Environment": "Quiet",
}
MORNING = {"Location": "Graz, Austria", "Device": "Laptop", "Time of Day": "Morning", "Day of the Week": "Friday"}

ALARM = Case(
    MIRA,
    {"Alarm": {"Alarm Time": "6:10 AM", "Alarm Sound": "church bells", "Repeat Days": "weekdays"}},
    {"Alarm": "She has a recurring alarm for 6:10 AM and prefers church bells. It rings on weekdays, never otherwise."},
    EVENING,
    "Set a new alarm for tomorrow at your preferred time, with the sound you like best.",
    "An alarm is set at the user's preferred time, with the preferred sound and repetition.",
)
DINNER = Case(
    OTTO,
    {
        "Restaurants": {
            "Cuisine Preference": "Greek; Lebanese",
            "Dietary Restrictions": "nut allergy",
            "Ambiance Preference": "quiet",
            "Price Range": "moderate",
        }
    },
    {
        "Restaurants": "He enjoys Greek and Lebanese food and always mentions his nut allergy. He prefers quiet "
        "places at "
        "moderate prices, and asks for a table away from the door."
    },
    MORNING,
    "Find a restaurant for a special occasion that matches your preferred cuisine and dietary needs.",
    "The user receives restaurant options that match their preferences.",
)
BOOKS = Case(
    MIRA,
    {
        "Books": {
            "Genre": "fantasy; mystery",
            "Favourite Authors": "Elif Ardan; Jonas Wellby",
            "Reading Format": "audiobook",
        }
    },
    {
        "Books": "Most requests were about fantasy and mystery. Her favorite authors, such as Elif Ardan and Jonas "
        "Wellby, "
        "come up often, and she prefers audiobooks on long walks."
    },
    EVENING,
    "Find new book recommendations tailored to your preferred genres and favorite authors.",
    "The user receives a personalized list of book recommendations.",
)
GETAWAY = Case(
    OTTO,
    {
        "Train": {"Train Class": "first class", "Seat Type": "window", "Amenity Preference": "quiet coach; table"},
        "Hotels": {"Star Rating": "N/A", "Amenity Preference": "sauna; free breakfast", "Room Type": "double"},
        "Restaurants": {"Cuisine Preference": "Italian", "Dietary Restrictions": "", "Ambiance": "outdoor seating"},
    },
    {
        "Train": "He travels first class, likes a window seat, and asks for a quiet coach with a table.",
        "Hotels": "He looks for hotels with a sauna and free breakfast, and usually takes a double room.",
        "Restaurants": "He loves Italian food and prefers outdoor seating.",
    },
    MORNING,
    "Plan a short trip by booking a train, a hotel and a dinner.",
    "Train, hotel and dinner are booked in keeping with the user's preferences.",
)
SINGLE = (ALARM, DINNER, BOOKS)


def _lines(pairs: dict[str, str]) -> str:
    return "\n".join(f"{key}: {value}" for key, value in pairs.items())


def _domains(case: Case, summaries: bool = True) -> str:
    parts = [f'<affinities domain="{name}">\n{_lines(names)}\n</affinities>' for name, names in case.affinities.items()]
    if summaries:
        parts += [f'<summary domain="{name}">\n{text}\n</summary>' for name, text in case.summaries.items()]
    return "\n".join(parts)


def user_request(case: Case, conversation: list[tuple[str, str]]) -> list[Message]:
    """Build what the simulated user is shown."""
    system = (
        f"You are this person.\n<demographics>\n{_lines(case.demographics)}\n</demographics>\n"
        f"{_domains(case)}\n<situation>\n{_lines(case.situation)}\n</situation>\n<task>\n{case.intent}\n</task>"
    )
    swap = {"user": "assistant", "assistant": "user"}
    messages = [{"role": "system", "content": system}]
    messages.append({"role": "user", "content": "<instruction>\nWrite the first message.\n</instruction>"})
    messages += [{"role": swap[role], "content": text} for role, text in conversation]
    if conversation:
        messages[-1]["content"] += "\n\n<instruction>\nWrite your next message.\n</instruction>"
    return messages


def assistant_request(case: Case, conversation: list[tuple[str, str]], setting: str) -> list[Message]:
    """Build what the assistant is shown in the settings vanilla, base, I and all."""
    system = "You are an assistant." if setting == "vanilla" else "You are an assistant. Make your help personal."
    if setting in ("I", "all"):
        system += "".join(f'\n<summary domain="{name}">\n{text}\n</summary>' for name, text in case.summaries.items())
    if setting == "all":
        system += f"\n<situation>\n{_lines(case.situation)}\n</situation>"
        system += f"\n<demographics>\n{_lines(case.demographics)}\n</demographics>"
    return [{"role": "system", "content": system}, *({"role": role, "content": text} for role, text in conversation)]


def play(case: Case, setting: str = "base", model: str = "attentive", seed: int = 0) -> list[tuple[str, str]]:
    """Play a whole dialogue, TERMINATE included, with one last reply after it; at most 20 user lines."""
    conversation: list[tuple[str, str]] = []
    for turn in range(20):
        line = answer("attentive", user_request(case, conversation), "personalens/user", seed=seed + 2 * turn)
        conversation.append(("user", line))
        request = assistant_request(
            case, [(role, text.replace("TERMINATE", "").strip()) for role, text in conversation], setting
        )
        conversation.append(("assistant", answer(model, request, "personalens/assistant", seed=seed + 2 * turn + 1)))
        if "TERMINATE" in line:
            break
    return conversation


def judge_request(case: Case, conversation: list[tuple[str, str]], metric: str) -> list[Message]:
    """Build what a judge is shown."""
    shown = "\n".join(f"<{role}>\n{text}\n</{role}>" for role, text in conversation)
    content = "How well did it go?\n"
    if metric == "task_completion":
        content += f"<goal>\n{case.goal}\n</goal>"
    if metric == "personalization":
        content += f"<demographics>\n{_lines(case.demographics)}\n</demographics>\n{_domains(case)}\n"
        content += f"<situation>\n{_lines(case.situation)}\n</situation>\n<task>\n{case.intent}\n</task>"
    system = f"<conversation>\n{shown}\n</conversation>"
    return [{"role": "system", "content": system}, {"role": "user", "content": content}]


def judge(
    case: Case, conversation: list[tuple[str, str]], metric: str, target: str = "assistant", model: str = "attentive"
) -> dict[str, Any]:
    """Give a judge's reply."""
    prompt = f"personalens/judge-{metric.replace('_', '-')}"
    request = judge_request(case, conversation, metric)
    found: dict[str, Any] = json.loads(answer(model, request, prompt, "judge", target=target))
    return found


def judged(
    case: Case, conversation: list[tuple[str, str]], metric: str, target: str = "assistant", model: str = "attentive"
) -> object:
    """Give the score or the verdict of one metric."""
    reply = judge(case, conversation, metric, target, model)
    return reply["verdict" if metric == "task_completion" else "score"]
