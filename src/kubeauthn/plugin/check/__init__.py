"""Try a plugin as a client would, and say what was found.

One module per kind of plugin (`credential` is here), each with a function from a `Plan` to a `Report`; what
they share is `trial` (one run, watched), `leftovers` (processes that stayed), `output` (what was printed, and how to
show it without a secret) and `report`.
"""
