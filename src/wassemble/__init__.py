"""One consensus from the predictions of several models, through their labels' meaning.

What is public, and where it comes from, stands in ``__init__.pyi``; it is imported when it
is first used, so that ``import wassemble`` and ``wassemble --help`` cost next to nothing.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
