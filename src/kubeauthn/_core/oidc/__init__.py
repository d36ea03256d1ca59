"""A login at an OpenID Connect issuer, without I/O: what is asked, what is answered, and what is believed of it."""
