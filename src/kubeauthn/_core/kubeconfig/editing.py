"""A kubeconfig text that is changed and written again, with everything else in it left as it was.

ruamel.yaml keeps a comment with the value that stands *before* it. So the comment above
an entry hangs on the entry before: wherever an entry or a field is added or removed, that
part of the comment is handed on to what now stands there.
"""

from __future__ import annotations

import io
from typing import Any

from kubeauthn._core.yaml_document import plain_value
from kubeauthn.errors import KubeconfigError, MissingExtra

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

BODY_KEYS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_WIDTH = 1 << 20
"""Lines are not wrapped: a token of 2000 characters stays on its line."""


class EditableKubeconfig:
    """One file's text. The text must already have been decoded without faults."""

    def __init__(self, text: str) -> None:
        try:
            from ruamel.yaml import YAML
            from ruamel.yaml.comments import CommentedMap
            from ruamel.yaml.error import YAMLError
        except ImportError:
            raise MissingExtra("ruamel.yaml", "edit") from None
        self._yaml = YAML(typ="rt")
        self._yaml.preserve_quotes = True
        self._yaml.width = _WIDTH
        self._yaml.explicit_start = text.startswith("---")
        _keep_indentation(self._yaml, text)
        self._preface = ""
        self._json = text.lstrip().startswith("{")  # then every new string is quoted, so that it stays JSON
        self.changed = False
        try:
            document = self._yaml.load(text)
        except YAMLError:
            raise KubeconfigError("cannot be edited: it is not one single YAML document") from None
        if document is None:
            self._preface = text if text.strip() else ""  # nothing but comments
            document = CommentedMap({"apiVersion": "v1", "kind": "Config"})
        self._document: Any = document

    @property
    def text(self) -> str:
        stream = io.StringIO()
        self._yaml.dump(self._document, stream)
        written = stream.getvalue()
        preface = self._preface if not self._preface or self._preface.endswith("\n") else self._preface + "\n"
        return preface + (written if written.endswith("\n") else written + "\n")

    @property
    def current_context(self) -> str:
        return self._document.get("current-context") or ""

    def set_current_context(self, name: str) -> None:
        if self._document.get("current-context") != name:
            self._put(self._document, "current-context", name)
            self.changed = True

    def has(self, section: str, name: str) -> bool:
        return self._index(section, name) is not None

    def set(self, section: str, name: str, fields: Mapping[str, object]) -> None:
        """Give an entry these fields; its others stay. None takes a field away."""
        from ruamel.yaml.comments import CommentedMap

        body_key = BODY_KEYS[section]
        entries = self._entries(section)
        index = self._index(section, name)
        if index is None:
            body = CommentedMap()
            entry = CommentedMap()
            self._put(entry, "name", name)
            self._put(entry, body_key, body)
            _append(entries, entry, self._document, section)
        else:
            body = self._own_body(entries, index, body_key)
        for key, value in fields.items():
            if value is not None:
                self._put(body, key, value)
            elif key in body:
                _delete(body, key, entries[index or 0], body_key)
        if not body:
            body.fa.set_flow_style()
        self.changed = True

    def remove(self, section: str, name: str) -> bool:
        """Take an entry away. False if there is none of that name."""
        index = self._index(section, name)
        if index is None:
            return False
        _delete(self._document[section], index, self._document, section)
        self.changed = True
        return True

    def _entries(self, section: str) -> Any:
        from ruamel.yaml.comments import CommentedSeq

        if not self._document.get(section):
            self._put(self._document, section, CommentedSeq())
        entries = self._document[section]
        if not entries:
            entries.fa.set_block_style()
        return entries

    def _index(self, section: str, name: str) -> int | None:
        for index, entry in enumerate(self._document.get(section) or ()):
            if entry is not None and (entry.get("name") or "") == name:
                return index
        return None

    def _own_body(self, entries: Any, index: int, body_key: str) -> Any:
        """The entry's body, unshared: an alias in the file must not carry the change to other entries."""
        from ruamel.yaml.comments import CommentedMap

        entry = entries[index]
        body = entry.get(body_key)
        shared = sum(1 for other in entries if other is not None and other.get(body_key) is body) > 1
        if body is None or shared:
            body = CommentedMap(body or {})
            self._put(entry, body_key, body)
        if not body:
            body.fa.set_block_style()
        return entry[body_key]

    def _put(self, mapping: Any, key: str, value: object) -> None:
        from ruamel.yaml.comments import CommentedMap, CommentedSeq
        from ruamel.yaml.scalarstring import DoubleQuotedScalarString

        if self._json and key not in mapping:
            key = DoubleQuotedScalarString(key)
        old = mapping.get(key)
        new = value if isinstance(value, CommentedMap | CommentedSeq) else _new_value(value, old, quote=self._json)
        # The slot that carries what follows the value may move: from inside an old collection into a new one.
        after = _take_following(mapping, key) if key in mapping else _take_following_last(mapping)
        mapping[key] = new
        _give_following(mapping, key, after)


def _new_value(value: object, like: object = None, *, quote: bool = False) -> Any:
    """A plain Python value as ruamel should write it: what kubectl would not read as a string is quoted."""
    from ruamel.yaml.comments import CommentedMap, CommentedSeq
    from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, ScalarString

    if isinstance(value, str):
        if quote:
            return DoubleQuotedScalarString(value)
        lines = value.split("\n")
        if len(lines) > 1 and lines[0][:1] not in ("", " ") and all(line.isprintable() for line in lines):
            return LiteralScalarString(value)
        if isinstance(like, ScalarString) and not isinstance(like, LiteralScalarString) and value.isprintable():
            return type(like)(value)
        ambiguous = not isinstance(plain_value(value), str) or not value.isprintable()
        return DoubleQuotedScalarString(value) if ambiguous else value
    if isinstance(value, dict):
        return CommentedMap(
            {_new_value(key, quote=quote): _new_value(item, quote=quote) for key, item in value.items()}
        )
    if isinstance(value, list | tuple):
        return CommentedSeq([_new_value(item, quote=quote) for item in value])
    return value


def _keep_indentation(yaml: Any, text: str) -> None:
    """Write lists and objects as far in as the first ones of the file are; kubectl's own style otherwise."""
    offset, mapping = None, None
    opened_by = ""
    opened_at = 0
    for line in text.splitlines():
        stripped = line.lstrip(" ")
        if not stripped or stripped.startswith("#"):
            continue
        column = len(line) - len(stripped)
        if offset is None and opened_by in BODY_KEYS and stripped.startswith("- "):
            offset = min(column - opened_at, 8)
        if mapping is None and opened_by in BODY_KEYS.values() and column > opened_at:
            mapping = min(column - opened_at, 8)
        if offset is not None and mapping is not None:
            break
        key = stripped.removeprefix("- ").lstrip(" ")
        opened_at = len(line) - len(key)
        opened_by = key.rstrip().removesuffix(":")
    yaml.indent(mapping=mapping or 2, sequence=(offset or 0) + 2, offset=offset or 0)


def _append(entries: Any, entry: Any, parent: Any, section: str) -> None:
    after = _take_following(parent, section)
    entries.append(entry)
    _give_following(parent, section, after)


def _delete(container: Any, key: Any, parent: Any, parent_key: Any) -> None:
    """Take one item away, and hand what was written after it to what now stands before that place."""
    after = _take_following(container, key)
    keys = list(range(len(container))) if isinstance(container, list) else list(container)
    position = keys.index(key)
    del container[key]
    if position > 0:
        before = keys[position - 1]
        _give_following(container, before, _take_following(container, before) + after)
    elif not container:
        container.fa.set_flow_style()
        after += "".join(token.value for token in container.ca.end or ())
        container.ca.end = []
        _give_following(parent, parent_key, _take_following(parent, parent_key) + after)
    elif after.strip():
        comment = "\n".join(line.strip().removeprefix("#").strip() for line in after.strip("\n").split("\n"))
        first = 0 if isinstance(container, list) else next(iter(container))
        container.yaml_set_comment_before_after_key(first, before=comment, indent=container.lc.col or 0)


def _last_leaf(container: Any, key: Any) -> tuple[Any, Any]:
    """The innermost place that ends where `container[key]` ends: there ruamel keeps the comment that follows."""
    value = container[key]
    while isinstance(value, dict | list) and value and hasattr(value, "ca"):
        container, key = value, (len(value) - 1 if isinstance(value, list) else next(reversed(value)))
        value = container[key]
    return container, key


def _slot(container: Any) -> int:
    return 0 if isinstance(container, list) else 2


def _take_following(container: Any, key: Any) -> str:
    """Cut off the comment lines and blank lines after a value; a comment on its own line end stays."""
    leaf, leaf_key = _last_leaf(container, key)
    comments = leaf.ca.items.get(leaf_key)
    token = comments[_slot(leaf)] if comments and len(comments) > _slot(leaf) else None
    if token is None:
        return ""
    own, newline, following = token.value.partition("\n")
    if own:
        token.value = own + newline
    else:
        comments[_slot(leaf)] = None
        following = following or ""
    return str(following)


def _take_following_last(container: Any) -> str:
    return _take_following(container, next(reversed(container))) if container else ""


def _give_following(container: Any, key: Any, following: str) -> None:
    from ruamel.yaml.error import CommentMark
    from ruamel.yaml.tokens import CommentToken

    if not following:
        return
    leaf, leaf_key = _last_leaf(container, key)
    slot = _slot(leaf)
    comments = leaf.ca.items.setdefault(leaf_key, [None] * (2 if slot == 0 else 4))
    if comments[slot] is None:
        comments[slot] = CommentToken("\n" + following, CommentMark(0), None)
    else:
        own = comments[slot].value
        comments[slot].value = (own if own.endswith("\n") else own + "\n") + following
