"""Authorization of clients, the same for both front ends, and whether they have to authenticate.

`setup` builds both from the settings, with `interpulse.authentication`. `authorization` reads tenants and namespaces
and asks the rules; `grants` changes permissions. `change_log` is the audit log.
"""
