"""What the model may do: each tool is one file, one class and one line in the registry."""
