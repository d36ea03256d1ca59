"""Every transcript in this folder, played against a scratch home and an API server of its own."""

from __future__ import annotations

import base64
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kubeauthn.testing import ApiServer
from tests.transcripts.transcript import Command, File, Order, matches, read

HERE = Path(__file__).parent
TRANSCRIPTS = sorted(HERE.glob("*.txt"))
SECONDS = 30


class Stage:
    """Where a transcript plays. The public methods are its orders."""

    def __init__(self, home: Path, server: ApiServer) -> None:
        self._home = home
        self._server = server
        self._secrets: list[str] = []
        (home / "bin").mkdir(parents=True)
        self._environment = {
            "HOME": str(home),
            "PATH": os.pathsep.join((str(home / "bin"), "/usr/bin", "/bin")),
            "COLUMNS": "100",
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": os.environ.get("PYTHONDONTWRITEBYTECODE", ""),
        }

    # orders

    def accept(self, token: str, user: str, groups: str = "") -> None:
        """The server knows this token. It must not be seen in any output from here on."""
        self._server.accept_token(token, user.encode().decode("unicode_escape"), groups.split(",") if groups else [])
        self.secret(token)

    def secret(self, text: str) -> None:
        """This must not be seen in any output from here on."""
        self._secrets.append(text)

    def revealed(self) -> None:
        """From here on the secrets may be seen."""
        self._secrets.clear()

    def requests(self, count: str) -> None:
        """So many requests have reached the server so far."""
        assert len(self._server.requests) == int(count), [(r.method, r.path) for r in self._server.requests]

    def users(self, *names: str) -> None:
        """Whom the server took the requests for so far; `-` is nobody."""
        assert [request.user or "-" for request in self._server.requests] == list(names)

    def answer(self, status: str) -> None:
        """The server answers with this status from here on."""
        self._server.fail(int(status))

    def certificate(self, name: str, user: str, days: str = "30") -> None:
        """NAME.crt and NAME.key in the home; with days below 0 it has expired."""
        now = datetime.now(UTC)
        end = now + timedelta(days=int(days))
        leaf = self._server.ca.issue_client(user, not_before=min(now, end) - timedelta(days=1), not_after=end)
        (self._home / f"{name}.crt").write_bytes(leaf.certificate_pem)
        (self._home / f"{name}.key").write_bytes(leaf.key_pem)
        self.secret(leaf.key_pem.decode().splitlines()[1])

    def lines(self, name: str, count: str) -> None:
        """A file in the home has so many lines; one that is not there has none."""
        path = self._home / name
        assert (len(path.read_text().splitlines()) if path.exists() else 0) == int(count)

    def entries(self, name: str, *expected: str) -> None:
        """What a directory in the home holds."""
        assert sorted(path.name for path in (self._home / name).iterdir()) == sorted(expected)

    # what else a transcript does

    def _filled(self, text: str) -> str:
        for name, value in (
            ("server", self._server.url),
            ("port", str(self._server.port)),
            ("ca", base64.b64encode(self._server.ca.certificate_pem).decode()),
            ("home", str(self._home)),
            ("python", sys.executable),
        ):
            text = text.replace("{" + name + "}", value)
        return text

    def play(self, step: File | Order | Command) -> None:
        if isinstance(step, File):
            path = self._home / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self._filled(step.text))
            path.chmod(step.mode)
        elif isinstance(step, Order):
            name, *words = step.words
            assert not name.startswith("_"), name
            getattr(self, name)(*map(self._filled, words))
        else:
            self._run(step)

    def _run(self, command: Command) -> None:
        program, *words = map(self._filled, command.words)
        environment = self._environment | {k: self._filled(v) for k, v in command.environment.items()}
        stdin = (self._home / command.stdin).read_bytes() if command.stdin else b""
        # The installed programs, beside the interpreter that runs the tests.
        result = subprocess.run(
            [str(Path(sys.executable).with_name(program)), *words],
            cwd=self._home,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=SECONDS,
        )
        stdout, stderr = result.stdout.decode(), result.stderr.decode()
        seen = f"{stdout}{stderr}"
        for secret in self._secrets:
            assert secret not in seen, "a secret was printed"
        assert "\x1b" not in seen, "an escape sequence was printed"
        assert "Traceback" not in seen
        for name, expected, actual in (("stderr", command.stderr, stderr), ("stdout", command.stdout, stdout)):
            lines = [self._filled(line) for line in expected]
            assert matches(lines, actual), f"{name} is\n{actual}\nexpected was\n" + "\n".join(lines)
        assert result.returncode == command.code, seen


def test_there_are_transcripts():
    assert len(TRANSCRIPTS) >= 8


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(path: Path, tmp_path: Path):
    with ApiServer() as server:
        stage = Stage(tmp_path / "home", server)
        for step in read(path):
            try:
                stage.play(step)
            except AssertionError as error:
                raise AssertionError(f"{path.name}:{step.line}: {error}") from None
