"""Next words of language models: controllable entropy, and where consensus words come from."""
