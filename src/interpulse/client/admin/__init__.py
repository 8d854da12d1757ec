"""The client of the admin API (``admin_client``): one module per resource."""
