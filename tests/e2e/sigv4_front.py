"""What stands before some managed clusters: it checks a request's signature, and tells the API server whose it is."""

from __future__ import annotations

from tests.e2e.cluster import Cluster
from tests.e2e.loopback_https import Handler, LoopbackHttps
from tests.integration.test_proxy_references import verify

__all__ = ["SignatureFront"]

_OWN = ("host", "authorization", "connection", "content-length", "transfer-encoding", "accept-encoding")


class SignatureFront(LoopbackHttps):
    """Only requests whose signature is right go on, as the user `user`."""

    def __init__(self, cluster: Cluster, user: str) -> None:
        self.refused = 0
        front = self

        class Checking(Handler):
            def do_GET(self) -> None:
                body = self.body()
                headers = {name.lower(): value for name, value in self.headers.items()}
                if not front.believes(self.command, self.path, headers, body):
                    front.refused += 1
                    self.send_error(403)
                    return
                kept = {name: value for name, value in headers.items() if name not in _OWN and name[:6] != "x-amz-"}
                server = cluster.connection()
                server.request(self.command, self.path, body, {**kept, "Impersonate-User": user})
                answer = server.getresponse()
                self.answer(answer.status, answer.read(), answer.headers["Content-Type"])
                server.close()

            do_POST = do_PUT = do_DELETE = do_GET

        super().__init__("front", Checking)

    @staticmethod
    def believes(method: str, target: str, headers: dict[str, str], body: bytes) -> bool:
        try:
            return verify(method, target, headers, body)
        except (AssertionError, KeyError, ValueError):
            return False
