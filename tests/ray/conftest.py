"""Ray, started once for all tests; tests/runs/workers tests workers without it."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

ray = pytest.importorskip("ray", reason="Ray is not installed; 'make test-ray' installs it")


_ATTEMPTS = 3

_FAST_DETECTION = {"health_check_period_ms": 1000, "health_check_timeout_ms": 5000, "health_check_failure_threshold": 5}
"""By default, Ray takes most of a minute to declare a machine lost."""

_HEAD = {"num_cpus": 2, "include_dashboard": False, "_system_config": _FAST_DETECTION}

_TIMEOUT, _REPEAT = 1200.0, 5.0
"""Seconds after which a test counts as hung, and seconds until the alarm is repeated, in case a callback of an event
loop has swallowed the first one."""


@pytest.fixture(autouse=True)
def time_limit(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail tests that take too long."""
    if "cluster" in request.fixturenames:
        request.getfixturevalue("cluster")  # starting it does not count as the test's time

    def fail(_number: int, _frame: object) -> None:
        pytest.fail(f"the test took more than {_TIMEOUT:.0f} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.setitimer(signal.ITIMER_REAL, _TIMEOUT, _REPEAT)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def cluster() -> Iterator[object]:
    """Start a Ray cluster of two machines; this process is connected to the first and uses both."""
    from ray.cluster_utils import Cluster

    from dialoom.runs.workers.cluster import ray_settings

    for turn in range(_ATTEMPTS):
        try:
            with ray_settings():
                found = Cluster(initialize_head=True, head_node_args=_HEAD)
                ray.init(address=found.address, log_to_driver=False)
            break
        except Exception:  # on a busy machine Ray's own timeouts are too short
            if turn + 1 == _ATTEMPTS:
                raise
    yield found
    ray.shutdown()
    found.shutdown()
