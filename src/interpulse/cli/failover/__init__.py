"""Commands ``interpulse failover``, which switch namespaces between the two clusters of a pair."""
