"""Stored budgets and prices, retries, further judgement sets, awaitable forms and estimates."""

from __future__ import annotations

from pathlib import Path

import pytest

import dialoom

from .players import CAST, Messages, assistant, judge, outcome_texts, run_settings


def test_budget_is_stored_until_it_is_removed(release: Path, tmp_path: Path) -> None:
    path, events = tmp_path / "run.db", list[dialoom.Event]()
    budget = dialoom.Budget(max_calls=20, max_tokens=10**9)
    run = dialoom.play("personalens", path=path, **run_settings(release, budget=budget, on_event=events.append))
    (stopping,) = (event for event in events if isinstance(event, dialoom.Stopping))
    assert stopping.setting == "max_calls" and run.status().usage.calls == 20 and run.status().pending > 0
    assert run.resume().status().usage.calls == 20, "the budget is stored in the file"
    run = dialoom.open_run(path).resume(budget=dialoom.Budget(max_calls=30))
    assert run.status().usage.calls == 30
    assert run.resume(budget=dialoom.Budget(max_calls=None)).status().pending == 0
    whole = dialoom.play("personalens", path=tmp_path / "whole.db", **run_settings(release))
    assert outcome_texts(whole) == outcome_texts(run)


def test_prices_are_stored_and_count_for_the_cost_limit(release: Path, tmp_path: Path) -> None:
    run = dialoom.play(
        "personalens",
        path=tmp_path / "run.db",
        model="offline/generic",
        options={"profiles": release},
        prices={"offline/generic": dialoom.Price(input=100, output=200)},
        budget=dialoom.Budget(max_cost=0.5),
    )
    cost = run.status().usage.cost
    assert cost is not None and 0 < cost <= 0.5 and run.status().pending > 0


def test_failed_scenarios_are_retried_from_their_last_step(release: Path, tmp_path: Path) -> None:
    is_well, asked = [False], list[str]()

    async def moody(messages: Messages) -> str:
        asked.append(messages[-1]["content"])
        if not is_well[0] and len(messages) > 3:
            raise ValueError("not today")
        return await assistant(messages)

    run = dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release, models={"assistant": moody}))
    assert run.status().failed == 6
    asked.clear()
    is_well[0] = True
    assert run.resume(models={"assistant": moody}).status().failed == 6, "failures are retried only on request"
    run = dialoom.retry(run.path, models={"assistant": moody})
    assert (run.status().done, run.status().failed) == (6, 0)
    assert not any("Line 0" in text for text in asked)
    assert outcome_texts(run) == outcome_texts(
        dialoom.play("personalens", path=tmp_path / "whole.db", **run_settings(release))
    )


def test_scenario_is_replayed_from_its_start(release: Path, tmp_path: Path) -> None:
    count = [0]

    async def counted(_: Messages) -> str:
        count[0] += 1
        return f"Reply {count[0]}."

    models = {"assistant": counted}
    run = dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release, models=models, concurrency=1))
    before = outcome_texts(run)
    ids = [episode.id for episode in run.episodes()]
    after = outcome_texts(dialoom.retry(run.path, scenarios=[2, ids[4]], models=models))
    assert [mine != theirs for mine, theirs in zip(before, after, strict=True)] == [
        False,
        True,
        False,
        False,
        True,
        False,
    ]
    with pytest.raises(dialoom.DialoomError, match="'nobody'"):
        dialoom.retry(run.path, scenarios=["nobody"], models=models)


def test_only_unparsed_judgements_are_retried(release: Path, tmp_path: Path) -> None:
    is_clear = [False]

    async def mumbling(messages: Messages) -> str:
        if not is_clear[0] and "How coherent are" in str(messages):
            return "Mm."
        return await judge(messages)

    models = {"judge": mumbling}
    run = dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release, models=models))
    frame = run.frame("judgements")
    assert set(frame[frame["status"] == "unparsed"]["metric"]) == {"coherence"}
    is_clear[0] = True
    talked = [episode.outcome.messages for episode in run.episodes()]
    run = dialoom.retry(run.path, unparsed=True, models=models)
    assert set(run.frame("judgements")["status"]) == {"ok"}
    assert [episode.outcome.messages for episode in run.episodes()] == talked
    with pytest.raises(dialoom.DialoomError, match="judging 'run': it names the set") as error:
        dialoom.retry(run.path, judging="run", models=models)
    assert error.value.setting == "judging"


def test_judgement_sets_are_named_and_continued_by_their_judge(release: Path, tmp_path: Path) -> None:
    run = dialoom.play("personalens", path=tmp_path / "run.db", **run_settings(release))
    calls = run.status().usage.calls
    run = run.judge("offline/generic", name="second")
    run = dialoom.judge(run.path, model="offline/attentive")
    assert [each.name for each in run.judgement_sets] == ["run", "second", "offline/attentive"]
    taken = run.status().usage.calls
    assert taken == calls + 2 * 6 * 6
    assert run.judge("offline/generic", name="second").status().usage.calls == taken, "the set is complete"
    for name, message in (("second", "the existing set with that name was made by offline/generic"), ("run", "'run'")):
        with pytest.raises(dialoom.DialoomError, match=message) as error:
            run.judge("offline/attentive", name=name)
        assert error.value.setting == "name"
    with pytest.raises(dialoom.DialoomError, match="'judge' has no model"):
        dialoom.judge(run.path)
    assert set(run.frame(judging="run")["naturalness.user"]) == {3.0}
    assert run.report(tables=["compared-run-second"]).tables


async def test_awaitable_forms_of_all_operations(release: Path, tmp_path: Path) -> None:
    run = await dialoom.aplan("personalens", path=tmp_path / "run.db", **run_settings(release, options={"limit": 2}))
    assert run.status().pending == 2
    run = await dialoom.aresume(run.path)
    run = await dialoom.ajudge(run.path, model="offline/generic", name="second")
    run = await dialoom.aretry(run.path, scenarios=[1])
    assert run.status().done == 2
    estimate = await dialoom.aestimate("personalens", **run_settings(release))
    assert estimate.scenarios == 6


def test_estimate_sends_nothing(release: Path, tmp_path: Path) -> None:
    async def never(_: Messages) -> str:
        raise AssertionError("an estimate must not call a player")

    estimate = dialoom.estimate("personalens", **run_settings(release, models=dict.fromkeys(CAST, never)))
    assert (estimate.scenarios, estimate.sampled) == (6, 6)
    assert [role for role, _, _ in estimate.by_role] == ["user", "assistant", "judge"]
    assert estimate.total.cost is None and estimate.total.calls >= 6 * 8
    assert estimate.least.input_tokens <= estimate.total.input_tokens <= estimate.most.input_tokens
    priced = dialoom.estimate("personalens", model="openai/gpt-4o-mini", options={"profiles": release})
    assert priced.total.cost is not None and priced.total.cost > 0
    assert not list(tmp_path.glob("*.db"))


def test_judge_given_by_position_and_report_of_several_runs(release: Path, tmp_path: Path) -> None:
    run = dialoom.play("personalens", path=tmp_path / "a.db", **run_settings(release, options={"limit": 1}))
    dialoom.judge(run.path, judge, name="second")
    assert [each.name for each in run.judgement_sets] == ["run", "second"]
    other = dialoom.play("personalens", path=tmp_path / "b.db", **run_settings(release, options={"limit": 1}))
    assert str(dialoom.report([run, other.path])) == str(dialoom.report(run.path, other))
    assert str(dialoom.report([run])) == str(run.report())
    with pytest.raises(dialoom.DialoomError, match="give at least one run"):
        dialoom.report([])
