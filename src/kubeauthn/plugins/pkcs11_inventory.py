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
    import pkcs11

    library = load_module(path)
    tokens = []
    with in_words("listing the slots"):
        slots = library.get_slots()
    for slot in slots:
        try:
            token = slot.get_token()
        except pkcs11.PKCS11Error:
            continue
        entry: dict[str, Any] = {
            "slotId": slot.slot_id,
            "label": str(token.label).strip(),
            "locked": bool(token.flags & pkcs11.TokenFlag.USER_PIN_LOCKED),
            "lastTry": bool(token.flags & pkcs11.TokenFlag.USER_PIN_FINAL_TRY),
            "objects": [],
        }
        if token.flags & pkcs11.TokenFlag.TOKEN_INITIALIZED:
            entry["objects"] = _objects(token)
            tokens.append(entry)
    return {
        "module": path,
        "description": str(library.library_description).strip(),
        "slots": len(slots),
        "tokens": tokens,
    }


def _objects(token: Any) -> list[dict[str, str]]:
    import pkcs11

    found: list[dict[str, str]] = []
    with in_words("listing the objects"), token.open() as session:
        for kind, name in ((pkcs11.ObjectClass.PUBLIC_KEY, "key"), (pkcs11.ObjectClass.CERTIFICATE, "certificate")):
            for item in session.get_objects({pkcs11.Attribute.CLASS: kind}):
                entry = {"kind": name, "id": bytes(item[pkcs11.Attribute.ID]).hex(), "label": ""}
                entry["label"] = str(item[pkcs11.Attribute.LABEL])
                if name == "key":
                    entry["type"] = getattr(item.key_type, "name", str(item.key_type))
                else:
                    entry["certificate"] = bytes(item[pkcs11.Attribute.VALUE]).hex()
                found.append(entry)
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
