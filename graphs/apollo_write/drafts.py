"""The drafts of a user: the planned sessions and queries, the graph's state, and the review of drafts."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from dialoom.graphs.generation import GenerationState, Problem, Problems, Result, problem, reviewed, rule, settled
from dialoom.graphs.stage import Scene, Update, ask_each
from dialoom.personas.apollo.calls import TOOLS
from dialoom.personas.apollo.flows import FLOWS, FlowRequest, Preference
from dialoom.personas.apollo.source import ApolloPair, ApolloSession, ApolloUser, PastCall, PreferenceForm, QueryKind
from dialoom.personas.apollo.source.drafts import DRAFTS, ApolloDraft, DraftKind, RequestSlots, SessionDraft, digest
from dialoom.personas.apollo.source.scripted import SETS_PER_FLOW, draw_pair_labels
from dialoom.personas.apollo.source.sessions import UNRELATED_TOOLS, list_flow_tools

from .scenario import WriteScenario, load_world

Rows = dict[str, dict[str, Any]]
UNPARSED_CHECK = "unchecked: the checker's reply could not be parsed"
"""The problem of a draft whose check could not be parsed.

The draft is dropped at once, because a rewrite would not help.
"""


def merge_drafts(left: Mapping[str, Rows], right: Mapping[str, Rows]) -> dict[str, Rows]:
    """Return all drafts; new ones replace old ones of the same kind and id. This is the state's reducer."""
    return {kind: {**left.get(kind, {}), **right.get(kind, {})} for kind in DRAFTS}


class WriteState(GenerationState, total=False):
    """The state that is checkpointed.

    Attributes:
        drafts: The drafts by kind and id, as plain values.
        offers: By flow, the sets of three preferences from which the writer chooses.
        calls: The call to run next, by the id of the unfinished session; empty once the call has been run.
    """

    drafts: Annotated[dict[str, Rows], merge_drafts]
    offers: dict[str, list[list[dict[str, Any]]]]
    calls: Rows


def get_draft(state: Mapping[str, Any], kind: DraftKind, id_: str) -> Any:
    """Return a draft as an object of its kind's type; `None` if there is none."""
    row = state["drafts"][kind].get(id_)
    return None if row is None else DRAFTS[kind].model_validate(row)


def get_passed_draft(state: Mapping[str, Any], kind: DraftKind, id_: str) -> Any:
    """Return a draft if it exists and has passed all checks so far; otherwise `None`."""
    draft = get_draft(state, kind, id_)
    return draft if draft is not None and draft.is_sound else None


def dump_drafts(drafts: Iterable[ApolloDraft]) -> Rows:
    """Return drafts as plain values."""
    return {draft.id: draft.model_dump(mode="json") for draft in drafts}


def find_unwritten(state: WriteState, kind: DraftKind, planned: Iterable[str]) -> list[str]:
    """Return the ids of planned drafts that do not exist yet."""
    return [id_ for id_ in planned if id_ not in state["drafts"][kind]]


def build_problem(reason: str | None) -> Problem | None:
    """Return the problem that a check gives as the reason for rejecting a draft; `None` if the reason is empty.

    The reason begins with the check's name and a colon.
    """
    result: Result = "dropped" if reason == UNPARSED_CHECK else "rejected"
    return problem(reason.partition(":")[0], reason, result=result) if reason else None


async def review(
    state: WriteState,
    scene: Scene[WriteScenario],
    kind: DraftKind,
    drafts: Mapping[str, Any],
    rules: Callable[[Any], str | None],
    checker: Callable[[Mapping[str, Any]], Awaitable[Mapping[str, str]]],
    text: Callable[[Any], str],
    problems: Mapping[str, Problem] | None = None,
) -> Update:
    """Check all new or edited drafts, first by rules and then by a model, and decide which ones are to be rewritten.

    Args:
        state: The state.
        scene: The node's scene.
        kind: The kind of the drafts.
        drafts: All drafts of the stage, by id.
        rules: A function that returns the problem that the rules find in a draft.
        checker: A function that returns the problems that a model finds in some drafts, by id.
        text: A function that returns a draft in the form in which its writer sees it again.
        problems: The known problems; by default those in the state.
    """
    new = {id_: draft for id_, draft in drafts.items() if draft.is_edited}

    async def checked(unchecked: Mapping[str, Any]) -> dict[str, Problem | None]:
        found = await checker({id_: draft for id_, draft in unchecked.items() if not draft.accepted})
        return {id_: build_problem(why) for id_, why in found.items()}

    known = state["problems"] if problems is None else problems
    found = await reviewed(new, rule(lambda draft: build_problem(rules(draft))), checked, problems=known)
    with_texts: Problems = {
        id_: {**each, "written": text(drafts[id_]) if id_ in drafts else ""} for id_, each in found.items()
    }
    given = {draft.id: draft.own_id for draft in scene.scenario.drafts.of(kind) if draft.is_edited}
    by_hand = [id_ for id_, draft in new.items() if given.get(id_) == draft.own_id]
    update = settled(state, kind, new, with_texts, scene.scenario.rewrites, by_hand)
    notes, after = update["notes"], list[ApolloDraft]()
    for note in notes:
        if note["result"] != "rejected" and note["id"] in drafts:
            after.append(drafts[note["id"]].reviewed(note["reason"]))
    passed = sum(note["result"] == "passed" for note in notes)
    if notes:
        again = ", after a rewrite" if state["round"] else ""
        scene.tell(f"{scene.scenario.user}: {passed} of {len(notes)} {kind} pass{again}")
    return {**update, "drafts": {kind: dump_drafts(after)}}


async def ask_checker(
    scene: Scene, check: str, prompt: str, inputs: Callable[[Any], Mapping[str, Any]], drafts: Mapping[str, Any]
) -> dict[str, str]:
    """Ask a model to check some drafts, and return the problems by id.

    Args:
        scene: The node's scene.
        check: The name of the check.
        prompt: The prompt; its reply has a verdict, `right` or `wrong`.
        inputs: A function that returns the prompt's inputs for a draft.
        drafts: The drafts by id.
    """
    replies = await ask_each(scene, prompt, {id_: inputs(draft) for id_, draft in drafts.items()})
    return {
        id_: UNPARSED_CHECK if reply is None else f"{check}: {reply.explanation or 'the checker finds it wrong'}"
        for id_, reply in replies.items()
        if reply is None or reply.verdict == "wrong"
    }


@dataclass(frozen=True, slots=True)
class PlannedPair:
    """A session and a later query to be written for one preference.

    Attributes:
        id: The id of the pair and of the query.
        user: The user.
        preference: The preference.
        set_number: The number of the preference among the user's preferences for the flow, counted from 1.
        story: The reason for the preference.
        form: The form in which the session states it.
        kind: The kind of the query; see `ApolloPair.query_kind`.
        slots: The slots of the session's request and of the query's request.
    """

    id: str
    user: ApolloUser
    preference: Preference
    set_number: int
    story: str
    form: PreferenceForm
    kind: QueryKind
    slots: RequestSlots

    @property
    def session_id(self) -> str:
        """The session's id."""
        return f"s-{self.id}"

    @property
    def session_hash(self) -> str:
        """A hash of the inputs for writing the session; see `SessionDraft.about`."""
        return digest([*self._preference_inputs, self.form, self.slots.told, self.user.resident])

    @property
    def query_hash(self) -> str:
        """A hash of the inputs for writing the query; see `QueryDraft.about`."""
        return digest([*self._preference_inputs, self.kind, self.slots.asked, self.user.information("")])

    @property
    def _preference_inputs(self) -> list[Any]:
        return [self.preference.flow, self.preference.values, self.preference.order]

    def request(self, scenario: WriteScenario) -> FlowRequest:
        """Return the request in whose session the preference is stated."""
        return FlowRequest(load_world(scenario), self.preference, self.user.resident, self.slots.told)

    def session(self, draft: SessionDraft) -> ApolloSession:
        """Return the finished session of a draft."""
        flow = FLOWS[self.preference.flow]
        first = next((turn.name for turn in draft.turns if isinstance(turn, PastCall)), list_flow_tools(flow)[0])
        return _build_session(draft, "preference", f"{flow.domain}/{first}")

    def pair(self, scenario: WriteScenario, query: str) -> ApolloPair:
        """Return the finished pair, given its query."""
        flow, slots = FLOWS[self.preference.flow], self.slots.asked
        return ApolloPair(
            id=self.id,
            user=self.user.id,
            flow=flow.name,
            preference_set=self.set_number,
            form=self.form,
            query_kind=self.kind,
            kind=flow.kind,
            query=query,
            today=str(slots["today"]),
            slots=dict(slots),
            values=dict(self.preference.values),
            order=self.preference.order,
            gold=FlowRequest(load_world(scenario), self.preference, self.user.resident, slots).gold().calls,
            tools=list_flow_tools(flow),
            session=self.session_id,
        )


@dataclass(frozen=True, slots=True)
class PlannedErrand:
    """A session to be written about an unrelated tool.

    Attributes:
        id: The session's id.
        tool: The tool to call.
        number: The number of the session among the sessions about this tool, from 1.
    """

    id: str
    tool: str
    number: int

    @property
    def session_hash(self) -> str:
        """A hash of the inputs from which the session is written."""
        return digest([self.tool])

    def session(self, draft: SessionDraft) -> ApolloSession:
        """Return the finished session of a draft."""
        return _build_session(draft, "unrelated", f"{TOOLS[self.tool].domain}/{self.tool}")


def plan_pairs(scenario: WriteScenario, state: Mapping[str, Any]) -> Iterator[PlannedPair]:
    """Yield the planned pairs of every flow whose preferences have passed.

    There are none if the user's profile has not passed.
    """
    user = get_passed_draft(state, "users", scenario.user)
    for place, flow in enumerate(FLOWS):
        draft = get_passed_draft(state, "preferences", f"{scenario.user}-{flow}")
        if user is None or flow not in scenario.flows or draft is None:
            continue
        draw = random.Random(f"labels {scenario.seed} {scenario.user} {flow}")
        labels = draw_pair_labels(SETS_PER_FLOW * scenario.pairs, place + int(scenario.user[1:]), draw)
        for number, each in enumerate(draft.sets, start=1):
            for count, slots in enumerate(each.requests, start=1):
                form, kind = labels.pop()
                preference = Preference(flow, each.values, each.order)
                name = f"{scenario.user}-{flow}-{number}-{count}"
                yield PlannedPair(name, user.person(), preference, number, each.story, form, kind, slots)


def plan_errands(scenario: WriteScenario, state: Mapping[str, Any]) -> Iterator[PlannedErrand]:
    """Yield the planned sessions about each unrelated tool."""
    if get_passed_draft(state, "users", scenario.user):
        for number in range(1, scenario.errands + 1):
            for tool in UNRELATED_TOOLS:
                yield PlannedErrand(f"{scenario.user}-{tool}-{number}", tool, number)


def plan_sessions(scenario: WriteScenario, state: Mapping[str, Any]) -> dict[str, PlannedPair | PlannedErrand]:
    """Return all planned sessions by their ids."""
    pairs = {each.session_id: each for each in plan_pairs(scenario, state)}
    return {**pairs, **{each.id: each for each in plan_errands(scenario, state)}}


def _build_session(draft: SessionDraft, kind: Any, topic: str) -> ApolloSession:
    return ApolloSession(id=draft.id, user=draft.user, kind=kind, topic=topic, turns=draft.turns)
