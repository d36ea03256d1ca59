"""Turn kube-apiserver's --oidc-* flags into an AuthenticationConfiguration file that does the same.

The file goes to standard output; what has no equivalent stands in it as a comment.
"""

from __future__ import annotations

from kubeauthn.cli import failure
from kubeauthn.cli.config_file import checked_version, read
from kubeauthn.errors import AuthenticationConfigError, EnvironmentFailure, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn._core.authentication.migration import OidcFlags
    from kubeauthn.cli.world import World

HELP = "the kube-apiserver --oidc-* flags, turned into a configuration file"
CA_BYTES = 4 << 20


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--oidc-issuer-url", metavar="URL", required=True, help="the issuer")
    parser.add_argument("--oidc-client-id", metavar="ID", required=True, help="becomes the audience")
    parser.add_argument("--oidc-username-claim", metavar="CLAIM", default="sub", help="the user name (sub)")
    parser.add_argument(
        "--oidc-username-prefix", metavar="PREFIX",
        help="before each name; - is none; not given: the issuer and #, unless the claim is email",
    )  # fmt: skip
    parser.add_argument("--oidc-groups-claim", metavar="CLAIM", default="", help="the groups")
    parser.add_argument("--oidc-groups-prefix", metavar="PREFIX", help="before each group")
    parser.add_argument("--oidc-required-claim", action="append", default=[], metavar="KEY=VALUE", help="may repeat")
    parser.add_argument("--oidc-ca-file", metavar="FILE", help="its content is put into the file")
    parser.add_argument(
        "--oidc-signing-algs", metavar="ALGS", action="append", default=[],
        help="separated by commas; may repeat; has no equivalent (RS256)",
    )  # fmt: skip
    parser.add_argument("--kubernetes", metavar="VERSION", help="for this release, such as 1.33 (newest)")


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn._core.authentication.load import load_configuration
    from kubeauthn._core.authentication.migration import configuration_text
    from kubeauthn._core.authentication.release import NEWEST, Release

    release = checked_version(arguments.kubernetes) if arguments.kubernetes else NEWEST
    known = Release.named(release)
    version = next((version for version in ("v1", "v1beta1", "v1alpha1") if known.has_version(version)), "")
    if not version:
        raise UsageError(f"Kubernetes {release} reads no such file")
    text = configuration_text(_flags(arguments, world), version)
    try:
        load_configuration(text, kubernetes=release)
    except AuthenticationConfigError as error:
        for fault in error.errors:
            world.complain("error", fault.text)
        world.complain("hint", "kube-apiserver would refuse the file that these flags make; nothing was printed")
        return failure.NO
    world.stdout.write(text)
    return failure.YES


def _flags(arguments: Namespace, world: World) -> OidcFlags:
    from kubeauthn._core.authentication.migration import OidcFlags

    required: dict[str, str] = {}
    for pair in arguments.oidc_required_claim:
        claim, equals, value = pair.partition("=")
        if not equals or not claim.strip():
            raise UsageError(f"--oidc-required-claim takes KEY=VALUE, not {pair}")
        required[claim.strip()] = value.strip()
    return OidcFlags(
        issuer_url=arguments.oidc_issuer_url,
        client_id=arguments.oidc_client_id,
        username_claim=arguments.oidc_username_claim,
        username_prefix=arguments.oidc_username_prefix or None,
        groups_claim=arguments.oidc_groups_claim,
        groups_prefix=arguments.oidc_groups_prefix,
        required_claims=tuple(required.items()),
        ca=_authority(arguments.oidc_ca_file, world),
        signing_algs=_algorithms(arguments.oidc_signing_algs),
    )


def _algorithms(given: list[str]) -> tuple[str, ...]:
    from kubeauthn._core.authentication.migration import ALL_ALGORITHMS, DEFAULT_ALGORITHMS

    named = tuple(dict.fromkeys(name for one in given for name in one.split(",") if name))
    for name in named:
        if name not in ALL_ALGORITHMS:
            raise UsageError(f"--oidc-signing-algs takes {', '.join(ALL_ALGORITHMS)}, not {name}")
    return named or DEFAULT_ALGORITHMS


def _authority(path: str | None, world: World) -> str:
    if not path:
        return ""
    try:
        text = read(path, CA_BYTES, world).decode("ascii")
    except UnicodeDecodeError:
        raise EnvironmentFailure(f"{path}: not PEM text") from None
    certificates = _certificates(text)
    if not certificates:
        raise EnvironmentFailure(f"{path}: it holds no certificate in PEM")
    return certificates


def _certificates(text: str) -> str:
    """The certificates alone: a file may hold a private key too, which must not come along."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    blocks = [rest.partition(end)[0] for rest in text.split(begin)[1:]]
    return "\n".join(f"{begin}\n{block.strip()}\n{end}" for block in blocks)
