"""CEL's function libraries, one module each: tables of overloads with what they do and what they cost."""
