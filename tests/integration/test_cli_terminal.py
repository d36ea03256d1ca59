"""`check`, `explain` and what they wait for, on a pseudo-terminal: columns, colours, and a line that is taken back."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer, CertificateAuthority, Issuer

COMMAND = [sys.executable, "-m", "kubeauthn"]
LONG = "only operators of the platform and members of the security department may come to this cluster"
CONFIG = """\
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
jwt:
- issuer: {url: URL, audiences: [kubernetes]}
  claimValidationRules:
  - expression: claims.?department.orValue("") in ["platform", "security"]
    message: MESSAGE
  claimMappings:
    username: {expression: '"dex:" + claims.sub'}
    groups: {expression: 'dyn(claims.groups).map(g, "dex:" + g)'}
    extra:
    - {key: example.com/a-long-key-of-a-value, valueExpression: 'claims.?note.orValue("")'}
"""
CLAIMS = '{"sub": "jane", "groups": ["developers", "readers", "writers"], "note": "NOTE"}'


def on_terminal(words: list[str], width: int = 80, *, stdout: bool = True, **environ: str) -> tuple[int, str]:
    """The exit code, and what the terminal got: of both streams, or of standard error alone."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *words],
        env={**os.environ, "TERM": "xterm", **environ},
        stdin=subprocess.DEVNULL,
        stdout=slave if stdout else subprocess.DEVNULL,
        stderr=slave,
    )
    os.close(slave)
    seen, end = b"", time.monotonic() + 50
    try:
        while time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                try:
                    piece = os.read(master, 65536)
                except OSError:
                    break
                seen += piece
        return process.wait(40), seen.decode().replace("\r\n", "\n")
    finally:
        process.kill()
        process.wait()
        os.close(master)


def bare(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    config, claims = tmp_path / "authn.yaml", tmp_path / "claims.json"
    config.write_text(CONFIG.replace("URL", "https://dex.example.com").replace("MESSAGE", LONG))
    claims.write_text(CLAIMS.replace("NOTE", "lorem ipsum " * 30))
    return str(config), str(claims)


@pytest.mark.parametrize("width", [80, 120])
def test_explain_fits_its_columns_into_the_terminal(width: int, files: tuple[str, str]):
    config, claims = files
    code, seen = on_terminal(["explain", config, "--claims", claims, "--show-claims"], width)
    assert code == 1
    assert "\x1b[31mrefused" in seen
    assert "\x1b[32mok" in seen
    lines = bare(seen).splitlines()
    assert [line for line in lines if len(line) > width] == []
    assert max(map(len, lines)) > width - 20, "and uses the room that there is"
    column = {line.index("is one of the configured") for line in lines if "is one of the configured" in line}
    assert column == {32}, "a long name of an extra value does not push the column away"
    joined = " ".join(line.strip() for line in lines)
    assert LONG in joined


@pytest.mark.parametrize("words", [["--help"], ["signer", "--help"], ["check", "--help"]])
def test_help_fits_into_the_terminal(words: list[str]):
    code, seen = on_terminal(words, 80)
    assert code == 0
    lines = bare(seen).splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert max(map(len, lines)) > 70, "and uses the room that there is"


def test_the_same_in_a_pipe_is_plain_and_not_folded(files: tuple[str, str]):
    config, claims = files
    result = subprocess.run(
        [*COMMAND, "explain", config, "--claims", claims], capture_output=True, text=True, timeout=50
    )
    assert "\x1b" not in result.stdout
    assert f"failed: {LONG}\n" in result.stdout


def test_check_folds_texts_and_hints_but_not_the_line_that_a_mark_points_into(tmp_path: Path):
    expression = "claims.groups.map(g, g + " + '"-' + "x" * 90 + '")'
    config = tmp_path / "authn.yaml"
    config.write_text(
        CONFIG.replace("URL", "https://dex.example.com").replace('dyn(claims.groups).map(g, "dex:" + g)', expression)
    )
    code, seen = on_terminal(["check", str(config)], 80)
    lines = bare(seen).splitlines()
    assert code == 1
    assert f"     | {expression}" in lines
    assert "     | ......^" in lines
    texts = [line for line in lines if not line.startswith("     |") and "x" * 20 not in line]
    assert [line for line in texts if len(line) > 80 and str(tmp_path) not in line] == []
    assert any(line.startswith("    hint: ") for line in lines)


# -- waiting -------------------------------------------------------------------------------------


class Slow:
    """Takes connections and says nothing for a while; then it hangs up."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._socket.getsockname()[1]}"
        self._over = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while not self._over.is_set():
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._over.wait(self._seconds)
            connection.close()

    def __enter__(self) -> Slow:
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._socket.close()


def test_an_issuer_that_takes_long_is_named_while_it_does(tmp_path: Path):
    config = tmp_path / "authn.yaml"
    with Slow(2.5) as slow:
        config.write_text(CONFIG.replace("URL", slow.url))
        code, seen = on_terminal(["check", str(config), "--online"], stdout=False)
        plain = subprocess.run([*COMMAND, "check", str(config), "--online"], capture_output=True, timeout=50)
    assert code == 4
    assert f"\r\x1b[Kwaiting for {slow.url} (1 s)" in seen
    assert seen.endswith("\r\x1b[K"), "and the line is taken back"
    assert plain.stderr == b""


def test_explain_says_whose_keys_it_waits_for(tmp_path: Path):
    config, token = tmp_path / "authn.yaml", tmp_path / "t.jwt"
    with Slow(2.5) as slow, Issuer() as issuer:
        config.write_text(CONFIG.replace("URL", slow.url))
        token.write_text(issuer.token("jane", audience="kubernetes", iss=slow.url))
        code, seen = on_terminal(["explain", str(config), "--token-file", str(token), "--online"], stdout=False)
    assert code == 4
    assert f"waiting for the keys of {slow.url} (1 s)" in seen
    assert "\r\x1b[Kerror: keys of issuer" in seen


def test_what_is_quick_is_not_mentioned(files: tuple[str, str]):
    assert on_terminal(["check", files[0]], stdout=False) == (0, "")


def test_a_narrow_terminal_gets_a_line_that_can_be_taken_back(tmp_path: Path):
    config = tmp_path / "authn.yaml"
    with Slow(2.2) as slow:
        config.write_text(CONFIG.replace("URL", slow.url + "/a/rather/long/path/of/an/issuer"))
        _, seen = on_terminal(["check", str(config), "--online"], 40, stdout=False)
    drawn = [line for line in seen.split("\r\x1b[K") if line.startswith("waiting")]
    assert drawn
    assert all(len(line) == 39 and line.endswith("…") for line in drawn)


def test_a_request_that_waits_for_approval_counts_the_seconds(tmp_path: Path):
    key = tmp_path / "key.pem"
    key.write_bytes(CertificateAuthority().issue_client("jane").key_pem)
    key.chmod(0o600)
    settings = {"pathKey": key, "pathCert": tmp_path / "cert.pem", "allowPlainKey": "true"}
    words = ["signer", "request-certificate", "--signer", "file", "--name", "jane"]
    for name, value in settings.items():
        words += ["--set", f"{name}={value}"]
    with ApiServer(tokens={"t0ken": "jane"}) as server:
        config = server.write_kubeconfig(tmp_path / "config", user={"token": "t0ken"})
        words += ["--kubeconfig", str(config)]

        def approve() -> None:
            server.wait_for(lambda: server.objects("certificatesigningrequests"), 40)
            time.sleep(2.5)
            server.settle_certificate_requests()

        thread = threading.Thread(target=approve)
        thread.start()
        code, seen = on_terminal(words, stdout=False)
        thread.join()
    assert code == 0, seen
    assert "waiting: for the approval of kubeauthn-" in seen
    assert re.search(r"\r\x1b\[Kwaiting for somebody who approves kubeauthn-\S+ \(1 s\)", seen)
    assert seen.endswith("\r\x1b[K")


def test_a_login_in_the_browser_counts_the_time_that_is_left_down(own_environment: Path):
    words = [
        "plugin",
        "oidc",
        "--login",
        "--client-id=kubernetes",
        "--no-browser",
        "--listen=127.0.0.1:0",
        "--timeout=4",
    ]
    with Issuer() as issuer:
        authority = own_environment / "ca.pem"
        authority.write_bytes(issuer.ca.certificate_pem)
        words += [f"--issuer-url={issuer.url}", f"--certificate-authority={authority}"]
        code, seen = on_terminal(words, stdout=False)
    assert code != 0
    assert "log in at http://127.0.0.1:" in seen
    left = [int(second) for second in re.findall(r"\rwaiting for the login, 0:0(\d) left ", seen)]
    assert len(left) > 1
    assert left == sorted(left, reverse=True)
    assert "\r\x1b[K" in seen, "and the line is taken back"
    assert "nobody logged in within 4 s" in seen
