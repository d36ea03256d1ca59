"""Carries HTTP/1.1 from local clients to an API server: bytes passed on as they come, TLS on both sides."""
