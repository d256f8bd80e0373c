"""A study: people score captions of several systems, not knowing which is whose.

`items` reads what is shown, `design` says how and to whom, `answers` what people said; `store`
keeps it, `results` makes figures of it. Pages: `routes` (operators), `rater_routes` (raters).
"""
