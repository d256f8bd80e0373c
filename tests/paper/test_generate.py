"""`python -m paper generate`: what it writes and refuses, and that the guide's commands run."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import wassemble as ws
from paper.captioners.recipes import RECIPES
from paper.commands import main
from paper.data.captions import load_captions
from paper.data.files import data_folder

pytest.importorskip("torch")

FOLDER = data_folder() / "captioners"
TINY = str(FOLDER / "tiny.npz")
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "generate.md"


@pytest.fixture
def features(tmp_path):
    """Three pictures with names of their own."""
    path = tmp_path / "mine.npz"
    np.savez(path, image_ids=["x", "y", "z"], features=load_captions("val").features[:3])
    return str(path)


def run(capsys, *arguments):
    assert main(["generate", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("is_blind", [False, True])
def test_every_shipped_captioner_captions_the_test_pictures(capsys, is_blind):
    """The guide's command, with however many captioners of a kind there are."""
    shipped = [
        name
        for name, recipe in RECIPES.items()
        if recipe.is_blind == is_blind and (FOLDER / f"{name}.npz").is_file()
    ]
    found = run(capsys, *shipped, "--images", "test", "--first", "3", "--n-top", "100")
    assert [each["image_id"] for each in found] == [
        str(number) for number in load_captions("test").image_ids[:3]
    ]
    for each in found:
        words = each["caption"].split()
        assert 3 <= len(words) <= 20
        assert "<" not in each["caption"]
        assert -60 < each["log_probability"] < 0


def test_the_guide_shows_what_its_command_prints(capsys):
    shown = json.loads(re.search(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1])
    [found] = run(capsys, "--images", "test", "--first", "1")
    assert shown.pop("log_probability") == pytest.approx(found.pop("log_probability"), abs=0.01)
    assert shown == found


def test_one_captioner_fused_alone_says_what_it_says(capsys, features):
    from paper.captioners.captioner import read_captioner
    from wassemble.text import beam_search

    found = run(capsys, TINY, "--images", features, "--rule", "geometric", "--n-top", "0")
    features = load_captions("val").features[:3]
    alone = beam_search(read_captioner(TINY), features, length_power=1.0)
    assert [each["image_id"] for each in found] == ["x", "y", "z"]
    assert [each["caption"] for each in found] == [best.text for [best] in alone]


def test_captions_are_ranked_by_the_mean_over_words_unless_told_otherwise(capsys):
    options = [TINY, "--images", "val", "--first", "8", "--rule", "geometric", "--beam", "8"]
    means, short = run(capsys, *options), run(capsys, *options, "--length-power", "0")
    assert run(capsys, *options, "--length-power", "1") == means
    lengths = [sum(len(each["caption"].split()) for each in found) for found in (means, short)]
    assert lengths[0] > lengths[1]
    for mean, likeliest in zip(means, short, strict=True):
        assert mean["log_probability"] <= likeliest["log_probability"] + 1e-3


def test_a_caption_that_was_cut_off_is_marked_and_has_no_end(capsys, features):
    options = [TINY, "--images", features, "--explain", "--kernel", "synonyms"]
    for each in run(capsys, *options, "--max-words", "3"):
        assert each["finished"] is False
        assert [word["word"] for word in each["words"]] == each["caption"].split()
    assert all("finished" not in each for each in run(capsys, *options))


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
    ws.LabelledKernel(ws.kernels.DenseKernel(np.ones((4, 4))), words, words, "people").save(kernel)
    options = ["--images", features, "--kernel", str(kernel), "--out", str(out)]
    assert main(["generate", TINY, *options]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert re.search(r"^3 pictures captioned by tiny; \d+ words fused; on average", captured.err)
    assert "of the mass of the model hit hardest was on words beyond the top 500" in captured.err
    assert "-0.0%" not in captured.err
    assert [json.loads(line)["image_id"] for line in out.read_text().splitlines()] == [*"xyz"]


def test_the_mass_of_a_kernel_file_takes_its_epsilon(capsys, features, tmp_path):
    words = ["man", "woman", "person", "boy"]
    kernel = tmp_path / "kernel.npz"
    ws.LabelledKernel(ws.kernels.DenseKernel(np.full((4, 4), 0.5)), words, words, "people").save(
        kernel
    )
    options = [TINY, "--images", features, "--kernel", str(kernel), "--rule", "unbalanced"]
    assert main(["generate", *options]) == 2
    assert "--epsilon must say what the kernel in" in capsys.readouterr().err
    near, far = (run(capsys, *options, "--epsilon", epsilon) for epsilon in ("0.1", "3"))
    assert near != far


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--images", "nowhere.npz"], "--images nowhere.npz: must be a file; there is none."),
        (["--images", "nowhere"], "--images must be test, val, train or an .npz file"),
        (["--kernel", "guess"], "--kernel must be glove, synonyms or"),
        (["--kernel", "my/guess"], "--kernel my/guess: must be a file; there is none."),
        (["--kernel", TINY, "--epsilon", "1"], "--epsilon is part of the kernel in"),
        (["--rule", "geometric", "--explain"], "--rule geometric moves none"),
        (["--rule", "geometric", "--epsilon", "1"], "--epsilon must go with --kernel"),
        (["--rule", "geometric", "--tolerance", "1"], "--tolerance must go with a barycenter"),
        (["--rule", "arithmetic", "--max-sweeps", "5"], "--max-sweeps must go with a bary"),
        (["--mass-penalty", "1"], "--mass-penalty must go with --rule unbalanced; got --rule bary"),
        (["--seed", "0"], "--seed must go with --randomised; got none"),
        (["--beam", "0"], "'--beam': 0 is not in the range x>=1"),
        (["--randomised", "0"], "'--randomised': 0 is not in the range x>=1"),
        (["--max-words", "0"], "'--max-words': 0 is not in the range x>=1"),
        (["--out", str(FOLDER)], "--out must be a file"),
    ],
)
def test_what_cannot_be_done_is_said(capsys, monkeypatch, options, message):
    monkeypatch.delattr("wassemble.text.beam_search")  # nothing is captioned before
    assert main(["generate", TINY, "--first", "1", *options]) == 2
    assert message in capsys.readouterr().err


def test_what_a_config_file_says_counts_as_said(capsys, features, tmp_path):
    config = tmp_path / "generate.toml"
    config.write_text('rule = "geometric"\nmax-sweeps = 5\n')
    assert main(["generate", TINY, "--images", features, "--config", str(config)]) == 2
    assert "--max-sweeps must go with a barycenter" in capsys.readouterr().err
    config.write_text('rule = "geometric"\nkernel = "glove"\nepsilon = 0.2\nfirst = 1\n')
    assert run(capsys, TINY, "--images", features, "--config", str(config))


def test_captioners_of_two_kinds_are_refused(capsys):
    assert main(["generate", "tiny", "concepts-self-critical", "--first", "1"]) == 2
    assert "got 'tiny' beside 'concepts-self-critical'" in capsys.readouterr().err


def test_an_unknown_captioner_is_named(capsys):
    assert main(["generate", "huge", "--first", "1"]) == 2
    assert "one of cross-entropy, " in capsys.readouterr().err
    assert main(["generate", "my/huge.npz", "--first", "1"]) == 2
    assert "captioner my/huge.npz: must be a file; there is none." in capsys.readouterr().err


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
