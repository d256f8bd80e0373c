"""The consensus explorer: predictions opened, fused while sliders move, and looked into.

`view` is what one page shows, as an address. `routes` serves it: it asks one of `workers` one of
the `questions`, for which `library` opens the view as one of `cases`, `answers` computes, `plots`
draws, and `present` puts it into words and files.
"""
