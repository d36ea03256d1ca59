"""What a PKCS#11 module shows without a PIN: slots, tokens, public keys and certificates.

Run as a program, for one module: `python -m kubeauthn.plugins.pkcs11_inventory PATH`. A module is foreign code, and one
that crashes or hangs must not take the doctor with it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from kubeauthn.errors import KubeauthnError
from kubeauthn.plugins import cryptoki_table as ck
from kubeauthn.plugins.cryptoki import CryptokiError, Module
from kubeauthn.plugins.pkcs11_module import in_words, load_module

_DESCRIPTIONS = ("/usr/share/p11-kit/modules", "/etc/pkcs11/modules")
_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
_NAMES = (
    "softhsm/libsofthsm2.so",
    "pkcs11/opensc-pkcs11.so",
    "opensc-pkcs11.so",
    "libykcs11.so",
    "libtpm2_pkcs11.so",
    "pkcs11/libtpm2_pkcs11.so",
)


def installed_modules() -> list[str]:
    """Those that p11-kit knows, and those in the usual places; each file once."""
    found: dict[str, None] = {}
    for folder in _DESCRIPTIONS:
        for description in sorted(Path(folder).glob("*.module")):
            for line in description.read_text(errors="replace").splitlines():
                key, _, value = line.partition(":")
                if key.strip() == "module" and (path := _located(value.strip())):
                    found[path] = None
    for name in _NAMES:
        if path := _located(name):
            found[path] = None
    return list(found)


def _located(name: str) -> str | None:
    places = [name] if os.path.isabs(name) else [os.path.join(folder, name) for folder in _FOLDERS]
    places += [os.path.join(folder, "pkcs11", name) for folder in _FOLDERS if not os.path.isabs(name)]
    return next((os.path.realpath(place) for place in places if os.path.isfile(place)), None)


def inventory(path: str) -> dict[str, Any]:
    module = load_module(path)
    tokens = []
    with in_words("listing the slots"):
        slots = module.slots()
    for slot in slots:
        try:
            token = module.token(slot)
        except CryptokiError:
            continue
        if token.flags & ck.TOKEN_INITIALIZED:
            entry: dict[str, Any] = {
                "slotId": slot,
                "label": token.label,
                "locked": bool(token.flags & ck.USER_PIN_LOCKED),
                "lastTry": bool(token.flags & ck.USER_PIN_FINAL_TRY),
                "objects": _objects(module, slot),
            }
            tokens.append(entry)
    with in_words("asking the module for its name"):
        description = module.description()
    return {"module": path, "description": description, "slots": len(slots), "tokens": tokens}


def _objects(module: Module, slot: int) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    with in_words("listing the objects"):
        session = module.open(slot)
        try:
            for kind, name in ((ck.PUBLIC_KEY, "key"), (ck.CERTIFICATE, "certificate")):
                for item in session.find({ck.CLASS: kind}):
                    identifier = session.value(item, ck.ID) or b""
                    entry = {"kind": name, "id": identifier.hex(), "label": session.text(item, ck.LABEL)}
                    if name == "key":
                        number = session.number(item, ck.KEY_TYPE)
                        entry["type"] = "of no kind" if number is None else ck.KEY_TYPES.get(number, str(number))
                    else:
                        entry["certificate"] = (session.value(item, ck.VALUE) or b"").hex()
                    found.append(entry)
        finally:
            session.close()
    return found


def main() -> int:
    try:
        report = inventory(sys.argv[1])
    except KubeauthnError as error:
        report = {"module": sys.argv[1], "error": str(error)}
    sys.stdout.write(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
