"""Exit codes, and error messages that name the flags and commands of the command line."""

from __future__ import annotations

from dialoom.errors import Advice, DialoomError

EXIT_DONE, EXIT_SOME_FAILED, EXIT_USAGE, EXIT_STOPPED, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
"""In this order: all is done; some scenarios or checks failed; wrong usage or data; stopped early and resumable;
interrupted before there was anything to resume."""

PLAY_EPILOG = (
    "Exit codes: 0 all done, 1 some scenarios or checks failed, 2 bad usage or data, 3 stopped early and resumable."
)
READ_EPILOG = "Exit codes: 0 done, 2 bad usage, configuration or data."
IMPORT_EPILOG = "Exit codes: 0 done, 1 a check failed with an error, 2 bad usage or data, 130 stopped."
REQUIRE_EPILOG = (
    "Exit codes: 0 every requirement is met, 1 a requirement is not met, 2 bad usage, configuration or data."
)
DOCTOR_EPILOG = "Exit codes: 0 all checks passed, 1 a check failed, 2 bad usage."
POOL_EPILOG = "Exit codes: 0 done, 1 the writer failed, 2 bad usage or data, 3 stopped early and resumable."
STEP_EPILOG = (
    "Exit codes: 0 every line was carried out, 1 a step failed (provider or reply), 2 bad usage, configuration or "
    "data, or a line that cannot be carried out, 3 stopped early (budget, Ctrl-C). Played steps are kept."
)
REPLAY_EPILOG = (
    "Exit codes: 0 the steps are as recorded (with --live: the judgements are as recorded, or all requirements are "
    "met), 1 otherwise, 2 the file is not a case, or bad usage."
)


_FLAGS = {
    "encoding": "--as",
    "metrics": "--metric",
    "path": "-o",
    "recipe": "recipe",
    "scales": "--scale",
    "scenarios": "--scenario",
    "settings": "--setting",
    "tables": "--table",
}
"""The flags whose names differ from the names of their settings."""

_ADVICE = {
    "combine": "'dialoom personas combine' makes personas from two pools",
    "different_users": "add --allow-different-users to compare them anyway",
    "give_player": "continue in Python: dialoom.resume(RUN, models={{'{role}': ...}})",
    "allow_remote": "add --allow-remote to do so anyway",
    "judge": "'dialoom judge {path} --model MODEL' adds judgements",
    "keys": "export it, or give a file of keys with --env-file FILE",
    "reader": "read files of another format with --reader FILE.py:FUNCTION",
    "leave_out": "or leave these conversations out with --where EXPR",
    "list": "'dialoom show {path}' lists them",
    "new_name": "give the new judgements another name with --name",
    "new_study": "'dialoom new study DIR --from {path}' makes conversations from your own people",
    "new_path": "give another file with -o",
    "open_in_python": "open the run in Python: dialoom.open_run('{path}', recipe=THE_CLASS)",
    "price": "give it in US dollars per million tokens: {prices} (0,0 if it costs nothing)",
    "remove_or_new_path": "remove it, or give another file with -o",
    "resume": "continue with 'dialoom resume {path}'",
    "resume_or_new_path": "continue with 'dialoom resume {path}', or give another file with -o",
    "retry_scenario": "play a scenario again with: dialoom retry {path} --scenario ID",
    "run": "'dialoom run RECIPE -o {path}' makes a run",
    "score_anew": (
        "or score the recorded conversations with the new code: "
        "'dialoom export {path} --format dialogues -o talks.jsonl', then "
        "'dialoom import talks.jsonl --judges STUDY.toml -o talks.db'"
    ),
    "trust": "if you trust it, add --trust",
    "save_case": "'save FILE' in 'dialoom step {path}' saves one of its conversations as a case",
    "status": "play a few scenarios with the real models instead; 'dialoom status' shows their usage",
}
"""The next steps as commands, by the action of the advice."""


def format_error(error: BaseException) -> str:
    """Return an error's message with settings named as flags of the command line."""
    if not isinstance(error, DialoomError):
        return str(error)
    text = error.message
    if error.setting is not None:
        text = text.replace(error.setting, get_flag(error.setting), 1)
    return text if error.advice is None else f"{text}; {format_advice(error.advice)}"


def format_advice(advice: Advice) -> str:
    """Return a piece of advice as text, with the command for its action if there is one."""
    prices = " ".join(f"--price {model}=IN,OUT" for model in advice.values.get("models", "").split())
    return _ADVICE.get(advice.action, advice.text).format(**{"prices": prices, **advice.values})


def get_flag(setting: str) -> str:
    """Return the flag of an option."""
    from .setting_flags import get_flag_names

    name = get_flag_names().get(setting, setting)
    return _FLAGS.get(name) or "--" + name.replace("_", "-")
