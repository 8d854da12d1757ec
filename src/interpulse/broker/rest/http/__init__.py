"""What all handlers of the admin API share: requests and answers, routes, permissions, fields of bodies."""
