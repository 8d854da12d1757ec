"""The pages: one file for each, with its model and the function that builds it; `catalogue` lists them."""
