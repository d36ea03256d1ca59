"""docs/providers.md shows the very examples that the playground has."""

from __future__ import annotations

from pathlib import Path

from kubeauthn.cli.playground_pages import EXAMPLES, example

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "providers.md").read_text()
PICTURE = ROOT / "docs" / "images" / "playground.png"


def sections() -> dict[str, str]:
    return {text.partition("\n")[0]: text for text in PAGE.split("\n## ")[1:]}


def test_every_provider_has_its_section_with_the_configuration_of_its_example():
    shown = {
        title: [rest.partition("```")[0] for rest in text.split("```yaml\n")[1:]] for title, text in sections().items()
    }
    assert shown == {title: [example(name, 0)[0]] for name, title in EXAMPLES.items() if name != "kep"}


def test_every_section_says_what_to_set_up_and_what_goes_wrong():
    for title, text in sections().items():
        before, _, after = text.partition("```yaml\n")
        assert "\n1. " in before, title
        assert "\n- " in after.partition("```\n")[2], title


def test_the_picture_is_there_and_small():
    assert PICTURE.read_bytes().startswith(b"\x89PNG")
    assert PICTURE.stat().st_size < 200_000
