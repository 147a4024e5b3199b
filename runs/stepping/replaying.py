"""Replays of saved cases, from the recorded replies alone or with new replies of some roles."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError

from dialoom.errors import first_problem
from dialoom.graphs import Judgement, Outcome, Recipe, Scenario, Stage, WithGate, WithPrompts, WithRoles
from dialoom.graphs.gate import Gate
from dialoom.graphs.outcome import index_by_subject
from dialoom.graphs.recipe import build_outcome
from dialoom.graphs.simulation import Simulation, build_simulation
from dialoom.graphs.study import read_study
from dialoom.graphs.transcript_rows import TRANSCRIPT
from dialoom.prompts import PromptLibrary
from dialoom.roles import CallPlace, Cast, Completion, Gateway, RoleError, UnparsedReplyError
from dialoom.roles.binding import Bindings, bind, rebind
from dialoom.roles.gateway import Caller, Request
from dialoom.roles.gateway.calls import TOOL_ROLE, MemoryLedger
from dialoom.roles.gateway.completions import deserialize_reply, serialize_reply
from dialoom.roles.gateway.model_facts import check_keys
from dialoom.roles.gateway.players import is_in_library
from dialoom.roles.players import Session, make_session_id
from dialoom.roles.restoring import STATEFUL_IN_REPLAY
from dialoom.runs.configuration.recipe_checks import build_graph
from dialoom.runs.configuration.recipes import find_in_folders, is_study, load_recipe
from dialoom.runs.configuration.trust import (
    Trust,
    cast_references,
    load_references,
    recipe_references,
)
from dialoom.runs.errors import RunError
from dialoom.runs.store.checkpoints.values import decode_part
from dialoom.settings import ModelLike, check_lists

from .cases import Case, RecordedCall, RecordedStep, digest_messages
from .context import CompiledGraph, build_updates, thread_config
from .stop import compute_changes, format_change

_MAX_LINE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The result of a replay.

    Example:
        >>> played = dialoom.replay("talk.case.json")
        >>> played.is_same, played.departures, played.live
        (True, [], {})

    Attributes:
        recipe: The recipe.
        scenario: The scenario.
        bindings: The models by role.
        steps: The number of steps played.
        calls: The number of recorded replies used.
        departures: Differences from the recorded path, one line each. With live roles, whose replies may differ, only
            the reasons why the conversation did not reach its end.
        outcome: The outcome; `None` if the conversation did not reach the end of the case.
        changed: The changes of code, study, prompts and models since the case was saved, one line each.
        live: The roles that gave new replies, with the number of their replies.
        kept: The number of recorded replies that were used although the request differs from the recorded one.
        lines: Differences between the messages of the recorded outcome and of this outcome.
        scores: The judgements that differ from the recorded ones, and judgements without a score.
    """

    recipe: Recipe
    scenario: Scenario
    bindings: Bindings
    steps: int
    calls: int
    departures: Sequence[str]
    outcome: Outcome | None
    changed: Sequence[str] = ()
    live: Mapping[str, int] = field(default_factory=dict)
    kept: int = 0
    lines: Sequence[str] = ()
    scores: Sequence[str] = ()

    @property
    def is_same(self) -> bool:
        """Return whether the conversation took the recorded path; with live roles, whether the judgements are the same.

        With live roles, a case without judgements is the same only if its messages are the same.
        """
        is_judged = self.outcome is not None and bool(self.outcome.judgements or self.scores)
        return not (self.departures or self.scores or (self.lines and not is_judged))


async def replay(
    case: Case,
    trust: Trust | None = None,
    *,
    folders: Sequence[Path] = (),
    live: Collection[str] = (),
    models: Mapping[str, ModelLike] | None = None,
    prompts: Sequence[str] = (),
) -> ReplayResult:
    """Replay a case with the current code. No run file is read or changed.

    Without live roles, every reply is the recorded one and nothing is sent. A live role gives new replies with its
    current prompt. All other roles get their recorded replies in order. A speaker gets them even if the conversation so
    far differs; any other role, such as a judge, only if its request is the recorded one.

    Args:
        case: The case.
        trust: The trust in code that the case refers to. By default, code is trusted if this user saved the case on
            this machine.
        folders: The folders in which the recipe's or the study's files are looked up first, such as that of the case;
            after them come the working folder, and the folder that the study was in. If everything is trusted,
            modules of players are looked up in them, too.
        live: The roles that give new replies; `tool` for tools of MCP servers.
        models: Models for live roles that replace the recorded ones.
        prompts: Sets of prompts that replace the recipe's own, for live roles.

    Raises:
        RunError, RecipeError: If the case's recipe cannot be loaded, or no longer accepts its options or scenario, or
            if a live role is unknown or cannot continue from the case.
        BindingError: If a model is unknown, or a key is missing.
        TrustError: If the recipe is a file that is specified only by the author of the case.
    """
    check_lists(live=live)
    trust = trust or Trust()
    with _importable_from(folders if trust.trusts_all else ()):
        if live:
            return await _LiveReplay(case, trust, folders, live, models or {}, prompts).play()
        if models or prompts:
            raise RunError("models and prompts apply to live roles only; name at least one live role", setting="live")
        return await _Replay(case, trust, folders).play()


class _CaseModules(MetaPathFinder):
    """The modules in the folders of a case, which come before others of the same names, except for libraries.

    Args:
        folders: The folders.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._paths = [str(folder.resolve()) for folder in folders]
        files = [file for folder in folders for file in (*folder.glob("*.py"), *folder.glob("*/__init__.py"))]
        names = {file.parent.name if file.stem == "__init__" else file.stem for file in files} - {"dialoom"}
        self._files = {name: spec.origin for name in names if (spec := PathFinder.find_spec(name, self._paths))}

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the specification of a module in the folders; `None` if it is elsewhere."""
        if path is not None or ((known := PathFinder.find_spec(fullname)) and is_in_library(known.origin)):
            return None
        return PathFinder.find_spec(fullname, self._paths)

    def loaded_modules(self) -> dict[str, ModuleType]:
        """Return the loaded modules with names of modules in the folders."""
        return {
            name: module
            for name, module in [*sys.modules.items()]
            if name.partition(".")[0] in self._files and not is_in_library(getattr(module, "__file__", None))
        }

    def is_foreign(self, name: str) -> bool:
        """Return whether the loaded module with this name, or its package, is not the one in these folders."""
        top = name.partition(".")[0]
        return getattr(sys.modules.get(top), "__file__", None) != self._files[top]


@contextmanager
def _importable_from(folders: Sequence[Path]) -> Iterator[None]:
    """Let modules be imported from these folders, and forget them afterwards, as other cases may use the same names."""
    finder = _CaseModules(folders)
    before = finder.loaded_modules()
    for name in [name for name in before if finder.is_foreign(name)]:
        del sys.modules[name]
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in finder.loaded_modules():
            sys.modules.pop(name, None)
        sys.modules.update(before)


class _Replay:
    """A single replay of a case."""

    def __init__(self, case: Case, trust: Trust, folders: Sequence[Path]) -> None:
        self._case, self._trust = case, trust
        self._folders = _list_search_folders(case, [*folders, Path.cwd()])
        file = find_in_folders(case.recipe, self._folders)
        trust.check("the case", case.mark, recipe_references(case.recipe, file), {})
        self._recipe: Recipe = load_recipe(case.recipe, folders=self._folders, study=case.study)
        self._references = recipe_references(case.recipe, file, self._recipe)
        trust.check("the case", case.mark, self._references, {})
        try:
            self._scenario: Scenario = self._recipe.scenario_type.model_validate(case.scenario)
            self._options = self._recipe.options_type.model_validate(case.options)
        except ValidationError as error:
            place, message, _ = first_problem(error)
            raise RunError(f"recipe {case.recipe!r} can no longer read the case: {place or 'it'}: {message}") from error
        trust.check("the case", case.mark, load_references(self._scenario.loads), {})
        self._graph: CompiledGraph = build_graph(self._recipe, self._options).compile(checkpointer=InMemorySaver())
        self._bindings = Bindings(case.models)
        self._library = PromptLibrary.from_sources(case.prompts)
        self._session: Session | None = None
        self._departures: list[str] = []
        self._used_replies = self._differing_requests = 0

    async def play(self) -> ReplayResult:
        await self._begin()
        outcome, number = None, 0
        for number, step in enumerate(self._case.steps, start=1):
            if not await self._play_step(step, number):
                break
        else:
            outcome = await self._outcome()
        if outcome is not None:
            differing = compute_changes(self._case.outcome.model_dump(mode="json"), outcome.model_dump(mode="json"))
            self._departures += [f"the outcome: {format_change(change, _MAX_LINE_CHARACTERS)}" for change in differing]
        if self._differing_requests > 1:  # the first one is listed in full
            self._departures.append(f"{self._differing_requests - 1} more requests differ from the recorded ones")
        return self._result(number, outcome)

    async def _begin(self) -> None:
        initial, nobody = self._recipe.initial(self._scenario), _RecordedGateway(())
        await self._graph.ainvoke(
            initial, thread_config(self._case.thread), context=self._stage(nobody), interrupt_before="*"
        )

    def _result(self, steps: int, outcome: Outcome | None, **live: Any) -> ReplayResult:
        departures, changed = self._departures, list(dict.fromkeys(self._iter_changes()))
        return ReplayResult(
            self._recipe,
            self._scenario,
            self._bindings,
            steps,
            self._used_replies,
            departures,
            outcome,
            changed,
            **live,
        )

    def _iter_changes(self) -> Iterator[str]:
        """Yield the changes of code, prompts and configuration since the case was saved, one line each."""
        case, current, study = self._case, self._load_current_recipe(), self._case.study or {}
        named = [*self._references, *cast_references(case.models)]
        for each in named:
            if each.spec in case.code and (found := each.hash()) != case.code[each.spec]:
                yield f"{each.code} {'is missing' if found is None else 'has changed'}"
        if case.study is not None and current is None:
            yield f"{case.recipe} is missing"
        if current is None:
            return
        if isinstance(current, Simulation) and {**current.study.to_dict(), "folder": ""} != {**study, "folder": ""}:
            yield f"{case.recipe} has changed"
        library = WithPrompts.of(current).library()
        for id_, source in case.prompts.items():
            if id_ not in library or library[id_].source != source:
                yield f"prompt {id_} {'has changed' if id_ in library else 'no longer exists'}"
        for role, model in WithRoles.of(current).models_named(self._options).items():
            if role in case.models and case.models[role].model != model:
                yield f"the model of {role} was {case.models[role].model}, and is {model} now"

    def _load_current_recipe(self) -> Recipe | None:
        """Return the recipe as it is now, which for a study is read from its file; `None` if the file is missing.

        The Python files of the study are not imported, because they may differ from those that the case names.
        """
        case = self._case
        if case.study is None or case.recipe == TRANSCRIPT:
            return self._recipe
        files = [folder / Path(case.recipe).name for folder in self._folders] if is_study(case.recipe) else []
        found = next((path for path in files if path.is_file()), None)
        return None if found is None else build_simulation(read_study(found))

    async def _play_step(self, step: RecordedStep, number: int) -> bool:
        """Play a step; return whether that was possible, so that the next step can be played."""
        if step.edit is not None:
            return await self._apply_edit(step, number)
        coming = await self._next_nodes()
        if coming != step.nodes:
            return self._record_departure(
                f"step {number}: {_format_nodes(coming)} would run, but {_format_nodes(step.nodes)} was recorded"
            )
        recorded = _RecordedGateway(step.calls)
        is_played = await self._run_nodes(recorded, number, coming)
        self._used_replies += len(recorded.used_calls)
        if not is_played:
            return False
        if recorded.differing_requests and not self._differing_requests:
            self._departures.append(f"step {number}: {recorded.differing_requests[0]}")
        self._differing_requests += len(recorded.differing_requests)
        self._departures += [f"step {number}: {each}" for each in recorded.list_missing()]
        return True

    async def _next_nodes(self) -> tuple[str, ...]:
        """Return the nodes that run next."""
        return tuple(
            dict.fromkeys(task.name for task in (await self._graph.aget_state(thread_config(self._case.thread))).tasks)
        )

    async def _run_nodes(self, caller: Caller, number: int, coming: Sequence[str]) -> bool:
        """Run the next nodes; return whether that was possible."""
        try:
            context = self._stage(caller, number)
            await self._graph.ainvoke(None, thread_config(self._case.thread), context=context, interrupt_after="*")
        except (_NotRecordedError, _ChangedRequestError) as error:
            return self._record_departure(f"step {number}: {error}")
        except Exception as error:  # any error of the current code counts as a deviation
            return self._record_departure(f"step {number}: {_format_nodes(coming)} failed: {_format_error(error)}")
        return True

    def _record_departure(self, how: str) -> bool:
        """Record a departure from the recorded path; return false, because no further step can be played."""
        self._departures.append(how)
        return False

    async def _apply_edit(self, step: RecordedStep, number: int) -> bool:
        values = {name: decode_part(value) for name, value in (step.edit or {}).items()}
        try:
            await self._graph.abulk_update_state(
                thread_config(self._case.thread), [build_updates(self._graph, values, step.nodes)]
            )
        except Exception as error:  # e.g. the graph no longer has this node or channel
            return self._record_departure(
                f"step {number}: the edit of {_format_nodes(tuple(values))} failed: {_format_error(error)}"
            )
        return True

    async def _outcome(self) -> Outcome | None:
        """Return the outcome; record a deviation if it cannot be computed, or if the end comes at another step."""
        snapshot = await self._graph.aget_state(thread_config(self._case.thread))
        is_end = not snapshot.tasks
        if is_end != self._case.is_end:
            names = _format_nodes(tuple(task.name for task in snapshot.tasks))
            what = "ended, but not in the case" if is_end else f"did not end: {names} would run next"
            self._departures.append(f"the conversation {what}")
        try:
            return build_outcome(self._recipe, self._scenario, dict(snapshot.values), failed=not is_end)
        except Exception as error:  # any error of the recipe's code
            self._departures.append(f"the outcome cannot be computed: {_format_error(error)}")
            return None

    def _stage(self, caller: Caller, number: int = 0) -> Stage:
        """Return the context of a step in the case; edits do not count as steps."""
        case, library, models = self._case, self._library, self._bindings.by_role
        edits = sum(each.edit is not None for each in case.steps[:number])
        used = PromptLibrary(prompt for prompt in library.values() if prompt.front.role in models)
        return Stage(
            self._scenario,
            Cast(used, models, caller, WithPrompts.of(self._recipe).reply_types),
            case.thread,
            case.seed,
            step=number - edits,
            gate=Gate(WithGate.of(self._recipe), library.values()),
            retries=case.user_retries,
            session=self._session,
            is_fork=number > len(case.steps) - case.forked,
        )


class _LiveReplay(_Replay):
    """A replay in which some roles give new replies."""

    def __init__(
        self,
        case: Case,
        trust: Trust,
        folders: Sequence[Path],
        live: Collection[str],
        models: Mapping[str, ModelLike],
        prompts: Sequence[str],
    ) -> None:
        super().__init__(case, trust, folders)
        self._live = frozenset(live)
        if unknown := sorted(self._live - {*case.models, TOOL_ROLE}):
            judges = "; judges score imported conversations only in their run, checks score them in a replay too"
            note = judges if case.recipe == TRANSCRIPT else ""
            raise RunError(
                f"live: unknown role {unknown[0]!r}; the roles are {', '.join(case.models)}{note}", setting="live"
            )
        if case.recipe == TRANSCRIPT and not case.forked:
            raise RunError(
                "live: the case contains only imported lines, for which no role can give new replies; continue the "
                "conversation from one of its lines in the step debugger, and save that as a case",
                setting="live",
            )
        if unused := sorted(set(models) - self._live):
            raise RunError(f"models: role {unused[0]!r} does not give new replies; name it among the live roles too")
        self._bindings = self._bind_models(models)
        live_bindings = {role: binding for role, binding in self._bindings.by_role.items() if role in self._live}
        if unrestorable := [role for role, binding in live_bindings.items() if binding.stateful and case.session > 1]:
            raise RunError(STATEFUL_IN_REPLAY.format(role=unrestorable[0], number=case.session), setting="live")
        trust.check("the case", case.mark, cast_references(live_bindings), {})
        check_keys(live_bindings)
        current_prompts = WithPrompts.of(self._load_current_recipe() or self._recipe).library(prompts)
        live_prompts = {id_: prompt for id_, prompt in current_prompts.items() if prompt.front.role in self._live}
        self._library = PromptLibrary(
            {**self._library, **{id_: live_prompts[id_] for id_ in live_prompts if id_ in self._library}}.values()
        )
        unique = uuid.uuid4()  # a player that keeps its own memory must not remember an earlier replay
        self._session = Session(
            make_session_id("conversation", unique), make_session_id("person", unique), case.session
        )
        calls = [call for step in case.steps for call in step.calls]
        speakers = {line.role for line in case.outcome.messages}
        gateway = Gateway(MemoryLedger(), objects=self._bindings.objects)
        gateway.prepare(live_bindings.values())
        self._caller = _LiveGateway(calls, self._live, speakers, gateway)

    def _bind_models(self, models: Mapping[str, ModelLike]) -> Bindings:
        """Return the bindings of all roles: those of the case, except for roles with new models."""
        roles = WithRoles.of(self._recipe)
        usual = {role: value for role, value in roles.roles_used(self._options).items() if role in models}
        given = bind(usual, None, roles.reply_limits, models=models)
        self._trust.trust_specified(cast_references(given.by_role))
        live = {role: binding for role, binding in self._case.models.items() if role in self._live - {*models}}
        return Bindings({**self._case.models, **rebind(live, None).by_role, **given.by_role}, given.objects)

    async def play(self) -> ReplayResult:
        await self._begin()
        number, outcome = 0, None
        while await self._advance(number):
            number += 1
        recorded = self._caller
        if not self._departures:
            outcome = await self._outcome()
        self._used_replies = len(recorded.used_calls)
        live = {"live": recorded.calls_by_role, "kept": len(recorded.differing_requests)}
        if outcome is None:
            return self._result(number, None, **live)
        before, after = (
            {"messages": each.model_dump(mode="json")["messages"]} for each in (self._case.outcome, outcome)
        )
        lines = [format_change(change, _MAX_LINE_CHARACTERS) for change in compute_changes(before, after)]
        scores = list(_score_changes(self._case.outcome.judgements, outcome.judgements))
        return self._result(number, outcome, lines=lines, scores=scores, **live)

    async def _advance(self, number: int) -> bool:
        """Play the step with this index; return whether it exists and could be played."""
        case, caller = self._case, self._caller
        step = case.steps[number] if number < len(case.steps) else None
        if step is not None and step.edit is not None:
            if caller.has_changed:
                return self._record_departure(
                    f"step {number + 1}: the state was edited here, which would overwrite the new replies"
                )
            return await self._apply_edit(step, number + 1)
        coming = await self._next_nodes()
        if not coming or (step is None and not case.is_end):
            return False
        return await self._run_nodes(caller, number + 1, coming)


class _NotRecordedError(Exception):
    """The error for a call that the case does not contain."""


class _RecordedGateway:
    """A gateway that answers the calls of one step from the case, and compares the requests.

    Attributes:
        differing_requests: Descriptions of requests that differ from the recorded ones, one line each.
        used_calls: The numbers of the calls that were made.
    """

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        self._calls = calls
        self.differing_requests: list[str] = []
        self.used_calls: set[int] = set()
        self._nodes_with_outputs: set[str] = set()

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        hash_ = digest_messages(request.messages)
        number = self._find_call(request, place, hash_)
        call = self._calls[number]
        self.used_calls.add(number)
        if not call.is_edited and call.request != hash_:
            self.differing_requests.append(
                f"{place.node} sent {request.role} a request that differs from the recorded one"
            )
        thoughts = "" if call.is_only_thoughts else None
        reply = deserialize_reply(Completion(call.reply, reasoning=thoughts, finish_reason=call.finish_reason))
        if reply.outputs:
            self._nodes_with_outputs.add(place.node)
        return reply

    def _find_call(self, request: Request, place: CallPlace, hash_: str) -> int:
        """Return the number of the recorded call at this place; if there are several, of one with the same request.

        If no request is the same, the call may be one whose request a person wrote.
        """
        where = (place.node, place.ordinal, place.ask, request.role)
        candidates = [
            number
            for number, call in enumerate(self._calls)
            if (call.node, call.ordinal, call.ask, call.role) == where and number not in self.used_calls
        ]
        if candidates:
            calls = self._calls
            return min(candidates, key=lambda number: (calls[number].request != hash_, self._rank(calls[number])))
        if place.ask > 1:
            raise _NotRecordedError(
                f"{place.node} cannot use the recorded reply of {request.role}, and requested another"
            )
        raise _NotRecordedError(self._describe_unexpected(request, place))

    def _rank(self, call: RecordedCall) -> bool:
        """Return the rank of a recorded call whose request differs; calls with lower ranks are preferred."""
        return not call.is_edited

    def _describe_unexpected(self, request: Request, place: CallPlace) -> str:
        recorded = ", ".join(f"{each.node} asked {each.role}" for each in self._calls) or "no call"
        return f"{place.node} asked {request.role}, but {recorded} was recorded"

    def list_missing(self) -> list[str]:
        """Return the recorded calls that the replay did not make, one line each.

        A player with a loop of its own has called tools in it; their results are in its recorded reply.
        """
        return [
            f"{call.node} did not ask {call.role}, which was recorded"
            for number, call in enumerate(self._calls)
            if number not in self.used_calls and not (call.role == TOOL_ROLE and call.node in self._nodes_with_outputs)
        ]


class _ChangedRequestError(UnparsedReplyError):
    """The error for a recorded reply that does not apply, because the request has changed."""

    def __init__(self, role: str) -> None:
        RoleError.__init__(
            self,
            f"{role} was not called, because its recorded reply belongs to a different request; name {role} among the "
            "live roles, too",
        )
        self.reply = ""


class _LiveGateway(_RecordedGateway):
    """A gateway that calls the live roles, and answers all other roles with their recorded replies in order.

    Attributes:
        calls_by_role: The number of replies that each live role gave.
        has_changed: Whether a live role has replied differently from the record.
    """

    def __init__(
        self, calls: Sequence[RecordedCall], live: Collection[str], speakers: Collection[str], gateway: Gateway
    ) -> None:
        super().__init__([call for call in calls if call.role not in live])
        self._replies = {call.reply for call in calls if call.role in live}
        self._live, self._speakers, self._gateway = live, speakers, gateway
        self.calls_by_role = dict.fromkeys(sorted(live), 0)
        self.has_changed = False

    async def complete(self, request: Request, place: CallPlace) -> Completion:
        if request.role in self._live:
            completion = await self._gateway.complete(request, place)
            self.calls_by_role[request.role] += 1
            self.has_changed = self.has_changed or serialize_reply(completion) not in self._replies
            return completion
        hash_ = digest_messages(request.messages)
        call = self._calls[self._find_call(request, place, hash_)]
        is_other = self.has_changed if call.is_edited else call.request != hash_
        if is_other and request.role not in self._speakers:
            raise _ChangedRequestError(request.role)
        return await super().complete(request, place)

    def _rank(self, call: RecordedCall) -> bool:  # noqa: ARG002
        return False  # the calls were made in the recorded order

    def _describe_unexpected(self, request: Request, place: CallPlace) -> str:
        role = request.role
        return f"{place.node} asked {role} more often than was recorded; name {role} among the live roles, too"


def _list_search_folders(case: Case, bases: Sequence[Path]) -> list[Path]:
    """Return the folders in which files that a case names are looked up, in order.

    Args:
        case: The case.
        bases: The folders for relative paths. A study's own folder below them comes first.
    """
    if case.study is None:
        return list(dict.fromkeys(bases))
    below = Path(case.recipe).parent
    own = [] if below.is_absolute() else [base / below for base in bases]
    return list(dict.fromkeys([*own, *bases, Path(str(case.study.get("folder", "")))]))


def _score_changes(before: Sequence[Judgement], after: Sequence[Judgement]) -> Iterator[str]:
    """Yield one line for each judgement that differs, and for each judgement without a score."""
    old, new = index_by_subject(before), index_by_subject(after)
    for subject in dict.fromkeys([*old, *new]):
        metric, target, turn, _ = subject
        name = f"{metric} ({target})" + ("" if turn is None else f", turn {turn}")
        then, now = old.get(subject), new.get(subject)
        if now is not None and now.score is None:
            yield f"{name}: no score: {now.explanation:.{_MAX_LINE_CHARACTERS}}"
        elif (then and then.score) != (now and now.score):
            first, last = ("none" if each is None else str(each.score) for each in (then, now))
            yield f"{name}: {first} -> {last}"


def _format_error(error: Exception) -> str:
    """Format an error in one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:_MAX_LINE_CHARACTERS]


def _format_nodes(nodes: Sequence[str]) -> str:
    return " and ".join(nodes) or "the end"
