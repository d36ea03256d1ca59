"""What `kubeauthn.testing` exports, and that it costs nothing before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubeauthn import testing


@pytest.mark.parametrize("name", testing.__all__)
def test_every_export_is_there(name):
    assert getattr(testing, name).__name__ == name
    assert name in dir(testing)
    assert name in testing.__doc__ or name in (
        "IssuerRequest",
        "RecordedConnection",
        "RecordedRequest",
        "Tunnel",
        "User",
    )


def test_the_two_lists_of_exports_agree():
    assert set(testing.__all__) == set(testing._HOMES)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="NoSuchFake"):
        _ = testing.NoSuchFake


def test_nothing_is_imported_before_it_is_used():
    program = (
        "import sys, kubeauthn.testing as t\n"
        "heavy = {'ssl', 'socket', 'yaml', 'cryptography', 'httpx2'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "t.FakeClock\n"
        "assert 'ssl' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)
