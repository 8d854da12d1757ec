"""Authentication and authorization of clients, the same for both front ends.

`setup` builds both from the settings. `authentication` asks the providers of a method for an identity: `tokens`, whose
keys `signing_keys` reads, `openid` with `issuer_keys`, `passwords`, and `certificates`. `authorization` reads tenants
and namespaces and asks the rules; `grants` changes permissions. `change_log` is the audit log.
"""
