"""The fake clock."""

from __future__ import annotations

import threading

import pytest

from kubeauthn.errors import UsageError
from kubeauthn.testing import FakeClock


def test_it_stands_still_until_told():
    clock = FakeClock()
    assert clock() == clock() == 1_700_000_000.0


def test_advance_and_set():
    clock = FakeClock(100.0)
    assert clock.advance(2.5) == 102.5
    assert clock() == 102.5
    clock.set(50)
    assert clock() == 50.0
    assert repr(clock) == "FakeClock(50.0)"


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf")])
def test_advance_refuses_what_is_no_way_forward(seconds):
    clock = FakeClock(100.0)
    with pytest.raises(UsageError):
        clock.advance(seconds)
    assert clock() == 100.0


def test_set_refuses_what_is_no_time():
    with pytest.raises(UsageError):
        FakeClock().set(float("nan"))


def test_threads_lose_no_advance():
    clock = FakeClock(0.0)
    threads = [threading.Thread(target=lambda: [clock.advance(1) for _ in range(1000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert clock() == 4000.0
