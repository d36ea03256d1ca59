"""How to mend a fault: for those that people make, what they probably meant."""

from __future__ import annotations

from kubeauthn._core.authentication.faults import STRICT
from kubeauthn._core.authentication.provider_document import WELL_KNOWN
from kubeauthn._core.authentication.schema import STRUCTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from kubeauthn._core.authentication.model import AuthenticationConfiguration
    from kubeauthn.errors import ConfigurationFault

_BASE64_OF_PEM = "LS0tLS1CRUdJTi"  # "-----BEGIN"
_ENDINGS = (".crt", ".pem", ".cer", ".ca")

ONE_LINE = "this is one text and no mapping: if it is the name of a file, give what is in the file"

_BY_TEXT = (
    ("cannot be range of a comprehension", "a claim may be anything: write dyn(…) around one that is a list"),
    ("claims.email_verified must be used", "e.g. a claim rule claims.?email_verified.orValue(true) == true"),
    ("prefix is required when claim is set", 'write prefix: "" for names as they are, or a prefix such as "oidc:"'),
    ("must evaluate to bool", "compare it with something: a claim may be anything, and a rule wants true or false"),
    ("discoveryURL must be different from URL", f"it is the address of the document: …{WELL_KNOWN}, or leave it out"),
    ("audienceMatchPolicy must be empty or MatchAny", "leave it out, or write audienceMatchPolicy: MatchAny"),
    ("token recognition error at: '= '", "to compare is ==: claims.x == 'y'"),
    ("token recognition error at: '='", "to compare is ==: claims.x == 'y'"),
    ("undeclared reference to 'startswith'", "it is written startsWith"),
    ("undeclared reference to 'endswith'", "it is written endsWith"),
    ("issuer.audiences of type []string", "it is a list: audiences: [kubernetes]"),
    ("cannot unmarshal string into Go value of type struct", ONE_LINE),
    ("found character that cannot start any token", "is there a tab? YAML is indented with spaces alone"),
    ("did not find expected whitespace or line break", 'an expression that begins with ! is quoted: "!user…"'),
    (".expression: Required value", 'is it quoted? to YAML, a word that begins with ! is a tag: write "!user…"'),
    ("audienceMatchPolicy must be MatchAny", "write audienceMatchPolicy: MatchAny: one of the audiences is enough"),
    ("claim and expression can't both be set", "keep one of them"),
    ("undeclared reference to 'user'", "only user rules have user; mappings and claim rules have claims"),
    ("undeclared reference to 'claims'", "only mappings and claim rules have claims; user rules have user"),
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
        return "AuthenticationConfiguration is of apiserver.config.k8s.io: v1 since 1.34, v1beta1 1.30, v1alpha1 1.29"
    if fault.text.endswith(" of type string") and "cannot unmarshal bool into" in fault.text:
        return "put it in quotes: to YAML, yes, no, on, off, true and false are no texts"
    if fault.text.endswith(" of type string") and "cannot unmarshal number into" in fault.text:
        return "put it in quotes: to YAML it is a number"
    return text_hint(fault.text)


def text_hint(text: str) -> str:
    """What may be added to a message of the decoder or the CEL checker, wherever it came from, or ""."""
    return next((hint for part, hint in _BY_TEXT if part in text), "")


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


def _field_hint(field: str) -> str:
    from difflib import get_close_matches

    above, _, last = field.rpartition(".")
    name = last.partition("[")[0]
    if any(name in fields for fields in STRUCTS.values()):
        return "there is such a field, but not here"
    # What is asked for is what may stand here: a name that is near to one of another place would lead astray.
    here = _fields_of(above)
    exact = [known for known in here if known.lower() == name.lower()]
    near = exact or get_close_matches(name[:60], sorted(here), n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else ""


def _fields_of(path: str) -> Mapping[str, str]:
    """What may stand below a path such as `jwt[0].issuer`; nothing where the path is not known."""
    name = "AuthenticationConfiguration"
    for part in path.split(".") if path else ():
        name = STRUCTS.get(name, {}).get(part.partition("[")[0], "").removeprefix("[]").removeprefix("*")
    return STRUCTS.get(name, {})
