"""Finds what a bearer token allows: a token of the token file, or a JWT of the issuer that the settings name."""
