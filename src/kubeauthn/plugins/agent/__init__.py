"""The resident signer agent: keeps a token open and a PIN for some minutes, for the signers of one user alone."""
