"""What takes a kubectl's connection over, case by case: whichever kubectl, way and server it is.

The pod answers as `kubeauthn.testing.ApiServer` and the stub kubelet do: `cat`, `produce`, `fail`, an echo on 8080.
"""

from __future__ import annotations

import os
import pty
import select
import socket
import subprocess
from collections.abc import Callable

SECONDS = 60


class Kubectl:
    """A kubectl with the words that lead it to its server. `asked` waits until something is asked of the pod."""

    def __init__(self, words: list[str], asked: Callable[[], None]) -> None:
        self.words = words
        self.wait_until_asked = asked

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([*self.words, *words], input=stdin, capture_output=True, timeout=SECONDS)


def exec_carries_input_and_output(kubectl: Kubectl, pod: str) -> None:
    sent = b"to and fro\n" * 50_000
    done = kubectl.run("exec", "-i", pod, "--", "cat", stdin=sent)
    assert (done.returncode, done.stdout == sent) == (0, True), done.stderr


def exec_carries_much_output(kubectl: Kubectl, pod: str) -> None:
    done = kubectl.run("exec", pod, "--", "produce", "3000000")
    assert (len(done.stdout), done.returncode) == (3_000_000, 0), done.stderr


def exec_tells_the_exit_code_and_keeps_stderr_apart(kubectl: Kubectl, pod: str) -> None:
    done = kubectl.run("exec", pod, "--", "fail", "7")
    assert (done.returncode, done.stdout) == (7, b""), done.stderr
    assert b"told to fail" in done.stderr


def exec_with_a_terminal(kubectl: Kubectl, pod: str) -> None:
    ours, theirs = pty.openpty()
    command = [*kubectl.words, "exec", "-it", pod, "--", "cat"]
    running = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        kubectl.wait_until_asked()
        os.write(ours, b"typed")
        seen = b""
        while b"typed" not in seen:
            assert select.select([ours], [], [], SECONDS)[0], seen
            seen += os.read(ours, 4096)
        os.write(ours, b"\x04")
        assert running.wait(SECONDS) == 0
    finally:
        running.kill()
        running.wait()
        os.close(ours)


def attach(kubectl: Kubectl, pod: str) -> None:
    done = kubectl.run("attach", "-i", pod, stdin=b"hello\n")
    assert done.returncode == 0, done.stderr
    assert b"hello" in done.stdout


def port_forward(kubectl: Kubectl, pod: str) -> None:
    command = [*kubectl.words, "port-forward", pod, ":8080"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0) as forwarding:
        assert forwarding.stdout is not None
        try:
            assert select.select([forwarding.stdout], [], [], SECONDS)[0]
            port = int(forwarding.stdout.readline().decode().split("127.0.0.1:")[1].split(" ")[0])
            for size in (10, 10, 100_000):
                assert _round_trip(port, b"x" * size) == b"x" * size
        finally:
            forwarding.terminate()


def _round_trip(port: int, data: bytes) -> bytes:
    received = b""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.settimeout(SECONDS)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while chunk := connection.recv(65536):
            received += chunk
    return received


CASES: dict[str, Callable[[Kubectl, str], None]] = {
    case.__name__: case
    for case in (
        exec_carries_input_and_output,
        exec_carries_much_output,
        exec_tells_the_exit_code_and_keeps_stderr_apart,
        exec_with_a_terminal,
        attach,
        port_forward,
    )
}
