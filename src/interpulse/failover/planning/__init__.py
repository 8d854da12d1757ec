"""Plan of a switch that a person follows: facts of the pair, and the runbook made of them."""
