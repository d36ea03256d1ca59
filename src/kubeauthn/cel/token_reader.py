"""Going through tokens, and what happens at one that does not fit.

ANTLR, with which Kubernetes parses, drops a token too many, imagines one that is missing, or gives up a rule and skips
to a token that some rule around it waits for. The messages tell which, so the same is done here.
"""

from __future__ import annotations

from . import syntax
from .ast import Literal, Node
from .lexer import Token, tokenize
from .source import Source

__all__ = ["CHOICE_CLOSERS", "MAP_CLOSERS", "NoViableError", "RuleFailedError", "TokenReader"]


MAP_CLOSERS = (",", "}")
CHOICE_CLOSERS = (":", "between ? and :")
"""Unlike a key, which ends at a colon too, what stands there is no whole expression: no `?` follows it."""


class NoViableError(Exception):
    """No choice fits what lies ahead. Everything up to the outermost operand is given up.

    `before` is what had been read of the operand that failed.
    """

    def __init__(self, before: Node | None) -> None:
        super().__init__()
        self.before = before


class RuleFailedError(Exception):
    """A grammar rule met a token it has no place for; the rule's caller goes on where it can."""


class TokenReader:
    """The tokens of a source, and where we are in them."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = tokenize(source)
        self.at = 0
        self.nesting = 0  # brackets that are open
        self.recovering = False  # one message per fault: silent until a token fits again
        self.closers: list[tuple[str, ...]] = [("EOF",)]  # what may end each expression we are inside of

    def advance(self) -> Token:
        token = self.tokens[self.at]
        if token[0] != "EOF":
            self.at += 1
        self.recovering = False
        return token

    def fault(self, offset: int, message: str) -> None:
        if not self.recovering:
            self.recovering = True
            after = min(self.at + 1, len(self.tokens) - 1)
            self.source.report_syntax(offset, message, self.tokens[after][2])

    def expect(self, kind: str) -> Token:
        """This token; or, as ANTLR repairs: one token too many, or this one missing."""
        token = self.tokens[self.at]
        if token[0] == kind:
            return self.advance()
        name, shown = syntax.name(kind), syntax.show(token)
        if token[0] != "EOF" and self.tokens[self.at + 1][0] == kind:
            self.fault(token[2], f"extraneous input {shown} expecting {name}")
            self.at += 1
            return self.advance()
        if kind != "EOF" and self.can_follow(kind, token[0]):
            self.fault(token[2], f"missing {name} at {shown}")
            return (kind, "", token[2])
        self.fault(token[2], f"mismatched input {shown} expecting {name}")
        raise RuleFailedError

    def can_follow(self, kind: str, next_kind: str) -> bool:
        if kind == ":":
            return next_kind in syntax.EXPRESSION_START
        if kind in ")]}":
            if next_kind == "?" and self.closers[-1] is CHOICE_CLOSERS:
                return False
            return next_kind in syntax.AFTER_MEMBER or next_kind in self.closers[-1]
        return False

    def sync(self, allowed: frozenset[str]) -> bool:
        """Before a choice: a token that fits, perhaps behind one too many (then True); else the rule fails."""
        token = self.tokens[self.at]
        if token[0] in allowed:
            return False
        if self.recovering:
            raise RuleFailedError
        expecting = syntax.name_set(allowed)
        if token[0] != "EOF" and self.tokens[self.at + 1][0] in allowed:
            self.fault(token[2], f"extraneous input {syntax.show(token)} expecting {expecting}")
            self.at += 1
            self.recovering = False
            return True
        self.fault(token[2], f"mismatched input {syntax.show(token)} expecting {expecting}")
        raise RuleFailedError

    def recover(self, extra: frozenset[str] = frozenset()) -> Node:
        """Skip to a token that something around us waits for."""
        while True:
            token = self.tokens[self.at]
            kind = token[0]
            if kind == "EOF" or kind in syntax.OPERATORS or kind in extra or any(kind in c for c in self.closers):
                return Literal(token[2], None)
            self.at += 1

    def no_choice(self, start: int, offending: Token, before: Node | None = None) -> Exception:
        """Report such a fault and skip to where things may go on."""
        self.fault(offending[2], syntax.no_viable(self.source, start, offending))
        if offending[0] in self.closers[-1]:
            return RuleFailedError()
        # having skipped something, ANTLR does not stop at what would end this level, but one level further out
        outer = self.closers[:-1]
        if outer and outer[-1] == MAP_CLOSERS:
            outer = outer[:-1]
        while True:
            kind = self.tokens[self.at][0]
            if kind == "EOF" or kind in syntax.OPERATORS or any(kind in closers for closers in outer):
                return NoViableError(before)
            self.at += 1
