"""Models that speak of other samples: what is refused, what is said, and why."""

import numpy as np
import pytest

from wassemble import InvalidInputError, Predictions
from wassemble.inputs.predictions.overlap import (
    check_samples,
    check_truth_samples,
    pick_ids,
    tell_repeated,
)


def model(name, samples, labels=("cat", "dog")):
    samples = list(samples)
    return Predictions(name, samples, labels, np.full((len(samples), len(labels)), 0.5))


@pytest.mark.parametrize(
    ("ones", "others", "reason"),
    [
        (["img1.jpg", "img2.jpg"], ["img1", "img2"], "by the end of a file name: 'img1.jpg' and"),
        (["001", "002"], [1, 2], "by zeros in front: '001' and '1'; '002' and '2'"),
        ([1, 2], ["1.0", "2.0"], "by a decimal point: '1' and '1.0'"),
        (["a ", "b "], ["a", "b"], "by spaces around them: 'a ' and 'a'"),
        (["A", "B"], ["a", "b"], "in case: 'A' and 'a'"),
        (["cafe\u0301"], ["caf\u00e9"], "in Unicode form"),
        (["train/a"], ["a"], "by the folder in front: 'train/a' and 'a'"),
        (["train/IMG_01.jpg"], ["img_1.png"], "in several ways: 'train/IMG_01.jpg' and 'img_1"),
        (["sample 1"], ["sample_1"], "nearest ids of a and b are 'sample 1' and 'sample_1'"),
        (["x"], ["17"], "Ids of a are such as 'x', those of b such as '17'"),
    ],
)
def test_no_sample_in_common_is_an_error_that_shows_the_nearest_ids(ones, others, reason):
    models = [model("a", ones), model("b", others)]
    with pytest.raises(InvalidInputError, match="must have samples in common") as caught:
        check_samples(models)
    assert reason in str(caught.value)
    assert "allow_disjoint=True" in str(caught.value)
    assert check_samples(models, allow_disjoint=True) == []


def test_models_may_share_samples_through_others():
    halves = [model("a", range(50)), model("b", range(50, 100))]
    assert check_samples([*halves, model("c", range(100))]) == []
    with pytest.raises(InvalidInputError, match="got none of 'a' and 'b'"):
        check_samples(halves)
    pairs = [*halves, model("c", range(50)), model("d", range(50, 100))]
    with pytest.raises(InvalidInputError, match="got none of 'a', 'c' and 'b', 'd'"):
        check_samples(pairs)


def test_a_model_without_samples_is_no_error():
    assert check_samples([model("a", ["x"]), model("b", [])]) == []
    assert check_samples([model("a", []), model("b", [])]) == []


def test_a_small_overlap_is_said_with_its_reason():
    ones = ["x", *(f"i{i}.jpg" for i in range(5))]
    others = ["x", *(f"i{i}" for i in range(9))]
    (said,) = check_samples([model("a", ones), model("b", others)])
    assert said.startswith("'a' shares 1 of 6 samples with the other models")
    assert "differ by the end of a file name: 'i0.jpg' and 'i0'" in said
    assert check_samples([model("a", range(100)), model("b", range(50, 300))]) == []
    (said,) = check_samples([model("a", range(100)), model("b", range(51, 300))])
    assert said.startswith("'a' shares 49 of 100")


def test_a_table_that_looks_transposed_is_named():
    right = model("right", ["s1", "s2", "s3"])
    turned = model("turned", ["cat", "dog"], ["s1", "s2", "s3"])
    with pytest.raises(InvalidInputError, match="'right' or 'turned' looks transposed") as caught:
        check_samples([right, turned])
    assert "exchange rows and columns" in str(caught.value)
    other = model("turned", ["cat", "dog"], ["t1", "t2", "t3"])
    for models in ([right, other], [other, right]):
        with pytest.raises(InvalidInputError, match="; 'turned' looks transposed"):
            check_samples(models)


def test_counted_ids_and_labels_do_not_look_transposed():
    named = model("a", ["a.png", "b.png", "c.png"], ["0", "1", "2"])
    counted = model("b", range(3), ["0", "1", "2"])
    with pytest.raises(InvalidInputError, match="must have samples in common") as caught:
        check_samples([named, counted])
    assert "by_row=True" in str(caught.value)


def test_a_truth_with_other_ids_is_an_error():
    models = [model("a", ["img1", "img2"])]
    with pytest.raises(InvalidInputError, match=r"knows none.*'img1' and 'img1.jpg'"):
        check_truth_samples(["img1.jpg"], models)
    assert check_truth_samples(["img1"], models) == []
    many = [model("a", range(10))]
    (said,) = check_truth_samples(["1", "x", "y", "z"], many)
    assert said.startswith("the truth knows 1 of 4 samples")


def test_unmatched_ids_that_are_twins_of_unmatched_ids_are_said_whatever_the_overlap():
    ones = [f"{i:03d}" for i in range(300)]
    others = [str(i) for i in range(300)]
    (said,) = check_samples([model("a", ones), model("b", others)])
    assert "100 samples of 'a' look like samples of the other models" in said
    assert "by zeros in front: '000' and '0'" in said
    assert check_samples([model("a", ones), model("b", others)], allow_disjoint=True) == []


def test_unmatched_ids_that_are_like_matched_ones_are_other_samples():
    both = ["a", "b", "c", "d", "e"]
    assert check_samples([model("a", [*both, "A"]), model("b", both)]) == []
    assert check_samples([model("a", [*both, "x1"]), model("b", [*both, "y1"])]) == []
    parts = [model("a", [*both, "x.p1", "x.p2"]), model("b", [*both, "x.p3", "x.p4"])]
    assert check_samples(parts) == []


def test_samples_of_several_parts_are_told_though_only_some_ids_are_compared():
    parts = {
        name: pick_ids([Predictions("a", ids, ["cat"], np.ones((len(ids), 1)))])
        for name, ids in (("one", range(5000)), ("two", range(4000, 9000)))
    }
    assert all(len(ids) < 1000 for ids in parts.values())
    (told,) = tell_repeated(parts)
    assert "is in one and in two" in told
    apart = {name: [f"{name} {sample}" for sample in ids] for name, ids in parts.items()}
    assert tell_repeated(apart) == []


def test_every_id_of_a_small_part_is_compared_of_whichever_model():
    ones = Predictions("a", ["x", "y"], ["cat"], np.ones((2, 1)))
    others = Predictions("b", ["y", "z"], ["cat"], np.ones((2, 1)))
    assert sorted(pick_ids([ones, others])) == ["x", "y", "z"]
