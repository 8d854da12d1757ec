"""Values and their JSON shapes: names, ids, policies, schemas, changes, errors. No IO, no import of ours."""
