"""What requests ask for: the store, a study of it, a rater by the secret of a link."""

from __future__ import annotations

import re
from threading import Lock
from typing import Annotated, Any

from fastapi import Depends, HTTPException, Path, Request

from wassemble.web.study.rows import Rater, Study
from wassemble.web.study.store import Store

__all__ = ["FoundRater", "FoundStudy", "OpenStore", "RowId", "close_store"]

_SECRET = re.compile(r"[\w-]{32}", re.ASCII)
_lock = Lock()


def _open_store(request: Request) -> Store:
    """The app's store, opened when it is first asked for."""
    state = request.app.state
    with _lock:
        if not hasattr(state, "study_store"):
            state.study_store = Store(state.settings.database)
    store: Store = state.study_store
    return store


def close_store(app: Any) -> None:
    """Close the app's store, if it was opened."""
    if hasattr(app.state, "study_store"):
        app.state.study_store.close()


OpenStore = Annotated[Store, Depends(_open_store)]
RowId = Annotated[int, Path(ge=1, le=2**31 - 1)]


def _find_study(study: RowId, store: OpenStore) -> Study:
    found = store.get_study(study)
    if found is None:
        raise HTTPException(404, "There is no such study.")
    return found


def _find_rater(secret: Annotated[str, Path(max_length=100)], store: OpenStore) -> Rater:
    rater = store.find_rater(secret) if _SECRET.fullmatch(secret) else None
    if rater is None:
        raise HTTPException(404, "There is no such link. Check that it was copied whole.")
    if rater.is_closed:
        raise HTTPException(410, "This link is closed. Thank you for your interest.")
    return rater


FoundStudy = Annotated[Study, Depends(_find_study)]
FoundRater = Annotated[Rater, Depends(_find_rater)]
