"""Admin API client (``admin_client``), with one module per resource."""
