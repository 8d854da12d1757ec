"""Comparison of the two sites of a pair before a switch: facts of each site, rules over them, findings with remedies.

`gathering` asks the sites. The rules are pure functions from the facts of both sites to findings; `judgement` has them
all and decides whether a switch may go on. Source: docs/reference/failover-findings.md#kinds.
"""
