"""What `--self-signed` prints, and the certificate it made."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest
import yaml
from cryptography import x509

from kubeauthn.server.self_signed import make, webhook_kubeconfig


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7", "0.0.0.0", "::"])
def test_the_printed_address_is_one_that_the_certificate_is_for(host: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    pem = make(host).chain
    cluster = yaml.safe_load(webhook_kubeconfig(f"https://{shown}:8443", pem))["clusters"][0]["cluster"]
    names = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    found = ip_address(str(urlsplit(cluster["server"]).hostname))
    assert found in names.get_values_for_type(x509.IPAddress)
    assert (found.is_loopback, urlsplit(cluster["server"]).port) == (host != "192.0.2.7", 8443)
