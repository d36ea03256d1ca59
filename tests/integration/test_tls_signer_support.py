"""Interpreters whose OpenSSL cannot be reached: each refused by name, with the way that works."""

from __future__ import annotations

import ctypes
import ssl
import subprocess
import sys
from typing import Any

import pytest

from kubeauthn._io.tls_signer import libcrypto
from kubeauthn._io.tls_signer.context_pointer import ContextPointer
from kubeauthn._io.tls_signer.libcrypto import Library
from kubeauthn.errors import SigningUnsupported


def refusal() -> SigningUnsupported:
    with pytest.raises(SigningUnsupported) as caught:
        ContextPointer(Library())
    return caught.value


@pytest.mark.parametrize("version", ["LibreSSL 4.1.0", "AWS-LC 1.40.0", "OpenSSL 1.1.1w  11 Sep 2023"])
def test_another_tls_library(monkeypatch: pytest.MonkeyPatch, version: str):
    monkeypatch.setattr(ssl, "OPENSSL_VERSION", version)
    if version.startswith("OpenSSL"):
        monkeypatch.setattr(ssl, "OPENSSL_VERSION_NUMBER", 0x1010117F)
    error = refusal()
    assert version in str(error)
    assert "uv venv --python /usr/bin/python3" in (error.hint or "")
    assert "kubeauthn bridge run" in (error.hint or "")


def test_openssl_3_0_0_would_crash(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ssl, "OPENSSL_VERSION_NUMBER", 0x30000000)
    assert "OpenSSL 3.0.1 or later" in str(refusal())


def test_another_interpreter(monkeypatch: pytest.MonkeyPatch):
    class OtherImplementation:
        name = "pypy"

    monkeypatch.setattr(libcrypto.sys, "implementation", OtherImplementation)
    assert str(refusal()) == "external keys need CPython, and this is pypy"


def test_functions_linked_in_and_hidden(monkeypatch: pytest.MonkeyPatch):
    class Hidden:
        """As a library looks that exports nothing."""

        def __init__(self, name: str | None) -> None: ...

    monkeypatch.setattr(ctypes, "PyDLL", Hidden)
    error = refusal()
    assert "linked into its ssl, which keeps its functions to itself" in str(error)
    assert "uv venv --python /usr/bin/python3" in (error.hint or "")


def test_another_copy_of_the_same_library(monkeypatch: pytest.MonkeyPatch):
    library: Any = Library()
    # A copy that `ssl` does not use never hears of new contexts.
    monkeypatch.setitem(library._functions, "CRYPTO_get_ex_new_index", lambda *_: 0)
    monkeypatch.setitem(library._functions, "CRYPTO_free_ex_index", lambda *_: 1)
    with pytest.raises(SigningUnsupported, match="another copy of OpenSSL"):
        ContextPointer(library)


SUB_INTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
number = interpreters.create()
interpreters.run_string(number, '''
import sys
sys.path[:] = {path!r}
try:
    from kubeauthn._io.tls_signer.libcrypto import Library
    Library()
except Exception as error:
    print(error)
''')
"""


def test_a_sub_interpreter():
    program = SUB_INTERPRETER.format(path=sys.path)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "sub-interpreter" in done.stdout, done.stderr
