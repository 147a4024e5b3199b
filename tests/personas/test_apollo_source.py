"""APOLLO's sources: preferences, queries, sessions, and edited source folders."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialoom import personas
from dialoom.personas import DataError
from dialoom.personas.apollo import TOOLS, execute
from dialoom.personas.apollo.flows import FLOWS
from dialoom.personas.apollo.source import (
    FORMS,
    ApolloPair,
    ApolloSession,
    ApolloSource,
    ApolloUser,
    PastCall,
    Speech,
    read_source,
)
from dialoom.personas.apollo.source.checks import (
    check_pair,
    check_unrelated_session,
    find_leak,
    find_missing_slot,
    measure_topic_diversity,
    write_query,
)
from dialoom.personas.apollo.source.phrases import FacetPhrases, phrases
from dialoom.personas.apollo.source.scripted import MAX_USERS, draw_pair_labels, draw_users
from dialoom.personas.apollo.source.sessions import UNRELATED_TOOLS, extract_speeches, read_preference

FOLDER = Path(personas.__file__).parent / "samples" / "apollo"
SOURCE = read_source(FOLDER)
WORLD = SOURCE.world
FACETS = [(flow, facet) for flow, facets in phrases().items() for facet in facets.values()]


def parts(pair: ApolloPair) -> tuple[ApolloUser, ApolloPair, ApolloSession]:
    """Return a pair with its user and the session that tells its preference."""
    return SOURCE.users[pair.user], pair, SOURCE.sessions[pair.session]


def pair_of(flow: str, **wanted: str) -> ApolloPair:
    """Return the first pair of a flow with these attributes."""
    pairs = (pair for pair in SOURCE.pairs.values() if pair.flow == flow)
    return next(pair for pair in pairs if all(getattr(pair, name) == value for name, value in wanted.items()))


def refused(pair: ApolloPair, session: ApolloSession | None = None, user: ApolloUser | None = None) -> str:
    """Return the reason why a pair is refused, or 'None'."""
    owner, _, told = parts(pair)
    return str(check_pair(WORLD, user or owner, pair, session or told))


def test_shipped_sample_passes_all_checks() -> None:
    assert read_source(FOLDER, thorough=True) == SOURCE
    assert draw_users(WORLD, 2, SOURCE.meta.seed) == list(SOURCE.users.values())


def test_sample_has_all_flows_forms_and_kinds() -> None:
    pairs = SOURCE.pairs.values()
    assert Counter((pair.user, pair.flow, pair.preference_set) for pair in pairs) == {
        (user, flow, set_): 1 for user in SOURCE.users for flow in FLOWS for set_ in (1, 2, 3)
    }
    assert {pair.form for pair in pairs} == set(FORMS)
    kinds = Counter(pair.query_kind for pair in pairs)
    assert kinds["reactive"] == kinds["proactive"]


def test_twelve_pairs_have_five_explicit_ones_and_every_implicit_form() -> None:
    for turn in range(10):
        labels = draw_pair_labels(12, turn, random.Random(turn))
        forms = Counter(form for form, _ in labels)
        assert forms["explicit"] == 5
        assert all(forms[form] >= 1 for form in FORMS)
        assert Counter(kind for _, kind in labels) == {"reactive": 6, "proactive": 6}


@pytest.mark.parametrize("flow", FLOWS)
def test_every_wording_identifies_its_value(flow: str) -> None:
    draw = random.Random(flow)
    for name, facet in phrases()[flow].items():
        for value in FLOWS[flow].facet(name).values:
            for form in FORMS:
                exchanges = [facet.exchange(value, form, draw, set()) for _ in range(30)]
                assert len({reply for _, reply in exchanges}) >= (2 if form == "anti" else 3)
                for ask, reply in exchanges:
                    assert facet.read(ask, reply) == (facet.form(form), value), (name, form, ask, reply)


def test_value_has_enough_wordings_of_each_form() -> None:
    for flow, facet in FACETS:
        values = FLOWS[flow].facet(facet.facet).values
        wordings = Counter(facet.replies.values())
        for value in values:
            assert wordings["explicit", value] >= 9
            if not facet.plain:
                assert wordings["facts", value] >= 3, (flow, facet.facet, value)
                assert min(wordings["comparison", value], wordings["tone", value]) >= 9
        if not facet.plain:
            assert all(re.search(r"\w", word) for words in facet.words.values() for word in words or {""} if words)


@pytest.mark.parametrize(
    ("flow", "facet", "against_it", "against_none"),
    [
        ("flight", "direct", "stops leaves me with hardly", "sitting around at some airport"),
        ("flight", "insurance", "forms that nobody reads", "without insurance"),
        ("hotel", "breakfast", "breakfast lies like a stone", "without breakfast"),
        ("food", "cutlery", "cutlery in the bag is more rubbish", "without cutlery"),
    ],
)
def test_complaint_speaks_against_the_other_value(flow: str, facet: str, against_it: str, against_none: str) -> None:
    draw, said = random.Random(0), phrases()[flow][facet]
    for wanted, expected, unexpected in ((True, against_none, against_it), (False, against_it, against_none)):
        replies = " ".join(said.exchange(wanted, "anti", draw, set())[1].casefold() for _ in range(20))
        assert expected in replies and unexpected not in replies


def test_question_about_one_facet_fits_no_other() -> None:
    for flow, facets in phrases().items():
        asks = [(name, ask) for name, facet in facets.items() for ask in facet.asks]
        assert not [(one, other) for name, one in asks for at, other in asks if name != at and one in other], flow


def test_preference_session_has_its_calls_after_the_preference() -> None:
    for pair in SOURCE.pairs.values():
        session = SOURCE.sessions[pair.session]
        facets = phrases()[pair.flow]
        names = {name for facet, value in pair.values.items() for name in facets[facet].names[value]}
        names = {name for name in names if name[0].isalpha()}  # a tool's minutes may be those of a limit by chance
        first = next(place for place, turn in enumerate(session.turns) if isinstance(turn, PastCall))
        after = [turn.text.casefold() for turn in session.turns[first:] if isinstance(turn, Speech)]
        before = [turn.text for turn in session.turns[:first] if isinstance(turn, Speech)]
        assert not [name for name in names for text in after if name in text], session.id
        assert len(before) == 1 + 2 * len(pair.values)
        assert session.turns[-1].speaker == "user"  # type: ignore[union-attr]
        told = read_preference(extract_speeches(session))
        assert told is not None
        assert (told.flow, told.form, told.values) == (pair.flow, pair.form, pair.values)
        assert session.tools[-1] in pair.tools


def test_queries_contain_their_slots_and_no_word_of_a_facet() -> None:
    for pair in SOURCE.pairs.values():
        user = SOURCE.users[pair.user]
        for kind in ("reactive", "proactive"):
            for seed in range(6):
                query = write_query(pair.flow, kind, user.name, user.gender, pair.slots, random.Random(seed))
                changed = pair.model_copy(update={"query": query})
                assert find_missing_slot(changed) is None
                assert find_leak(changed, user) is None
                assert (user.name in query) == (kind == "proactive")


def test_descriptions_of_people_reveal_no_preference() -> None:
    for user in draw_users(WORLD, MAX_USERS, 7):
        for flow in FLOWS:
            assert find_leak(pair_of(flow).model_copy(update={"query": "Well?"}), user) is None


@pytest.mark.parametrize(
    ("flow", "query", "leaked"),
    [
        ("hotel", "{to_city}, {date}, SUITES, {nights} nights.", "'SUITES' says something about room_type"),
        ("food", "I am at {start}, hungry, and have no forks.", "'forks' says something about cutlery"),
        ("music", "Play something melancholic.", "'melancholic' says something about mood"),
        ("commute-bus", "From {start} to the {destination}; I wait 15 min at the most.", "'15 min' says something"),
    ],
)
def test_planted_leak_is_refused(flow: str, query: str, leaked: str) -> None:
    pair = pair_of(flow)
    assert refused(pair.model_copy(update={"query": query.format_map(pair.slots)})).startswith(f"leak: {leaked}")


def test_leak_in_the_users_description_is_refused() -> None:
    user = SOURCE.users["u01"].model_copy(update={"persona": "Plays jazz in a cellar."})
    assert refused(pair_of("music"), user=user) == "leak: 'jazz' says something about genre"


def test_incomplete_or_ambiguous_query_is_refused() -> None:
    pair = pair_of("movie")
    assert refused(pair.model_copy(update={"query": "I want to see a film."})).startswith("missing: date ")
    two = f"I want to see a film on {pair.slots['date']} or on 9 April."
    assert refused(pair.model_copy(update={"query": two})).startswith("missing: date ")


def test_wrong_gold_is_refused() -> None:
    pair = pair_of("music")
    calls = pair.model_dump()["gold"]
    calls[0]["arguments"]["mood"] = next(m for m in ("calm", "cheerful") if m != pair.values["mood"])
    assert refused(ApolloPair.model_validate(pair.model_dump() | {"gold": calls})).startswith("wrong gold: ")


def test_second_match_is_refused() -> None:
    pair = pair_of("hotel")
    user, facet = SOURCE.users[pair.user], "area" if "area" in pair.values else "view"
    for day in WORLD.days[14:20]:
        slots = {**pair.slots, "date": day, "nights": 1}
        moved = pair.model_copy(update={"slots": slots, "query": f"A hotel in {slots['to_city']}, {day}, one night."})
        gold = moved.request(WORLD, user).gold()
        if gold.picked_from is not None and gold.picked_from[1] == 2:
            answer = refused(moved.model_copy(update={"gold": gold.calls}))
            assert re.fullmatch(r"pick: 2 of \d rows match; exactly one of at least 3 must match", answer), facet
            return
    pytest.fail("no day has two matches")


def test_idle_lookup_is_refused() -> None:
    pair = pair_of("commute-rule")
    user = SOURCE.users[pair.user]
    values = {**pair.values, "joined": "both" if pair.values["joined"] == "either" else "either"}
    other = pair.model_copy(update={"values": values})
    calls = other.request(WORLD, user).gold().calls
    assert refused(other.model_copy(update={"gold": calls})).startswith("idle lookup: no other result of get_")


def with_changed_call(session: ApolloSession, change: Callable[[dict[str, Any]], None]) -> ApolloSession:
    """Return a session with a changed last call."""
    turns = session.model_dump()["turns"]
    change([turn for turn in turns if "output" in turn][-1])
    return ApolloSession.model_validate(session.model_dump() | {"turns": turns})


def test_wrong_past_call_is_refused() -> None:
    pair = pair_of("food")
    session = SOURCE.sessions[pair.session]
    falsified = with_changed_call(session, lambda call: call["output"].update(eta_min=3))
    assert refused(pair, falsified).startswith("wrong past call: order_food_delivery answers {'order_id': ")

    def negate_cutlery(call: dict[str, Any]) -> None:
        call["arguments"]["cutlery"] = not call["arguments"]["cutlery"]
        call["output"] = execute(WORLD, call)

    assert refused(pair, with_changed_call(session, negate_cutlery)).startswith("wrong past call: by the preference ")


def test_session_that_tells_another_preference_is_refused() -> None:
    one, other, _ = SOURCE.pairs_for["u01", "music"]
    assert refused(one, SOURCE.sessions[other.session]).startswith("told otherwise: the session tells music as ")


def test_preference_in_a_second_session_is_refused() -> None:
    told = SOURCE.sessions[pair_of("beverage").session].model_copy(update={"kind": "unrelated"})
    assert str(check_unrelated_session(WORLD, told)).startswith("told twice: it tells a preference for beverage too (")


def test_unrelated_sessions_use_all_tools_and_have_true_outputs() -> None:
    """Each user's sessions use all 31 tools, tell no preference, repeat no call and have a limited size."""
    for user, sessions in SOURCE.unrelated.items():
        assert {tool for session in sessions for tool in session.tools} == set(UNRELATED_TOOLS)
        assert len(UNRELATED_TOOLS) == 31 == sum(tool.domain not in _told_domains() for tool in TOOLS.values())
        assert len({session.lines for session in sessions}) == len(sessions) >= 45, user
        assert Counter(call for session in sessions for call in session.asked).most_common(1)[0][1] == 1, user
        for session in sessions:
            assert 150 <= -(-len("\n".join(session.lines)) // 4) <= 450, session.id
            assert check_unrelated_session(WORLD, session) is None
            assert not [text for _, text in extract_speeches(session) if re.search(r"[{}\[\]_]", text)], session.id


def _told_domains() -> set[str]:
    return {flow.domain for flow in FLOWS.values()}


def test_diversity_of_topics() -> None:
    some, one, rare = (
        measure_topic_diversity("aabc"),
        measure_topic_diversity("aaaa"),
        measure_topic_diversity([*"a" * 98, "b", "b"]),
    )
    assert some.entropy == pytest.approx(1.5 / 1.584962500721156)
    assert rare.entropy == pytest.approx(0.1414405)
    assert [(each.sessions, each.topics, each.frequent) for each in (some, one, rare)] == [
        (4, 3, 3),
        (4, 1, 1),
        (100, 2, 1),
    ]
    assert one.entropy == 0
    assert measure_topic_diversity(session.topic for session in SOURCE.sessions.values()).entropy > 0.96


def test_source_finds_users_sessions_and_pairs() -> None:
    made = ApolloSource.of(SOURCE.users.values(), SOURCE.sessions.values(), SOURCE.pairs.values(), SOURCE.meta)
    assert made == SOURCE
    assert [pair.preference_set for pair in made.pairs_for["u02", "hotel"]] == [1, 2, 3]


def _facet(flow: str, facet: str) -> FacetPhrases:
    return phrases()[flow][facet]


def test_listed_options_are_in_random_order() -> None:
    facet, draw = _facet("beverage", "category"), random.Random(3)
    replies = Counter(facet.exchange("tea", "choice", draw, set())[1] for _ in range(300))
    first = sum(count for reply, count in replies.items() if "first" in reply.casefold())
    assert 25 < first < 75


SAMPLE = Path(personas.__file__).parent / "samples" / "apollo"


def edited(folder: Path, file: str, edit: Callable[[dict[str, Any]], object]) -> Path:
    """Copy the sample and edit the second line of a file; return the copy."""
    shutil.copytree(SAMPLE, folder)
    lines = (folder / file).read_text().splitlines()
    row = json.loads(lines[1])
    edit(row)
    (folder / file).write_text("\n".join([lines[0], json.dumps(row), *lines[2:]]))
    return folder


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda pair: pair.update(tools=[*pair["tools"], "juggle"]), 'tools: there is no tool "juggle"'),
        (lambda pair: pair.update(tools=[]), "is missing, but a gold call uses it"),
        (lambda pair: pair.update(tools=pair["tools"] * 5), "occurs twice"),
        (lambda pair: pair.update(today="yesterday"), 'today "yesterday": give a day from'),
        (lambda pair: pair["slots"].pop("today"), "slots: today is missing"),
        (lambda pair: pair["slots"].update(date=7), "date 7: give a day"),
        (lambda pair: pair.update(order=["juggle"]), "order "),
        (lambda pair: pair.update(order=[]), "order "),
        (lambda pair: pair.update(values={}), "values: "),
    ],
)
def test_unplayable_pair_is_refused_when_read(
    tmp_path: Path, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    with pytest.raises(DataError, match=r"pairs\.jsonl:2: pair u01-") as raised:
        read_source(edited(tmp_path / "source", "pairs.jsonl", edit))
    assert message in str(raised.value)


def test_preference_session_of_the_kind_unrelated_is_refused(tmp_path: Path) -> None:
    folder = edited(tmp_path / "source", "sessions.jsonl", lambda session: session.update(kind="unrelated"))
    with pytest.raises(
        DataError, match=r"pairs\.jsonl:\d+: pair .*is of the kind unrelated; it must be of the kind preference"
    ):
        read_source(folder)


def test_several_pairs_on_a_line_are_all_read(tmp_path: Path) -> None:
    folder = edited(tmp_path / "source", "users.jsonl", lambda _: None)
    for file in ("users.jsonl", "sessions.jsonl", "pairs.jsonl"):
        (folder / file).write_text((folder / file).read_text().replace("\n", " "))
    assert read_source(folder) == read_source(SAMPLE)


def test_second_line_of_metadata_is_refused(tmp_path: Path) -> None:
    shutil.copytree(SAMPLE, tmp_path / "source")
    (meta := tmp_path / "source" / "meta.jsonl").write_text(meta.read_text() * 2)
    with pytest.raises(DataError, match=r"meta\.jsonl:2: this file must have exactly one line"):
        read_source(tmp_path / "source")
