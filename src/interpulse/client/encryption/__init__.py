"""End-to-end encryption, compatible with Pulsar's clients. Its library is imported at the first use.

`key_reader` provides keys by name, `data_keys` is the cryptography, `entries` applies it.
"""
