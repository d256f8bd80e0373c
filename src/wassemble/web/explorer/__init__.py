"""The consensus explorer: predictions opened, fused while sliders move, and looked into.

`view` is what one page shows, as an address. `routes` serves it: it asks one of the app's workers
one of the `questions`, for which `library` opens the view as one of `cases`, `answers` looks at one
sample, `judging` at all, and `present` puts it into words and plain data for the templates.
"""
