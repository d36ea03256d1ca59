"""The paths of the Kubernetes API: from a request to a response or a watch. No sockets here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import yaml

from kubeauthn.testing import _openapi, _resources
from kubeauthn.testing._http import TRUE_WORDS, Request, Response
from kubeauthn.testing._identity import authenticated
from kubeauthn.testing._patch import json_patch, merge_patch
from kubeauthn.testing._service_accounts import SERVICE_ACCOUNTS, answered
from kubeauthn.testing._status import ApiError, method_not_allowed, unknown_path
from kubeauthn.testing._upgrade import Upgrade
from kubeauthn.testing._watch import Selection, Watch

if TYPE_CHECKING:
    from kubeauthn.testing._identity import Credentials, User
    from kubeauthn.testing._resources import Catalogue, ResourceType
    from kubeauthn.testing._store import Item, Store

PROTOBUF = "application/vnd.kubernetes.protobuf"
_HEALTH = ("/healthz", "/livez", "/readyz")


class Api:
    """Answers requests whose user is already known."""

    def __init__(self, catalogue: Catalogue, store: Store, credentials: Credentials) -> None:
        self._catalogue = catalogue
        self._store = store
        self._credentials = credentials

    def answer(self, request: Request, user: User) -> Response | Watch | Upgrade:
        path = request.path.rstrip("/")
        if path in _HEALTH:
            return Response(200, b"ok", "text/plain; charset=utf-8")
        match path.split("/")[1:]:
            case ["version"]:
                return _document(request, _resources.VERSION)
            case ["openapi", "v3"]:
                return _document(request, {"paths": {}})
            case ["openapi", "v2"]:
                return _openapi.answer(request, self._catalogue)
            case ["api"]:
                return _document(request, _resources.CORE_VERSIONS)
            case ["apis"]:
                return _document(request, self._catalogue.groups())
            case ["apis", group]:
                return _document(request, self._catalogue.group(group))
            case ["api", version]:
                return _document(request, self._catalogue.resources("", version))
            case ["apis", group, version]:
                return _document(request, self._catalogue.resources(group, version))
            case ["api", version, *rest]:
                return self._resource(request, user, "", version, rest)
            case ["apis", group, version, *rest]:
                return self._resource(request, user, group, version, rest)
        raise unknown_path()

    def _resource(
        self, request: Request, user: User, group: str, version: str, rest: list[str]
    ) -> Response | Watch | Upgrade:
        namespace: str | None = None
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
            namespace, rest = rest[1], rest[2:]
        type = self._catalogue.get(group, version, rest[0])
        if namespace is not None and not type.namespaced:
            raise unknown_path()
        if type.verbs == _resources.REVIEW_VERBS:
            return self._review(request, user, type, rest)
        match rest[1:]:
            case []:
                return self._collection(request, type, namespace)
            case [name]:
                return self._object(request, type, namespace, name, subresource="")
            case [name, "exec" | "attach" | "portforward" as kind] if type.plural == "pods" and not type.group:
                self._store.get(type, namespace or "", name)
                return Upgrade(kind, request)
            case [name, "token"] if type == SERVICE_ACCOUNTS:
                return self._token_request(request, namespace or "", name)
            case [name, "status"] if type.has_status:
                return self._object(request, type, namespace, name, subresource="status")
        raise unknown_path()

    def _review(self, request: Request, user: User, type: ResourceType, rest: list[str]) -> Response:
        if len(rest) != 1 or request.method != "POST":
            raise method_not_allowed()
        if type == _resources.TOKEN_REVIEWS:
            spec = _body(request).get("spec", {})
            status = self._token_status(spec)
        else:
            # kubectl sends these in protobuf. No answer depends on what is asked, so it need not be read.
            spec = {} if _content_type(request) == PROTOBUF else _body(request).get("spec", {})
            status = {"userInfo": user.user_info()}
            if type == _resources.SELF_SUBJECT_ACCESS_REVIEWS:
                status = {"allowed": True, "reason": "the test server allows everything"}
        head = {"kind": type.kind, "apiVersion": type.api_version, "metadata": {"creationTimestamp": None}}
        return Response.of_json({**head, "spec": spec, "status": status}, 201)

    def _token_request(self, request: Request, namespace: str, name: str) -> Response:
        if request.method != "POST":
            raise method_not_allowed()
        self._store.get(SERVICE_ACCOUNTS, namespace, name)
        return Response.of_json(answered(_body(request), namespace, name, self._credentials), 201)

    def _token_status(self, spec: dict[str, Any]) -> dict[str, Any]:
        found = self._credentials.user_of_token(spec.get("token", ""))
        if found is None:
            return {"authenticated": False, "user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": authenticated(found, found.groups).user_info()}

    def _collection(self, request: Request, type: ResourceType, namespace: str | None) -> Response | Watch:
        if request.method == "GET":
            selection = Selection.of_query(type, namespace, request.query)
            if request.query.get("watch") not in TRUE_WORDS:
                return Response.of_json(self._store.listing(selection))
            seconds = request.query.get("timeoutSeconds")
            return self._store.watch(
                selection,
                request.query.get("resourceVersion", ""),
                initial_events=request.query.get("sendInitialEvents") in TRUE_WORDS,
                seconds=_seconds(seconds) if seconds else None,
            )
        if request.method == "POST":
            if type.namespaced and namespace is None:
                raise method_not_allowed()
            return Response.of_json(self._store.create(type, namespace or "", _body(request)), 201)
        raise method_not_allowed()

    def _object(
        self, request: Request, type: ResourceType, namespace: str | None, name: str, *, subresource: str
    ) -> Response:
        if type.namespaced and namespace is None:
            raise unknown_path()
        place = namespace or ""
        if request.method == "GET":
            return Response.of_json(self._store.get(type, place, name))
        if request.method == "PUT":
            body = _body(request)
            return Response.of_json(self._store.change(type, place, name, lambda old: _part(old, body, subresource)))
        if request.method == "PATCH":
            return self._patch(request, type, place, name, subresource)
        if request.method == "DELETE" and not subresource:
            return Response.of_json(self._store.delete(type, place, name))
        raise method_not_allowed()

    def _patch(self, request: Request, type: ResourceType, namespace: str, name: str, subresource: str) -> Response:
        content_type = _content_type(request)
        if content_type == "application/json-patch+json":
            operations = _decoded(request)
            changed = self._store.change(
                type, namespace, name, lambda old: _part(old, json_patch(old, operations), subresource)
            )
        elif content_type in ("application/merge-patch+json", "application/strategic-merge-patch+json"):
            # A strategic merge differs only in lists, which are replaced here.
            patch = _body(request)
            changed = self._store.change(
                type, namespace, name, lambda old: _part(old, merge_patch(old, patch), subresource)
            )
        elif content_type in ("application/apply-patch+yaml", "application/apply-patch+cbor"):
            return self._apply(type, namespace, name, _body(request))
        else:
            raise ApiError(415, f"the body of the request was in an unknown format: {content_type or 'none given'}")
        return Response.of_json(changed)

    def _apply(self, type: ResourceType, namespace: str, name: str, body: Item) -> Response:
        """Server-side apply, without field managers."""
        try:
            return Response.of_json(self._store.change(type, namespace, name, lambda old: merge_patch(old, body)))
        except ApiError as error:
            if error.code != 404:
                raise
        return Response.of_json(self._store.create(type, namespace, body), 201)


def _part(old: Item, new: Item, subresource: str) -> Item:
    """A write to a subresource changes that part alone."""
    if not subresource:
        return new
    return {**old, subresource: new.get(subresource, {})}


def _document(request: Request, document: dict[str, Any]) -> Response:
    if request.method != "GET":
        raise method_not_allowed()
    return Response.of_json(document)


def _content_type(request: Request) -> str:
    return (request.header("content-type") or "").partition(";")[0].strip().lower()


def _decoded(request: Request) -> Any:
    content_type = _content_type(request)
    try:
        if content_type.endswith("yaml"):
            return yaml.safe_load(request.body)
        if content_type in ("", "application/json") or content_type.endswith("+json"):
            return json.loads(request.body)
    except (ValueError, yaml.YAMLError):
        raise ApiError(400, f"the body is not {content_type or 'application/json'}") from None
    raise ApiError(415, f"the body of the request was in an unknown format: {content_type}")


def _body(request: Request) -> Item:
    body = _decoded(request)
    if not isinstance(body, dict):
        raise ApiError(400, "the body is expected to be an object")
    return body


def _seconds(text: str) -> float:
    if not text.isdecimal():
        raise ApiError(400, f"timeoutSeconds: Invalid value: {text!r}")
    return float(text)
