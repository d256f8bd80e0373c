"""The web app of `wassemble serve`: the consensus explorer and the human-evaluation study.

`app.create_app(settings)` puts it together. Nothing here is imported by `import wassemble`;
the command checks that the extra ``[web]`` is installed before it imports this package.

A part of the app (``explorer``, ``study``) has ``routes.make_router(settings)``, a router that
may have a lifespan for what it opens. It shows pages with `pages.render`, opens files through
`paths.inside`, raises `InvalidInputError` for a 422, gives endpoints that compute
``Depends(compute_slot, scope="function")``, and leaves files that people open to workers. Tokens,
CSRF, limits and headers need nothing of it but the hidden field ``csrf`` in forms, or
``X-CSRF-Token`` from ``<meta name="csrf">`` in scripts.
"""
