"""Made people, their dialogues and judgements, opened by name and key as the programs of PersonaLens' release do.

Those programs are not here, and are not run: what they open, and how, is written anew from their reading. They number
people, ask for each file by its name, forgive nothing that is missing, and look at no schema. They name no encoding:
UTF-8 is what Python reads by itself on Linux and macOS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dialoom
from tests.graphs.personalens_people.players import Players, made

SCORED = {"naturalness": ("_user", "_asst"), "coherence": ("_user", "_asst"), "personalization": ("",)}


def shown(profile: dict[str, Any], domain: str) -> str:
    """A domain as its prompts show it: every preference, and the summary."""
    told = {
        key: ", ".join(map(str, value)) if isinstance(value, list) else value
        for key, value in profile["affinities"][domain].items()
    }
    assert told and all(told.values())
    return "\n".join(f"- {key}: {value}" for key, value in told.items()) + "\n" + str(profile["interactions"][domain])


def shown_of_tasks(folder: Path, number: int, file: str, dialogues: Path) -> Iterator[tuple[str, str]]:
    """What making and judging dialogues shows of each task, by its id."""
    person = folder / "data" / "profile" / f"user{number}"
    profile, tasks = (json.loads((person / name).read_text("utf-8")) for name in ("profile.json", file))
    assert profile["demographics"].pop("user_id") == f"user{number}"
    for task in tasks.values():
        domains = task["Relevant Domains"] if file == "tasks_md.json" else task["Relevant Domains"][:1]
        facts = {**profile["demographics"], **task["situations"]}
        parts = [f"{key}: {value}" for key, value in facts.items()] + [task["User Intent"]]
        parts += [shown(profile, domain) for domain in domains]
        dialogue = json.loads((dialogues / f"{task['task_id']}_dialogue.json").read_text("utf-8"))
        assert (dialogue["user_id"], dialogue["task_id"]) == (number, task["task_id"])
        assert dialogue["task_description"] == task["User Intent"]
        parts += [f"[{line['role'].upper()}]: {line['content']}" for line in dialogue["dialogue"]]
        parts += [task["Task Goal"]]
        yield task["task_id"], "\n".join(parts)


def gathered(folder: Path, number: int, assistant: str, judge: str, kind: str) -> dict[str, list[int | bool]]:
    """The scores of one kind of task by metric, found by the words that the gathering looks for."""
    found: dict[str, list[int | bool]] = {}
    for metric in (*SCORED, "task_completion"):
        place = folder / "output" / "evaluation" / f"user{number}" / assistant / metric / judge
        for part in SCORED.get(metric, ("",)):
            for text in (path.read_text("utf-8") for path in place.glob(f"{kind}*{part}.txt")):
                score = re.search(rf"{metric.capitalize()} Score: (\d+)", text)
                verdict = re.search(r"VERDICT: (True|False)", text, re.IGNORECASE)
                assert (score is None) == (metric == "task_completion") == (verdict is not None)
                scores = found.setdefault(metric + part, [])
                scores.append(int(score[1]) if score else text.startswith("VERDICT: True"))
    return found


def test_the_releases_programs_find_all_they_ask_for(tmp_path: Path) -> None:
    """People and tasks to make dialogues of; dialogues to judge; judgements to gather."""
    folder = tmp_path / "made"
    players = Players(summary="Déjà vu: a room or a hive.")
    made(tmp_path, players, people=1).export("profiles", folder)
    run = dialoom.play("personalens", path=tmp_path / "played.db", options={"profiles": folder})
    for name in ("personalens", "evaluations"):
        run.export(name, tmp_path / name)
    assistant = "offline_attentive-base"
    dialogues = tmp_path / "personalens" / "output" / "dialogue" / "user1" / assistant
    single = dict(shown_of_tasks(folder, 1, "tasks.json", dialogues))
    several = dict(shown_of_tasks(folder, 1, "tasks_md.json", dialogues))
    assert list(single) == ["SD-hotels-task-1", "SD-Beekeeping-task-1"] and list(several) == ["MD-task-1"]
    assert "- Needs: Lift, cot\nDéjà vu" in single["SD-hotels-task-1"]
    for kind, count in (("SD", 2), ("MD", 1)):
        found = gathered(tmp_path / "evaluations", 1, assistant, "offline_attentive", kind)
        assert {metric: len(scores) for metric, scores in found.items()} == dict.fromkeys(
            [*(metric + part for metric, parts in SCORED.items() for part in parts), "task_completion"], count
        )
