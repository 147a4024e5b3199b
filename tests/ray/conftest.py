"""Ray itself, started once for all tests: what workers do has tests of its own without it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed: 'make test-ray' makes an environment")


_STARTS = 3

_SOON = {"health_check_period_ms": 1000, "health_check_timeout_ms": 5000, "health_check_failure_threshold": 5}
"""Ray itself takes most of a minute until it takes a machine for lost."""

_HEAD = {"num_cpus": 2, "include_dashboard": False, "_system_config": _SOON}

_BOUND, _ONCE_MORE = 1200.0, 5.0
"""Seconds after which a test is taken for hanging, only a net; and until it is told again, should an event loop's
callback have swallowed it."""


@pytest.fixture(autouse=True)
def bound(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test hangs: one that takes too long fails."""
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster")  # its start is not the test's time

    def fail(_number: int, _frame: object) -> None:
        pytest.fail(f"it took more than {_BOUND:.0f} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, _BOUND, _ONCE_MORE)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def cluster() -> Iterator[object]:
    """Two machines, as far as Ray can tell; this process is on the first, and uses both."""
    from ray.cluster_utils import Cluster

    from dialoom.runs.workers.cluster import ray_settings

    for turn in range(_STARTS):
        try:
            with ray_settings():
                found = Cluster(initialize_head=True, head_node_args=_HEAD)
                ray.init(address=found.address, log_to_driver=False)
            break
        except Exception:  # on a machine that is busy Ray gives itself too little time
            if turn + 1 == _STARTS:
                raise
    yield found
    ray.shutdown()
    found.shutdown()
