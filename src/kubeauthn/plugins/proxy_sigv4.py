"""`kubeauthn-proxy-sigv4`: signs every request with AWS Signature Version 4.

For an API server behind a gateway that checks such signatures. (EKS itself takes a token: see the eks plugin.)
Credentials are found as every AWS program finds them: environment, profile, container, instance.
The signature covers the body, so bodies up to a limit are held until they are whole, and larger ones refused.
"""

from __future__ import annotations

import argparse
import hashlib
import threading
from typing import TYPE_CHECKING, Any

from kubeauthn.errors import CredentialError, MissingExtra
from kubeauthn.plugin import proxy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_SIGNED = frozenset({"content-type", "content-md5", "accept"})
"""Headers of the client that are signed too; the others may be changed by what lies between."""


def signer(
    service: str, region: str, credentials: Callable[[], Any]
) -> Callable[[proxy.Request], Awaitable[proxy.Change]]:
    """The function for `proxy.run`. `credentials` is asked for every request: botocore refreshes them itself."""
    try:
        from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
        from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("botocore", "aws") from None

    import asyncio  # here: whoever asks for --help need not wait for it

    one_at_a_time = threading.Lock()

    def frozen() -> Any:
        with one_at_a_time:  # botocore's session is not made for threads
            found = credentials()
        if found is None:
            raise CredentialError("no AWS credentials were found", hint="aws sts get-caller-identity says the same")
        return found.get_frozen_credentials()

    async def sign(request: proxy.Request) -> proxy.Change:
        body = await request.body()
        # In a thread: they may have to be fetched first, and watches and other requests go on meanwhile.
        keys = await asyncio.to_thread(frozen)
        headers = {name: value for name, value in request.headers if name in _SIGNED}
        headers["host"] = request.host
        headers["x-amz-content-sha256"] = hashlib.sha256(body).hexdigest()
        outgoing = AWSRequest(
            method=request.method, url=f"https://{request.host}{request.target}", data=body, headers=headers
        )
        SigV4Auth(keys, service, region).add_auth(outgoing)
        wanted = ("Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256")
        made = {name: outgoing.headers[name] for name in wanted if name in outgoing.headers}
        # What a client may have sent under these names must not stand beside what was signed.
        return proxy.Change(made, remove=[name for name in wanted if name not in made])

    return sign


def main() -> None:
    parser = argparse.ArgumentParser(prog="kubeauthn-proxy-sigv4", description=__doc__, allow_abbrev=False)
    parser.add_argument("--region", required=True, help="the region that is signed for")
    parser.add_argument("--service", default="execute-api", help="the service that is signed for (execute-api)")
    parser.add_argument("--profile", help="the AWS profile; otherwise as the environment says")
    parser.add_argument(
        "--body-limit", type=int, default=proxy.BODY_BYTES, metavar="BYTES", help="the largest body that is signed"
    )
    arguments = parser.parse_args()
    try:
        from botocore.session import Session  # type: ignore[import-untyped]
    except ImportError:
        _refuse(MissingExtra("botocore", "aws"))
        return
    session = Session(profile=arguments.profile)
    proxy.run(signer(arguments.service, arguments.region, session.get_credentials), body_limit=arguments.body_limit)


def _refuse(error: Exception) -> None:
    import sys

    sys.stderr.write(f"kubeauthn-proxy-sigv4: error: {error}\n")
    sys.exit(1)
