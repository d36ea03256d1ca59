"""What `--help` shows last: how each command is mostly used. Each line is a command line that its parser takes."""

from __future__ import annotations

__all__ = ["EXAMPLES", "example_line", "examples_of"]

EXAMPLES: dict[str, tuple[str, ...]] = {
    "raw": ("/api/v1/namespaces", "POST /api/v1/namespaces -f namespace.json"),
    "whoami": ("", "--context prod -o json"),
    "credential": ("--context prod",),
    "doctor": ("", "--context prod"),
    "plugin check": ("-- ./my-plugin", "--kind signer -- kubeauthn-signer-pkcs11"),
    "plugin oidc": (
        "--issuer-url https://dex.example.com --client-id kubernetes --print-kubeconfig",
        "--issuer-url https://dex.example.com --client-id kubernetes --grant device-code --login",
    ),
    "plugin cache": ("-- slow-plugin get-token", "--clear"),
    "plugin eks": ("--cluster-name prod --region eu-central-1",),
    "plugin service-account": ("robot -n ci --context prod --print-kubeconfig",),
    "plugin github-actions": ("--audience kubernetes",),
    "signer doctor": ("", "--write jane"),
    "signer agent": ("--minutes 15 --confirm",),
    "signer request-certificate": ("--signer-user jane --name jane --group dev",),
    "check": ("authn.yaml", "--strict --kubernetes 1.33 -o github authn.yaml", "--online authn.yaml"),
    "explain": (
        "authn.yaml --token-file token.jwt --online",
        "authn.yaml --claims claims.json --show-claims",
    ),
    "test": ("suite.yaml", "suite.yaml -k developer --junit report.xml"),
    "migrate": ("--oidc-issuer-url=https://login.example.com --oidc-client-id=kubernetes",),
    "schema": ("",),
    "cel": ("'claims.groups.size() > 1' --claims claims.json", "--user user.json"),
    "serve": ("authn.yaml --self-signed", "authn.yaml --listen 0.0.0.0:8443 --tls-cert tls.crt --tls-key tls.key"),
    "revoke": ("--file revoked.yaml --issuer https://dex.example.com --subject jane",),
    "kubectl": ("-- get pods",),
    "bridge run": ("-- helm list",),
    "bridge kubeconfig": ("--write bridged.yaml",),
    "bridge list": ("",),
    "bridge stop": ("--all",),
    "playground": ("authn.yaml --claims claims.json",),
    "demo": ("", "--keep"),
    "completion": ("bash",),
}

AROUND = {"completion": 'eval "$({})"', "migrate": "{} > authn.yaml", "schema": "{} > authn.schema.json"}
"""Where what a command prints is to go: that is how it is used."""


def example_line(name: str, words: str, program: str) -> str:
    return AROUND.get(name, "{}").format(f"{program} {name} {words}".rstrip())


def examples_of(name: str, program: str) -> str:
    """The end of a command's help."""
    lines = [f"  {example_line(name, words, program)}" for words in EXAMPLES.get(name, ())]
    return "\n".join(["", "examples:" if len(lines) > 1 else "example:", *lines, ""]) if lines else ""
