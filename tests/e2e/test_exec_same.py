"""The same kubeconfig and the same plugin, run by client-go and by us: what each side sees is compared.

Errors are compared by what client-go says after its own wrapping (`Get "URL": getting credentials: …`). Where we
differ on purpose, the case says how. The bad replies are those of the unit tests, every one.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.exec_sides import CREDENTIAL, REPLIES, Scene, run_ours, run_theirs
from tests.unit.test_execwire import BAD_REPLIES

V1BETA1 = "client.authentication.k8s.io/v1beta1"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.mark.parametrize("reply", REPLIES)
def test_a_reply_is_taken_alike(scene: Scene, reply: str):
    theirs = scene.play(run_theirs, REPLIES[reply])
    ours = scene.play(run_ours, REPLIES[reply])
    assert ours == theirs


ENTRIES: dict[str, dict[str, Any]] = {
    "arguments": {"args": ["get-token", "--realm", "a b", ""]},
    "no arguments": {"args": None},
    "variables": {"env": [{"name": "REALM", "value": "prod"}]},
    "an empty variable": {"env": [{"name": "REALM", "value": ""}]},
    "cluster information": {"provideClusterInfo": True},
    "if available": {"interactiveMode": "IfAvailable"},
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_plugin_is_started_alike(scene: Scene, entry: str):
    theirs = scene.play(run_theirs, REPLIES["token"], **ENTRIES[entry])
    ours = scene.play(run_ours, REPLIES["token"], **ENTRIES[entry])
    assert ours == theirs


def test_the_plugin_runs_once_for_many_requests(scene: Scene):
    theirs = scene.play(run_theirs, REPLIES["token"], requests=4)
    ours = scene.play(run_ours, REPLIES["token"], requests=4)
    assert theirs.runs == 1
    assert ours == theirs


def test_always_without_a_terminal_is_refused_alike(scene: Scene):
    theirs = scene.play(run_theirs, REPLIES["token"], interactiveMode="Always")
    ours = scene.play(run_ours, REPLIES["token"], interactiveMode="Always")
    assert ours == theirs


def test_a_missing_program_is_named_alike(scene: Scene):
    missing = {"command": "no-such-program-anywhere", "installHint": "install it"}
    theirs = scene.play(run_theirs, REPLIES["token"], **missing)
    ours = scene.play(run_ours, REPLIES["token"], **missing)
    assert theirs.outcomes[0].startswith("exec: executable no-such-program-anywhere not found")
    assert ours.outcomes[0].startswith("exec: executable no-such-program-anywhere not found")
    assert os.linesep not in ours.outcomes[0]
    assert ours.requests == theirs.requests == []


GOOD_REPLIES: dict[str, Any] = {
    "unknown fields": CREDENTIAL + ',"x":1,"status":{"token":"good","y":2}}',
    "nulls": CREDENTIAL + ',"spec":null,"status":{"token":"good","clientKeyData":null,"expirationTimestamp":null}}',
    "YAML": "apiVersion: client.authentication.k8s.io/v1\nkind: ExecCredential\nstatus: {token: good}\n",
    "no kind": '{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"good"}}',
    "names in capitals": CREDENTIAL + ',"Status":{"Token":"good"}}',
    "a token twice": CREDENTIAL + ',"status":{"token":"bad","token":"good"}}',
    "an expiry far away": CREDENTIAL
    + ',"status":{"token":"good","expirationTimestamp":"2099-01-01T00:00:00.5+01:00"}}',
    "a byte order mark": "\ufeff" + CREDENTIAL + ',"status":{"token":"good"}}',
    "lines after it": CREDENTIAL + ',"status":{"token":"good"}}\n\n',
}


@pytest.mark.parametrize("reply", GOOD_REPLIES)
def test_an_odd_reply_is_taken_alike(scene: Scene, reply: str):
    theirs = scene.play(run_theirs, lambda plugin: plugin.raw(GOOD_REPLIES[reply]), requests=2)
    ours = scene.play(run_ours, lambda plugin: plugin.raw(GOOD_REPLIES[reply]), requests=2)
    if theirs.requests:
        assert ours == theirs
    else:  # after a failure we wait before the plugin is run again
        assert ours.outcomes[0] == theirs.outcomes[0]
        assert ours.requests == []


SENT_BY_CLIENT_GO = {
    "token with a blank in front": "client-go cuts it off",
    "token of blanks": "client-go cuts them off and sends an empty token",
    "token outside ASCII": "client-go sends it",
    "expiry in the past": "client-go uses it once; a credential that has ended on arrival is an error here",
}
REFUSED_ELSEWHERE = {
    "nothing": "client-go takes it for a document without a version",
    "white space": "client-go takes it for a document without a version",
    "YAML with a key given twice": "client-go takes the last one, and misses the version",
    "half a character": "client-go puts U+FFFD there, and finds no certificate",
    "token with a newline": "Go's HTTP client refuses to send it",
    "expired certificate": "client-go shows it to the server, which refuses it",
    "certificate not yet valid": "client-go shows it to the server, which refuses it",
}


@pytest.mark.parametrize("reply", BAD_REPLIES)
def test_a_bad_reply_is_refused_alike(scene: Scene, reply: str):
    """At the same stage; in words of our own where client-go's would show what the plugin printed."""
    data, _ = BAD_REPLIES[reply]
    theirs = scene.play(run_theirs, lambda plugin: plugin.raw(data))
    ours = scene.play(run_ours, lambda plugin: plugin.raw(data))
    assert ours.requests == []
    assert ours.runs == 1
    assert (ours.arguments, ours.exec_info) == (theirs.arguments, theirs.exec_info)
    assert (theirs.requests != []) == (reply in SENT_BY_CLIENT_GO)
    if reply not in SENT_BY_CLIENT_GO and reply not in REFUSED_ELSEWHERE:
        assert stage(ours.outcomes[0]) == stage(theirs.outcomes[0])


def stage(error: str) -> str:
    """Where it was refused, or the whole text of a rule about replies."""
    named = ("decoding stdout", "failed parsing client key/certificate", "exec plugin is configured to use API version")
    return next((start for start in named if error.startswith(start)), error)


@pytest.mark.parametrize("code", [1, 2, 127, 255])
def test_an_exit_code_is_named_alike(scene: Scene, code: int):
    theirs = scene.play(run_theirs, lambda plugin: plugin.fail(code, stderr="no\n"))
    ours = scene.play(run_ours, lambda plugin: plugin.fail(code, stderr="no\n"))
    assert ours == theirs


def test_a_signal_is_named_where_client_go_says_minus_one(scene: Scene):
    theirs = scene.play(run_theirs, lambda plugin: plugin.fail(-9))
    ours = scene.play(run_ours, lambda plugin: plugin.fail(-9))
    assert theirs.outcomes[0].endswith("failed with exit code -1")
    assert ours.outcomes[0].endswith("was ended by signal 9")
    assert ours.requests == theirs.requests == []


MORE_ENTRIES: dict[str, dict[str, Any]] = {
    "never interactive": {"interactiveMode": "Never"},
    "cluster information, never interactive": {"provideClusterInfo": True, "interactiveMode": "Never"},
    "no variables": {"env": None},
    "a variable twice": {"env": [{"name": "REALM", "value": "a"}, {"name": "REALM", "value": "b"}]},
    "a variable without a value": {"env": [{"name": "REALM", "value": None}]},
    "the variable of the document itself": {"env": [{"name": "KUBERNETES_EXEC_INFO", "value": "x"}]},
    "an unknown field": {"foo": "bar"},
    "arguments that look like numbers": {"args": ["1", "true"]},
}


@pytest.mark.parametrize("entry", MORE_ENTRIES)
def test_an_odd_entry_starts_the_plugin_alike(scene: Scene, entry: str):
    theirs = scene.play(run_theirs, REPLIES["token"], **MORE_ENTRIES[entry])
    ours = scene.play(run_ours, REPLIES["token"], **MORE_ENTRIES[entry])
    assert theirs.outcomes == ["200"]
    assert ours == theirs


@pytest.mark.parametrize("mode", ["IfAvailable", None])
def test_the_older_version_is_spoken_alike(scene: Scene, mode: str | None):
    entry = {"apiVersion": V1BETA1, "interactiveMode": mode}
    theirs = scene.play(run_theirs, lambda plugin: plugin.reply(token="good", api_version=V1BETA1), **entry)
    ours = scene.play(run_ours, lambda plugin: plugin.reply(token="good", api_version=V1BETA1), **entry)
    assert theirs.outcomes == ["200"]
    assert ours == theirs


BAD_ENTRIES: dict[str, dict[str, Any]] = {
    "an unknown version": {"apiVersion": "client.authentication.k8s.io/v9"},
    "no version": {"apiVersion": None},
    "an empty version": {"apiVersion": ""},
    "no mode": {"interactiveMode": None},
    "an unknown mode": {"interactiveMode": "Sometimes"},
    "no command": {"command": None},
    "an empty command": {"command": ""},
    "a variable without a name": {"env": [{"value": "x"}]},
}


@pytest.mark.parametrize("entry", BAD_ENTRIES)
def test_a_bad_entry_is_refused_alike(scene: Scene, entry: str):
    """In the same words; ours come with the place in the file."""
    theirs = scene.play(run_theirs, REPLIES["token"], **BAD_ENTRIES[entry])
    ours = scene.play(run_ours, REPLIES["token"], **BAD_ENTRIES[entry])
    assert ours.outcomes[0].endswith(": " + theirs.outcomes[0].removeprefix("invalid configuration: "))
    assert (ours.runs, ours.requests) == (theirs.runs, theirs.requests) == (0, [])


@pytest.mark.parametrize("command", ["/no/such/program", "./no-such-program", "/etc", "/etc/hostname"])
def test_what_is_no_program_is_not_run_alike(scene: Scene, command: str):
    theirs = scene.play(run_theirs, REPLIES["token"], command=command)
    ours = scene.play(run_ours, REPLIES["token"], command=command)
    assert theirs.outcomes[0].startswith("exec: fork/exec ")
    assert ours.outcomes[0].startswith("exec: executable ")
    assert ours.requests == theirs.requests == []


def test_a_credential_that_lasts_is_made_once(scene: Scene):
    theirs = scene.play(run_theirs, lambda plugin: plugin.reply(token="good", expires_in=3600), requests=3)
    ours = scene.play(run_ours, lambda plugin: plugin.reply(token="good", expires_in=3600), requests=3)
    assert theirs.runs == 1
    assert ours == theirs


def test_a_new_credential_that_is_refused_is_not_made_again_at_once(scene: Scene):
    """client-go runs the plugin after every 401; we wait, as KEP-541 asks."""
    theirs = scene.play(run_theirs, REPLIES["token that is refused"], requests=2)
    ours = scene.play(run_ours, REPLIES["token that is refused"], requests=2)
    assert ours.outcomes == theirs.outcomes == ["401", "401"]
    assert ours.requests == theirs.requests
    assert theirs.runs == 3
    assert ours.runs == 2


def test_an_older_version_than_client_go_knows(scene: Scene):
    """v1alpha1 is still spoken here, with a warning; client-go refuses it."""
    alpha = "client.authentication.k8s.io/v1alpha1"
    theirs = scene.play(run_theirs, REPLIES["token"], apiVersion=alpha)
    ours = scene.play(run_ours, lambda plugin: plugin.reply(token="good", api_version=alpha), apiVersion=alpha)
    assert theirs.outcomes == [f'exec plugin: invalid apiVersion "{alpha}"']
    assert ours.outcomes == ["200"]


@pytest.mark.parametrize("token", [None, "good"])
def test_a_certificate_is_shown_alike(scene: Scene, token: str | None):
    """With a token beside it, both are sent; each side uses the very certificate that the plugin gave."""
    leaf = scene.ca.issue_client("jane")
    theirs = scene.play(run_theirs, lambda plugin: plugin.reply(token=token, certificate=leaf), requests=2)
    ours = scene.play(run_ours, lambda plugin: plugin.reply(token=token, certificate=leaf), requests=2)
    assert [request[2] for request in theirs.requests] == [leaf.certificate.serial_number] * 2
    assert ours == theirs
