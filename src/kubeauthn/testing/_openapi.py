"""The OpenAPI document of an `ApiServer`: the kinds by name, each an object with any fields. For `kubectl apply`.

kubectl asks for it in protobuf (gnostic's `openapi_v2.Document`); the little that is needed of that is written here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from kubeauthn.testing._http import Response

if TYPE_CHECKING:
    from kubeauthn.testing._http import Request
    from kubeauthn.testing._resources import Catalogue, ResourceType

_GVK = "x-kubernetes-group-version-kind"
_PROTOBUF = "application/octet-stream"


def answer(request: Request, catalogue: Catalogue) -> Response:
    """`/openapi/v2`."""
    types = catalogue.all()
    if "protobuf" in (request.header("accept") or ""):
        return Response(200, _as_protobuf(types), _PROTOBUF)
    return Response.of_json(_as_document(types))


def _as_document(types: list[ResourceType]) -> dict[str, Any]:
    return {
        "swagger": "2.0",
        "info": {"title": "kubeauthn test server", "version": "v1"},
        "paths": {},
        "definitions": {_name(each): {"type": "object", _GVK: [_gvk(each)]} for each in types},
    }


def _as_protobuf(types: list[ResourceType]) -> bytes:
    definitions = b"".join(_field(1, _text(1, _name(each)) + _field(2, _schema(each))) for each in types)
    info = _text(1, "kubeauthn test server") + _text(2, "v1")
    return _text(1, "2.0") + _field(2, info) + _field(8, b"") + _field(9, definitions)


def _schema(type: ResourceType) -> bytes:
    value = _text(2, json.dumps([_gvk(type)]))  # YAML, which JSON is
    return _field(22, _text(1, "object")) + _field(31, _text(1, _GVK) + _field(2, value))


def _name(type: ResourceType) -> str:
    return f"test.{type.group or 'core'}.{type.version}.{type.kind}"


def _gvk(type: ResourceType) -> dict[str, str]:
    return {"group": type.group, "version": type.version, "kind": type.kind}


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, content: bytes) -> bytes:
    """A field of protobuf's length-delimited kind."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
