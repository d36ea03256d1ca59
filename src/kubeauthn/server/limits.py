"""Every limit on what the served endpoints read and wait for, in one place."""

from __future__ import annotations

BODY_BYTES = 1 << 20
"""Of a request. A TokenReview holds one token, and tokens are far smaller."""

SMALL_BODY_BYTES = 8 << 10
"""Nearly every review is smaller. Larger ones, and those that do not say how large they are, are counted together."""

BODIES_BYTES = 64 << 20
"""Of all bodies under way in a worker that are not small. Who brings more is asked to come again."""

BODY_SECONDS = 10.0
"""From the first byte of a request to the last of its body."""

HEADER_SECONDS = 10
"""For the head of a request over HTTP/1.1, and between two requests of one connection."""

HEADER_BYTES_1 = 128 << 10
"""All of the head of a request over HTTP/1.1 that is kept in memory."""

HEADER_BYTES_2 = 128 << 10
"""All headers of a request over HTTP/2."""

HEADERS = 100
"""Names of headers in a request, however small they are. Over HTTP/1.1 Granian's own parser takes no more either."""

STREAMS = 250
"""Requests under way on one HTTP/2 connection: what kube-apiserver itself allows."""

PING_SECONDS = 30
PING_ANSWER_SECONDS = 15
"""HTTP/2 connections are asked whether somebody is still there."""

SILENT_SECONDS = 60.0
SILENT_LOOK_SECONDS = 10.0
"""A connection that received nothing for so long is ended; how often that is looked at."""

CONNECTIONS = 1024
"""At the same time, for each worker; fewer where the system lets it open fewer files."""

OTHER_DESCRIPTORS = 256
"""What a worker may have open beside its connections: to issuers, to Redis, for a look at its own descriptors."""

HEALTHY_SECONDS = 60.0
"""How long the issuers of a new configuration may take to answer, before it is given up."""

COMMIT_SECONDS = 30.0
"""How long a worker may take to say that it has changed, which is one assignment. Then it is ended."""

HANGS_SECONDS = 120.0
"""A worker that says nothing for so long, and does not do what it was told, is ended. They tell of their numbers every
second, but where they compile a large configuration."""

JOIN_SECONDS = 60.0
"""How long a new worker may take until it has the configuration in force. Nobody else joins or reloads meanwhile."""

LOOK_SECONDS = 0.25
"""Between two looks whether the configuration or the certificate changed."""

REREAD_SECONDS = 60.0
"""The configuration is read this often whether it seems changed or not."""

COLLECT_SECONDS = 2.0
"""How long `/metrics` waits for the numbers of the other workers."""

MESSAGE_BYTES = 64 << 20
"""Of a message between supervisor and worker: a configuration is the largest, and JSON may write two bytes as six."""

LOCK_SECONDS = 5.0
"""How long a server waits for another one that starts at the same unix socket; it needs a moment."""

REFUSE_SECONDS = 0.2
"""At the end: workers have this long to stop taking connections, before new ones are refused."""

YOUNG_SECONDS = 1.0
"""A worker that is to end and has connections goes on for so long: a handshake under way, or a first request, comes to
its end."""

CERTIFICATE_BYTES = 1 << 20
"""Of a certificate with its chain, a key or a client CA."""

TRIALS = 3
"""How often new certificates are tried before they are called unusable."""

TRIAL_SECONDS = 30.0
"""How long a process that tries new certificates may take; it needs a fraction of a second."""

FAILED_START_SECONDS = 6.0
"""How long a worker that cannot start stays before it ends and another one tries. Granian ends the whole server for one
that ends within five and a half."""

RESPAWN_SECONDS = 1.5
"""A new worker has this long before the one that it replaces is told to end; until it is there, connections wait."""
