"""Every limit on what the server side fetches and remembers, in one place."""

from __future__ import annotations

DOCUMENT_BYTES = 1 << 20
"""A discovery document, a key set, the answer of a claim source."""

ISSUER_SECONDS = 30.0
"""One discovery document or key set, from the first packet to the last."""

SOURCE_SECONDS = 5.0
"""All that one token fetches from claim sources: it is a request's time that passes."""

REDIRECTS = 5
"""Followed within one scheme, host and port only."""

ADDRESSES_TRIED = 4
"""Of one host name."""

FIRST_RETRY_SECONDS = 10.0
"""Between attempts to reach an issuer that has not answered yet."""

UNKNOWN_KEY_SECONDS = 30.0
"""Between two fetches that unknown key ids cause, whether they work or not."""

REFRESH_SECONDS = 600.0
"""A key set this old is fetched again, so that a withdrawn key does not serve for ever."""

REFRESH_WAIT_SECONDS = 5.0
"""How long the token that finds a key set so old waits for a newer one. All others go on with what is at hand."""

REFRESH_PATIENCE_SECONDS = 20.0
"""The same where the last fetch ended with the wait for it, as it does in an event loop that lives for one call: who
does not wait for the answer there never gets it."""

DUE_LOOK_SECONDS = 1.0
"""Between two looks whether key sets are so old."""

SOURCE_ISSUERS = 16
"""Issuers of claim sources whose keys are remembered, for each configured issuer."""

SUCCESS_SECONDS = 10.0
FAILURE_SECONDS = 2.0
"""How long a result is remembered; never past `exp`."""

SUCCESSES = 100_000
FAILURES = 10_000
"""Results remembered. Apart, so that whoever sends garbage cannot push out what good tokens got."""

SUCCESSES_BYTES = 48 << 20
FAILURES_BYTES = 8 << 20
"""All of them together, packed: a number of them alone would mean gigabytes of users with thousands of groups."""

RESULT_BYTES = 64 << 10
"""A result larger than this is not remembered."""

HOT_RESULTS = 4096
HOT_RESULT_BYTES = 1 << 10
"""Successes that were asked for again, kept ready to hand out; larger ones stay packed and are unpacked each time."""
