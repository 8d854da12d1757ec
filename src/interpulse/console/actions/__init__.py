"""The actions of the console: `catalogue` lists each action with its request and its command."""
