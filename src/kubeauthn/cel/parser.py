"""Tokens to a tree, macros expanded on the way.

The messages for faults are those of the ANTLR grammar that Kubernetes parses with: `syntax.py` knows which token sets
it names, and `token_reader.py` where it picks up the thread again. Here are the operators; `member_parser.py` has what
they combine, and `literal_parser.py` what that is made of.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import syntax
from .ast import Call, Literal, Node, repeated_nodes
from .limits import MAX_CODE_POINTS, MAX_DEPTH, MAX_REPEATED_NODES
from .macros import Expander, MacroKey
from .member_parser import MemberParser
from .source import Source
from .token_reader import CHOICE_CLOSERS, NoViableError, RuleFailedError

__all__ = ["parse"]

_RELATIONS = {
    "==": "_==_", "!=": "_!=_", "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "in": "@in",
}  # fmt: skip
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}


def parse(
    source: Source,
    macros: Mapping[MacroKey, Expander],
    *,
    optional_syntax: bool = True,
    escaped_identifiers: bool = True,
) -> Node | None:
    """The tree, or None when the source now holds issues."""
    if len(source.text) > MAX_CODE_POINTS:
        source.report(
            -1, f"expression code point size exceeds limit: size: {len(source.text)}, limit {MAX_CODE_POINTS}"
        )
        return None
    parser = _Parser(source, macros, optional_syntax, escaped_identifiers)
    try:
        node = parser.start()
    except _TooDeepError as error:
        source.report(-1, str(error))
        return None
    if not source.issues and parser.height > MAX_DEPTH:
        source.report(-1, "max recursion depth exceeded")
    elif not source.issues and parser.expanded and repeated_nodes(node) > MAX_REPEATED_NODES:
        source.report(-1, f"macros repeat too much of the expression: limit {MAX_REPEATED_NODES} nodes")
    return None if source.issues else node


class _TooDeepError(Exception):
    pass


class _Parser(MemberParser):
    """The highest layer: operators, by how tightly they bind."""

    def start(self) -> Node:
        node = self.expression()
        height = self.height
        try:
            self.expect("EOF")
        except RuleFailedError:
            pass
        self.height = height
        return node

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH or self.relations > MAX_DEPTH or self.calculations > MAX_DEPTH:
            raise _TooDeepError(f"expression recursion limit exceeded: {MAX_DEPTH}")
        node = self.logical("||")
        if self.tokens[self.at][0] == "?":
            operator = self.advance()
            height = self.height
            try:
                self.closers.append(CHOICE_CLOSERS)
                try:
                    yes = self.logical("||")
                finally:
                    self.closers.pop()
                height = max(height, self.height)
                self.expect(":")
                no = self.expression()
            except RuleFailedError:
                return self.recover()
            self.height = 1 + max(height, self.height)
            node = self.call_or_macro(operator[2], "_?_:_", [node, yes, no])
        self.depth -= 1
        return node

    def logical(self, operator: str) -> Node:
        node = self.logical("&&") if operator == "||" else self.relation()
        if self.tokens[self.at][0] != operator:
            return node
        terms = [node]
        height = self.height
        operators: list[int] = []
        while self.tokens[self.at][0] == operator:
            operators.append(self.advance()[2])
            terms.append(self.logical("&&") if operator == "||" else self.relation())
            height = max(height, self.height)
        self.height = height
        # cel-go makes a balanced tree of the terms; its root is the operator in the middle
        return Call(operators[len(operators) // 2], f"_{operator}_", terms)

    def relation(self) -> Node:
        self.relations += 1
        node = self.sum()
        while (function := _RELATIONS.get(self.tokens[self.at][0])) is not None:
            height = self.height
            offset = self.advance()[2]
            self.relations += 1
            right = self.sum()
            self.relations -= 1
            self.height = 1 + max(height, self.height)
            node = self.call_or_macro(offset, function, [node, right])
        self.relations -= 1
        return node

    def sum(self) -> Node:
        self.calculations += 1
        node = self.product()
        while (function := _SUMS.get(self.tokens[self.at][0])) is not None:
            height = self.height
            offset = self.advance()[2]
            self.calculations += 1
            right = self.product()
            self.calculations -= 1
            self.height = 1 + max(height, self.height)
            node = self.call_or_macro(offset, function, [node, right])
        self.calculations -= 1
        return node

    def product(self) -> Node:
        node = self.unary()
        while (function := _PRODUCTS.get(self.tokens[self.at][0])) is not None:
            height = self.height
            offset = self.advance()[2]
            self.calculations += 1
            right = self.unary()
            self.calculations -= 1
            self.height = 1 + max(height, self.height)
            node = self.call_or_macro(offset, function, [node, right])
        return node

    def unary(self) -> Node:
        start = self.tokens[self.at][2]
        try:
            return self.operand()
        except NoViableError:
            if self.nesting:
                raise
            self.recovering = self.closers[-1] is CHOICE_CLOSERS
            self.depth = self.relations = self.calculations = 1
            return Literal(start, None)

    def operand(self) -> Node:
        self.height = 0
        kind = self.tokens[self.at][0]
        if kind == "IDENT" or kind == "STRING":
            return self.member()
        try:
            self.sync(syntax.EXPRESSION_START)
        except RuleFailedError:
            return self.recover()
        kind, _, offset = self.tokens[self.at]
        if kind == "-" and self.gives_up_at_minus():
            return Literal(offset, None)
        # one minus before a number belongs to the number
        if kind == "!" or (kind == "-" and self.tokens[self.at + 1][0] not in ("INT", "FLOAT")):
            count = 0
            while self.tokens[self.at][0] == kind:
                self.advance()
                count += 1
            if kind == "!" and not self.after_nots():
                return Literal(offset, None)
            node = self.member()
            return self.call_or_macro(offset, f"{kind}_", [node]) if count % 2 else node
        return self.member()

    def gives_up_at_minus(self) -> bool:
        """Whether nothing that can be negated follows: ANTLR gives the operand up before the last minus, which then is
        taken for a subtraction."""
        last = self.at
        while self.tokens[last + 1][0] == "-":
            last += 1
        after = self.tokens[last + 1]
        if after[0] in syntax.PRIMARY_START:
            return False
        while self.at < last:
            self.advance()
        self.fault(after[2], syntax.no_viable(self.source, self.tokens[last][2], after))
        return True

    def after_nots(self) -> bool:
        """A token that cannot follow `!` is one too many, whatever comes behind it. False at the end of the text."""
        token = self.tokens[self.at]
        if token[0] in syntax.EXPRESSION_START:
            return True
        expected = syntax.name_set(syntax.EXPRESSION_START)
        self.fault(token[2], f"extraneous input {syntax.show(token)} expecting {expected}")
        if token[0] == "EOF":
            return False
        self.recover()
        return True
