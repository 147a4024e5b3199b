"""Simulated users from rows: played, scored, continued, and refused if the rows are invalid."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy
import pytest

import dialoom
from dialoom import DialoomError
from dialoom.graphs import Conversation
from dialoom.graphs.tables.table import FacetColumn
from tests.graphs.support import gave_number, judge, scripted

PEOPLE = [{"name": "Ada", "style": "brief"}, {"name": "Bo", "style": "wordy"}]
USER = scripted(["I want to return a kettle.", "DONE"])
AGENT = scripted(["Sure, case AB-1."])
RESOLVED = dialoom.Judge("resolved", rubric="{{ person.name }} reached the goal: {{ task.goal }}")


def simulated(folder: Path, **changed: Any) -> dialoom.Run:
    """Return a simulation of two people with two tasks."""
    given: dict[str, Any] = {"people": PEOPLE, "tasks": ["return a kettle", "change an address"], "judges": [RESOLVED]}
    players = {"assistant": AGENT, "user": USER, "judge": judge}
    return dialoom.simulate(**{**given, **players, "checks": [gave_number], "path": folder / "run.db", **changed})


def test_every_person_gets_every_task_and_scores(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    episodes = list(run.episodes())
    assert [dict(each.facets) for each in episodes[:2]] == [
        {"person": "Ada", "style": "brief", "goal": "return a kettle"},
        {"person": "Ada", "style": "brief", "goal": "change an address"},
    ]
    assert [(each.metric, each.score) for each in episodes[0].outcome.judgements] == [
        ("resolved", True),
        ("gave_number", True),
    ]
    assert len(episodes) == 4
    assert "Scores by person" in str(run.report())


def test_trials_are_played_and_can_be_added(tmp_path: Path) -> None:
    assert simulated(tmp_path, trials=2).status().total == 8
    assert simulated(tmp_path, trials=3).status().done == 12


def test_intervals_are_over_people_although_a_column_is_named_person(tmp_path: Path) -> None:
    people = [{"name": name, "person": "nurse"} for name in ("Ada", "Bo")]
    tasks = [{"goal": f"call {number}", "person": f"Caller {number}"} for number in range(6)]
    run = simulated(
        tmp_path, people=people, tasks=tasks, checks=[dialoom.Check("length", lambda talk: len(talk.messages))]
    )
    facets = {"person": "Ada", "person_person": "nurse", "goal": "call 0", "task_person": "Caller 0"}
    assert dict(next(iter(run.episodes())).facets) == facets
    score: Any = run.report()["scores"].rows[0][1]
    assert (score.n, score.low) == (12, None), "two people are too few for an interval"


def test_columns_named_like_a_trial_or_a_user_model_are_kept_beside_these(tmp_path: Path) -> None:
    people = [{"name": "Ada", "trial": "phase 2", "user_model": "walker", "trial_of": "drug"}]
    run = simulated(tmp_path, people=people, tasks=[{"goal": "call", "trial": "x"}], trials=2)
    frame = run.frame()
    assert list(frame["trial"]) == [1, 2] and "user_model" not in frame and frame["id"].nunique() == 1
    assert set(run.frame("judgements")["trial"]) == {1, 2}
    kept = {"person_trial": "phase 2", "person_user_model": "walker", "person_trial_of": "drug", "task_trial": "x"}
    assert all(set(frame[name]) == {value} for name, value in kept.items())
    assert "user-models" not in [table.name for table in run.report().tables]


def test_low_scores_of_a_check_can_be_good(tmp_path: Path) -> None:
    rude = dialoom.Check("rude", lambda _: False, lower_is_better=True)
    row: Any = simulated(tmp_path, checks=[rude], judges=[], trials=2).report()["pass"].rows[0]
    assert row[:2] == ["rude (assistant)", 1] and row[2].mean == 1


@pytest.mark.parametrize(("label", "scores"), [("refund", {"refund": True, "delivery": False}), ("weather", {})])
def test_a_label_is_picked_and_any_other_is_unparsed(tmp_path: Path, label: str, scores: dict[str, bool]) -> None:
    topic = dialoom.Judge("topic", rubric="x", labels=["refund", "delivery"], read=lambda _: (label, "it says so"))
    (episode, *_) = simulated(tmp_path, judges=[topic], checks=[]).episodes()
    found = {each.metric: each for each in episode.outcome.judgements}
    assert {name: each.score for name, each in found.items() if each.status == "ok"} == scores
    assert list(found) == ["refund", "delivery"] and "it says so" in found["refund"].explanation


def test_user_sees_the_rows_and_assistant_only_its_own_prompt(tmp_path: Path) -> None:
    shown: dict[str, list[list[Any]]] = {"user": [], "assistant": []}

    async def user(messages: list[Any]) -> str:
        shown["user"].append(messages)
        return await USER(messages)

    async def agent(messages: list[Any]) -> str:
        shown["assistant"].append(messages)
        return "Sure."

    simulated(tmp_path, user=user, assistant=agent, people=PEOPLE[:1], tasks=["return a kettle"])
    assert (
        "style: brief" in shown["user"][0][0]["content"] and "goal: return a kettle" in shown["user"][0][0]["content"]
    )
    assert [(each["role"], each["content"]) for each in shown["assistant"][0]] == [
        ("user", "I want to return a kettle.")
    ]


def test_columns_named_like_methods_are_columns(tmp_path: Path) -> None:
    """Such columns can be used in briefs, in the default brief and in rubrics."""
    names = ("items", "values", "keys", "get", "copy", "pop", "update")
    person = {"name": "Ada"} | {name: f"the {name} of Ada" for name in names}
    task = {"goal": "return"} | {name: f"the {name} to return" for name in names}
    shown: dict[str, str] = {}

    def recording(role: str, reply: Any) -> Any:
        async def player(messages: list[Any]) -> Any:
            shown[role] = str(messages)
            return await reply(messages)

        return player

    every = " ".join(f"{{{{ person.{name} }}}} {{{{ task['{name}'] }}}}" for name in names)
    for brief in ("", every):
        shown.clear()
        simulated(
            tmp_path,
            path=tmp_path / f"{bool(brief)}.db",
            people=[person],
            tasks=[task],
            brief=brief,
            judges=[dialoom.Judge("resolved", rubric=every)],
            user=recording("user", USER),
            judge=recording("judge", judge),
        )
        for text in (shown["user"], shown["judge"]):
            assert all(f"the {name} of Ada" in text and f"the {name} to return" in text for name in names)
            assert "built-in" not in text


def test_same_call_continues_an_interrupted_simulation(tmp_path: Path) -> None:
    asked = 0

    async def agent(_messages: list[Any]) -> str:
        nonlocal asked
        asked += 1
        return "Sure, case AB-1."

    first = simulated(tmp_path, assistant=agent, budget=dialoom.Budget(max_calls=5))
    assert first.status().done < 4
    whole = simulated(tmp_path, assistant=agent, budget=dialoom.Budget(max_calls=100))
    assert (whole.status().done, asked) == (4, 4)


def test_other_rows_are_not_continued_in_the_same_file(tmp_path: Path) -> None:
    simulated(tmp_path)
    with pytest.raises(DialoomError, match="contains a run with other rows, prompts, turns, judges or checks"):
        simulated(tmp_path, people=PEOPLE[:1])


def test_another_seed_or_assistant_is_refused_for_an_existing_file(tmp_path: Path) -> None:
    async def newer(_messages: list[Any]) -> str:
        return "Something else."

    simulated(tmp_path)
    with pytest.raises(
        DialoomError, match=r"run\.db contains a run with other settings \(seed: 0 then, 5 now\); give an"
    ):
        simulated(tmp_path, seed=5)
    with pytest.raises(DialoomError, match=r"assistant model: 'object:player-2' then, 'object:newer' now"):
        simulated(tmp_path, assistant=newer)
    with pytest.raises(DialoomError, match=r"on_user_fault: 'flag' then, 'retry 2' now"):
        simulated(tmp_path, on_user_fault="retry 2")
    with pytest.raises(DialoomError, match=r"user 2 model: None then, 'offline/generic' now"):
        simulated(tmp_path, user=["offline/attentive", "offline/generic"])


CODE = """
LIMIT = {"none", "one", "several"}

def helper(text):
    return text in {"one", "two", "three"} or text.upper()

def player(messages):
    return "Sure, case AB-1." + str(helper("x"))

def scores(conversation):
    return [line for line in conversation.messages if line.content] != []

def ends(conversation):
    return len(conversation.messages) > 3

def look_up(number: int) -> str:
    'Return an order.'
    return "shipped"

class World:
    @property
    def tools(self):
        return [self.cancel]

    def cancel(self, number: int):
        'Cancel an order.'
        self.state = {number: True}

    def reset(self, scenario):
        self.state = {}

    def snapshot(self):
        return self.state

    def restore(self, snapshot):
        self.state = snapshot
"""


def given_by(code: str) -> dict[str, Any]:
    """Return the arguments of a simulation whose functions are defined by a text, and so have no source."""
    made: dict[str, Any] = {"__name__": "made"}
    exec(code, made)
    acting = {"environment": made["World"], "tools": [made["look_up"]]}
    return {"assistant": made["player"], "checks": [made["scores"]], "ends": [made["ends"]], **acting}


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("case AB-1", "case AB-2", "assistant code: '[0-9a-f]{16}' then"),
        ('"two"', '"four"', "assistant code: "),
        ("text.upper()", "text.lower()", "assistant code: "),
        ("!= []", "== []", "other code of scores; give another path"),
        ("> 3", "> 5", "other code of ends; give another path"),
        ('"shipped"', '"lost"', "other code of look_up; give another path"),
        ("look_up(number: int)", "look_up(number: str)", "other code of look_up; give another path"),
        ("number: True", "number: False", "other code of World; give another path"),
    ],
)
def test_a_function_with_other_code_is_refused_for_an_existing_file(
    tmp_path: Path, old: str, new: str, where: str
) -> None:
    assert CODE.count(old) == 1
    simulated(tmp_path, **given_by(CODE))
    assert simulated(tmp_path, **given_by(f"# moved\n\n{CODE}")).status().done == 4
    with pytest.raises(DialoomError, match=where):
        simulated(tmp_path, **given_by(CODE.replace(old, new)))


def test_code_is_recognised_in_another_process(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    call = "run = dialoom.simulate(['Ada'], assistant=player, checks=[scores], ends=[ends], path='run.db')"
    script.write_text(f"import dialoom\n{CODE}\n{call}\nprint(run.status().done)\n", encoding="utf-8")
    outputs = [
        subprocess.run(
            [sys.executable, script.name],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        for seed in ("1", "2", "3")
    ]
    assert [(each.stdout, each.stderr) for each in outputs] == [("1\n", "")] * 3


def test_a_run_resumed_with_other_code_says_so(tmp_path: Path) -> None:
    given = {**given_by(CODE), "environment": None, "tools": (), "checks": (), "ends": ["user_satisfied"]}
    simulated(tmp_path, **given, budget=dialoom.Budget(max_calls=5), concurrency=1)
    events: list[Any] = []
    models = {"assistant": given_by(CODE.replace("AB-1", "AB-2"))["assistant"], "user": USER, "judge": judge}
    budget = dialoom.Budget(max_calls=100)
    run = dialoom.resume(tmp_path / "run.db", models=models, budget=budget, on_event=events.append)
    assert f"{tmp_path}/run.db: player-2 has changed since the run was created" in [
        each.text for each in events if isinstance(each, dialoom.Notice)
    ]
    assert "Code had changed when the run was continued: player-2." in str(run.report())


def test_judgements_of_changed_code_are_not_continued(tmp_path: Path) -> None:
    code = "def strict(messages):\n    return '{\"verdict\": true}'"
    first, second = dict[str, Any](), dict[str, Any]()
    exec(code, first)
    exec(code.replace("true", "false"), second)
    run = simulated(tmp_path).judge(first["strict"], name="again", sample=1)
    with pytest.raises(DialoomError, match=r"made by object:strict with other prompts, code, .*; give another name"):
        run.judge(second["strict"], name="again")
    assert run.judge(first["strict"], name="again").judgement_sets[-1].name == "again"


def test_a_judge_whose_judgings_all_failed_can_be_replaced(tmp_path: Path) -> None:
    def failing(_messages: list[Any]) -> str:
        raise ValueError("no score")

    run = simulated(tmp_path)
    assert run.judge(failing, name="again").status().by_judging["again"].failed == 4
    run = run.judge(judge, name="again")
    assert run.ended is not None and (run.ended.done, run.ended.failed) == (4, 0)
    assert all(each.outcome.judgements for each in run.episodes("again"))
    with pytest.raises(DialoomError, match="the existing set with that name was made by"):
        run.judge(failing, name="again")


def test_a_string_is_no_list_of_names(tmp_path: Path) -> None:
    run = simulated(tmp_path)
    calls: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
        ("scenarios must be a list, got '12'", dialoom.retry, {"path": run.path, "scenarios": "12"}),
        ("tables must be a list, got 'scores'", run.report, {"tables": "scores"}),
        ("metrics must be a list, got 'resolved'", run.require, {"metrics": "resolved", "not_worse_than": run}),
        ("without must be a list, got 'echo'", run.export, {"path": tmp_path / "rows", "without": "echo"}),
    ]
    for message, function, given in calls:
        with pytest.raises(DialoomError, match=message):
            function(**given)
    with pytest.raises(DialoomError, match="a requirement must be a text such as 'resolved >= 80%', got 5"):
        run.require(cast(Any, 5))


def test_share_that_is_a_text_is_refused_as_such(tmp_path: Path) -> None:
    with pytest.raises(DialoomError, match=r"test_share '0\.3': a share must be between 0 and 1"):
        simulated(tmp_path).export("sft", tmp_path / "out", test_share=cast(Any, "0.3"))


def judge_that_says(verdict: str) -> Callable[[list[Any]], str]:
    """Return a judge with a fixed verdict; all these judges have the same name."""

    def strict(_messages: list[Any]) -> str:
        return f'{{"verdict": {verdict}}}'

    return strict


def test_judgements_of_another_function_with_the_same_name_need_a_name(tmp_path: Path) -> None:
    first, second = judge_that_says("true"), judge_that_says("false")
    run = simulated(tmp_path, judge=first)
    with pytest.raises(DialoomError, match="object:strict has the name of the judge of 'run' but may be ano") as error:
        run.judge(second)
    assert error.value.setting == "models" and [each.name for each in run.judgement_sets] == ["run"]
    for _ in range(2):
        run = run.judge(second, name="second", repeat=2)
    assert [each.name for each in run.judgement_sets] == ["run", "second", "second #2"]
    assert run.report(tables=["judges"])["judges"].rows[0][:3] == ["resolved (assistant)", 2, 4]


def test_run_with_several_models_of_a_role_is_continued_with_the_same_ones_only(tmp_path: Path) -> None:
    models = {"user": ["offline/placeholder", other_user], "judge": [judge, "offline/placeholder"]}
    assert simulated(tmp_path, **models, budget=dialoom.Budget(max_calls=5)).status().pending > 0
    assert simulated(tmp_path, **models, budget=dialoom.Budget(max_calls=1000)).status().pending == 0
    for role, (first, second) in models.items():
        for changed in (first, [first, second, "offline/attentive"], [first, "offline/attentive"]):
            with pytest.raises(DialoomError, match=rf"other settings \({role} [23] model: .* then, .* now"):
                simulated(tmp_path, **{**models, role: changed})


async def finds_nothing(_: Conversation) -> bool:
    """Score as an async function, which is not possible."""
    return False


async def other_user(_messages: list[Any]) -> str:
    """Play a user who says little."""
    return "It is broken."


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"people": []}, "people must hold at least one row, got none"),
        ({"people": "Ada"}, "people must be a list of rows, a data frame or a file as a pathlib.Path, got str"),
        ({"judges": ["resolved"]}, "judges must be dialoom.Judge objects, got 'resolved'"),
        ({"checks": ["AB-"]}, "checks must be functions or dialoom.Check objects, got 'AB-'"),
        (
            {"judge": [judge_that_says("true"), judge_that_says("false")]},
            "one is a function or graph that cannot be imported by a name",
        ),
        ({"tasks": [7]}, "tasks:1: a row must be a mapping or a string, got int"),
        ({"people": [PEOPLE[0], PEOPLE[0]]}, "people:2: the same row as in 1; remove it"),
        ({"tasks": ["buy", " "]}, "tasks:2: the row is empty; fill it in or remove it"),
        (
            {
                "judges": [
                    dialoom.Judge("tone", rubric="x", scale=(1, top), target=of)
                    for top, of in ((5, "user"), (9, "assistant"))
                ]
            },
            "the metric 'tone' has two scales, or is lower_is_better for one target only; rename one",
        ),
        ({"max_turns": 0}, "max_turns must be at least 1, got 0"),
        ({"ends": [lambda _: "one", lambda _: "two"]}, "tools, checks, ends: two functions have the name '<lambda>'"),
        (
            {"ends": [gave_number], "checks": [dialoom.Check("gave_number", lambda _: True)]},
            "tools, checks, ends: two functions have the name 'gave_number'",
        ),
        ({"max_turns": True}, "max_turns must be a whole number, got True"),
        ({"per_person": True}, "per_person must be a whole number, got True"),
        ({"roles": {"name": "x"}}, "roles must be a list, got {'name': 'x'}"),
        ({"roles": ["clerk"]}, 'roles must contain mappings such as {"name": ROLE, "brief": PROMPT}; "speaks"'),
        ({"roles": [{"name": "clerk"}]}, "{\"keyword\": WORD}, got {'name': 'clerk'}"),
        (
            {"roles": [{"name": "clerk", "brief": "x", "speaks": "late"}]},
            '"speaks" may be "in turn", {"after": ROLE} or {"keyword": WORD}, got {\'name\': \'clerk\', \'brief\'',
        ),
        (
            {"roles": [{"name": "reviewer", "brief": "x"}]},
            "[[role]] has the name 'reviewer', which is reserved or the r",
        ),
        ({"takes_tools": 3}, "takes_tools must be a list, got 3"),
        (
            {"ends": [gave_number, "GOODBYE"]},
            "ends contains 'GOODBYE'; it can contain 'user_satisfied', 'user_gives_up', {\"keyword\": WORD}",
        ),
        ({"ends": [{"keyword": 5}]}, "ends contains {'keyword': 5}; it can contain"),
        ({"ends": [finds_nothing]}, "ends: finds_nothing is async; it must be a plain function"),
        ({"checks": [finds_nothing]}, "checks: finds_nothing is async; it must be a plain function"),
        ({"ends": "user_satisfied"}, "ends must be a list, got 'user_satisfied'"),
        ({"checks": gave_number}, "checks must be a list, got <function"),
        ({"judges": RESOLVED}, "judges must be a list, got Judge("),
        ({"environment": 5}, "environment must be a class or function that creates it, or a file, got 5"),
        ({"mcp": "uvx server"}, "mcp must be a list, got 'uvx server'"),
        (
            {"roles": [{"name": "Boss", "brief": "x"}]},
            "roles: name must be a text of the form ^[a-z][a-z0-9_]*$, got 'B",
        ),
        ({"checks": [dialoom.Check("", gave_number)]}, "checks: metric must be a text that is not empty, got ''"),
    ],
)
def test_unusable_rows_are_refused_by_argument_name(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(DialoomError) as caught:
        simulated(tmp_path, **changed)
    assert message in str(caught.value)
    assert not (tmp_path / "run.db").exists()


def contents(path: Path) -> list[tuple[dict[str, Any], list[tuple[str, str]]]]:
    """Return the facets and messages of a run."""
    episodes = dialoom.open_run(path).episodes()
    return [(dict(each.facets), [(line.role, line.content) for line in each.outcome.messages]) for each in episodes]


class Rows:
    """The interface of `datasets.Dataset`: rows by number, columns by name. tests/training uses the real class."""

    column_names = list(PEOPLE[0])

    def __len__(self) -> int:
        return len(PEOPLE)

    def __getitem__(self, key: int | str) -> Any:
        return [row[key] for row in PEOPLE] if isinstance(key, str) else dict(PEOPLE[key])

    def __iter__(self) -> Iterator[dict[str, str]]:
        return (self[number] for number in range(len(self)))


@pytest.mark.parametrize("form", ["frame", "dataset", "iterator", "file"])
def test_rows_may_be_a_frame_a_dataset_or_a_file(tmp_path: Path, form: str) -> None:
    """All forms give the same conversations as a list of mappings."""
    (tmp_path / "people.csv").write_text("name,style\nAda,brief\nBo,wordy\n")
    people: Any = {"iterator": iter(PEOPLE), "file": tmp_path / "people.csv", "dataset": Rows()}.get(form)
    if form == "frame":
        people = pytest.importorskip("pandas").DataFrame(PEOPLE)
    simulated(tmp_path, people=people)
    simulated(tmp_path, path=tmp_path / "rows.db")
    assert contents(tmp_path / "run.db") == contents(tmp_path / "rows.db")


def test_a_missing_value_of_a_frame_is_an_empty_cell(tmp_path: Path) -> None:
    """A missing value is empty in the prompt; whole numbers of its column are not shown as 34.0."""
    pandas = pytest.importorskip("pandas")
    people = pandas.DataFrame(
        {
            "name": ["Ada", "Bo"],
            "age": [34, None],
            "weight": [61.5, None],
            "since": pandas.to_datetime(["2020-01-31", None]),
            "floor": pandas.array([2, None], dtype="Int64"),
        }
    )
    run = simulated(tmp_path, people=people)
    shown = [[str(each.facets[name]) for name in people.columns[1:]] for each in run.episodes()]
    assert shown[::2] == [["34", "61.5", "2020-01-31 00:00:00", "2"], ["", "", "", ""]]


def test_the_index_of_a_frame_is_kept_and_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    run = simulated(tmp_path, people=pandas.DataFrame(PEOPLE).set_index("name"))
    assert [each.facets["person"] for each in run.episodes()] == ["Ada", "Ada", "Bo", "Bo"]
    with pytest.raises(DialoomError, match="people: two columns are named 'style'; rename one"):
        simulated(tmp_path, people=pandas.DataFrame([["Ada", "brief", "wordy"]], columns=["name", "style", "style"]))


def test_a_check_that_never_scores_is_reported(tmp_path: Path) -> None:
    """The tables have no column for it, so a note names it, also if there are no other scores."""

    def refunded(_: Conversation) -> None:
        return None

    notes = simulated(tmp_path, checks=[gave_number, refunded]).report()["scores"].notes
    assert any("No score at all: refunded." in note for note in notes)
    alone = simulated(tmp_path, judges=[], checks=[refunded], path=tmp_path / "alone.db").report()["scores"]
    assert alone.rows == [[4]] and "No score at all: refunded." in alone.notes[0]


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        (lambda _: (True, 5), "TypeError: the explanation must be a text, got 5"),
        (lambda talk: finds_nothing(talk), "TypeError: finds_nothing is an async function; it must be a plain one"),
        (lambda _: 1 / len(""), "ZeroDivisionError: division by zero"),
        (lambda _: int("sk-abcdefghijklmnop"), "ValueError: invalid literal for int() with base 10: '[key]'"),
        (lambda _: int("\ud800"), "ValueError: invalid literal for int() with base 10: '\\ud800'"),
        (lambda _: 10**400, "OverflowError: int too large to convert to float"),
        (lambda _: sys.exit(3), "SystemExit: 3"),
    ],
)
def test_an_unusable_result_of_a_check_fails_the_check_only(tmp_path: Path, check: Any, reason: str) -> None:
    run = simulated(tmp_path, checks=[dialoom.Check("found", check), gave_number])
    assert run.status().done == 4
    _, found, number = next(run.episodes()).outcome.judgements
    assert (found.status, found.explanation, number.score) == ("error", reason, True)


def test_half_of_a_character_in_what_functions_return_is_replaced(tmp_path: Path) -> None:
    def found(_: Conversation) -> tuple[bool, str]:
        return True, "half \ud83d"

    run = simulated(tmp_path, checks=[found], judges=(), ends=[lambda _: "end \ud83d"])
    assert [(each.outcome.ended_by, each.outcome.judgements[0].explanation) for each in run.episodes()] == [
        ("end \ufffd", "half \ufffd")
    ] * 4


async def never(*_: Any) -> bool:
    """Return false, as an async function."""
    return False


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"when": never}, "judge 'r': when must be a plain function, got an async function"),
        ({"read": never}, "judge 'r': read must be a plain function, got an async function"),
        ({"cases": "all"}, "judge 'r': cases must be a plain function, got 'all'"),
    ],
)
def test_a_judge_needs_plain_functions(functions: dict[str, Any], message: str) -> None:
    with pytest.raises(DialoomError, match=message):
        dialoom.Judge("r", rubric="x", **functions)


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ({"cases": lambda *_: None}, "judge 'r': cases must return `Case` objects, got None"),
        ({"read": lambda _: True}, "judge 'r': read must return a score and an explanation, got True"),
        ({"read": lambda _: ("5", "")}, "true, false, a finite number or None as the score, got '5'"),
        ({"read": lambda _: (float("nan"), "")}, "a finite number or None as the score, got nan"),
        ({"read": lambda _: (50, ""), "scale": (1, 5)}, "judge 'r': read must return a score from 1 to 5, got 50"),
    ],
)
def test_unusable_results_of_a_judges_functions_are_no_scores(
    tmp_path: Path, functions: dict[str, Any], message: str
) -> None:
    run = simulated(tmp_path, judges=[dialoom.Judge("r", rubric="x", **functions)], checks=())
    episode = next(run.episodes())
    assert episode.state == "failed" and message in str(episode.error) and not episode.outcome.judgements


def test_an_async_function_ends_no_conversation(tmp_path: Path) -> None:
    run = simulated(tmp_path, ends=[lambda talk: finds_nothing(talk)])
    assert run.status().failed == 4
    assert "finds_nothing is an async function; it must be a plain one" in str(next(run.episodes()).error)


@pytest.mark.parametrize("requirement", ["tone >= 0.8", "tone <= 50"])
def test_a_requirement_that_every_score_meets_is_refused(tmp_path: Path, requirement: str) -> None:
    run = simulated(tmp_path, checks=[dialoom.Check("tone", lambda talk: len(talk.messages), scale=(1, 5))])
    with pytest.raises(DialoomError, match="tone has scores from 1 to 5; give a number in this range"):
        run.require(requirement)
    assert run.require("tone >= 1", allow=["unhealthy", "constant"])[0].is_met


def test_the_scale_of_a_check_goes_from_low_to_high() -> None:
    with pytest.raises(DialoomError, match=r"check 'x': scale must go from low to high, got \(5, 1\)"):
        dialoom.Check("x", gave_number, scale=(5, 1))


def test_columns_named_like_columns_of_a_frame_are_kept(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    taken = ("environment", "resolved.assistant", "state")
    run = simulated(tmp_path, people=[{"name": "Ada", **{name: f"own {name}" for name in taken}}], trials=2)
    row = run.frame().iloc[1]
    assert [row[f"facet.{name}"] for name in taken] == [f"own {name}" for name in taken]
    assert (row["resolved.assistant"], row["state"]) == (1.0, "done")


def test_a_column_has_one_name_in_all_rows_of_a_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    people = [{"name": name, "tone.assistant": "calm"} for name in ("Ada", "Bo")]
    check = dialoom.Check("tone", lambda talk: True if talk.scenario.person["name"] == "Ada" else None)
    found = simulated(tmp_path, people=people, tasks=None, judges=(), checks=[check]).frame().sort_values("person")
    assert found["facet.tone.assistant"].tolist() == ["calm", "calm"]
    assert found["tone.assistant"].tolist()[0] == 1.0 and found["tone.assistant"].isna().tolist() == [False, True]


def test_scores_of_a_run_in_which_everything_failed_say_so(tmp_path: Path) -> None:
    """The checks were never asked, so their missing scores are no property of theirs."""

    async def broken(_: object) -> str:
        raise RuntimeError("no")

    notes = simulated(tmp_path, assistant=broken, judges=[], checks=[gave_number]).report()["scores"].notes
    assert "Failed: 4 of 4 scenarios, which are excluded from all means and shares." in notes
    assert not any("No score at all" in note for note in notes)


def test_groups_are_sorted_as_numbers_and_the_empty_one_is_named(tmp_path: Path) -> None:
    people = [{"name": name, "age": age} for name, age in zip("abcdefg", (9, 34, "", 9, 100, "", ""), strict=True)]
    run = simulated(tmp_path, people=people)
    table = run.report()["scores-by-age"]
    assert [row[0] for row in table.rows] == ["9", "34", "100", "(empty)"]
    assert table.facets["age"] == FacetColumn("age", {"(empty)": ""})  # so that the row selects its scenarios
    assert "(empty)" in str(run.describe()["facets"].rows)
    people = [{"name": f"P{age}", "age": age, "town": "AB"[age % 2]} for age in range(10, 16)]
    people.append({"name": "Bo", "age": "", "town": "A"})
    found = simulated(tmp_path, people=people, path=tmp_path / "ages.db").report()
    assert "There is no table by age: it has 6 different numbers." in found["scores"].notes


def test_a_run_without_its_functions_is_read_and_not_resumed(tmp_path: Path) -> None:
    """A lambda has the metric `check-1`; the file can be read without it, but not resumed."""
    checks = [lambda talk: "AB-" in talk.text("assistant")]
    simulated(tmp_path, checks=checks, concurrency=1, budget=dialoom.Budget(max_calls=8))
    run = dialoom.open_run(tmp_path / "run.db")
    assert "check-1 %" in str(run.report())
    with pytest.raises(DialoomError, match=r"functions that were passed as Python objects: check-1; call dialoom.simu"):
        dialoom.resume(tmp_path / "run.db", models={"assistant": AGENT, "user": USER, "judge": judge})
    whole = simulated(tmp_path, checks=checks, budget=dialoom.Budget(max_calls=100))
    assert whole.status().done == 4
    with pytest.raises(DialoomError, match="workers: a lambda cannot be sent to another process; define a function"):
        simulated(tmp_path, checks=checks, workers=2, path=tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()


def test_a_simulation_without_functions_needs_nothing_but_its_file(tmp_path: Path) -> None:
    """It is judged again and reported like any other run, with the judges that it was given."""
    levels = dialoom.Judge("tone", rubric={1: "rude", 5: "warm to {{ person.name }}"}, scale=(1, 5), per_turn=True)
    simulated(tmp_path, checks=[], judges=[RESOLVED, levels])
    run = dialoom.open_run(tmp_path / "run.db").judge("offline/placeholder", name="again")
    assert [each.name for each in run.judgement_sets] == ["run", "again"]
    assert len(run.recipe.judges) == 2 and run.recipe.judges[1].scale == (1, 5)


def test_conversations_end_and_are_joined_as_in_a_study(tmp_path: Path) -> None:
    """They end by a function, have a third participant and one task per person, and are opened by the assistant."""

    def long(talk: Conversation) -> bool:
        return len(talk.messages) >= 5

    run = simulated(
        tmp_path,
        ends=[long],
        opens="assistant",
        roles=[{"name": "clerk", "brief": "You take notes.", "speaks": {"after": "user"}}],
        user=scripted(["I want to return a kettle."]),
        per_person=1,
    )
    assert run.status().done == 2
    outcome = next(run.episodes()).outcome
    assert [line.role for line in outcome.messages] == ["assistant", "user", "clerk", "assistant", "user"]
    assert outcome.ended_by == "long"


def test_an_id_does_not_look_like_an_option(tmp_path: Path) -> None:
    run = simulated(tmp_path, people=[{"name": "李雷"}], tasks=None, judges=())
    assert all(each.id.startswith("scenario-") for each in run.episodes())


def test_a_missing_assistant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DialoomError, match="assistant must be a model's name or a player, got None"):
        simulated(tmp_path, assistant=None)


def test_an_async_listener_is_refused(tmp_path: Path) -> None:
    async def listen(event: dialoom.Event) -> None:
        raise AssertionError(event)

    with pytest.raises(DialoomError, match="on_event must be a function that is not async"):
        simulated(tmp_path, on_event=listen)


def test_checks_may_return_values_of_numpy(tmp_path: Path) -> None:
    found = {
        "verdict": numpy.bool_(True),
        "whole": numpy.int64(3),
        "half": (numpy.float32(0.5), "of two"),
        "several": numpy.array([1, 2]),
    }
    checks = [dialoom.Check(name, lambda _, name=name: found[name]) for name in found]  # type: ignore[misc, arg-type]
    run = simulated(tmp_path, people=PEOPLE[:1], tasks=None, judges=(), checks=checks)
    judgements = next(run.episodes()).outcome.judgements
    assert [each.score for each in judgements] == [True, 3, 0.5, None]
    assert [each.status for each in judgements] == ["ok", "ok", "ok", "error"]


def test_the_card_of_an_export_distinguishes_trials(tmp_path: Path) -> None:
    run = simulated(tmp_path, people=PEOPLE[:1], tasks=None, judges=(), trials=2)
    run.export("sft", tmp_path / "sft.jsonl")
    (first, _) = run.episodes()
    notes = dialoom.describe(tmp_path / "sft.jsonl")["duplicates"].notes
    assert f"dialogues: {first.id}~2 resembles {first.id}" in notes
