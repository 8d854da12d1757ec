"""What visitors may do: `catalogue` lists each action with the call and the command that it stands for."""
