"""The expressions of one authenticator: that they compile, that their type is allowed, and what they say of e-mail."""

from __future__ import annotations

from kubeauthn._core.authentication.compiled import compile_claims_expression, compile_user_expression
from kubeauthn._core.authentication.faults import EXPRESSION
from kubeauthn._core.authentication.findings import Finding, internal, invalid
from kubeauthn.cel import CelError, CompileError
from kubeauthn.cel.ast import Call, Ident, Literal, Node, Select, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from kubeauthn._core.yaml_document import Path
    from kubeauthn.cel import Program

NOT_BOOL = "must evaluate to bool"
_OPTIONAL_SELECT = "_?._"


class ExpressionChecks:
    """Compiles, and remembers whether `claims.email` is used and `claims.email_verified` looked at."""

    def __init__(self, kubernetes: str) -> None:
        self._kubernetes = kubernetes
        self.uses_email = False
        self.uses_email_verified = False

    def claims(self, text: str, path: Path, *, must_be_bool: bool = False) -> Generator[Finding, None, Program | None]:
        """An expression over `claims`; one that maps may be of any type, because claims are."""
        return self._compile(compile_claims_expression, text, path, must_be_bool=must_be_bool)

    def user(self, text: str, path: Path) -> Generator[Finding, None, Program | None]:
        """A rule over `user`."""
        return self._compile(compile_user_expression, text, path, must_be_bool=True)

    def note_email(self, program: Program | None) -> None:
        self.uses_email = self.uses_email or selects_claim(program, "email")

    def note_email_verified(self, program: Program | None) -> None:
        self.uses_email_verified = self.uses_email_verified or selects_claim(program, "email_verified")

    def _compile(
        self, compiler: Callable[[str, str], Program], text: str, path: Path, *, must_be_bool: bool
    ) -> Generator[Finding, None, Program | None]:
        try:
            program = compiler(text, self._kubernetes)
        except CompileError as error:
            detail = str(error)
            if error.output_type is None:
                yield invalid(path, text, f"compilation failed: {detail}", EXPRESSION)
            elif must_be_bool and str(error.output_type) != "bool":
                yield invalid(path, text, NOT_BOOL, EXPRESSION)
            else:
                yield internal(path, detail, EXPRESSION)
            return None
        except CelError as error:
            yield internal(path, str(error), EXPRESSION)
            return None
        if must_be_bool and str(program.output_type) != "bool":
            yield invalid(path, text, NOT_BOOL, EXPRESSION)
            return None
        return program


def selects_claim(program: Program | None, claim: str) -> bool:
    """Whether `claims.<claim>` or `claims.?<claim>` stands anywhere in the expression; `claims["…"]` does not count."""
    return program is not None and any(_selects(node, claim) for node in walk(program.ast))


def _selects(node: Node, claim: str) -> bool:
    if isinstance(node, Select):
        return node.field == claim and _is_claims(node.operand)
    if isinstance(node, Call) and node.function == _OPTIONAL_SELECT and node.target is None and len(node.args) == 2:
        operand, name = node.args
        return _is_claims(operand) and isinstance(name, Literal) and name.value == claim
    return False


def _is_claims(node: Node) -> bool:
    return isinstance(node, Ident) and node.name == "claims"
