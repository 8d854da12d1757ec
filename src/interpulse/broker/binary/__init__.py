"""The front end of the binary protocol."""
