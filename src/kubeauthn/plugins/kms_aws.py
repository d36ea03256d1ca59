"""AWS KMS, through botocore."""

from __future__ import annotations

import os

from kubeauthn.errors import KeyStoreError, MissingExtra, SignerRequestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from kubeauthn.plugin.signer import Configuration, SigningAlgorithm

_EC_PUBLIC_KEY = bytes.fromhex("06072a8648ce3d0201")
_CONNECT_SECONDS, _READ_SECONDS = 10, 30


class AwsKms:
    """One key. The digest is sent, never the message; the private key does not leave the service."""

    def __init__(self, configuration: Configuration) -> None:
        try:
            from botocore.config import Config  # type: ignore[import-untyped]
            from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]
            from botocore.session import Session  # type: ignore[import-untyped]
        except ImportError:
            raise MissingExtra("botocore", "aws") from None
        endpoint = configuration.get("endpointUrl") or None
        if endpoint and not endpoint.startswith("https://"):
            raise SignerRequestError("endpointUrl must be https")
        self._key_id = configuration["keyId"]
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_READ_SECONDS,
            retries={"mode": "standard", "max_attempts": 3},
        )
        try:
            session = Session(profile=configuration.get("profile") or None)
            # botocore itself knows AWS_DEFAULT_REGION alone.
            region = configuration.get("region") or os.environ.get("AWS_REGION") or None
            self._client: Any = session.create_client("kms", region_name=region, endpoint_url=endpoint, config=config)
        except BotoCoreError as error:
            raise KeyStoreError(f"AWS KMS: {_one_line(error)}", hint="set region in the entry, or AWS_REGION") from None
        self._curve: bool | None = None

    def public_key(self) -> bytes:
        answer = self._ask("get_public_key", KeyId=self._key_id)
        if answer.get("KeyUsage") != "SIGN_VERIFY":
            raise KeyStoreError("keyId: the key is not for signing (its usage is not SIGN_VERIFY)")
        content = bytes(answer["PublicKey"])
        self._curve = _EC_PUBLIC_KEY in content[:32]
        return content

    def sign(self, digest: bytes, algorithm: SigningAlgorithm) -> bytes:
        answer = self._ask(
            "sign",
            KeyId=self._key_id,
            Message=digest,
            MessageType="DIGEST",
            SigningAlgorithm=self._algorithm(algorithm),
        )
        return bytes(answer["Signature"])

    def _algorithm(self, algorithm: SigningAlgorithm) -> str:
        """A request for PKCS#1 v1.5 or ECDSA looks the same: then the key's own kind decides."""
        number = algorithm.hash.removeprefix("sha")
        if algorithm.padding == "pss":
            if algorithm.salt * 8 != int(number):
                raise KeyStoreError("AWS KMS signs RSA-PSS only with a salt as long as the hash")
            return f"RSASSA_PSS_SHA_{number}"
        kind = algorithm.key_kind
        if not kind:
            if self._curve is None:
                self.public_key()
            kind = "ec" if self._curve else "rsa"
        return f"ECDSA_SHA_{number}" if kind == "ec" else f"RSASSA_PKCS1_V1_5_SHA_{number}"

    def _ask(self, operation: str, **parameters: Any) -> dict[str, Any]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            answer: dict[str, Any] = getattr(self._client, operation)(**parameters)
        except ClientError as error:
            code = str(error.response.get("Error", {}).get("Code", "unknown"))
            raise KeyStoreError(f"keyId: AWS KMS refused {operation}: {code}", hint=_HINTS.get(code)) from None
        except BotoCoreError as error:
            # Some of these texts quote parameters, and the digest is one.
            raise KeyStoreError(
                f"AWS KMS cannot be asked: {type(error).__name__}", hint=_no_credentials(error)
            ) from None
        return answer


_HINTS = {
    "AccessDeniedException": "the caller needs kms:Sign and kms:GetPublicKey on this key",
    "NotFoundException": "is it in this region and account?",
    "DisabledException": "the key is disabled",
    "InvalidKeyUsageException": "the key must be made with KeyUsage SIGN_VERIFY, and offer this algorithm",
}


def _no_credentials(error: BaseException) -> str | None:
    return "log in to AWS first: aws sso login" if type(error).__name__ == "NoCredentialsError" else None


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
