"""`interpulse-admin`: one module per resource."""
