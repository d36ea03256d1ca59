"""Errors go from one process to another: one that cannot be unpickled leaves a pool of processes waiting for ever."""

from __future__ import annotations

import copy
import pickle
import traceback

import pytest

from kubeauthn import errors

EXAMPLES = [
    errors.KubeauthnError("m", hint="h"),
    errors.MissingExtra("package", "extra"),
    errors.KubeconfigError("m", faults=["fault"], hint="h"),
    errors.PluginTimeout("m", exit_code=-9, hint="h"),
    errors.CredentialWaiting("m", retry_after=2.5),
    errors.RequestRefused("m", status=401, hint="h"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_the_way_to_another_process(error: errors.KubeauthnError):
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  our own bytes
    assert type(again) is type(error)
    assert (str(again), again.hint, vars(again)) == (str(error), error.hint, vars(error))


def test_a_traceback_shows_the_hint_once_also_in_another_process():
    error = errors.KubeconfigError("m", hint="do this")
    again = pickle.loads(pickle.dumps(copy.copy(error)))  # noqa: S301  our own bytes
    for each in (error, again):
        shown = "".join(traceback.format_exception(each))
        assert shown.count("hint: do this") == 1
        assert str(each) == "m"


def test_an_error_without_a_hint_has_no_note():
    assert not hasattr(errors.KubeauthnError("m"), "__notes__")
