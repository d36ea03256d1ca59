"""What a test can make go wrong at its API server."""

from __future__ import annotations

from threading import Lock

from kubeauthn.errors import UsageError
from kubeauthn.testing._status import ApiError

_FAULT_TEXTS = {
    401: "Unauthorized",
    403: "forbidden: the test server was told to refuse",
    429: "Too many requests, please try again later.",
    500: "Internal error occurred: the test server was told to fail",
    503: "the server is currently unable to handle the request",
}


class Faults:
    """Answers that the server gives in place of its own, so often or until told otherwise."""

    def __init__(self) -> None:
        self._fault_lock = Lock()
        self._faults: dict[int, float] = {}
        self._delay = 0.0

    def fail(self, status: int, times: int | None = None) -> None:
        """Answer the next `times` requests with this status, or all of them until `times` is 0."""
        if status not in _FAULT_TEXTS:
            raise UsageError(f"the status is one of {', '.join(map(str, _FAULT_TEXTS))}, not {status}")
        if times is not None and times < 0:
            raise UsageError(f"times is 0 or more, not {times}")
        with self._fault_lock:
            self._faults[status] = float("inf") if times is None else times

    def unauthorized(self, times: int | None = None) -> None:
        """Answer 401, whatever the credential."""
        self.fail(401, times)

    def forbidden(self, times: int | None = None) -> None:
        """Answer 403, whatever the request."""
        self.fail(403, times)

    @property
    def answer_401(self) -> bool:
        """Whether the next request is answered 401. Can be set."""
        with self._fault_lock:
            return self._faults.get(401, 0) > 0

    @answer_401.setter
    def answer_401(self, on: bool) -> None:
        self.fail(401, None if on else 0)

    @property
    def answer_403(self) -> bool:
        """Whether the next request is answered 403. Can be set."""
        with self._fault_lock:
            return self._faults.get(403, 0) > 0

    @answer_403.setter
    def answer_403(self, on: bool) -> None:
        self.fail(403, None if on else 0)

    def delay(self, seconds: float) -> None:
        """Wait this long before each answer. The request is recorded at once. 0 ends it."""
        if not seconds >= 0:
            raise UsageError(f"a delay is 0 seconds or more, not {seconds}")
        self._delay = seconds

    def _raise_fault(self) -> None:
        with self._fault_lock:
            for status, left in self._faults.items():
                if left > 0:
                    self._faults[status] = left - 1
                    raise ApiError(status, _FAULT_TEXTS[status])
