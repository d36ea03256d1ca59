"""What go-yaml takes and libyaml, which reads here, does not."""

from __future__ import annotations

import pytest

from kubeauthn._core.authentication.yaml_text import read_yaml
from kubeauthn.errors import AuthenticationConfigError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[oidc:]", "oidc:"),
        ("[a 'b:]", "a 'b:"),
        (r"""["jane\'s"]""", "jane's"),
        (r"""["\\\'"]""", r"\'"),
    ],
)
def test_it_means_what_it_means_there(text: str, value: str):
    (item,) = read_yaml(text).root.items
    assert item.value == value


@pytest.mark.parametrize("text", [r'["\q"]', r'["\\\q"]'])
def test_another_escape_is_refused(text: str):
    with pytest.raises(AuthenticationConfigError, match="yaml: found unknown escape character"):
        read_yaml(text)


@pytest.mark.parametrize("text", ["a:", r'''"\'"'''])
def test_such_places_are_counted(text: str):
    """The file is read once more for each."""
    assert len(read_yaml("[" + ", ".join([text] * 199) + "]").root.items) == 199
    with pytest.raises(AuthenticationConfigError, match="more than 200 texts that only some readers of YAML take"):
        read_yaml("[" + ", ".join([text] * 201) + "]")
