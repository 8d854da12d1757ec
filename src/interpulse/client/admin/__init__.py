"""The client of the admin API: one module per resource."""
