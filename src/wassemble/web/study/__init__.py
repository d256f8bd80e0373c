"""A study: people grade and choose what several systems say, not knowing which is whose.

`items` and `pictures` read what is shown, `questions` what is asked, `design` says how and to whom,
`answers` what people said; `store` keeps it, `results` makes figures of it, `exports` files. Pages:
`routes` (operators), `rater_routes` and `join_routes` (raters).
"""
