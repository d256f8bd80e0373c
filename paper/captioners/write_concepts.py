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
    """Features of whole pictures: the mean over the grid's cells, and those of ResNet-50."""
    with np.load(find_data("coco_multilabel/features_resnet50_center_int8.npz")) as arrays:
        image_ids, features = arrays["image_ids"], arrays["codes"] * arrays["scale"]
    whole = dict(zip(image_ids.tolist(), features, strict=True))
    parts = [
        (data.features.mean(axis=1), np.stack([whole[image] for image in data.image_ids.tolist()]))
        for data in splits
    ]
    sizes = [np.sqrt((part**2).mean()) for part in parts[0]]
    return [np.concatenate([cells / sizes[0], rest / sizes[1]], axis=1) for cells, rest in parts]


if __name__ == "__main__":
    main()
