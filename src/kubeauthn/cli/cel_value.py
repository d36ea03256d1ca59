"""A CEL value as one would write it in CEL."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def shown(value: dict[str, Any]) -> str:
    """From the typed form, in which `{"uint": "1"}` is not `{"int": "1"}`."""
    ((kind, content),) = value.items()
    if kind in ("int", "double", "type"):
        return str(content)
    if kind == "uint":
        return f"{content}u"
    if kind == "bool":
        return "true" if content else "false"
    if kind == "null":
        return "null"
    if kind == "string":
        return json.dumps(content, ensure_ascii=False)
    if kind == "bytes":
        return _bytes(content)
    if kind == "list":
        return "[" + ", ".join(shown(element) for element in content) + "]"
    if kind == "map":
        return "{" + ", ".join(f"{shown(key)}: {shown(element)}" for key, element in content) + "}"
    if kind == "optional":
        return f"optional.of({shown(content[0])})" if content else "optional.none()"
    if kind in ("timestamp", "duration"):
        return f"{kind}({json.dumps(content)})"
    return f"{content['type']}({json.dumps(content['string'], ensure_ascii=False)})"


def _bytes(encoded: str) -> str:
    from base64 import b64decode

    plain = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in b64decode(encoded))
    return 'b"' + "".join(plain) + '"'
