"""The auth-provider `externalSigner`: a kubeconfig, an executable, and what comes of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509.oid import ExtendedKeyUsageOID

from kubeauthn._core.kubeconfig.model import AuthProvider
from kubeauthn._core.signerwire import SigningAlgorithm
from kubeauthn.client import PluginPolicy, connect, open_access
from kubeauthn.client.exec_source import ExecOptions
from kubeauthn.errors import (
    AuthProviderError,
    CredentialError,
    KubeconfigError,
    PluginDenied,
    PluginFailed,
    PluginNotFound,
    PluginReplyError,
    PluginTimeout,
    SigningFailed,
)
from kubeauthn.testing import ApiServer, CertificateAuthority, ScriptedPlugin
from tests.integration.signer_scene import NEW_KEY, SignerProgram, issue

SOFTHSM = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so")
URL = "/api/v1/namespaces"


class Scene:
    def __init__(self, folder: Path, server: ApiServer, ca: CertificateAuthority) -> None:
        self.folder = folder
        self.server = server
        self.ca = ca
        self.signer = SignerProgram(folder / "token", ca)
        self.config = folder / "config"
        self.use()

    def use(self, **config: Any) -> None:
        self.server.write_kubeconfig(self.config, self.signer.user(**config))

    def get(self, **options: Any) -> int:
        with connect(kubeconfig=str(self.config), **options) as api:
            return int(api.get(URL).status_code)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    ca = CertificateAuthority()
    with ApiServer(ca=ca) as server:
        yield Scene(tmp_path, server, ca)


def test_a_request_with_the_signers_certificate(scene: Scene):
    scene.use(slotId="0", pin="123456")
    assert scene.get() == 200
    assert [each.user for each in scene.server.requests] == ["jane"]
    certificate, sign = scene.signer.requests
    configuration = {"pathExec": str(scene.signer.path), "slotId": "0", "pin": "123456"}
    assert certificate == {
        "apiVersion": "external-signer.authentication.k8s.io/v1alpha1",
        "kind": "CertificateRequest",
        "configuration": configuration,
    }
    assert (sign["kind"], sign["configuration"]) == ("SignRequest", configuration)
    assert (sign["signerOptsType"], sign["signerOpts"]) == ("crypto.Hash", "5")


def test_rsa_is_asked_for_as_the_design_says(scene: Scene):
    scene.signer = SignerProgram(scene.folder / "rsa", scene.ca, "rsa")
    scene.use()
    assert scene.get() == 200
    sign = scene.signer.requests[1]
    assert (sign["signerOptsType"], sign["signerOpts"]) == ("*rsa.PSSOptions", '{"SaltLength":-1,"Hash":5}')


def test_the_certificate_is_fetched_once(scene: Scene):
    for _ in range(3):
        assert scene.get() == 200
    assert scene.signer.count("CertificateRequest") == 1


def test_a_path_is_relative_to_its_file(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    scene.server.write_kubeconfig(
        scene.config, {"auth-provider": {"name": "externalSigner", "config": {"pathExec": "./token/signer"}}}
    )
    monkeypatch.chdir("/")
    assert scene.get() == 200


def test_a_refused_certificate_is_fetched_again(scene: Scene):
    with connect(kubeconfig=str(scene.config)) as api:
        assert api.get(URL).status_code == 200
        old = scene.server.requests[0].certificate_serial
        assert old is not None
        scene.signer.show(issue(scene.ca, scene.signer.key, user="jane"))
        scene.server.revoke_serial(old)
        assert api.get(URL).status_code == 200
    assert scene.signer.count("CertificateRequest") == 2


@pytest.mark.parametrize("value", [0, True, ["x"]])
def test_a_value_that_is_no_string_is_a_fault(scene: Scene, value: object):
    scene.use(slotId=value)
    with pytest.raises(KubeconfigError, match="slotId"):
        scene.get()


def test_without_a_path(scene: Scene):
    scene.server.write_kubeconfig(scene.config, {"auth-provider": {"name": "externalSigner", "config": {}}})
    with pytest.raises(AuthProviderError, match="the externalSigner auth-provider needs pathExec"):
        scene.get()


def test_the_policy_covers_it(scene: Scene):
    with pytest.raises(PluginDenied):
        scene.get(policy=PluginPolicy(mode="DenyAll"))
    with pytest.raises(PluginDenied):
        scene.get(policy=PluginPolicy(mode="Allowlist", allowlist=("/usr/bin/other",)))
    assert scene.signer.requests == []
    assert scene.get(policy=PluginPolicy(mode="Allowlist", allowlist=(str(scene.signer.path),))) == 200


def test_not_installed(scene: Scene):
    scene.signer.path.unlink()
    with pytest.raises(PluginNotFound, match="external signer: "):
        scene.get()


def reply(kind: str = "CertificateResponse", version: str = "v1alpha1", **fields: Any) -> str:
    version = f"external-signer.authentication.k8s.io/{version}"
    return json.dumps({"apiVersion": version, "kind": kind, **fields})


BAD_CERTIFICATES = {
    "exits": ({"exit": 3}, PluginFailed, "failed with exit code 3"),
    "hangs": ({"hang": 60}, PluginTimeout, "did not answer within"),
    "prints nothing": ({"print": ""}, PluginReplyError, "printed nothing"),
    "prints no JSON": ({"print": "{"}, PluginReplyError, "not a JSON document"),
    "too much": ({"print": "x" * (2 << 20)}, PluginReplyError, "printed more than"),
    "another kind": ({"print": reply("SignResponse")}, PluginReplyError, "expected kind CertificateResponse"),
    "another version": ({"print": reply(version="v9", certificate="")}, PluginReplyError, "expected apiVersion"),
    "no certificate": ({"print": reply()}, PluginReplyError, "certificate must be a string, got none"),
    "not base64": ({"print": reply(certificate="?")}, PluginReplyError, "certificate is not base64"),
    "not DER": ({"print": reply(certificate="aGVsbG8=")}, PluginReplyError, "neither DER nor PEM"),
}


@pytest.mark.parametrize(("step", "error", "text"), BAD_CERTIFICATES.values(), ids=BAD_CERTIFICATES)
def test_a_bad_answer_for_the_certificate(scene: Scene, step: dict[str, Any], error: type[CredentialError], text: str):
    scene.signer.say(CertificateRequest=step)
    with pytest.raises(error, match=text):
        scene.get(plugin_timeout=0.5 if "hang" in step else 30.0)
    assert scene.server.requests == []


BAD_VALIDITY = {
    "expired": ({"ends": timedelta(hours=-1)}, "the signer's certificate expired at"),
    "not yet valid": ({"starts": timedelta(hours=1)}, "is not valid before"),
    "not for clients": ({"usage": ExtendedKeyUsageOID.SERVER_AUTH}, "not for client authentication"),
}


@pytest.mark.parametrize(("made", "text"), BAD_VALIDITY.values(), ids=BAD_VALIDITY)
def test_a_certificate_that_cannot_be_used(scene: Scene, made: dict[str, Any], text: str):
    scene.signer.show(issue(scene.ca, scene.signer.key, **made))
    with pytest.raises(PluginReplyError, match=text):
        scene.get()
    assert scene.signer.count("SignRequest") == 0


BAD_SIGNATURES = {
    "exits": ({"exit": 5}, "failed with exit code 5"),
    "hangs": ({"hang": 60}, "did not answer within"),
    "over another digest": ({"digest": 1}, "does not verify with the certificate's public key"),
    "raw": ({"raw": 1}, "raw form"),
    "cut": ({"cut": -1}, "does not verify"),
    "not base64": ({"print": reply("SignResponse", signature="?")}, "signature is not base64"),
    "empty": ({"print": reply("SignResponse", signature="")}, "the signature is empty"),
    "a certificate": ({"print": reply("CertificateResponse", certificate="")}, "expected kind SignResponse"),
}


@pytest.mark.parametrize(("step", "text"), BAD_SIGNATURES.values(), ids=BAD_SIGNATURES)
def test_a_bad_signature(scene: Scene, step: dict[str, Any], text: str):
    scene.signer.say(SignRequest=step)
    scene.use(pin="987654")
    with pytest.raises(SigningFailed, match=text) as caught:
        scene.get(plugin_timeout=5.0 if "hang" in step else 30.0)
    assert scene.server.requests == []
    assert "987654" not in str(caught.value) + repr(caught.value.__cause__)
    # One attempt: a token that counts wrong tries is not locked by ours.
    assert scene.signer.count("SignRequest") == 1


def test_a_certificate_for_another_key(scene: Scene):
    scene.signer.show(issue(scene.ca, NEW_KEY["p256"]()))
    with pytest.raises(SigningFailed, match="does not verify with the certificate's public key"):
        scene.get()


def test_the_first_implementations_names_and_pem(scene: Scene):
    chain = scene.ca.issue_client("other")
    pem = chain.certificate_pem
    scene.signer.key_path.write_bytes(chain.key_pem)
    text = reply("ExternalPublicKey", certificate=b64encode(pem).decode())
    scene.signer.say(CertificateRequest={"print": text})
    assert scene.get() == 200
    assert scene.server.requests[0].user == "other"


def test_a_person_is_asked_by_one_at_a_time(scene: Scene):
    from kubeauthn.client.signer_source import ExternalSigner

    # Two at once, and the second fails to make a directory that is there already.
    scene.signer.say(SignRequest={"alone": 1})
    entry = AuthProvider("externalSigner", (("pathExec", str(scene.signer.path)),))
    signer = ExternalSigner(entry, is_terminal=lambda: True)
    algorithm = SigningAlgorithm("ec", hash="sha256")
    with ThreadPoolExecutor(4) as pool:
        signatures = list(pool.map(lambda _: signer.sign(bytes(32), algorithm), range(4)))
    assert len(set(signatures)) == 4


def test_without_a_person_signatures_are_made_in_parallel(scene: Scene):
    from kubeauthn.client.signer_source import ExternalSigner

    entry = AuthProvider("externalSigner", (("pathExec", str(scene.signer.path)),))
    signer = ExternalSigner(entry, ExecOptions(seconds=20.0), is_terminal=lambda: False)
    algorithm = SigningAlgorithm("ec", hash="sha256")
    signer.sign(bytes(32), algorithm)  # until a first one was made, it is one at a time
    # Each waits for the other's request to be there: one after the other they would wait for ever.
    scene.signer.say(SignRequest={"together": 3})
    with ThreadPoolExecutor(2) as pool:
        signatures = list(pool.map(lambda _: signer.sign(bytes(32), algorithm), range(2)))
    assert len(set(signatures)) == 2


def use_exec(scene: Scene, tmp_path: Path, **signer: Any) -> None:
    plugin = ScriptedPlugin(tmp_path / "plugin")
    document = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"externalSigner": signer},
    }
    plugin.raw(json.dumps(document))
    scene.server.write_kubeconfig(scene.config, plugin.user())


def test_an_exec_plugin_names_the_signer(scene: Scene, tmp_path: Path):
    use_exec(scene, tmp_path, pathExec=str(scene.signer.path), slotId="0")
    assert scene.get() == 200
    assert scene.server.requests[0].user == "jane"
    assert scene.signer.requests[0]["configuration"]["slotId"] == "0"


def test_the_policy_covers_the_signer_of_an_exec_plugin(scene: Scene, tmp_path: Path):
    use_exec(scene, tmp_path, pathExec=str(scene.signer.path))
    with pytest.raises(PluginDenied):
        scene.get(policy=PluginPolicy(mode="Allowlist", allowlist=(str(tmp_path / "plugin"),)))
    assert scene.signer.requests == []


@pytest.mark.parametrize("signer", [{}, {"pathExec": "./signer"}, {"pathExec": 5}, {"pathExec": "x", "slotId": 0}])
def test_an_exec_plugin_names_no_usable_signer(scene: Scene, tmp_path: Path, signer: dict[str, Any]):
    use_exec(scene, tmp_path, **signer)
    with pytest.raises(PluginReplyError, match="exec plugin returned an externalSigner"):
        scene.get()


CLIENT = """
import json, os, sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
from kubeauthn.client import connect
with connect(kubeconfig=sys.argv[1]) as api:
    status = api.get("/api/v1/namespaces").status_code
with open("/proc/self/maps") as maps:
    text = maps.read()
print(json.dumps({"status": status, "opened": opened, "maps": text}))
"""


@pytest.mark.needs("softhsm2-util")
def test_the_process_that_speaks_tls_neither_reads_the_key_nor_loads_the_module(scene: Scene):
    module = next(path for path in SOFTHSM if os.path.exists(path))
    scene.signer.say(SignRequest={"module": module}, CertificateRequest={"module": module})
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, str(scene.config)], capture_output=True, timeout=60, check=True
    )
    seen = json.loads(done.stdout)
    assert seen["status"] == 200
    assert str(scene.config) in seen["opened"]
    assert not [path for path in seen["opened"] if path.startswith(str(scene.signer.folder))]
    assert "softhsm" not in seen["maps"]
    assert "libssl" in seen["maps"] or "_ssl" in seen["maps"]


def test_a_tls_alert_fetches_the_certificate_again(scene: Scene):
    from kubeauthn.client.signer_source import ExternalSigner

    access = open_access(kubeconfig=str(scene.config))
    first = access.credential()
    assert first.identity is not None
    first.identity.refused()  # type: ignore[attr-defined]
    assert access.credential() is not first
    assert isinstance(access.source._make.__self__, ExternalSigner)  # type: ignore[attr-defined]
    assert scene.signer.count("CertificateRequest") == 2


# -- the commands ---------------------------------------------------------------------------------


def kubeauthn(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubeauthn", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)


def test_the_commands_understand_it(scene: Scene):
    scene.use(pin="135790")
    config = ("--kubeconfig", str(scene.config))
    raw = kubeauthn("raw", "/api/v1/namespaces", *config)
    assert (raw.returncode, raw.stderr) == (0, "")
    whoami = kubeauthn("whoami", *config)
    assert (whoami.returncode, "jane" in whoami.stdout) == (0, True)
    credential = kubeauthn("credential", *config)
    assert credential.returncode == 0
    assert "CN=jane" in credential.stdout
    revealed = kubeauthn("credential", "--reveal", *config)
    assert revealed.returncode == 2
    assert "its key is behind an external signer" in revealed.stderr
    assert "135790" not in "".join(each.stdout + each.stderr for each in (raw, whoami, credential, revealed))


def test_doctor_warns_of_a_pin_and_never_shows_it(scene: Scene):
    scene.use(pin="135790", slotId="0")
    doctor = kubeauthn("doctor", "--kubeconfig", str(scene.config))
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert str(scene.signer.path) in doctor.stdout
    assert "pin, slotId (values not shown)" in doctor.stdout
    assert "stands in the kubeconfig" in doctor.stdout
    assert "this Python's OpenSSL takes a key from outside" in doctor.stdout
    assert "135790" not in doctor.stdout + doctor.stderr
    assert scene.signer.requests == []


def test_doctor_finds_a_signer_that_is_not_there(scene: Scene):
    scene.signer.path.unlink()
    doctor = kubeauthn("doctor", "--kubeconfig", str(scene.config))
    assert doctor.returncode != 0
    assert str(scene.signer.path) in doctor.stdout
