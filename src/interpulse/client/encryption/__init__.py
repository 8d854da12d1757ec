"""End-to-end encryption, compatible with Pulsar's clients; the library for it is loaded at its first use.

`key_reader` gives keys by their names, `data_keys` is the cryptography, `encryptor` and `decryptor` apply it.
"""
