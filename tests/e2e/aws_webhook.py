"""What answers for a cluster of Amazon EKS who a token is: it checks the signature of the address that the token is."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.loopback_https import Handler, LoopbackHttps
from tests.integration.test_plugin_eks import opened, verify

__all__ = ["AwsWebhook"]


class AwsWebhook(LoopbackHttps):
    """A TokenReview webhook that takes the tokens of one AWS key, signed for one cluster, for one user."""

    def __init__(self, cluster_name: str, user: str) -> None:
        self.asked = 0
        webhook = self

        class Reviewing(Handler):
            def do_POST(self) -> None:
                review: dict[str, Any] = json.loads(self.body())
                webhook.asked += 1
                is_ours = webhook.believes(review["spec"]["token"], cluster_name)
                review["status"] = {"authenticated": is_ours, **({"user": {"username": user}} if is_ours else {})}
                self.answer(200, json.dumps(review).encode(), "application/json")

        super().__init__("aws webhook", Reviewing)

    @staticmethod
    def believes(token: str, cluster_name: str) -> bool:
        try:
            return verify(opened(token), cluster_name)
        except (AssertionError, KeyError, ValueError):
            return False
