"""Commands of `interpulse-admin`, one module per resource."""
