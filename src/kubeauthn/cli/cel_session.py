"""Expressions tried one after another on the same data."""

from __future__ import annotations

import json

from kubeauthn.cli import failure
from kubeauthn.cli.cel_value import shown
from kubeauthn.cli.text import LONGEST_SHOWN, aligned, escaped
from kubeauthn.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn.cel import Environment
    from kubeauthn.cli.world import World

PROMPT = "cel> "
LONGEST_VALUE = 20_000
"""Of a value only so much is shown as text; --output json has all of it."""
_OTHER_TYPES = {
    "claims": "the types differ when it runs: a claim's number is a double (1.0, not 1), and claims itself has no size",
    "user": "the types differ when it runs",
}
WORDS = """\
:claims JSON   use these claims (or :user JSON, where it was started with --user)
:type EXPR     only the type
:help          this
:quit          end (so does the end of the input)
"""


class Session:
    def __init__(self, world: World, environment: Environment, variable: str) -> None:
        self._world = world
        self._environment = environment
        self._variable = variable
        self._data: object = {}
        self.as_json = False
        self.with_python = False

    def use(self, text: str, origin: str) -> None:
        """The claims or the user to try expressions on."""
        from kubeauthn.cel import CelError, kubernetes

        try:
            if self._variable == "claims":
                self._data = kubernetes.decode_claims(text)
                return
            self._data = json.loads(text)
        except (CelError, ValueError, RecursionError):
            from kubeauthn.cli.claims_text import json_fault

            raise UsageError(f"{origin} holds no JSON object", hint=json_fault(text) or None) from None
        if not isinstance(self._data, dict):
            raise UsageError(f"{origin} holds no JSON object")

    def try_out(self, text: str, *, only_type: bool = False) -> int:
        """0 with a value, 1 with a fault."""
        from kubeauthn.cel import CelError, CompileError
        from kubeauthn.cel.typed_json import to_typed_json

        answer: dict[str, Any] = {"version": 1, "expression": text}
        try:
            program = self._environment.compile(text)
            answer["type"] = str(program.output_type)
            if self.with_python:
                answer["python"] = program.python_source
            if not only_type:
                value, cost = program.evaluate({self._variable: self._data})
                answer |= {"value": to_typed_json(value), "cost": cost}
        except CompileError as error:
            answer["faults"] = [
                {"line": issue.line, "column": issue.column, "message": issue.message} for issue in error.issues
            ]
            answer["error"] = str(error)
        except CelError as error:
            answer["error"] = str(error)
        self._tell(answer)
        return failure.NO if "error" in answer else failure.YES

    def read_lines(self) -> int:
        """Each line an expression, or a word of its own. The exit code says whether all had a value."""
        from_a_person = self._world.stdin.isatty()
        if from_a_person:
            _remember_lines()
            self._world.say("CEL as Kubernetes' structured authentication has it; :help lists the words, :quit ends")
        worst = failure.YES
        while (line := self._next_line(from_a_person)) is not None:
            if line in (":quit", ":q"):
                break
            worst = max(worst, self._line(line))
        return failure.YES if from_a_person else worst

    def _line(self, line: str) -> int:
        word, _, rest = line.partition(" ")
        if not line:
            return failure.YES
        if word == ":help":
            self._world.stdout.write(WORDS)
        elif word == f":{self._variable}":
            try:
                self.use(rest, "the line")
            except UsageError as error:
                self._world.complain("error", str(error))
                return failure.NO
        elif word == ":type":
            return self.try_out(rest, only_type=True)
        elif word.startswith(":"):
            self._world.complain("error", f"{word} is no word here; :help lists them")
            return failure.NO
        else:
            return self.try_out(line)
        return failure.YES

    def _next_line(self, from_a_person: bool) -> str | None:
        if from_a_person:
            try:
                return input(PROMPT).strip()
            except EOFError:
                self._world.say()
                return None
        line = self._world.stdin.readline()
        return line.strip() if line else None

    def _tell(self, answer: dict[str, Any]) -> None:
        if self.as_json:
            self._world.say(json.dumps(answer, ensure_ascii=False, indent=2))
            return
        if "python" in answer:
            self._world.stdout.write(answer["python"].rstrip("\n") + "\n\n")
        for fault in answer.get("faults", ()):
            self._world.complain("error", f"line {fault['line']}, column {fault['column']}: {fault['message']}")
            self._world.stderr.write(_pointed_at(answer["expression"], fault["line"], fault["column"]))
            self._hint(fault["message"])
        if "error" in answer:
            if not answer.get("faults"):
                self._world.complain("error", answer["error"])
                self._hint(answer["error"])
            return
        rows = [("type", answer["type"])]
        if "value" in answer:
            rows = [("value", escaped(shown(answer["value"]), LONGEST_VALUE)), *rows, ("cost", str(answer["cost"]))]
        for line in aligned(rows):
            self._world.say(line)

    def _hint(self, message: str) -> None:
        from kubeauthn._core.authentication.fault_hints import text_hint

        if message.startswith("no such key") and not self._data:
            name = self._variable
            hint = f"nothing was given to try it on: --{name} FILE, or where lines are read :{name} JSON"
        elif message.startswith("no such overload"):
            hint = _OTHER_TYPES[self._variable]
        else:
            hint = text_hint(message)
        if hint:
            self._world.complain("hint", hint)


def _pointed_at(text: str, line: int, column: int) -> str:
    """The line of the expression with a caret below the place, where it fits on a screen."""
    plain = (text.split("\n") + [""] * line)[line - 1]
    shown_line = escaped(plain, 2 * LONGEST_SHOWN)
    if len(shown_line) > LONGEST_SHOWN or column > len(plain) + 1:
        return ""
    return f"       {shown_line}\n       {' ' * _columns(escaped(plain[: max(column - 1, 0)]))}^\n"


def _columns(text: str) -> int:
    """How wide a terminal shows it: some characters take two columns, some none."""
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def _remember_lines() -> None:
    """Arrow keys and history, where the system has them."""
    try:
        import readline  # noqa: F401
    except ImportError:
        return
