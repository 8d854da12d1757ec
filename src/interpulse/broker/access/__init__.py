"""Who somebody is, and whether he may do what he asks for."""
