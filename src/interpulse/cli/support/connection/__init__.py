"""Address and credentials of a cluster, from all places that may name them; `settings` puts them together."""
