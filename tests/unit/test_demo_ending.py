"""An interruption of the demo is heard once, later where a process is being started, and not while it clears up."""

from __future__ import annotations

import signal

import pytest

from kubeauthn.cli.demo_ending import DEAF_SECONDS, Ending
from kubeauthn.testing import FakeClock


def test_ctrl_c_and_requests_to_end():
    with pytest.raises(KeyboardInterrupt):
        Ending().hear(signal.SIGINT)
    with pytest.raises(SystemExit) as ending:
        Ending().hear(signal.SIGTERM)
    assert ending.value.code == 143


def test_the_second_is_not_heard_unless_the_first_was_lost():
    clock = FakeClock()
    ending = Ending(clock)
    with pytest.raises(KeyboardInterrupt):
        ending.hear(signal.SIGINT)
    ending.hear(signal.SIGINT)
    clock.advance(DEAF_SECONDS)
    with pytest.raises(KeyboardInterrupt):
        ending.hear(signal.SIGINT)


def test_while_shielded_it_waits_for_the_end():
    ending = Ending()
    steps = []

    def start() -> None:
        with ending.shield():
            ending.hear(signal.SIGINT)
            steps.append("the process is known")
        steps.append("and goes on")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert steps == ["the process is known"]
    with ending.shield():
        pass


def test_an_error_under_the_shield_is_the_error_that_comes_out():
    ending = Ending()

    def start() -> None:
        with ending.shield():
            ending.hear(signal.SIGINT)
            raise OSError("no such program")

    with pytest.raises(OSError, match="no such program"):
        start()


def test_clearing_up_is_not_interrupted():
    ending = Ending()
    with ending.deaf_afterwards():
        pass
    ending.hear(signal.SIGINT)
    ending.hear(signal.SIGTERM)


def test_handlers_are_put_back_and_what_is_ignored_stays_so():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        interrupted = signal.getsignal(signal.SIGINT)
        with Ending() as ending:
            assert signal.getsignal(signal.SIGINT) == ending.hear
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) == interrupted
        with pytest.raises(KeyboardInterrupt), Ending():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # else every process that a later test starts would be deaf to it
