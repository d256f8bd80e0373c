"""A study: people score captions of several systems, not knowing which is whose.

`items` reads what is shown, `design` how, `assignment` who sees what in which order,
`answers` what a person said. `store` keeps it, `snapshot` is all of it at one moment, from
which `results` and `exports` are made. The pages are in `operator_routes` and `rater_routes`.
"""
