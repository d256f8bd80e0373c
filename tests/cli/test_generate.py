"""`wassemble generate`: what it writes, what it refuses, and that the guide's commands run."""

import json

import numpy as np
import pytest

import wassemble as ws
from wassemble.cli import main
from wassemble.inputs.captions_data import load_captions
from wassemble.inputs.datasets import data_folder
from wassemble.text.recipes import RECIPES

pytest.importorskip("torch")

FOLDER = data_folder() / "captioners"
TINY = str(FOLDER / "tiny.npz")


@pytest.fixture
def features(tmp_path):
    """Three pictures with names of their own."""
    path = tmp_path / "mine.npz"
    np.savez(path, image_ids=["x", "y", "z"], features=load_captions("val").features[:3])
    return str(path)


def run(capsys, *arguments):
    assert main(["generate", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_every_shipped_captioner_captions_the_test_pictures(capsys):
    """The guide's command, with however many captioners there are."""
    shipped = [name for name in RECIPES if (FOLDER / f"{name}.npz").is_file()]
    found = run(capsys, *shipped, "--images", "test", "--first", "3", "--n-top", "100")
    assert [each["image_id"] for each in found] == [
        str(number) for number in load_captions("test").image_ids[:3]
    ]
    for each in found:
        words = each["caption"].split()
        assert 3 <= len(words) <= 20
        assert "<" not in each["caption"]
        assert -60 < each["log_probability"] < 0


def test_one_captioner_fused_alone_says_what_it_says(capsys, features):
    from wassemble.text import beam_search
    from wassemble.text.captioner import read_captioner

    found = run(capsys, TINY, "--images", features, "--rule", "geometric", "--n-top", "0")
    alone = beam_search(read_captioner(TINY), load_captions("val").features[:3])
    assert [each["image_id"] for each in found] == ["x", "y", "z"]
    assert [each["caption"] for each in found] == [best.text for [best] in alone]


@pytest.mark.parametrize("rule", ["arithmetic", "geometric", "unbalanced", "debiased"])
def test_every_rule_captions(capsys, features, rule):
    options = ["--images", features, "--first", "1", "--rule", rule, "--max-words", "6"]
    [found] = run(capsys, TINY, *options, "--n-top", "50")
    assert found["caption"]


def test_randomised_captions_depend_on_the_seed_alone(capsys, features):
    options = [TINY, "--images", features, "--rule", "geometric", "--randomised", "3", "--seed"]
    first, again, other = (run(capsys, *options, seed) for seed in ("1", "1", "2"))
    assert first == again
    assert first != other


def test_words_are_explained_by_the_words_of_named_models(capsys, features, tmp_path):
    copy = tmp_path / "copy.npz"
    copy.write_bytes(FOLDER.joinpath("tiny.npz").read_bytes())
    options = ["--images", features, "--first", "1", "--kernel", "synonyms", "--explain"]
    [found] = run(capsys, TINY, str(copy), *options)
    assert [each["word"] for each in found["words"]] == [*found["caption"].split(), "<end>"]
    total = sum(np.log(each["probability"]) for each in found["words"])
    assert total == pytest.approx(found["log_probability"], abs=0.5)  # top words are shared
    for each in found["words"]:
        assert {part["model"] for part in each["from"]} == {"tiny", "copy"}
        assert max(each["from"], key=lambda part: part["percent"])["word"] == each["word"]


def test_a_kernel_file_and_an_output_file(capsys, features, tmp_path):
    words = ["man", "woman", "person", "boy"]
    kernel, out = tmp_path / "kernel.npz", tmp_path / "captions.jsonl"
    ws.LabelledKernel(ws.DenseKernel(np.ones((4, 4))), words, words, "people").save(kernel)
    options = ["--images", features, "--kernel", str(kernel), "--out", str(out)]
    assert main(["generate", TINY, *options]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "3 pictures captioned by tiny" in captured.err
    assert [json.loads(line)["image_id"] for line in out.read_text().splitlines()] == [*"xyz"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--images", "nowhere.npz"], "--images must be test, val, train or an .npz file"),
        (["--images", "test", "--kernel", "guess"], "--kernel must be glove, synonyms or"),
        (["--rule", "geometric", "--explain"], "--rule geometric moves none"),
        (["--beam", "0", "--first", "1"], "`width` must be at least 1"),
    ],
)
def test_what_cannot_be_done_is_said(capsys, options, message):
    assert main(["generate", TINY, *options]) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_captioner_is_named(capsys):
    assert main(["generate", "huge", "--first", "1"]) == 2
    assert "one of cross-entropy, " in capsys.readouterr().err


def test_a_file_of_features_that_cannot_be_used_is_named(capsys, tmp_path):
    path = tmp_path / "flat.npz"
    np.savez(path, image_ids=[1, 2], features=np.zeros((2, 16)))
    assert main(["generate", TINY, "--images", str(path)]) == 2
    assert "flat.npz: features must be numbers of shape" in capsys.readouterr().err
    np.savez(path, image_ids=[1], features=np.zeros((2, 16, 128)))
    assert main(["generate", TINY, "--images", str(path)]) == 2
    assert "one id for each of the 2 images" in capsys.readouterr().err
    path.write_text("no archive")
    assert main(["generate", TINY, "--images", str(path)]) == 2
    assert "must be an .npz file of image_ids and features" in capsys.readouterr().err
