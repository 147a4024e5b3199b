"""Looking for no price where LiteLLM has none.

LiteLLM works out what each call cost, and takes longest where it finds no price: a quarter of a call's time, for a
server of one's own. That there is none for a model, as it was asked and as it called itself, is found out once in a
run. What has a price is priced by LiteLLM each time.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

Models = tuple[str | None, str | None]
"""A model as it was asked, and as its answer calls it; LiteLLM goes by either."""


class Unpriced:
    """What is known of models that have no price."""

    def __init__(self) -> None:
        self._costs: dict[Models, float | None] = {}
        self._priced: set[Models] = set()

    def holds(self, models: Models) -> bool:
        """Whether they are known to have none."""
        return models in self._costs

    def cost(self, models: Models) -> float | None:
        """What LiteLLM says that their calls cost: nothing, or that it does not know."""
        return self._costs[models]

    def learn(self, litellm: Any, models: Models, cost: float | None) -> None:
        """Look the models up, if that was not done yet.

        Args:
            litellm: The module.
            models: Asked and answering.
            cost: What LiteLLM has said of a call.
        """
        if models in self._costs or models in self._priced:
            return
        if cost or any(_has_price(litellm, model) for model in models if model):
            self._priced.add(models)
        else:
            self._costs[models] = cost


def _has_price(litellm: Any, model: str) -> bool:
    try:
        return any(litellm.cost_per_token(model=model, prompt_tokens=1_000_000, completion_tokens=1_000_000))
    except Exception:  # of several kinds: it is not in the table
        return False


_known: ContextVar[Unpriced | None] = ContextVar("dialoom_unpriced", default=None)


@contextlib.contextmanager
def pricing_only(unpriced: Unpriced | None) -> Iterator[None]:
    """Within it, LiteLLM prices no answer of those models. Whoever else uses LiteLLM is left alone."""
    token = _known.set(unpriced)
    try:
        yield
    finally:
        _known.reset(token)


def install(litellm: Any) -> None:
    """Have LiteLLM's way of pricing answers look there first. Called once, when LiteLLM is imported."""
    utils: Any = importlib.import_module("litellm.utils")
    priced = utils.update_response_metadata

    def priced_unless_known(result: Any, logging_obj: Any, model: str | None, *args: Any, **kwargs: Any) -> None:
        unpriced, hidden = _known.get(), getattr(result, "_hidden_params", None)
        if unpriced is None or not isinstance(hidden, dict):
            priced(result, logging_obj, model, *args, **kwargs)
            return
        models = (model, getattr(result, "model", None))
        if unpriced.holds(models):
            hidden["response_cost"] = unpriced.cost(models)
            return
        priced(result, logging_obj, model, *args, **kwargs)
        unpriced.learn(litellm, models, result._hidden_params.get("response_cost"))

    utils.update_response_metadata = priced_unless_known
