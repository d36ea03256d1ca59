"""requests and the official Kubernetes client."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import requests
from kubernetes import client, watch

from kubeauthn.client import kubernetes as kube
from kubeauthn.client import requests as kube_requests
from tests.integration.adapters.driver import Client, Driver, Outcome, Watch

NAMESPACES = "/api/v1/namespaces"


def watch_in_background(names: Callable[[], Iterator[str]]) -> tuple[Watch, threading.Thread]:
    running = Watch()

    def follow() -> None:
        try:
            for name in names():
                running.events.put(name)
        except BaseException as error:
            running.error = error
        finally:
            running.ended.set()

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    return running, thread


class RequestsClient(Client):
    def __init__(self, session: requests.Session) -> None:
        self._session = session
        self._streams: list[requests.Response] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def list_namespaces(self) -> Outcome:
        return self._outcome(lambda: self._session.get(NAMESPACES, timeout=30))

    def list_namespaces_with_authorization(self, value: str) -> Outcome:
        return self._outcome(lambda: self._session.get(NAMESPACES, headers={"Authorization": value}, timeout=30))

    def create_namespace(self, name: str) -> Outcome:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        return self._outcome(lambda: self._session.post(NAMESPACES, json=body, timeout=30))

    def watch_namespaces(self) -> Watch:
        def names() -> Iterator[str]:
            response = self._session.get(NAMESPACES, params={"watch": "1"}, stream=True, timeout=(30, None))
            with self._lock:
                self._streams.append(response)
            response.raise_for_status()
            for line in response.iter_lines():
                yield json.loads(line)["object"]["metadata"]["name"]

        running, thread = watch_in_background(names)
        self._threads.append(thread)
        return running

    def close(self) -> None:
        with self._lock:
            for response in self._streams:
                end_stream(response.raw)
        for thread in self._threads:
            thread.join(5)
        for response in self._streams:
            response.close()
        self._session.close()

    @staticmethod
    def _outcome(call: Callable[[], requests.Response]) -> Outcome:
        try:
            response = call()
        except Exception as error:
            return Outcome(error=error)
        items = response.json().get("items", ())
        return Outcome(response.status_code, tuple(item["metadata"]["name"] for item in items))


class KubernetesClient(Client):
    def __init__(self, api: client.ApiClient, forget: Callable[[], None] = lambda: None) -> None:
        self._api = api
        self._forget = forget
        self._core = client.CoreV1Api(api)
        self._watches: list[watch.Watch] = []
        self._threads: list[threading.Thread] = []

    def list_namespaces(self) -> Outcome:
        return self._outcome(self._core.list_namespace_with_http_info)

    def list_namespaces_with_authorization(self, value: str) -> Outcome:
        return self._outcome(lambda: self._core.list_namespace_with_http_info(_headers={"Authorization": value}))

    def create_namespace(self, name: str) -> Outcome:
        body = client.V1Namespace(metadata=client.V1ObjectMeta(name=name))
        return self._outcome(lambda: self._core.create_namespace_with_http_info(body))

    def watch_namespaces(self) -> Watch:
        stream = watch.Watch()
        self._watches.append(stream)

        def names() -> Iterator[str]:
            for event in stream.stream(self._core.list_namespace):
                yield event["object"].metadata.name

        running, thread = watch_in_background(names)
        self._threads.append(thread)
        return running

    def close(self) -> None:
        for stream in self._watches:
            stream.stop()
        for thread in self._threads:
            thread.join(5)
        self._api.close()
        self._forget()

    @staticmethod
    def _outcome(call: Callable[[], Any]) -> Outcome:
        try:
            answer, status, _ = call()
        except client.ApiException as error:
            return Outcome(error.status) if error.status else Outcome(error=error)
        except Exception as error:
            return Outcome(error=error)
        items = getattr(answer, "items", None) or ()
        return Outcome(status, tuple(item.metadata.name for item in items))


def end_stream(raw: Any) -> None:
    """Wake up the thread that reads it; closing alone would wait for that thread."""
    with suppress(Exception):
        raw.shutdown()


class RequestsDriver(Driver):
    name = "requests"
    library = "requests"

    def open(self, **options: Any) -> Client:
        return RequestsClient(kube_requests.session(**options))


class KubernetesDriver(Driver):
    name = "kubernetes"
    library = "kubernetes"

    def open(self, **options: Any) -> Client:
        return KubernetesClient(kube.api_client(**options))


class KubernetesDefaultDriver(Driver):
    """What existing code does: load_kube_config, then `ApiClient()` without an argument."""

    name = "kubernetes"
    id = "kubernetes-load_kube_config"
    library = "kubernetes"

    def open(self, **options: Any) -> Client:
        before = client.Configuration._default
        kube.load_kube_config(**options)
        return KubernetesClient(client.ApiClient(), lambda: client.Configuration.set_default(before))


DRIVERS = [RequestsDriver(), KubernetesDriver(), KubernetesDefaultDriver()]
