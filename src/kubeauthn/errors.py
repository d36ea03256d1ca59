"""Every error that kubeauthn raises (CEL has a tree of its own).

The class says who must act::

    KubeauthnError
    ├── UsageError                the caller: arguments that do not fit together
    ├── EnvironmentFailure        the machine: a file that cannot be read, a part that is missing
    │   ├── MissingExtra          … an optional dependency: the text says what to install
    │   └── SigningUnsupported    … this interpreter's TLS cannot take a key from outside: the hint says which can
    ├── KubeconfigError           the owner of the kubeconfig: every fault, with file, line and field
    │   └── KubercError           … of the kuberc with the plugin policy
    ├── AuthenticationConfigError the owner of an AuthenticationConfiguration file: every fault, with its place
    ├── CredentialError           no credential, so nothing was sent
    │   ├── StaticCredentialError the owner of a token file, certificate or key named in the kubeconfig
    │   ├── AuthProviderError     the owner of an `auth-provider` entry: gone, unknown, or refused
    │   ├── LoginFailed           the person or the issuer: a login, or its token, does not hold; the text says who
    │   ├── InteractionRequired   the person: the plugin needs a terminal and there is none
    │   ├── PluginDenied          the person or administrator who wrote the plugin policy
    │   ├── PluginNotFound        the person: the plugin is not installed
    │   ├── PluginFailed          the plugin: it ended with an exit code, by a signal, or not in time
    │   │   └── PluginTimeout
    │   ├── PluginReplyError      the plugin's author: what it printed is not a credential
    │   ├── SigningFailed         the external signer: no signature that fits, so the handshake was given up
    │   ├── ProxyUnreachable      the proxy plugin: nobody, or somebody else, is where it said that its proxy listens
    │   ├── ProxyRefused          the machine: another user owns, or could change, the socket of a proxy
    │   └── CredentialWaiting     time: the last attempt failed, the next one is not due yet
    ├── KeyStoreError             the person whose token, TPM, key file or KMS it is: it said no or is not there
    │   ├── PinRefused            … the PIN or passphrase is wrong; it is never tried again by itself
    │   ├── KeyStoreAbsent        … it is not there, or was pulled out
    │   └── NotSigned             … it was open to us and did not sign: not touched in time, or busy. It was not the PIN
    ├── NotMine                   nobody: no configured issuer made this token, another authenticator may know it
    ├── TokenError                the token's holder: it was refused, and `rule` says by what
    │   ├── MalformedToken        … it is no compact JWS that can be read, or its claims are of the wrong type
    │   ├── SignatureRefused      … algorithm, key or signature
    │   ├── AudienceRefused       … it is meant for somebody else
    │   ├── TokenExpired          … it has ended, or never said when it ends
    │   ├── TokenNotYetValid      … its time has not come
    │   ├── ClaimRefused          … a claim rule said no
    │   ├── MappingFailed         … its claims give no user
    │   ├── UserRefused           … a user rule said no
    │   ├── KeysUnavailable       the issuer or the network: its keys are not there, or not yet
    │   └── ClaimUnavailable      a claim source: a distributed or aggregated claim cannot be had
    ├── Unauthenticated           the sender of a request to a view: no token, or none that holds
    ├── KeySetError               the issuer: what it publishes is no key set
    ├── NotAReview                the webhook's caller: what it posted is no TokenReview
    ├── ExecInfoError             the plugin's caller: KUBERNETES_EXEC_INFO is missing or not readable
    ├── SignerRequestError        the signer's caller: EXTERNAL_SIGNER_PLUGIN_CONFIG is missing or not readable
    ├── HttpMessageError          whoever sent an HTTP message that can be read in two ways: no proxy carries it on
    ├── UpstreamError             the network or the API server: a proxy cannot reach it, or it broke off
    └── RequestRefused            the server: it answered 401 or 403 (command line only)

Texts are lower case, without a full stop and without secrets. `hint` is what a person
could do about it; the command line and the plugin SDK print it, and it stands as a note
in the traceback too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class ConfigurationFault(Protocol):
        """One fault of an AuthenticationConfiguration. Lines and columns count from 1; 0 is nowhere in particular."""

        @property
        def text(self) -> str: ...  # as Kubernetes prints it
        @property
        def field(self) -> str: ...  # `jwt[0].issuer.url`
        @property
        def line(self) -> int: ...
        @property
        def column(self) -> int: ...
        @property
        def kind(self) -> str: ...  # syntax, decode, strict, validation, expression


class KubeauthnError(Exception):
    """The root of them all."""

    hint: str | None = None
    _hint_is_noted = True
    """Whether a traceback shows the hint."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        if hint is not None:
            self.hint = hint
            if self._hint_is_noted:
                self.add_note(f"hint: {hint}")


class UsageError(KubeauthnError):
    """Arguments that do not fit together."""


class EnvironmentFailure(KubeauthnError):
    """A file that cannot be read, a system part that is missing."""


class MissingExtra(EnvironmentFailure):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed: pip install 'kubeauthn[{extra}]'")
        self.package = package
        self.extra = extra

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str]]:
        # An error that another process cannot read leaves a pool of processes waiting for ever.
        return type(self), (self.package, self.extra)


class SigningUnsupported(EnvironmentFailure):
    """This interpreter's TLS library cannot be given a key that stays outside the process."""


class KubeconfigError(KubeauthnError):
    """A kubeconfig is not right. `faults` lists all that was found, each with its place."""

    def __init__(self, message: str, *, faults: Sequence[object] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.faults = tuple(faults)


class KubercError(KubeconfigError):
    """The kuberc, which carries the plugin policy, is not right."""


class AuthenticationConfigError(KubeauthnError):
    """An AuthenticationConfiguration is not right. `errors` lists every fault: text, field, line, column, kind."""

    def __init__(self, message: str, *, errors: Sequence[ConfigurationFault] = (), hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.errors = tuple(errors)


class CredentialError(KubeauthnError):
    """There is no credential, so no request was sent."""


class StaticCredentialError(CredentialError):
    """A token file, certificate or key that the kubeconfig names cannot be used."""


class AuthProviderError(CredentialError):
    """An `auth-provider` that is gone, unknown, or gave no token."""


class LoginFailed(CredentialError):
    """A login at an identity provider gave no token that holds. The text names who must act."""


class InteractionRequired(CredentialError):
    """The plugin must talk to a person, and there is no terminal."""


class PluginDenied(CredentialError):
    """The plugin policy does not allow this plugin."""


class PluginNotFound(CredentialError):
    """The plugin's executable is not there, or may not be executed."""

    _hint_is_noted = False  # who raises it notes the kubeconfig's install hint, word for word


class PluginFailed(CredentialError):
    """The plugin ended without a credential. `exit_code` is negative for a signal, None if it never ended."""

    def __init__(self, message: str, *, exit_code: int | None = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class PluginTimeout(PluginFailed):
    """The plugin did not answer in time; it and what it had started were ended."""


class PluginReplyError(CredentialError):
    """The plugin answered something that is not a usable credential."""


class SigningFailed(CredentialError):
    """The external signer gave no signature that fits, so the TLS handshake was given up. The cause says why."""


class ProxyUnreachable(CredentialError):
    """Nobody, or somebody else, is where a plugin said that its proxy listens. Nothing was sent."""


class ProxyRefused(CredentialError):
    """The socket of a proxy, or its directory, belongs to another user or could be changed by one. Nothing was sent."""


class CredentialWaiting(CredentialError):
    """An attempt failed a moment ago; the next one is not due yet. `retry_after` is in seconds."""

    def __init__(self, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class KeyStoreError(KubeauthnError):
    """A token, TPM, key file or key management service cannot sign, and the text says which part is at fault."""


class PinRefused(KeyStoreError):
    """The PIN or passphrase is wrong. Never tried again by itself: tokens lock."""


class KeyStoreAbsent(KeyStoreError):
    """The token is not there, or was pulled out."""


class NotSigned(KeyStoreError):
    """The key was open to us and did not sign this time: nobody touched it, say. The PIN has nothing to do with it."""


class NotMine(KubeauthnError):
    """No issuer of the configuration made this token. It may be another authenticator's."""


class TokenError(KubeauthnError):
    """The token is refused. The text is the whole reason, in kube-apiserver's words; it may hold claims.

    `public_message` is what its sender may be told: it never holds a claim's value nor a rule's message.
    `rule` is the field of the configuration that refused it, such as `jwt[0].claimValidationRules[1]`, or "".
    `issuer` is the configured issuer that the token named.
    """

    public_message = "the token is refused"

    def __init__(
        self,
        message: str,
        *,
        public_message: str | None = None,
        rule: str = "",
        issuer: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        if public_message is not None:
            self.public_message = public_message
        self.rule = rule
        self.issuer = issuer


class MalformedToken(TokenError):
    """It is no compact JWS that can be read, or its registered claims are of the wrong type."""

    public_message = "the token is malformed"


class SignatureRefused(TokenError):
    """The algorithm is not allowed, no key fits, or the signature is wrong."""

    public_message = "the token's signature cannot be verified"
    newer_keys_may_help = False
    """No key at hand has the token's key id, and the issuer, which may have a new one, was not asked or did not answer:
    the same token may be good a moment later."""


class AudienceRefused(TokenError):
    """The token is meant for another audience."""

    public_message = "the token is not meant for this audience"


class TokenExpired(TokenError):
    """The token has ended, or does not say when it ends."""

    public_message = "the token is expired"


class TokenNotYetValid(TokenError):
    """The token's `nbf` is more than a minute ahead."""

    public_message = "the token is not valid yet"


class ClaimRefused(TokenError):
    """A claim validation rule was not met, or could not be evaluated."""

    public_message = "the token's claims are refused by a rule"


class MappingFailed(TokenError):
    """The claims give no user name, or something else than a user needs."""

    public_message = "the token's claims cannot be mapped to a user"


class UserRefused(TokenError):
    """A user validation rule was not met, or could not be evaluated."""

    public_message = "the user is refused by a rule"


class KeysUnavailable(TokenError):
    """The issuer's keys are not at hand, so nothing it signed can be checked."""

    public_message = "the token's issuer cannot be reached"


class ClaimUnavailable(TokenError):
    """A distributed or aggregated claim cannot be had."""

    public_message = "a claim of the token cannot be fetched"


class Unauthenticated(KubeauthnError):
    """A request has no user. `status` (401 or 503) and `headers` are the answer; `public_message` may be its body.

    The text is the whole reason, and for the log: it may hold claims.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 401,
        public_message: str = "a bearer token is required",
        www_authenticate: str = "",
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.public_message = public_message
        self.www_authenticate = www_authenticate

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": self.www_authenticate} if self.www_authenticate else {"Retry-After": "5"}


class KeySetError(KubeauthnError):
    """What an issuer publishes is no key set."""


class NotAReview(KubeauthnError):
    """The body is no TokenReview that can be answered."""


class ExecInfoError(KubeauthnError):
    """KUBERNETES_EXEC_INFO is missing, or is not an ExecCredential."""


class SignerRequestError(KubeauthnError):
    """EXTERNAL_SIGNER_PLUGIN_CONFIG is missing, or is not a request to a signer."""


class HttpMessageError(KubeauthnError):
    """An HTTP message that a proxy does not carry on. `status` is the answer it deserves."""

    def __init__(self, message: str, *, status: int = 400, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class UpstreamError(KubeauthnError):
    """The API server, or the proxy before it, cannot be reached or broke off. `status` is what the client is told."""

    def __init__(self, message: str, *, status: int = 502, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class RequestRefused(KubeauthnError):
    """The server answered 401 or 403."""

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status
