"""Literals: numbers and texts, and lists, maps and objects with their members."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

from . import syntax
from .ast import Entry, Field, ListLiteral, Literal, MapLiteral, Node, Struct
from .literals import literal_value
from .macros import Expander, MacroKey
from .source import Source
from .token_reader import MAP_CLOSERS, RuleFailedError, TokenReader

__all__ = ["LiteralParser"]


class LiteralParser(TokenReader, ABC):
    """The lowest of the three layers of the parser. What stands inside brackets, the highest one reads."""

    def __init__(
        self, source: Source, macros: Mapping[MacroKey, Expander], optional_syntax: bool, escaped_identifiers: bool
    ) -> None:
        super().__init__(source)
        self.macros = macros
        self.optional_syntax = optional_syntax
        self.escaped_identifiers = escaped_identifiers
        self.expanded = False  # whether there was a macro
        self.depth = 0  # of nested expressions
        self.relations = 0  # and of the grammar's two rules that nest on their right
        self.calculations = 0
        self.height = 0  # of the node returned last, counted as cel-go's visitor counts its recursion

    @abstractmethod
    def expression(self) -> Node:
        """A whole expression."""

    def nested(self, *closers: str) -> Node:
        self.closers.append(closers)
        self.nesting += 1
        try:
            return self.expression()
        finally:
            self.nesting -= 1
            self.closers.pop()

    def list_literal(self) -> Node:
        offset = self.advance()[2]
        elements: list[Node] = []
        optional: set[int] = set()
        height = 0
        self.sync(syntax.LIST_START)
        while self.tokens[self.at][0] not in ("]", ","):
            if self.tokens[self.at][0] == "?":
                if not self.optional_syntax:
                    self.source.report(self.tokens[self.at][2], "unsupported syntax '?'")
                self.advance()
                optional.add(len(elements))
            elements.append(self.nested(",", "]"))
            height = max(height, self.height)
            # a comma with no element behind it is the one that may end the list
            if self.sync(syntax.LIST_NEXT) or self.tokens[self.at + 1][0] not in syntax.INDEX_START:
                break
            if self.tokens[self.at][0] != ",":
                break
            self.advance()
        if self.tokens[self.at][0] == ",":
            self.advance()
        self.expect("]")
        self.height = height
        return ListLiteral(offset, elements, frozenset(optional))

    def map_literal(self) -> Node:
        offset = self.advance()[2]
        entries: list[Entry] = []
        height = 0
        self.sync(syntax.MAP_START)
        self.closers.append(MAP_CLOSERS)
        try:
            while self.tokens[self.at][0] not in ("}", ","):
                optional = self.question_mark()
                key = self.nested(":")
                height = max(height, self.height)
                colon = self.expect(":")
                value = self.nested(",", "}")
                height = max(height, self.height)
                entries.append(Entry(colon[2], key, value, optional))
                if not self.another_entry(syntax.INDEX_START):
                    break
        except RuleFailedError:
            self.recover()
        finally:
            self.closers.pop()
        if self.tokens[self.at][0] == ",":
            self.advance()
        self.expect("}")
        self.height = height
        return MapLiteral(offset, entries)

    def struct(self, dot: str) -> Node:
        names = [self.advance()[1]]
        while self.tokens[self.at][0] == ".":
            self.advance()
            names.append(self.advance()[1])
        offset = self.advance()[2]
        fields: list[Field] = []
        height = 0
        self.sync(syntax.STRUCT_START)
        while self.tokens[self.at][0] not in ("}", ","):
            optional = self.question_mark()
            kind, text, where = self.tokens[self.at]
            if self.sync(syntax.IDENTIFIERS):
                kind, text, where = self.tokens[self.at]
            self.advance()
            colon = self.expect(":")
            value = self.nested(",", "}")
            height = max(height, self.height)
            fields.append(Field(colon[2], text if kind == "IDENT" else self.escaped(text, where), value, optional))
            if not self.another_entry(syntax.FIELD_START):
                break
        if self.tokens[self.at][0] == ",":
            self.advance()
        self.expect("}")
        self.height = height
        return Struct(offset, dot + ".".join(names), fields)

    def question_mark(self) -> bool:
        if self.tokens[self.at][0] != "?":
            return False
        if not self.optional_syntax:
            self.source.report(self.tokens[self.at][2], "unsupported syntax '?'")
        self.advance()
        return True

    def another_entry(self, starts: frozenset[str]) -> bool:
        """Past the comma before another entry. A comma with none behind it is the one that may end the list."""
        if self.sync(syntax.MAP_NEXT) or self.tokens[self.at][0] != "," or self.tokens[self.at + 1][0] not in starts:
            return False
        self.advance()
        return True

    def escaped(self, text: str, offset: int) -> str:
        if not self.escaped_identifiers:
            self.source.report(offset, "unsupported syntax: '`'")
        return text[1:-1]

    def literal(self, offset: int) -> Node:
        kind, text, _ = self.advance()
        if kind == "-":
            kind, text, _ = self.advance()
            text = "-" + text
        try:
            return Literal(offset, literal_value(kind, text))
        except ValueError as error:
            self.source.report(offset, str(error))
            return Literal(offset, None)
