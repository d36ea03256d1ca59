"""Try a plugin as a client would, and say what was found.

One module per kind of plugin (`credential`, `signer`, `proxy`), each with a function from a `Plan` to a `Report`;
`kind` finds out which it is. What they share is `trial` (one run, watched), `leftovers` (processes that stayed),
`ending` (how runs ended), `output` (what was printed, and how to show it without a secret) and `report`.
"""
