"""People made by models: requests, checks, the folder, its readers and a killed run."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dialoom
import dialoom as api
from dialoom.graphs.personalens_people import RECIPE
from dialoom.graphs.personalens_people.scenario import PeopleOptions
from dialoom.personas import DataError, PersonaLensRelease
from dialoom.personas.profile import NON_ASCII_PROFILES
from dialoom.personas.similarity import encode_vector, normalize_vector
from tests.conftest import Command
from tests.graphs.personalens_people.players import (
    SCHEMA,
    Players,
    checks,
    domain_of,
    made,
    part,
    preferences,
    release_of,
    task,
    twins,
    write_schema,
)
from tests.runs.test_kill_anywhere import killed


def at_first(wrong: Any, then: Any, domain: str = "") -> Callable[[str], Any]:
    """Return a function that replies `wrong` until the prompt states an error, in one domain or in all, else `then`."""

    def say(text: str) -> Any:
        said = wrong if "<wrong>" not in text and domain_of(text) in (domain or domain_of(text)) else then
        return said(text) if callable(said) else said

    return say


def errors_in_requests(players: Players, kind: str) -> list[str]:
    """Return the errors stated in the requests of a kind."""
    return [part(text, "wrong") for asked, text in players.received if asked == kind and "<wrong>" in text]


def test_made_people_are_read_and_played(tmp_path: Path) -> None:
    shipped = json.loads((Path(api.__file__).parent / "personas/samples/res/schema.json").read_text())
    schema = write_schema(tmp_path, [*shipped[:2], *SCHEMA])
    options = {"people": 3, "affinity_schema": schema, "single_tasks": 2, "multi_tasks": 3}
    run = api.play("personalens-people", path=tmp_path / "run.db", options=options, seed=4)
    release = release_of(run, tmp_path)
    assert release.user_ids() == ["user1", "user2", "user3"]
    kinds = set()
    for user in release.user_ids():
        profile = release.profile(user)
        for each in release.tasks(profile, user):
            kinds.add(each.kind)
            assert set(each.domains) <= {name for name, domain in profile.domains.items() if domain.of_interest}
        for domain in profile.domains.values():
            assert bool(domain.affinities) == bool(domain.summary) == domain.of_interest
    assert kinds == {"single", "multi"}
    assert not any(count for kind, count in release.repairs.items() if kind != NON_ASCII_PROFILES), release.repairs
    played = api.play("personalens", path=tmp_path / "played.db", options={"profiles": tmp_path / "made", "limit": 2})
    assert played.status().done == 2


def test_everything_is_requested_once_and_tasks_once_for_all_people(tmp_path: Path) -> None:
    players = Players()
    run = made(tmp_path, players, people=2, threshold=1.0)
    assert players.asked == {
        **{"domains": 2, "preferences": 4, "contradictions": 2, "summary": 4, "passages": 4},
        **{"tasks": 2, "across": 1, "location": 6},
    }
    release = release_of(run, tmp_path)
    profile = release.profile("user2")
    assert profile.domains["hotels"].affinities == {"Stars": "two", "Needs": ("Lift", "cot")}
    tasks = {each.id: each for each in release.tasks(profile)}
    assert list(tasks) == ["SD-hotels-task-1", "SD-Beekeeping-task-1", "MD-task-1"]
    assert tasks["SD-hotels-task-1"].relevant_affinities == ("Stars",)
    assert tasks["MD-task-1"].domains == ("hotels", "Beekeeping")
    assert tasks["MD-task-1"].situation.for_prompt() == {
        **{"Location": "Lyon", "Device": "Laptop", "Time of Day": "Night"},
        **{"Day of the Week": "Friday", "Environment": "Quiet"},
    }
    assert checks(run) == {}


FORMS: list[tuple[list[dict[str, Any]], str]] = [
    ([{"name": "Stars", "values": ["five"]}, {"name": "Needs", "values": []}], "'five' is none of the values listed"),
    ([{"name": "Stars", "values": ["two", "three"]}, {"name": "Needs", "values": []}], "takes one value, and has 2"),
    ([{"name": "Stars", "values": ["two"]}], "'Needs' is missing"),
    ([{"name": "Stars", "values": ["N/A"]}, {"name": "Needs", "values": []}], "'N/A' says nothing of 'Stars'"),
    (
        [*({"name": "Stars", "values": ["two"]} for _ in "ab"), {"name": "Needs", "values": []}],
        "'Stars' stands there twice",
    ),
    ([{"name": each, "values": ["two"]} for each in ("Stars", "Moons")], "there is no preference 'Moons' here"),
]


@pytest.mark.parametrize(("written", "problem"), FORMS)
def test_preferences_that_break_the_schema_are_corrected_once(
    tmp_path: Path, written: list[dict[str, Any]], problem: str
) -> None:
    players = Players(preferences=at_first({"preferences": written}, preferences, "hotels"))
    run = made(tmp_path, players)
    assert [problem in each for each in errors_in_requests(players, "preferences")] == [True]
    assert checks(run) == {"form": (1, 0, 0)}


def test_domain_that_stays_wrong_is_left_out_with_its_tasks(tmp_path: Path) -> None:
    players = Players(preferences=lambda text: preferences("") if "Hive" in text else preferences(text))
    run = made(tmp_path, players)
    assert checks(run) == {"form": (1, 1, 0)}
    release = release_of(run, tmp_path)
    profile = release.profile("user1")
    assert {name: domain.of_interest for name, domain in profile.domains.items()} == {
        "hotels": True,
        "Beekeeping": False,
    }
    assert [each.id for each in release.tasks(profile)] == ["SD-hotels-task-1"]
    assert players.asked["preferences"] == 3 and players.asked["across"] == 0


def test_values_beyond_the_lists_can_be_allowed(tmp_path: Path) -> None:
    written = [{"name": "Stars", "values": ["five"]}, {"name": "Needs", "values": []}]
    players = Players(preferences=lambda text: preferences(text) if "Hive" in text else {"preferences": written})
    run = made(tmp_path, players, open_values=True)
    assert checks(run) == {}
    assert release_of(run, tmp_path).profile("user1").domains["hotels"].affinities == {"Stars": "five"}


def test_planted_contradiction_is_found_and_rewritten(tmp_path: Path, dialoom: Command) -> None:
    contradiction = {"domain": "HOTELS", "preference": "stars", "reason": "They never travel."}
    twice = preferences("")["preferences"][1:]
    changed = {"preferences": [{"name": "Stars", "values": ["three"]}, *twice]}
    players = Players(
        preferences=at_first(preferences, changed),
        contradictions=lambda text: {"contradictions": [contradiction] if "Stars: two" in text else []},
    )
    run = made(tmp_path, players)
    assert errors_in_requests(players, "preferences") == ["stars: They never travel."]
    assert players.asked["preferences"] == 3 and players.asked["contradictions"] == 2
    assert checks(run) == {"consistency": (1, 0, 0)}
    assert release_of(run, tmp_path).profile("user1").domains["hotels"].affinities["Stars"] == "three"
    shown = dialoom("show", "run.db", "1").stdout
    refused = dialoom("describe", "run.db", code=2).stderr
    assert "holds no dialogues" in refused, "empty tables are not shown"
    assert "personalens_people/tasks (2 of them, each requested once, used so far only by this scenario)" in shown
    assert "Stars: three" in shown and "rejected (consistency) hotels: stars: They never travel." in shown


def test_lasting_contradiction_removes_its_domain(tmp_path: Path) -> None:
    lasting = {"contradictions": [{"domain": "hotels", "preference": "Needs", "reason": "No."}]}
    run = made(tmp_path, Players(contradictions=lambda text: lasting if "Needs" in text else {"contradictions": []}))
    assert checks(run) == {"consistency": (1, 1, 0)}
    assert not release_of(run, tmp_path).profile("user1").domains["hotels"].of_interest
    (tmp_path / "other").mkdir()
    stray = {"contradictions": [{"domain": "Boats", "preference": "Needs", "reason": "No."}]}
    assert checks(made(tmp_path / "other", Players(contradictions=stray))) == {"consistency": (0, 0, 2)}


def test_summary_with_unlisted_preferences_is_rewritten_or_left_out(tmp_path: Path) -> None:
    unlisted = "They insist on a llama."

    def summary(text: str) -> str:
        stays = domain_of(text) == "Beekeeping" or "<wrong>" not in text
        return f"A room. {unlisted}" if stays else "A room."

    players = Players(
        summary=summary, passages=lambda text: {"passages": [unlisted.upper()] if unlisted in text else []}
    )
    run = made(tmp_path, players)
    assert checks(run) == {"summary": (2, 1, 0)}
    assert all(unlisted.upper() in each for each in errors_in_requests(players, "summary"))
    domains = release_of(run, tmp_path).profile("user1").domains
    assert {name: domain.summary for name, domain in domains.items()} == {"hotels": "A room.", "Beekeeping": ""}


def test_truncated_summary_is_incomplete(tmp_path: Path) -> None:
    players = Players(summary=at_first("They asked for a room with a", "A room."))
    run = made(tmp_path, players)
    assert checks(run) == {"summary": (2, 0, 0)}
    assert set(errors_in_requests(players, "summary")) == {"this breaks off in the middle of a sentence"}


def test_quote_that_is_not_in_the_summary_is_no_finding(tmp_path: Path) -> None:
    run = made(tmp_path, Players(passages={"passages": ["They own a llama."]}))
    assert checks(run) == {"summary": (0, 0, 2)}
    assert run.episode(1).outcome.counts == {"domains": 2, "tasks": 3}


def test_tasks_with_unknown_preferences_or_domains_are_rewritten_or_left_out(tmp_path: Path) -> None:
    across = [
        task(1, ["Stars"], ["hotels", "Boats"]),
        task(2, ["Stars"], ["hotels", "HOTELS"]),
        task(3, ["Stars", "Hive"], ["hotels", "Beekeeping"]),
        task(3, ["Hive"], ["hotels", "Beekeeping"]),
    ]
    tasks = [task(1, ["Hive", "Shoe Size"]), task(2, ["Hive"])]

    def single(text: str) -> Any:
        if domain_of(text) != "Beekeeping":
            return {"tasks": [task(1, ["Stars"])]}
        return {"tasks": tasks if "<wrong>" not in text else tasks[1:]}

    players = Players(tasks=single, across={"tasks": across})
    run = made(tmp_path, players, people=2, threshold=1.0)
    assert players.asked["tasks"] == 3 and players.asked["across"] == 2, "requested once more, for all people"
    assert errors_in_requests(players, "tasks") == [
        "task 1 names the preference 'Shoe Size', which Beekeeping does not have"
    ]
    assert errors_in_requests(players, "across") == [
        "task 1 names a domain that there is not, of these: hotels, Boats; "
        "task 2 has 1 different domains; it must have 2 to 5; task 4 is one that is there already"
    ]
    assert checks(run) == {"tasks": (2, 1, 0)}
    release = release_of(run, tmp_path)
    assert [(each.id, each.goal) for each in release.tasks(release.profile("user2"))] == [
        ("SD-hotels-task-1", "goal 1"),
        ("SD-Beekeeping-task-1", "goal 2"),
        ("MD-task-1", "goal 3"),
    ]


def test_planted_twin_is_left_out_of_the_folder(tmp_path: Path) -> None:
    same = {"preferences": [{"name": "Hive", "values": ["a skep of straw"]}]}
    players = Players(preferences=lambda text: same if "Hive" in text else preferences(text))
    run = made(tmp_path, players, people=3)
    assert twins(run) == 2
    assert release_of(run, tmp_path).user_ids() == ["user1"]


def test_model_may_decide_who_is_a_twin(tmp_path: Path) -> None:
    async def embedder(messages: list[Any]) -> str:
        (text,) = (message["content"] for message in messages)
        seen.append(text)
        return json.dumps({"vectors": [encode_vector(normalize_vector([1.0, float(len(seen) % 2)]))]})

    seen: list[str] = []
    run = made(tmp_path, Players(), {"embedder": embedder}, people=3, embedder="litellm:some/model")
    assert len(seen) == 3 and all("Lift" in text for text in seen)
    assert twins(run) == 1
    assert len(release_of(run, tmp_path).user_ids()) == 2


HOSTILE: dict[str, dict[str, tuple[int, ...]]] = {
    "domains": {"unparsed": (1, 1, 0)},
    "preferences": {"unparsed": (2, 2, 0)},
    "contradictions": {"consistency": (0, 0, 2)},
    "summary": {"unparsed": (2, 2, 0)},
    "passages": {"summary": (0, 0, 2)},
    "tasks": {"unparsed": (2, 2, 0)},
    "location": {"unparsed": (0, 3, 0)},
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_unparsed_replies_are_counted_and_fail_no_scenario(tmp_path: Path, kind: str) -> None:
    players = Players(**{kind: '{"preferences": 1, "domains": {}, "tasks": [{}]' if kind != "summary" else ""})
    run = made(tmp_path, players)
    assert run.status().done == 1 and checks(run) == HOSTILE[kind]
    is_whole = kind in ("contradictions", "passages", "tasks")
    assert run.episode(1).outcome.ended_by == ("complete" if is_whole else "incomplete")
    run.export("profiles", tmp_path / "folder")
    assert (tmp_path / "folder" / "data").exists() == is_whole


def test_impossible_options_are_refused(tmp_path: Path) -> None:
    hotels: dict[str, Any] = SCHEMA[0]
    bare = {**hotels, "affinities": [{**hotels["affinities"][0], "possible_values": []}]}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"single_tasks": 0, "multi_tasks": 0}, "single_tasks must be at least 1 without multi_tasks"),
        ({"affinity_schema": write_schema(tmp_path, [hotels, hotels])}, "the domain 'hotels' is listed twice"),
        ({"embedder": "word2vec"}, "'word2vec' is not an embedder"),
        ({"demographics": tmp_path / "people.xlsx"}, "tables of weights in a .toml file, or people in a .csv file"),
    ]
    for options, message in refused:
        with pytest.raises(api.DialoomError, match=message):
            api.play("personalens-people", path=tmp_path / "run.db", options=options)
    for schema, message in ((bare, "'Stars' of 'hotels' is categorical and has no possible values"), ([], "no domain")):
        path = write_schema(tmp_path, [schema] if schema else [])
        with pytest.raises(api.DialoomError, match=message):
            api.play("personalens-people", path=tmp_path / "run.db", options={"affinity_schema": path})
    assert not (tmp_path / "run.db").exists()


def test_domain_spelled_differently_in_the_schema_is_separate(tmp_path: Path) -> None:
    release = release_of(made(tmp_path, Players()), tmp_path)
    assert set(release.profile("user1").domains) == {"hotels", "Beekeeping"}
    (tmp_path / "made" / "res" / "schema.json").unlink()
    with pytest.raises(DataError, match="needs the domain 'hotels'"):
        bare = PersonaLensRelease(tmp_path / "made")
        list(bare.tasks(bare.profile("user1")))


def test_planning_prints_no_similarity_of_other_texts() -> None:
    messages: list[str] = []
    assert len(list(RECIPE.scenarios(PeopleOptions(people=2), random.Random(1), messages.append))) == 2
    assert messages == []


SMALL = {"people": 3, "single_tasks": 2, "multi_tasks": 2, "threshold": 1.0}


def exported(run: dialoom.Run, folder: Path) -> dict[str, bytes]:
    """Export the people and return the files."""
    run.export("profiles", folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.json")}


def test_killed_and_resumed_run_gives_the_same_bytes(tmp_path: Path) -> None:
    schema = write_schema(tmp_path)
    options = {**SMALL, "affinity_schema": schema}
    whole = dialoom.play("personalens-people", path=tmp_path / "whole.db", options=options)
    expected = exported(whole, tmp_path / "whole")
    assert len(expected) == 1 + 3 * 3
    for place, count in (("INSERT INTO kept_calls", 12), ("INSERT INTO outcomes", 3)):
        folder = tmp_path / str(count)
        broken = killed(folder, place, count, "run", "personalens-people", **options)
        assert exported(dialoom.resume(broken), folder / "resumed") == expected


# The release's programs are not available here: these functions open files as those programs do. They number people,
# open each file by its name, require all of them, and read no schema. They state no encoding; Python's default on
# Linux and macOS is UTF-8.

SCORED = {"naturalness": ("_user", "_asst"), "coherence": ("_user", "_asst"), "personalization": ("",)}


def shown(profile: dict[str, Any], domain: str) -> str:
    """Return a domain as its prompts show it: every preference, and the summary."""
    affinities = {
        key: ", ".join(map(str, value)) if isinstance(value, list) else value
        for key, value in profile["affinities"][domain].items()
    }
    assert affinities and all(affinities.values())
    return (
        "\n".join(f"- {key}: {value}" for key, value in affinities.items())
        + "\n"
        + str(profile["interactions"][domain])
    )


def shown_of_tasks(folder: Path, number: int, file: str, dialogues: Path) -> Iterator[tuple[str, str]]:
    """Yield the ids of tasks, and what the prompts of dialogues and judges show of each."""
    person = folder / "data" / "profile" / f"user{number}"
    profile, tasks = (json.loads((person / name).read_text("utf-8")) for name in ("profile.json", file))
    assert profile["demographics"].pop("user_id") == f"user{number}"
    for each in tasks.values():
        domains = each["Relevant Domains"] if file == "tasks_md.json" else each["Relevant Domains"][:1]
        facts = {**profile["demographics"], **each["situations"]}
        parts = [f"{key}: {value}" for key, value in facts.items()] + [each["User Intent"]]
        parts += [shown(profile, domain) for domain in domains]
        dialogue = json.loads((dialogues / f"{each['task_id']}_dialogue.json").read_text("utf-8"))
        assert (dialogue["user_id"], dialogue["task_id"]) == (number, each["task_id"])
        assert dialogue["task_description"] == each["User Intent"]
        parts += [f"[{line['role'].upper()}]: {line['content']}" for line in dialogue["dialogue"]]
        parts += [each["Task Goal"]]
        yield each["task_id"], "\n".join(parts)


def gathered(folder: Path, number: int, assistant: str, judge: str, kind: str) -> dict[str, list[int | bool]]:
    """Return the scores of one kind of task by metric, found with the patterns of the release's program."""
    found: dict[str, list[int | bool]] = {}
    for metric in (*SCORED, "task_completion"):
        place = folder / "output" / "evaluation" / f"user{number}" / assistant / metric / judge
        for end in SCORED.get(metric, ("",)):
            for text in (path.read_text("utf-8") for path in place.glob(f"{kind}*{end}.txt")):
                score = re.search(rf"{metric.capitalize()} Score: (\d+)", text)
                verdict = re.search(r"VERDICT: (True|False)", text, re.IGNORECASE)
                assert (score is None) == (metric == "task_completion") == (verdict is not None)
                scores = found.setdefault(metric + end, [])
                scores.append(int(score[1]) if score else text.startswith("VERDICT: True"))
    return found


def test_programs_of_the_release_find_their_files(tmp_path: Path) -> None:
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
