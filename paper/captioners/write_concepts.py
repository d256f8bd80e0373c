"""Write the concepts of our pictures anew: `python -m paper.captioners.write_concepts`.

`load_captions` reads them. What is known of a picture's concepts comes from its captions; the
detector learns from the training pictures, and is asked for each of them by a part of itself
that has not seen it. Takes about a minute.
"""

from __future__ import annotations

import numpy as np

from paper.captioners.concepts import detect, detect_out_of_fold, fit_concepts
from paper.data.captions import CONCEPTS, CaptionsData, load_captions, load_image_ids
from paper.data.coco import load_coco_captions, load_coco_words
from paper.data.files import data_folder, find_data


def main() -> None:
    """Detect, and write in int8."""
    splits = [load_captions(split) for split in ("train", "val", "test")]
    space = fit_concepts(load_coco_words(), list(load_coco_captions().values()))
    true = space.place_captions(splits[0].captions)
    known, *new = _pool(splits)
    found = [detect_out_of_fold(known, true), *(detect(known, true, pictures) for pictures in new)]
    image_ids = np.concatenate([data.image_ids for data in splits])
    concepts = np.concatenate(found)[np.argsort(image_ids)]
    scale = np.abs(concepts).max(axis=0) / 127
    codes = np.round(concepts / scale).astype(np.int8)
    np.savez_compressed(
        data_folder() / CONCEPTS, image_ids=load_image_ids(), codes=codes, scale=scale
    )


def _pool(splits: list[CaptionsData]) -> list[np.ndarray]:
    """Features of whole pictures: the mean over the grid's cells, and what two networks pool."""
    parts = [[data.features.mean(axis=1) for data in splits]]
    for network in ("lite2", "resnet50"):
        with np.load(find_data(f"coco_multilabel/features_{network}_center_int8.npz")) as arrays:
            image_ids, features = arrays["image_ids"], arrays["codes"] * arrays["scale"]
        parts.append([features[np.searchsorted(image_ids, data.image_ids)] for data in splits])
    # None counts for more than another because its numbers are larger.
    norms = [np.sqrt((known**2).sum(axis=1).mean()) for known, *_ in parts]
    scaled = [[each / norm for each in part] for part, norm in zip(parts, norms, strict=True)]
    return [np.concatenate(each, axis=1) for each in zip(*scaled, strict=True)]


if __name__ == "__main__":
    main()
