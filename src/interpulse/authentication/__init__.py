"""Authentication of clients, the same for broker and proxy, and for each of their front ends.

`providers` builds it from the settings. `authentication` asks the providers of a method for an identity: `tokens`,
whose keys `signing_keys` reads, `openid`, `passwords`, and `certificates`. `credential_watch` asks a connected client
for new credentials when its own expire.
"""
