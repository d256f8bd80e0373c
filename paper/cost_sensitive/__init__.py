"""When mistakes cost differently."""
