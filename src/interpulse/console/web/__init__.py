"""What every page is made with: requests and responses, who visits, tokens of forms, templates, addresses, words."""
