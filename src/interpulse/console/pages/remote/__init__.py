"""Pages of a console that has only the admin API of a cluster."""
