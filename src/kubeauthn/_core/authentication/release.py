"""What a release of Kubernetes knows of the file. The texts of the faults are always those of the newest."""

from __future__ import annotations

from kubeauthn._core.record import record
from kubeauthn.cel.kubernetes import LATEST, OLDEST
from kubeauthn.errors import UsageError

NEWEST = f"1.{LATEST}"
"""The release whose rules are followed unless another is asked for."""
RELEASES = tuple(f"1.{minor}" for minor in range(LATEST, OLDEST - 1, -1))

_VERSION_SINCE = {"v1alpha1": 29, "v1beta1": 30, "v1": 34}
_FIELD_SINCE = {
    ("Issuer", "discoveryURL"): 30,
    ("Issuer", "audienceMatchPolicy"): 30,
    ("AuthenticationConfiguration", "anonymous"): 31,
    ("Issuer", "egressSelectorType"): 34,
}
_FIRST_WITH_SEVERAL = 30  # several issuers, several audiences, and none at all
_FIRST_WITH_EMAIL_RULE = 30
_FIRST_WITH_RESERVED_KEYS = 32

_FIRST_WITH_SHORT_FAULTS = 34


@record(frozen=True, slots=True)
class Release:
    """A minor version: `Release.named("1.33")`."""

    minor: int

    @classmethod
    def named(cls, name: str) -> Release:
        major, _, rest = name.removeprefix("v").partition(".")
        minor = rest.partition(".")[0]
        if major != "1" or not (minor.isascii() and minor.isdigit()) or not OLDEST <= int(minor) <= LATEST:
            raise UsageError(f"Kubernetes 1.{OLDEST} to 1.{LATEST} are known, not {name!r}")
        return cls(int(minor))

    def has_version(self, version: str) -> bool:
        return self.minor >= _VERSION_SINCE.get(version, LATEST + 1)

    def has_field(self, struct: str, field: str) -> bool:
        return self.minor >= _FIELD_SINCE.get((struct, field), 0)

    @property
    def several_allowed(self) -> bool:
        """Any number of issuers, and of audiences of one; before, exactly one of each."""
        return self.minor >= _FIRST_WITH_SEVERAL

    @property
    def has_email_rule(self) -> bool:
        return self.minor >= _FIRST_WITH_EMAIL_RULE

    @property
    def reserves_keys(self) -> bool:
        """Whether extra keys under k8s.io and kubernetes.io are refused."""
        return self.minor >= _FIRST_WITH_RESERVED_KEYS

    def why_required(self, detail: str) -> str:
        """What is said of a field that is missing; from 1.34 on some faults say no more than that it is required."""
        return detail if self.minor < _FIRST_WITH_SHORT_FAULTS else ""
