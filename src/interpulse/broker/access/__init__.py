"""Authentication and authorization of clients, shared by both front ends.

`setup` builds both from the settings, with `interpulse.authentication`. `authorization` reads tenants and namespaces
and asks the rules. `grants` changes permissions. `change_log` is the audit log.
"""
