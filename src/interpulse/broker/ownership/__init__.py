"""The owner of a bundle: a broker alone owns all of them, the brokers of a cluster share them.

`Ownership` is the seam. Fencing and commits that rest on locks protect messages; ownership never does. It only directs
all clients of a topic to one broker, so that brokers do not compete.
"""
