"""Structured authentication (KEP-3331): the configuration, and what it decides about a token."""
