"""How long a provider asks to wait."""

from __future__ import annotations

import pytest

from dialoom.roles.gateway.retries import retry_after
from tests.server import http_date


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"RETRY-AFTER": " 7 "}, 7.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:10 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 10.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_headers_are_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds, a date by the server's clock; what is none of them is none."""
    assert retry_after(headers) == seconds


def test_a_date_without_the_servers_clock_is_measured_by_ours() -> None:
    """Which is the best there is."""
    found = retry_after({"retry-after": http_date(100)})
    assert found is not None and 90 < found <= 100


def test_a_body_is_read_where_a_provider_says_it_there() -> None:
    """As Google does; a header wins."""
    body = '{"details": [{"@type": "RetryInfo", "retryDelay": "34.5s"}]}'
    assert retry_after({}, body) == 34.5
    assert retry_after({"retry-after": "1"}, body) == 1.0
