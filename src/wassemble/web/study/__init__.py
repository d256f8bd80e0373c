"""A study: people grade and choose what several systems say, not knowing which is whose.

`items` and `pictures` are what is shown, which `reading` has a worker read; `questions` is what is
asked, `design` how and of whom, `answers` what people said; `store` keeps it, `results` makes
figures of it, `exports` files. Pages: `routes` (operators), `rater_routes` and `join_routes`
(raters).
"""
