"""Prices of tokens: LiteLLM's table, and prices stated by the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from dialoom.settings import Price

from .calls import Completion

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model as stated by the user, which override LiteLLM's."""

    stated: Mapping[str, Price] = field(default_factory=dict)

    def applied(self, completion: Completion, model: str) -> Completion:
        """Return the completion with its cost, if the price is stated and the tokens are known."""
        price = self.stated.get(model)
        if price is None or completion.input_tokens is None or completion.output_tokens is None:
            return completion
        cost = price.of(completion.input_tokens, completion.output_tokens, completion.cached_tokens or 0)
        return replace(completion, cost=cost)

    def expected(self, model: str, tokens: int) -> float | None:
        """Return an upper bound of the cost of this many tokens; `None` if the price is unknown."""
        price = self.price(model)
        return None if price is None else max(price.input, price.output) * tokens / _MILLION

    def price(self, model: str) -> Price | None:
        """Return the model's price, stated or LiteLLM's; `None` if it is unknown."""
        return self.stated.get(model) or _listed(model)


def _listed(model: str) -> Price | None:
    """Return LiteLLM's price, from the table in its package; `None` if it is unknown."""
    from .litellm_backend import load_litellm

    try:
        known = load_litellm().get_model_info(model.removeprefix("embed:"))
    except Exception:
        return None
    figures = [known.get(key) for key in ("input_cost_per_token", "output_cost_per_token")]
    if any(figure is None for figure in figures):
        return None
    cached = known.get("cache_read_input_token_cost")
    prices = [float(figure) * _MILLION for figure in figures if figure is not None]
    return Price(prices[0], prices[1], None if cached is None else float(cached) * _MILLION)
