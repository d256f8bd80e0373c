"""The web app with more examples: `python -m paper serve`."""
