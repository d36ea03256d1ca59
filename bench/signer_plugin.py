"""`kubeauthn-signer-pkcs11` answering one request: what it adds to its own start-up and to the token's work.

The token is SoftHSM2, its key made for this run. The token's own time is what another binding, python-pkcs11, needs in
a process that has it imported already, to load the module, log in, find the key and sign. The bare start-up is a plugin
written with the SDK that answers the same request with a constant. Byte code is there, as after an installation.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.measure import Row, interleaved, ratio_row
from kubeauthn._core.signerwire import VARIABLE, SigningAlgorithm, encode_sign_request

GOAL = 1.5
PIN = "92736451"
MODULES = ("/usr/lib/x86_64-linux-gnu/softhsm/libsofthsm2.so", "/usr/lib/softhsm/libsofthsm2.so")
PLUGIN = [sys.executable, "-c", "from kubeauthn.plugins.signer_pkcs11 import main; main()"]
BARE = [
    sys.executable,
    "-c",
    "from kubeauthn.plugin import signer\n"
    "class Constant:\n"
    "    def certificate(self): return b''\n"
    "    def sign(self, digest, algorithm): return b'signature'\n"
    "signer.run(Constant())",
]
TOKENS_WORK = """
import sys, time, pkcs11
started = time.perf_counter()
library = pkcs11.lib(sys.argv[1])
with library.get_token(token_label="desk").open(user_pin=sys.argv[2]) as session:
    (key,) = session.get_objects({pkcs11.Attribute.CLASS: pkcs11.ObjectClass.PRIVATE_KEY})
    key.sign(bytes(32), mechanism=pkcs11.Mechanism.ECDSA)
print(time.perf_counter() - started)
"""


def rows(folder: Path, *, quick: bool) -> Iterator[Row]:
    module = next((path for path in MODULES if os.path.exists(path)), None)
    if module is None or not shutil.which("softhsm2-util") or not shutil.which("pkcs11-tool"):
        return  # not installed here
    environ = make_token(folder, module)
    configuration = {"pathLib": module, "tokenLabel": "desk", "objectId": "2", "pin": PIN}
    digest = hashlib.sha256(b"hello").digest()
    request = encode_sign_request(configuration, digest, SigningAlgorithm("ec", hash="sha256"))
    asked = {**environ, VARIABLE: request}
    yield ratio_row(
        "signer: kubeauthn-signer-pkcs11 answers, the token's own time excluded",
        interleaved(
            lambda: seconds_of(asked, PLUGIN) - tokens_seconds(environ, module),
            partial(seconds_of, asked, BARE),
            5 if quick else 31,
            elsewhere=True,
        ),
        peer_name="a signer that answers with a constant",
        goal=GOAL,
        unit="ms",
        scale=1e3,
    )


def make_token(folder: Path, module: str) -> dict[str, str]:
    tokens = folder / "tokens"
    tokens.mkdir()
    conf = folder / "softhsm2.conf"
    conf.write_text(f"directories.tokendir = {tokens}\nobjectstore.backend = file\nlog.level = ERROR\n")
    environ = {**os.environ, "SOFTHSM2_CONF": str(conf)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the first, unmeasured round writes it
    run = partial(subprocess.run, env=environ, check=True, capture_output=True, timeout=60)
    run(["softhsm2-util", "--init-token", "--free", "--label", "desk", "--pin", PIN, "--so-pin", "61524378"])
    tool = ["pkcs11-tool", "--module", module, "--token-label", "desk", "--login", "--pin", PIN]
    run([*tool, "--keypairgen", "--key-type", "EC:prime256v1", "--id", "02", "--label", "key"])
    return environ


def seconds_of(environ: dict[str, str], argv: list[str]) -> float:
    started = time.perf_counter()
    done = subprocess.run(argv, env=environ, capture_output=True, stdin=subprocess.DEVNULL, timeout=60)
    elapsed = time.perf_counter() - started
    if done.returncode != 0:
        raise RuntimeError(done.stderr.decode())
    return elapsed


def tokens_seconds(environ: dict[str, str], module: str) -> float:
    argv = [sys.executable, "-c", TOKENS_WORK, module, PIN]
    return float(subprocess.run(argv, env=environ, capture_output=True, check=True, timeout=60).stdout)
