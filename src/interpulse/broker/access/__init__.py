"""Authentication and authorization of clients, shared by both front ends, and the audit log."""
