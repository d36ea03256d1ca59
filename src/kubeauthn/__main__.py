"""`python -m kubeauthn`."""

from __future__ import annotations

import sys

from kubeauthn.cli.entry import main

sys.exit(main())
