"""`kubeauthn plugin eks`: the token that an EKS cluster takes, as `aws eks get-token` makes it.

The token is an address: a signed question to AWS STS, "who am I?", that is good for a minute at STS and is taken by EKS
for a quarter of an hour. The cluster asks it and so learns who holds the token. Its name is signed too, so that one
cluster's token is of no use at another.
"""

from __future__ import annotations

import os
import time

from kubeauthn._core.record import record
from kubeauthn.errors import CredentialError, MissingExtra, UsageError
from kubeauthn.plugin import credential

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PREFIX = "k8s-aws-v1."
CLUSTER_HEADER = "x-k8s-aws-id"
URL_SECONDS = 60
"""What every such token says; EKS looks at the date and takes it for 15 minutes."""
TOKEN_SECONDS = 14 * 60.0
"""A minute less than EKS takes it."""
SESSION_NAME = "kubeauthn"
_CONNECT_SECONDS, _READ_SECONDS = 10, 20
_NAME_CHARACTERS = 100


@record(frozen=True, slots=True)
class Settings:
    cluster_name: str
    region: str = ""
    profile: str = ""
    role_arn: str = ""
    session_name: str = SESSION_NAME
    endpoint_url: str = ""


def credential_function(settings: Settings) -> Callable[[credential.Request], credential.Credential]:
    def get_token(request: credential.Request) -> credential.Credential:
        token, seconds = make_token(settings)
        return credential.Token(token, expires_in=seconds)

    return get_token


def make_token(settings: Settings) -> tuple[str, float]:
    """The token, and how long it may be used. Raises CredentialError where AWS has nothing to sign with."""
    from base64 import urlsafe_b64encode

    check(settings)
    try:
        from botocore.auth import SigV4QueryAuth  # type: ignore[import-untyped]
        from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped]
        from botocore.session import Session  # type: ignore[import-untyped]
    except ImportError:
        raise MissingExtra("botocore", "aws") from None
    try:
        session = Session(profile=settings.profile or None)
        # botocore knows AWS_DEFAULT_REGION alone; the command line and the other SDKs read AWS_REGION first.
        region = settings.region or os.environ.get("AWS_REGION", "") or session.get_config_variable("region")
        if not region:
            raise UsageError("no region is named", hint="--region, AWS_REGION, or the profile's own")
        # The regional STS, also where an old configuration says otherwise: EKS takes no other in most regions.
        session.set_config_variable("sts_regional_endpoints", "regional")
        client = _client(session, settings, region)
        found, seconds = _of_role(client, settings) if settings.role_arn else _credentials(session)
        request = AWSRequest(
            method="GET",
            url=f"{client.meta.endpoint_url.rstrip('/')}/?Action=GetCallerIdentity&Version=2011-06-15",
            headers={CLUSTER_HEADER: settings.cluster_name},
        )
        SigV4QueryAuth(found, "sts", region, expires=URL_SECONDS).add_auth(request)
    except BotoCoreError as error:
        raise _failure(error) from None
    except ClientError as error:
        # The profile's role, or that of a web identity, is taken on when its credentials are first asked for.
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        raise CredentialError(
            f"AWS refused the credentials that were to sign: {code}",
            hint="aws sts get-caller-identity shows whether they hold; a role's trust policy must name who takes it on",
        ) from None
    return PREFIX + urlsafe_b64encode(request.url.encode()).rstrip(b"=").decode(), min(seconds, TOKEN_SECONDS)


def check(settings: Settings) -> None:
    """Raises UsageError."""
    name = settings.cluster_name
    if (
        not name
        or len(name) > _NAME_CHARACTERS
        or not name.isascii()
        or not name.replace("-", "").replace("_", "").isalnum()
    ):
        raise UsageError("--cluster-name takes letters, digits, - and _, up to 100 of them")
    if settings.role_arn and not settings.role_arn.startswith("arn:"):
        raise UsageError("--role-arn takes an ARN: arn:aws:iam::ACCOUNT:role/NAME")
    if settings.endpoint_url:
        from kubeauthn._core.oidc.provider import is_safe_address

        if not is_safe_address(settings.endpoint_url) or "?" in settings.endpoint_url:
            raise UsageError("--endpoint-url takes an https address")


def _client(session: Any, settings: Settings, region: str) -> Any:
    """botocore knows where STS is in each region and partition."""
    from botocore.config import Config  # type: ignore[import-untyped]

    config = Config(
        connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS, retries={"mode": "standard", "max_attempts": 2}
    )
    return session.create_client("sts", region_name=region, endpoint_url=settings.endpoint_url or None, config=config)


def _credentials(session: Any) -> tuple[Any, float]:
    """What signs, and how long it can: STS refuses a question that was signed with what has ended."""
    found = session.get_credentials()
    if found is None:
        raise CredentialError("no AWS credentials were found", hint="log in first: aws sso login, or name a --profile")
    frozen = found.get_frozen_credentials()
    ends = getattr(found, "_expiry_time", None)  # botocore has no public name for it
    return frozen, ends.timestamp() - time.time() if ends is not None else TOKEN_SECONDS


def _of_role(client: Any, settings: Settings) -> tuple[Any, float]:
    from botocore.credentials import Credentials  # type: ignore[import-untyped]
    from botocore.exceptions import ClientError

    try:
        answer = client.assume_role(RoleArn=settings.role_arn, RoleSessionName=settings.session_name)
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", "unknown"))
        raise CredentialError(
            f"AWS STS refused the role {settings.role_arn}: {code}",
            hint="the role's trust policy must name who you are: aws sts get-caller-identity",
        ) from None
    given = answer["Credentials"]
    signing = Credentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
    return signing.get_frozen_credentials(), given["Expiration"].timestamp() - time.time()


def _failure(error: BaseException) -> CredentialError:
    """Only some of botocore's texts are free of what was sent."""
    name = type(error).__name__
    hints = {
        "NoCredentialsError": "log in first: aws sso login",
        "ProfileNotFound": "aws configure list-profiles names those that are there",
        "TokenRetrievalError": "the login has ended: aws sso login",
        "UnauthorizedSSOTokenError": "the login has ended: aws sso login",
        "SSOTokenLoadError": "log in first: aws sso login",
        "InvalidRegionError": "is --region right?",
    }
    return CredentialError(f"AWS gave nothing to sign with: {name}", hint=hints.get(name))
