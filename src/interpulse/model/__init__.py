"""Values and their JSON shapes: names, ids, policies, schemas, changes, errors. Does no IO and imports nothing of ours."""
