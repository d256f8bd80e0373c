"""Next-word models: what one must do, one of our own, and adapters for the user's."""
