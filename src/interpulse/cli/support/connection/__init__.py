"""Address and credentials of a cluster, from every place that may name them; `settings` combines them."""
