"""Reports of what one site has published and the other one has copied, for the day on which the first is lost.

`watching` writes them all the time, to a topic of its own at both sites. `stored` reads the newest ones. `reports` has
their form, and computes from them what is at stake.
"""
