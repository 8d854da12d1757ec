"""The actions of the console: `catalogue` lists each action with its call and its command."""
