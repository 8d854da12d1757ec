"""The front door for the binary protocol."""
