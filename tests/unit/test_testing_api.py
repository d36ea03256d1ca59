"""The paths, objects and patches of the test API server, without a socket."""

from __future__ import annotations

import json

import pytest

from kubeauthn.testing._api import Api
from kubeauthn.testing._http import Request, Response
from kubeauthn.testing._identity import Credentials, User, effective_user
from kubeauthn.testing._patch import json_patch, merge_patch
from kubeauthn.testing._resources import Catalogue, ResourceType
from kubeauthn.testing._status import ApiError
from kubeauthn.testing._store import Store
from kubeauthn.testing._watch import Watch

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Client:
    """Calls the API as a function."""

    def __init__(self) -> None:
        self.catalogue = Catalogue()
        self.api = Api(self.catalogue, Store(), Credentials(allow_anonymous=False))

    def __call__(self, method, path, body=None, content_type="application/json", **query):
        content = b"" if body is None else json.dumps(body).encode()
        request = Request(method, path, query, (("Content-Type", content_type),), content, True)
        answer = self.api.answer(request, User("jane", ("dev",)))
        assert isinstance(answer, Response)
        return json.loads(answer.body)

    def watch(self, path, **query) -> Watch:
        answer = self.api.answer(Request("GET", path, {"watch": "true", **query}, (), b"", True), User("jane"))
        assert isinstance(answer, Watch)
        return answer

    def status(self, *args, **kwargs):
        with pytest.raises(ApiError) as caught:
            self(*args, **kwargs)
        document = caught.value.status()
        assert (document["kind"], document["status"]) == ("Status", "Failure")
        return document["code"], document.get("reason"), document["message"]


@pytest.fixture
def call() -> Client:
    return Client()


def events(watch: Watch) -> list[tuple[str, str]]:
    lines, _ = watch.take()
    read = [json.loads(line) for line in lines]
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in read]


def test_discovery_leads_to_every_resource(call):
    assert call("GET", "/version")["gitVersion"].startswith("v1.")
    assert call("GET", "/api")["versions"] == ["v1"]
    core = {entry["name"]: entry for entry in call("GET", "/api/v1")["resources"]}
    assert {"namespaces", "pods", "configmaps", "secrets", "events"} <= set(core)
    assert core["namespaces"]["namespaced"] is False
    for group in call("GET", "/apis")["groups"]:
        assert call("GET", f"/apis/{group['name']}")["name"] == group["name"]
        for version in group["versions"]:
            listing = call("GET", f"/apis/{version['groupVersion']}")
            assert listing["groupVersion"] == version["groupVersion"]
            assert listing["resources"]


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/api/v2",
        "/apis/no.such.group",
        "/apis/no.such.group/v1",
        "/api/v1/widgets",
        "/api/v1/namespaces/default/namespaces",
        "/api/v1/configmaps/name-without-namespace",
        "/api/v1/namespaces/default/configmaps/x/status",
        "/openapi/v9",
    ],
)
def test_unknown_paths_are_404(call, path):
    assert call.status("GET", path) == (404, "NotFound", "the server could not find the requested resource")


def test_an_object_from_birth_to_death(call):
    created = call("POST", CONFIGMAPS, {"metadata": {"name": "one"}, "data": {"a": "1"}})
    assert created["metadata"]["namespace"] == "default"
    assert created["metadata"]["uid"]
    assert (created["kind"], created["apiVersion"]) == ("ConfigMap", "v1")
    assert call("GET", f"{CONFIGMAPS}/one") == created
    assert call("GET", CONFIGMAPS)["items"] == [created] == call("GET", "/api/v1/configmaps")["items"]
    replaced = call("PUT", f"{CONFIGMAPS}/one", {"metadata": {"name": "one"}, "data": {"b": "2"}})
    assert replaced["data"] == {"b": "2"}
    assert replaced["metadata"]["uid"] == created["metadata"]["uid"]
    assert int(replaced["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    call("DELETE", f"{CONFIGMAPS}/one")
    assert call.status("GET", f"{CONFIGMAPS}/one") == (404, "NotFound", 'configmaps "one" not found')


def test_refusals(call):
    call("POST", CONFIGMAPS, {"metadata": {"name": "one"}})
    again = call.status("POST", CONFIGMAPS, {"metadata": {"name": "one"}})
    assert again == (409, "AlreadyExists", 'configmaps "one" already exists')
    assert call.status("PUT", f"{CONFIGMAPS}/one", {"metadata": {"resourceVersion": "1"}})[:2] == (409, "Conflict")
    assert call.status("PUT", f"{CONFIGMAPS}/one", {"metadata": {"name": "two"}})[0] == 400
    assert call.status("POST", CONFIGMAPS, {"metadata": {}})[:2] == (422, "Invalid")
    assert call.status("POST", CONFIGMAPS, {"kind": "Secret", "metadata": {"name": "x"}})[0] == 400
    assert call.status("POST", CONFIGMAPS, ["no object"])[0] == 400
    assert call.status("POST", CONFIGMAPS, {}, content_type="text/plain")[:2] == (415, "UnsupportedMediaType")
    assert call.status("POST", "/api/v1/namespaces/nope/configmaps", {"metadata": {"name": "x"}})[0] == 404
    assert call.status("PATCH", f"{CONFIGMAPS}/one", {}, content_type="text/plain")[0] == 415
    assert call.status("DELETE", CONFIGMAPS)[:2] == (405, "MethodNotAllowed")
    assert call.status("POST", "/version", {})[0] == 405
    assert call.status("GET", CONFIGMAPS, labelSelector="a in (b)")[0] == 400
    assert call.status("GET", CONFIGMAPS, fieldSelector="spec.x=y")[0] == 400


def test_patches(call):
    call("POST", CONFIGMAPS, {"metadata": {"name": "one"}, "data": {"a": "1", "b": "2"}})
    patch = {"data": {"a": None, "c": "3"}}
    merged = call("PATCH", f"{CONFIGMAPS}/one", patch, content_type="application/merge-patch+json")
    assert merged["data"] == {"b": "2", "c": "3"}
    again = call("PATCH", f"{CONFIGMAPS}/one", patch, content_type="application/strategic-merge-patch+json")
    assert again["metadata"]["resourceVersion"] == merged["metadata"]["resourceVersion"]
    operations = [{"op": "add", "path": "/data/d~1e", "value": "4"}, {"op": "remove", "path": "/data/b"}]
    changed = call("PATCH", f"{CONFIGMAPS}/one", operations, content_type="application/json-patch+json")
    assert changed["data"] == {"c": "3", "d/e": "4"}
    applied = call(
        "PATCH", f"{CONFIGMAPS}/new", {"data": {"x": "y"}, "metadata": {"name": "new"}}, "application/apply-patch+yaml"
    )
    assert applied["data"] == {"x": "y"}


def test_json_patch_by_the_book():
    document = {"list": [1, 2, 3]}
    operations = [
        {"op": "test", "path": "/list/0", "value": 1},
        {"op": "add", "path": "/list/-", "value": 4},
        {"op": "replace", "path": "/list/0", "value": 0},
        {"op": "remove", "path": "/list/1"},
    ]
    assert json_patch(document, operations) == {"list": [0, 3, 4]}
    assert document == {"list": [1, 2, 3]}
    for wrong in (
        [{"op": "test", "path": "/list/0", "value": 2}],
        [{"op": "remove", "path": "/nothing"}],
        [{"op": "replace", "path": "/nothing", "value": 1}],
        [{"op": "move", "path": "/list", "from": "/x"}],
        [{"op": "add"}],
    ):
        with pytest.raises(ApiError) as caught:
            json_patch(document, wrong)
        assert caught.value.code == 422


def test_merge_patch_changes_neither_side():
    target, patch = {"a": {"b": 1}}, {"a": {"b": None, "c": [1]}}
    assert merge_patch(target, patch) == {"a": {"c": [1]}}
    assert target == {"a": {"b": 1}}


def test_a_status_write_changes_the_status_alone(call):
    call("POST", "/api/v1/namespaces/default/pods", {"metadata": {"name": "p"}, "spec": {"x": 1}})
    path = "/api/v1/namespaces/default/pods/p/status"
    body = {"spec": {"x": 2}, "status": {"phase": "Running"}}
    changed = call("PATCH", path, body, content_type="application/merge-patch+json")
    assert (changed["spec"], changed["status"]) == ({"x": 1}, {"phase": "Running"})


def test_selectors(call):
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"}), ("c", {})):
        call("POST", CONFIGMAPS, {"metadata": {"name": name, "labels": labels}})

    def names(**query):
        return [item["metadata"]["name"] for item in call("GET", CONFIGMAPS, **query)["items"]]

    assert names(labelSelector="app=x") == ["a"]
    assert names(labelSelector="app==y") == ["b"]
    assert names(labelSelector="app!=x") == ["b", "c"]
    assert names(labelSelector="app") == ["a", "b"]
    assert names(labelSelector="!app") == ["c"]
    assert names(fieldSelector="metadata.name=b") == ["b"]
    assert names(labelSelector="app", fieldSelector="metadata.name!=a") == ["b"]


def test_finalizers_hold_an_object_until_they_are_gone(call):
    call("POST", CONFIGMAPS, {"metadata": {"name": "held", "finalizers": ["example.com/x"]}})
    watch = call.watch(CONFIGMAPS, resourceVersion=call("GET", CONFIGMAPS)["metadata"]["resourceVersion"])
    assert call("DELETE", f"{CONFIGMAPS}/held")["metadata"]["deletionTimestamp"]
    assert call("GET", f"{CONFIGMAPS}/held")["metadata"]["deletionTimestamp"]
    free = {"metadata": {"finalizers": None}}
    call("PATCH", f"{CONFIGMAPS}/held", free, content_type="application/merge-patch+json")
    assert call.status("GET", f"{CONFIGMAPS}/held")[0] == 404
    assert events(watch) == [("MODIFIED", "held"), ("DELETED", "held")]
    watch.close()


def test_a_namespace_takes_its_objects_with_it(call):
    call("POST", "/api/v1/namespaces", {"metadata": {"generateName": "gen-"}})
    name = call("GET", "/api/v1/namespaces")["items"][-1]["metadata"]["name"]
    assert name.startswith("gen-")
    call("POST", f"/api/v1/namespaces/{name}/configmaps", {"metadata": {"name": "inside"}})
    call("DELETE", f"/api/v1/namespaces/{name}")
    assert call("GET", "/api/v1/configmaps")["items"] == []


def test_a_watch_without_version_begins_with_what_there_is(call):
    watch = call.watch("/api/v1/namespaces")
    assert events(watch) == [("ADDED", "default"), ("ADDED", "kube-system")]
    call("POST", "/api/v1/namespaces", {"metadata": {"name": "new"}})
    call("POST", CONFIGMAPS, {"metadata": {"name": "of another kind"}})
    assert events(watch) == [("ADDED", "new")]
    watch.close()


def test_a_watch_from_a_version_misses_nothing(call):
    version = call("GET", CONFIGMAPS)["metadata"]["resourceVersion"]
    call("POST", CONFIGMAPS, {"metadata": {"name": "between"}})
    watch = call.watch(CONFIGMAPS, resourceVersion=version)
    call("DELETE", f"{CONFIGMAPS}/between")
    assert events(watch) == [("ADDED", "between"), ("DELETED", "between")]
    watch.close()


def test_initial_events_end_with_a_bookmark(call):
    watch = call.watch("/api/v1/namespaces", sendInitialEvents="true", resourceVersionMatch="NotOlderThan")
    assert [kind for kind, _ in events(watch)] == ["ADDED", "ADDED", "BOOKMARK"]
    watch.close()


def test_a_version_that_is_no_number_is_refused(call):
    with pytest.raises(ApiError, match="resourceVersion"):
        call.watch(CONFIGMAPS, resourceVersion="x")
    with pytest.raises(ApiError, match="timeoutSeconds"):
        call.watch(CONFIGMAPS, timeoutSeconds="x")


def test_custom_resources(call):
    call.catalogue.add(ResourceType("example.com", "v1", "widgets", "Widget"))
    path = "/apis/example.com/v1/namespaces/default/widgets"
    assert call("POST", path, {"metadata": {"name": "w"}})["kind"] == "Widget"
    assert call("GET", "/apis/example.com/v1")["resources"][0]["name"] == "widgets"


def test_reviews(call):
    review = call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert review["status"]["userInfo"] == {"username": "jane", "groups": ["dev"]}
    access = call("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"spec": {"a": "b"}})
    assert access["status"]["allowed"] is True
    assert access["spec"] == {"a": "b"}
    assert call.status("GET", "/apis/authentication.k8s.io/v1/selfsubjectreviews")[0] == 405


def impersonating(*headers: tuple[str, str]) -> Request:
    return Request("GET", "/", {}, headers, b"", True)


def test_impersonation_is_honoured():
    request = impersonating(
        ("Impersonate-User", "bob"),
        ("impersonate-uid", "42"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-Example.com%2Fscope", "x"),
        ("Impersonate-Extra-example.com%2fscope", "y"),
    )
    assert effective_user(request, User("jane", ("dev",))).user_info() == {
        "username": "bob",
        "uid": "42",
        "groups": ["a", "b", "system:authenticated"],
        "extra": {"example.com/scope": ["x", "y"]},
    }


def test_impersonation_needs_a_user_on_both_ends():
    with pytest.raises(ApiError) as caught:
        effective_user(impersonating(("Impersonate-Group", "a")), User("jane"))
    assert caught.value.code == 500
    with pytest.raises(ApiError) as caught:
        effective_user(impersonating(("Impersonate-User", "bob")), None)
    assert caught.value.code == 401
