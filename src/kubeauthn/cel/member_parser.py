"""Members: names, calls, selects and indexes, and what they begin with."""

from __future__ import annotations

from . import syntax
from .ast import Call, Ident, Literal, Node, Select
from .literal_parser import LiteralParser
from .macros import MacroError
from .token_reader import NoViableError, RuleFailedError

__all__ = ["RESERVED", "MemberParser"]

RESERVED = frozenset((
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "package", "namespace", "null", "return", "true", "var", "void", "while",
))  # fmt: skip


class MemberParser(LiteralParser):
    """The layer above literals."""

    def member(self) -> Node:
        start = self.tokens[self.at][2]
        node = self.primary()
        try:
            while True:
                kind, _, offset = self.tokens[self.at]
                if kind == ".":
                    node = self.dot(node, offset)
                elif kind == "[":
                    node = self.index(node, offset)
                else:
                    return node
        except RuleFailedError:
            self.recover()
            return Literal(start, None)

    def dot(self, node: Node, offset: int) -> Node:
        height = self.height
        kind, text, where = self.tokens[self.at + 1]
        if kind == "IDENT":
            self.advance()
            self.advance()
            open_kind, _, open_offset = self.tokens[self.at]
            if open_kind != "(":
                self.height = height + 1
                return Select(offset, node, text)
            args = self.arguments()
            self.height = 1 + max(height, self.height)
            return self.call_or_macro(open_offset, text, args, node)
        if kind == "ESC":
            self.advance()
            self.advance()
            self.height = height + 1
            return Select(offset, node, self.escaped(text, where))
        if kind == "?":
            self.advance()
            self.advance()
            kind, text, where = self.tokens[self.at]
            try:
                if self.sync(syntax.IDENTIFIERS):
                    kind, text, where = self.tokens[self.at]
            except RuleFailedError:
                self.source.report(where, "unsupported ident kind")
                raise
            self.advance()
            self.height = height + 1
            if not self.optional_syntax:
                self.source.report(offset, "unsupported syntax '.?'")
            field = text if kind == "IDENT" else self.escaped(text, where)
            return Call(offset, "_?._", [node, Literal(where, field)])
        self.at += 1
        raise self.no_choice(offset, self.tokens[self.at], node)

    def index(self, node: Node, offset: int) -> Node:
        height = self.height
        self.advance()
        self.sync(syntax.INDEX_START)
        optional = self.tokens[self.at][0] == "?"
        if optional:
            self.advance()
            if not self.optional_syntax:
                self.source.report(offset, "unsupported syntax '[?'")
        key = self.nested("]")
        height = 1 + max(height, self.height)
        self.expect("]")
        self.height = height
        return self.call_or_macro(offset, "_[?_]" if optional else "_[_]", [node, key])

    def primary(self) -> Node:
        self.height = 0
        kind, _, offset = self.tokens[self.at]
        try:
            if kind == "IDENT":
                return self.name("", offset)
            self.sync(syntax.PRIMARY_START)
            kind, _, offset = self.tokens[self.at]
            if kind == "IDENT":
                return self.name("", offset)
            if kind in ".-" and self.tokens[self.at + 1][0] not in (("IDENT",) if kind == "." else ("INT", "FLOAT")):
                self.at += 1
                raise self.no_choice(offset, self.tokens[self.at])
            if kind == ".":
                self.advance()
                return self.name(".", offset)
            if kind == "(":
                self.advance()
                node = self.nested(")")
                height = self.height
                self.expect(")")
                self.height = height
                return node
            if kind == "[":
                return self.list_literal()
            if kind == "{":
                return self.map_literal()
            return self.literal(offset)
        except RuleFailedError:
            return self.recover(syntax.SUFFIXES)

    def name(self, dot: str, offset: int) -> Node:
        if self.begins_struct():
            return self.struct(dot)
        _, text, where = self.advance()
        if self.tokens[self.at][0] == "(":
            open_offset = self.tokens[self.at][2]
            try:
                args = self.arguments()
            except NoViableError as error:
                if text == "has" and isinstance(error.before, Ident):  # its argument is looked at all the same
                    self.source.report(error.before.offset, "invalid argument to has() macro")
                raise
            if text in RESERVED:
                self.source.report(offset, f"reserved identifier: {text}")
                return Literal(offset, None)
            return self.call_or_macro(open_offset, dot + text, args)
        if text in RESERVED:
            self.source.report(offset, f"reserved identifier: {text}")
            return Literal(offset, None)  # no name, so no variable of a macro either
        return Ident(where, dot + text)

    def begins_struct(self) -> bool:
        tokens, at = self.tokens, self.at + 1
        while tokens[at][0] == "." and tokens[at + 1][0] == "IDENT":
            at += 2
        return tokens[at][0] == "{"

    def arguments(self) -> list[Node]:
        self.advance()
        if self.tokens[self.at][0] == ")":
            self.advance()
            return []
        if self.sync(syntax.ARGUMENT_START) and self.tokens[self.at][0] == ")":
            self.advance()
            return []
        args: list[Node] = []
        height = 0
        while True:
            args.append(self.nested(",", ")"))
            height = max(height, self.height)
            if self.tokens[self.at][0] != ",":
                break
            self.advance()
        self.expect(")")
        self.height = height
        return args

    def call_or_macro(self, offset: int, function: str, args: list[Node], target: Node | None = None) -> Node:
        macros = self.macros
        expander = macros.get((function, len(args), target is not None))
        if expander is None:
            expander = macros.get((function, -1, target is not None))
        if expander is not None:
            try:
                expanded = expander(offset, target, args)
            except MacroError as error:
                self.source.report(error.offset, error.message)
                return Literal(error.offset, None)
            if expanded is not None:
                self.expanded = True
                return expanded
        return Call(offset, function, args, target)
