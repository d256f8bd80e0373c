"""The consensus explorer: predictions opened, fused while sliders move, and looked into.

`view` is what one page shows, as an address; `cases` what was opened; `answers`, `flows` and
`ranking` compute; `figures` draws; `routes` serves.
"""
