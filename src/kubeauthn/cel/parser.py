"""Tokens to a tree, macros expanded on the way.

The messages for faults are those of the ANTLR grammar that Kubernetes parses with: `syntax.py` knows which token sets
it names, and `token_reader.py` where it picks up the thread again.
"""

from __future__ import annotations

from collections.abc import Mapping

from . import syntax
from .ast import Call, Entry, Field, Ident, ListLiteral, Literal, MapLiteral, Node, Select, Struct, repeated_nodes
from .limits import MAX_CODE_POINTS, MAX_DEPTH, MAX_REPEATED_NODES
from .literals import literal_value
from .macros import Expander, MacroError, MacroKey
from .source import Source
from .token_reader import MAP_CLOSERS, NoViableError, RuleFailedError, TokenReader

__all__ = ["parse"]

_RELATIONS = {
    "==": "_==_", "!=": "_!=_", "<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "in": "@in",
}  # fmt: skip
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}
_RESERVED = frozenset((
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "package", "namespace", "null", "return", "true", "var", "void", "while",
))  # fmt: skip


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


class _Parser(TokenReader):
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

    def start(self) -> Node:
        node = self.expression()
        height = self.height
        try:
            self.expect("EOF")
        except RuleFailedError:
            pass
        self.height = height
        return node

    def nested(self, *closers: str) -> Node:
        self.closers.append(closers)
        self.nesting += 1
        try:
            return self.expression()
        finally:
            self.nesting -= 1
            self.closers.pop()

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH or self.relations > MAX_DEPTH or self.calculations > MAX_DEPTH:
            raise _TooDeepError(f"expression recursion limit exceeded: {MAX_DEPTH}")
        node = self.logical("||")
        if self.tokens[self.at][0] == "?":
            operator = self.advance()
            height = self.height
            try:
                self.closers.append((":",))
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
            self.recovering = self.closers[-1] == (":",)
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
        self.fault(after[2], syntax.no_viable(self.source.text, self.tokens[last][2], after))
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

    def escaped(self, text: str, offset: int) -> str:
        if not self.escaped_identifiers:
            self.source.report(offset, "unsupported syntax: '`'")
        return text[1:-1]

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
            if text in _RESERVED:
                self.source.report(offset, f"reserved identifier: {text}")
                return Literal(offset, None)
            return self.call_or_macro(open_offset, dot + text, args)
        if text in _RESERVED:
            self.source.report(offset, f"reserved identifier: {text}")
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
                return Literal(offset, None)
            if expanded is not None:
                self.expanded = True
                return expanded
        return Call(offset, function, args, target)
