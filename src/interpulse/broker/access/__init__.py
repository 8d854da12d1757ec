"""Authentication and authorization of clients, the same for both front ends.

`setup` builds both from the settings. `authentication` asks the provider of a method for an identity; `tokens` is the
one there is, `signing_keys` reads its keys. `authorization` reads tenants and namespaces and asks the rules; `grants`
changes permissions.
"""
