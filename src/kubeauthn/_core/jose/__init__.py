"""Compact JWS: the text of a token, the keys that may have signed it, and the nine algorithms.

`KeySet` reads what an issuer publishes; `read_compact` takes a token apart; `KeySet.verify` says whether one of the
keys signed it. Nothing here knows of claims.
"""
