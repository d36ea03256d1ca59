"""The pure middle: wire formats and rules. Bytes and `now` in, decisions out.

Nothing here opens a file or a socket, reads a clock, logs, or takes a lock.
"""
