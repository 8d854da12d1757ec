"""Sites of a client, and the rules and probes by which it changes from one to another.

A site is one of several clusters that serve the same topics. ``sites`` holds the values, ``auto`` and ``controlled``
the rules without sockets, ``probe`` asks a site, and ``watch`` runs in the background of a client.
"""
