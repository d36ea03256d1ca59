"""Programs that are not ours, built from released Go modules, for the tests that want the real thing.

`find(name)` says where a program is, or None if nobody has built it; `python -m tests.peers.build` builds.
"""

from tests.peers.programs import PROGRAMS, Program, find

__all__ = ["PROGRAMS", "Program", "find"]
