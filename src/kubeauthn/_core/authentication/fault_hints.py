"""How to mend a fault: for those that people make, what they probably meant."""

from __future__ import annotations

from kubeauthn._core.authentication.cel_fault_hints import cel_hint, unknown_name_hint
from kubeauthn._core.authentication.faults import STRICT
from kubeauthn._core.authentication.model import GROUP, KIND
from kubeauthn._core.authentication.provider_document import WELL_KNOWN
from kubeauthn._core.authentication.schema import STRUCTS, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn.errors import ConfigurationFault

_BASE64_OF_PEM = "LS0tLS1CRUdJTi"  # "-----BEGIN"
_ENDINGS = (".crt", ".pem", ".cer", ".ca")

ONE_LINE = "this is one text and no mapping: if it is the name of a file, give what is in the file"

_BRACES = "are there braces of a template? check what the template makes"

_BY_TEXT = (
    ("empty config data", "the file is empty: kubeauthn playground has examples to begin with"),
    ("not UTF-8 text", "save it as UTF-8; > of PowerShell writes UTF-16, and some editors ANSI"),
    ("issuer.url: Required value", "issuer: {url: https://…, audiences: […]}, the url as it is in the tokens' iss"),
    ("at least one jwt[", "audiences: [NAME], as it is in the tokens' aud"),
    ("username: Required value: claim or expression", 'username: {claim: sub, prefix: "oidc:"}, for example'),
    ("claims.email_verified must be used", "e.g. a claim rule claims.?email_verified.orValue(true) == true"),
    ("prefix is required when claim is set", 'write prefix: "" for names as they are, or a prefix such as "oidc:"'),
    ("discoveryURL must be different from URL", f"it is the address of the document: …{WELL_KNOWN}, or leave it out"),
    ("audienceMatchPolicy must be empty or MatchAny", "leave it out, or write audienceMatchPolicy: MatchAny"),
    ("issuer.audiences of type []string", "it is a list: audiences: [kubernetes]"),
    ("cannot unmarshal string into Go value of type struct", ONE_LINE),
    ("OrExpression", "it is an object: {claim: NAME, prefix: …}, or {expression: …}"),
    ("requiredValue of type string", "it is one text: for several write expression: claims.x in ['a', 'b']"),
    ("did not find expected key", "are there quotes inside of such quotes, or lines that are not below each other?"),
    ("yaml: invalid map key: map[", _BRACES),
    ("invalid character '{' looking for beginning of object key", _BRACES),
    ("found character that cannot start any token", "is there a tab? YAML is indented with spaces alone"),
    ("did not find expected whitespace or line break", 'an expression that begins with ! is quoted: "!user…"'),
    (".expression: Required value", 'is it quoted? to YAML, a word that begins with ! is a tag: write "!user…"'),
    ("audienceMatchPolicy must be MatchAny", "write audienceMatchPolicy: MatchAny: one of the audiences is enough"),
    ("claim and expression can't both be set", "keep one of them"),
    ("here a second one begins", "kube-apiserver would take the first document and pass over the others in silence"),
    ("must be a domain-prefixed path", "write a domain of yours before it: example.com/name"),
    ("URL scheme must be https", "keys that come over plain http are anybody's"),
    ("Object 'Kind' is missing", "kind: AuthenticationConfiguration"),
    ("Object 'apiVersion' is missing", "apiVersion: apiserver.config.k8s.io/v1"),
)  # fmt: skip


def fault_hint(fault: ConfigurationFault, config: AuthenticationConfiguration | None = None) -> str:
    """What may be added to a fault, or ""."""
    if fault.field.endswith(".certificateAuthority") and config is not None:
        return _authority_hint(_authority(fault.field, config))
    if fault.kind == STRICT and fault.text.startswith("unknown field"):
        return _field_hint(fault.field)
    if fault.text.startswith("no kind "):
        if f'"{KIND}"' not in fault.text and any(f'"{GROUP}/{version}"' in fault.text for version in VERSIONS):
            return f"kind: {KIND}"
        return "AuthenticationConfiguration is of apiserver.config.k8s.io: v1 since 1.34, v1beta1 1.30, v1alpha1 1.29"
    if fault.text.endswith(" of type string") and "cannot unmarshal bool into" in fault.text:
        return "put it in quotes: to YAML, yes, no, on, off, true and false are no texts"
    if fault.text.endswith(" of type string") and "cannot unmarshal number into" in fault.text:
        return "put it in quotes: to YAML it is a number"
    if "cannot unmarshal " in fault.text and " of type []" in fault.text and "[]string" not in fault.text:
        return "it is a list: each entry begins with a dash"
    of_user = "userValidationRules" in fault.field
    return text_hint(fault.text) or unknown_name_hint(fault.text, of_user=of_user)


def text_hint(text: str) -> str:
    """What may be added to a message of the decoder or the CEL checker, wherever it came from, or ""."""
    return next((hint for part, hint in _BY_TEXT if part in text), "") or cel_hint(text)


def _authority(field: str, config: AuthenticationConfiguration) -> str:
    index = field.removeprefix("jwt[").partition("]")[0]
    return config.jwt[int(index)].issuer.certificate_authority if index.isdecimal() else ""


def _authority_hint(text: str) -> str:
    stripped = text.strip()
    if stripped.startswith(_BASE64_OF_PEM):
        return "it is base64 of a PEM text: put the PEM text itself here"
    has_block, has_lines = "-----BEGIN" in stripped, "\n" in stripped
    if not has_block and not has_lines and ("/" in stripped or "\\" in stripped or stripped.endswith(_ENDINGS)):
        return "it looks like the path of a file: put the content of that file here (certificateAuthority: |)"
    if has_block and not has_lines:
        return "the line breaks of the PEM text are missing: write it as a block (certificateAuthority: |)"
    return "it takes certificates in PEM, as text (certificateAuthority: |)"


_OTHER_NAMES = {
    "issuerurl": "url", "clientid": "audiences", "clientids": "audiences",
    "value": "requiredValue", "requiredclaim": "claimValidationRules", "requiredclaims": "claimValidationRules",
    "usernameclaim": "username", "groupsclaim": "groups", "rule": "expression",
    "ca": "certificateAuthority", "cafile": "certificateAuthority", "cabundle": "certificateAuthority",
}  # fmt: skip
"""What the flags, other files and the KEP itself call a field, in lower case."""
_MOST_PLACES = 2


def _field_hint(field: str) -> str:
    from difflib import get_close_matches

    above, _, last = field.rpartition(".")
    name = last.partition("[")[0]
    if any(name in fields for fields in STRUCTS.values()):
        places = _places(name)
        return "there is such a field, but not here" + (
            f": {' or '.join(places)}" if len(places) <= _MOST_PLACES else ""
        )
    # What is asked for is what may stand here: a name that is near to one of another place would lead astray.
    here = _fields_of(above)
    lower = name.lower().replace("_", "")
    other = _OTHER_NAMES.get(lower, "")
    if "valueExpression" in here and lower == "value":
        other = "valueExpression"
    if not name.isascii():
        plain = "".join(character for character in name if character.isascii() and character.isalnum())
        if any(plain in fields for fields in STRUCTS.values()):
            return (
                f"beside {plain} is a character that is none of YAML's, such as a no-break space: write the line anew"
            )
    exact = [known for known in here if known.lower() == lower or known == other]
    near = exact or get_close_matches(name[:60], sorted(here), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def _places(name: str, struct: str = KIND, above: str = "") -> list[str]:
    """Where a field of this name may stand: `jwt[].issuer.audiences`."""
    found: list[str] = []
    for field, kind in STRUCTS[struct].items():
        path = f"{above}.{field}".removeprefix(".")
        if field == name:
            found.append(path)
        inner = kind.removeprefix("[]").removeprefix("*")
        if inner in STRUCTS:
            found += _places(name, inner, f"{path}[]" if kind.startswith("[]") else path)
    return found


def _fields_of(path: str) -> Mapping[str, str]:
    """What may stand below a path such as `jwt[0].issuer`; nothing where the path is not known."""
    name = KIND
    for part in path.split(".") if path else ():
        name = STRUCTS.get(name, {}).get(part.partition("[")[0], "").removeprefix("[]").removeprefix("*")
    return STRUCTS.get(name, {})
