"""The binary protocol without IO: bytes in, frames out, and back."""
