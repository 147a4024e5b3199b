"""A shop whose assistant can look up and refund orders: an environment of `docs/environments.md`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dialoom.graphs import SqliteEnvironment


class Shop(SqliteEnvironment):
    """A shop with two orders and no refunds."""

    schema = """
    CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT, price REAL);
    CREATE TABLE refunds (order_id TEXT REFERENCES orders, amount REAL);
    INSERT INTO orders VALUES ('A1', 'kettle', 29.5), ('B2', 'lamp', 12.25);
    """

    @property
    def tools(self) -> Sequence[Callable[..., Any]]:
        """Return the tools."""
        return [self.look_up, self.refund]

    def look_up(self, order_id: str) -> dict[str, Any]:
        """Look up an order.

        Args:
            order_id: The order's number, such as A1.
        """
        row = self.connection.execute("SELECT * FROM orders WHERE id = ?", (order_id,)).fetchone()
        if row is None:
            raise ValueError(f"there is no order {order_id}")
        return dict(row)

    def refund(self, order_id: str) -> str:
        """Refund an order in full.

        Args:
            order_id: The order's number, such as A1.
        """
        amount = self.look_up(order_id)["price"]
        self.connection.execute("INSERT INTO refunds VALUES (?, ?)", (order_id, amount))
        return f"refunded {amount}"
