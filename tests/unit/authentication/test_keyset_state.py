"""When keys are fetched, told without a network and without a clock."""

from __future__ import annotations

import pytest

from kubeauthn._core.authentication.keyset_state import Intervals, KeySetState

NOW = 1000.0


def state_with_keys(now: float = NOW) -> KeySetState[str]:
    state: KeySetState[str] = KeySetState()
    state.begun(now)
    assert state.fetched("first", "sha256:1", now)
    return state


def test_at_first_there_are_no_keys_and_a_fetch_is_due():
    state: KeySetState[str] = KeySetState()
    assert state.keys is None
    assert state.seconds_until_due(NOW) == 0
    assert state.may_ask(NOW)
    assert state.status.fingerprint == ""
    assert state.status.fetched_at is None


def test_until_the_first_keys_an_attempt_every_ten_seconds():
    state: KeySetState[str] = KeySetState()
    state.begun(NOW)
    state.failed("down", NOW + 1)
    assert state.seconds_until_due(NOW + 1) == 10
    assert not state.may_ask(NOW + 10.9)
    assert state.may_ask(NOW + 11)
    assert state.seconds_until_due(NOW + 11) == 0
    assert state.status.failure == "down"


def test_the_first_unknown_key_after_the_first_fetch_need_not_wait():
    state = state_with_keys()
    assert state.may_ask(NOW)


def test_an_unknown_key_starts_the_cool_down_for_all():
    state = state_with_keys()
    state.asked(NOW)
    assert not state.may_ask(NOW)
    state.fetched("second", "sha256:2", NOW + 1)
    assert not state.may_ask(NOW + 29.9)
    assert state.may_ask(NOW + 30)


def test_a_failure_starts_the_cool_down_whatever_caused_the_fetch():
    state = state_with_keys()
    state.begun(NOW + 600)
    state.failed("down", NOW + 601)
    assert not state.may_ask(NOW + 630.9)
    assert state.may_ask(NOW + 631)


def test_a_failure_keeps_the_last_good_keys():
    state = state_with_keys()
    for second in range(100):
        state.failed("down", NOW + second)
    assert state.keys == "first"
    assert state.status.fingerprint == "sha256:1"
    assert state.status.fetched_at == NOW


def test_good_keys_end_the_failure():
    state = state_with_keys()
    state.failed("down", NOW + 1)
    state.fetched("second", "sha256:2", NOW + 2)
    assert state.status.failure == ""
    assert state.status.failed_at == NOW + 1


def test_the_same_document_is_no_change_and_keeps_the_object():
    state = state_with_keys()
    assert not state.fetched("a copy", "sha256:1", NOW + 1)
    assert state.keys == "first"
    assert state.fetched("second", "sha256:2", NOW + 2)
    assert state.keys == "second"


def test_keys_are_refreshed_and_a_failed_refresh_is_tried_again_sooner():
    state = state_with_keys()
    assert state.seconds_until_due(NOW + 1) == 599
    assert state.seconds_until_due(NOW + 600) == 0
    state.begun(NOW + 600)
    state.failed("down", NOW + 600)
    assert state.seconds_until_due(NOW + 600) == 30


def test_a_fetch_that_never_reports_its_end_does_not_block_the_next_for_ever():
    state: KeySetState[str] = KeySetState()
    state.begun(NOW)
    assert state.seconds_until_due(NOW + 1) > 0
    assert state.seconds_until_due(NOW + 10) == 0


@pytest.mark.parametrize("back", [700.0, 1e6, 1e12])
def test_a_clock_that_was_set_back_does_not_stretch_a_wait(back: float):
    state = state_with_keys()
    state.asked(NOW)
    assert state.seconds_until_due(NOW - back) == 0
    assert state.may_ask(NOW - back)
    state.failed("down", NOW)
    assert state.seconds_until_due(NOW - back) == 0
    assert state.may_ask(NOW - back)


@pytest.mark.parametrize("now", [0.1, 1.7e9 + 0.3, 1.8e9 + 1 / 3, 4e9 + 0.7])
def test_a_wait_holds_from_its_very_first_moment(now: float):
    state: KeySetState[str] = KeySetState(Intervals(first_retry=0.1, unknown_key=0.1, refresh=0.1))
    state.failed("down", now)
    assert not state.may_ask(now)
    assert state.seconds_until_due(now) > 0


def test_intervals_can_be_others():
    state: KeySetState[str] = KeySetState(Intervals(first_retry=1, unknown_key=2, refresh=3))
    state.failed("down", NOW)
    assert state.seconds_until_due(NOW) == 1
    state.fetched("first", "sha256:1", NOW)
    assert state.seconds_until_due(NOW) == 3
    state.asked(NOW)
    assert not state.may_ask(NOW + 1.9)
    assert state.may_ask(NOW + 2)
