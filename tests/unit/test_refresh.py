from __future__ import annotations

from kubeauthn._core.credential import Credential
from kubeauthn._core.refresh import RefreshState
from kubeauthn._secret import Secret

NOW = 1_000.0


def credential(expires_at: float | None = None) -> Credential:
    return Credential(token=Secret("t"), expires_at=expires_at)


def waits(state: RefreshState, now: float) -> float:
    waiting = state.must_wait(now)
    return waiting.retry_after if waiting else 0.0


def test_usable_until_the_moment_it_names_that_moment_included() -> None:
    state = RefreshState()
    state.made(made := credential(expires_at=NOW))
    assert state.usable(NOW) is made
    assert state.usable(NOW + 0.001) is None


def test_kept_for_ever_without_an_expiry() -> None:
    state = RefreshState()
    state.made(made := credential())
    assert state.usable(NOW + 1e9) is made


def test_after_a_failure_the_wait_doubles_to_a_minute_and_ends_with_success() -> None:
    state, now, seen = RefreshState(), NOW, []
    for _ in range(9):
        state.failed("exec: executable x failed with exit code 1", now)
        seen.append(waits(state, now))
        now += seen[-1]
        assert state.must_wait(now) is None
    assert seen == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    state.made(credential())
    state.failed("again", now)
    assert waits(state, now) == 1


def test_the_waiting_error_says_what_failed_and_how_long() -> None:
    state = RefreshState()
    state.failed("exec: executable x failed with exit code 1", NOW)
    waiting = state.must_wait(NOW + 0.25)
    assert str(waiting) == "exec: executable x failed with exit code 1; next attempt in 0.8 s"


def test_a_clock_set_back_does_not_stretch_the_wait() -> None:
    state = RefreshState()
    state.failed("x", NOW)
    assert waits(state, NOW - 86_400) == 60


def test_a_refused_credential_is_dropped_and_the_next_run_is_due_at_once() -> None:
    state = RefreshState()
    state.made(made := credential())
    state.accepted(made)
    assert state.refused(made, NOW)
    assert state.usable(NOW) is None
    assert state.must_wait(NOW) is None


def test_a_credential_that_was_already_replaced_is_not_refused_again() -> None:
    state = RefreshState()
    state.made(old := credential())
    state.made(new := credential())  # equal in value, another one all the same
    assert not state.refused(old, NOW)
    assert state.usable(NOW) is new


def test_a_new_credential_that_is_itself_refused_makes_the_next_run_wait() -> None:
    state, now, seen = RefreshState(), NOW, []
    for _ in range(4):
        state.made(made := credential())
        state.refused(made, now)
        seen.append(waits(state, now))
        now += seen[-1]
    assert seen == [0, 1, 2, 4]


def test_acceptance_ends_that() -> None:
    state = RefreshState()
    for _ in range(3):
        state.made(made := credential())
        state.refused(made, NOW)
    state.made(made := credential())
    state.accepted(made)
    state.refused(made, NOW + 100)
    assert state.must_wait(NOW + 100) is None


def test_a_failed_run_leaves_nothing_to_send() -> None:
    state = RefreshState()
    state.made(credential())
    state.failed("x", NOW)
    assert state.usable(NOW) is None
