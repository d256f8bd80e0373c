"""The consensus explorer: predictions opened, fused while sliders move, and looked into.

`view` is what one page shows, as an address; `library` opens it as one of `cases`; `answers`
computes; `plots` draws; `present` puts it into words and files; `routes` serves.
"""
