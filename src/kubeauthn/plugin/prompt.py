"""Talk to the person at the terminal: `/dev/tty`, else standard input and standard error if they are one.

Standard output is the client's, so nothing here uses it. Without a terminal a question is an error that says so.
"""

from __future__ import annotations

import os

from kubeauthn._secret import Secret
from kubeauthn.errors import InteractionRequired

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TERMINAL = "/dev/tty"
LONGEST_ANSWER = 1024
NO_TERMINAL_HINT = "run it in a terminal, or take the PIN from a keyring or a file descriptor, or use the signer agent"


def ask_secret(question: str) -> Secret:
    """Ask for a PIN or passphrase; what is typed is not shown. `InteractionRequired` where there is no terminal."""
    with _Terminal(question) as terminal:
        answer = terminal.read_unseen(f"{_printable(question)}: ")
        terminal.write("\n")
    return Secret(answer)


def confirm(question: str) -> bool:
    """A question that is answered with yes or no; anything but yes is no."""
    with _Terminal(question) as terminal:
        terminal.write(f"{_printable(question)} [y/N] ")
        return terminal.read_line().strip().lower() in ("y", "yes")


def tell(message: str) -> None:
    """Say something, such as that the key waits for a touch. Where nobody listens, nothing happens."""
    line = f"{_printable(message)}\n".encode(errors="replace")
    for target in (TERMINAL, 2):
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_NOCTTY) if isinstance(target, str) else target
        except OSError:
            continue
        try:
            os.write(descriptor, line)
        except OSError:
            continue
        finally:
            if descriptor != 2:
                os.close(descriptor)
        return


class _Terminal:
    """The terminal for one question, put back as it was whatever happens."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._own: int | None = None
        self._input = self._output = -1

    def __enter__(self) -> _Terminal:
        try:
            self._own = os.open(TERMINAL, os.O_RDWR | os.O_NOCTTY)
            self._input = self._output = self._own
        except OSError:
            # The client may have started us in a session of our own, which has no /dev/tty.
            if not _is_terminal(0):
                raise InteractionRequired(
                    f"no terminal to ask for {_printable(self._question)}", hint=NO_TERMINAL_HINT
                ) from None
            self._input, self._output = 0, 2 if _is_terminal(2) else 0
        return self

    def __exit__(self, *_: object) -> None:
        if self._own is not None:
            os.close(self._own)

    def write(self, text: str) -> None:
        try:
            os.write(self._output, text.encode(errors="replace"))
        except OSError:
            raise InteractionRequired("the terminal cannot be written to", hint=NO_TERMINAL_HINT) from None

    def read_line(self) -> str:
        answer = bytearray()
        while not answer.endswith(b"\n"):
            try:
                chunk = os.read(self._input, LONGEST_ANSWER)
            except OSError:
                chunk = b""
            if not chunk:
                raise InteractionRequired(f"the terminal was closed at the question for {_printable(self._question)}")
            answer += chunk
            if len(answer) > LONGEST_ANSWER:
                raise InteractionRequired(f"the answer is longer than {LONGEST_ANSWER} bytes")
        return answer.rstrip(b"\r\n").decode("utf-8", "surrogateescape")

    def read_unseen(self, question: str) -> str:
        """Nothing typed is shown from before the question on: who answers at once is not seen either."""
        import termios

        try:
            before: list[Any] = termios.tcgetattr(self._input)
        except termios.error:
            raise InteractionRequired("the terminal cannot hide what is typed") from None
        unseen = before.copy()
        unseen[3] &= ~termios.ECHO
        try:
            termios.tcsetattr(self._input, termios.TCSAFLUSH, unseen)
            self.write(question)
            return self.read_line()
        finally:
            termios.tcsetattr(self._input, termios.TCSAFLUSH, before)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def _printable(text: str) -> str:
    """A token's label is somebody else's text, and a terminal obeys what it reads."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:400])
