"""Which broker owns a bundle: one broker alone, or several of a cluster that share the bundles.

`Ownership` is the seam. Messages are kept safe by fencing and by commits that rest on locks, never by ownership: it is
there so that clients find one broker and brokers do not fight.
"""
