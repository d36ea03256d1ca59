"""For programs that check tokens: one AuthenticationConfiguration file, and who a token is.

    from kubeauthn.server import Authenticator, load_configuration

    config = load_configuration(text)                     # raises AuthenticationConfigError: every fault
    authenticator = Authenticator(config, keys={issuer_url: jwks})
    user = authenticator.authenticate(token)              # raises TokenError with the reason, or NotMine
    print(authenticator.explain(token))                   # every step of the way

Without `keys` the issuers are asked for theirs; `authenticate_async` fetches what a token needs, `authenticate` uses
what is at hand.
"""

from __future__ import annotations

from kubeauthn._core.authentication.load import load_configuration
from kubeauthn._core.authentication.model import AuthenticationConfiguration
from kubeauthn._core.authentication.trace import Step, Trace
from kubeauthn._core.authentication.verdict import UserInfo
from kubeauthn.server.authenticator import Authenticator

__all__ = [
    "Authenticator",
    "load_configuration",
    "AuthenticationConfiguration",
    "UserInfo",
    "Trace",
    "Step",
]
