"""Programs that try very many inputs. `python -m tests.fuzz.cel` is one; the unit tests run a little of each."""
