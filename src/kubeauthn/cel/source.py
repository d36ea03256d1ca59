"""The text of an expression: lines, columns and the caret under a fault."""

from __future__ import annotations

from bisect import bisect_left

from .errors import Issue
from .limits import MAX_ISSUES, MAX_SNIPPET_BYTES

__all__ = ["Source"]


class Source:
    """An expression's text, and the faults found in it so far."""

    __slots__ = ("_gave_up", "_line_starts", "_misfits", "_offsets", "issues", "text", "truncated", "unrecognised")

    def __init__(self, text: str) -> None:
        self.text = text
        self.issues: list[Issue] = []
        self.truncated = 0
        self.unrecognised: list[tuple[int, int]] = []  # parts that are no tokens: from, to
        self._offsets: list[int] = []
        self._misfits = 0  # faults of the parser
        self._gave_up = False
        self._line_starts: list[int] | None = None

    def report(self, offset: int, message: str) -> None:
        """Note a fault at a place, -1 for a fault of the whole; beyond a hundred they are only counted."""
        if len(self.issues) < MAX_ISSUES:
            self._note(offset, message)
        elif not self._gave_up:
            self.truncated += 1

    def report_syntax(self, offset: int, message: str, read_to: int) -> None:
        """Note what does not fit the grammar. cel-go gives up at the hundred and first of these.

        `read_to` is how far its parser has asked for tokens by then: ours has them all before it begins, so faults of
        the lexer behind that place are noted here already, and are the first to go.
        """
        earlier = self._misfits + bisect_left(self.unrecognised, (read_to, 0))
        is_full = len(self.issues) == MAX_ISSUES
        if is_full:
            self._gave_up, self.truncated = True, 1
            if earlier >= MAX_ISSUES or offset >= (highest := max(self._offsets)):
                return
            last = self._offsets.index(highest)
            del self.issues[last], self._offsets[last]
        if read_to > offset:
            self._misfits += 1  # the lexer's own are among the unrecognised
        self._note(offset, f"Syntax error: {message}")

    def _note(self, offset: int, message: str) -> None:
        self.issues.append(self._issue(offset, message))
        self._offsets.append(offset)

    def _issue(self, offset: int, message: str) -> Issue:
        if offset < 0:
            return Issue(-1, 0, message)
        if not self.text:
            return Issue(1, 0, message)
        line, column = self.position(offset)
        return Issue(line, column + 1, message, self._caret(line, column))

    def recognised(self, start: int, end: int) -> str:
        """A part of the text without what is no token in it."""
        parts = []
        for number in range(bisect_left(self.unrecognised, (start, 0)), len(self.unrecognised)):
            skipped, behind = self.unrecognised[number]
            if skipped >= end:
                break
            parts.append(self.text[start:skipped])
            start = behind
        return "".join((*parts, self.text[start:end]))

    def sorted_issues(self) -> list[Issue]:
        return sorted(self.issues, key=lambda issue: (issue.line, issue.column))

    def position(self, offset: int) -> tuple[int, int]:
        """Line from 1, column from 0."""
        starts = self._lines()
        line = len(starts)
        while line > 1 and starts[line - 1] > offset:
            line -= 1
        return line, offset - starts[line - 1]

    def _lines(self) -> list[int]:
        if self._line_starts is None:
            self._line_starts = [0]
            at = self.text.find("\n")
            while at >= 0:
                self._line_starts.append(at + 1)
                at = self.text.find("\n", at + 1)
        return self._line_starts

    def _caret(self, line: int, column: int) -> str:
        start = self._lines()[line - 1]
        end = self.text.find("\n", start)
        snippet = self.text[start:] if end < 0 else self.text[start:end]
        if len(snippet.encode("utf-8", "surrogatepass")) > MAX_SNIPPET_BYTES:
            return ""
        snippet = snippet.replace("\t", " ")
        dots = "".join("." if char < "\x80" else "\uff0e" for char in snippet[:column])
        mark = "\uff3e" if snippet[column : column + 1] > "\x7f" else "^"
        return f"\n | {snippet}\n | {dots}{mark}"
