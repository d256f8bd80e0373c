"""Files are opened inside the folder, within limits, and read anew when they change."""

import io
import os
import secrets
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from web.explorer.small import histograms, scores

from wassemble import Barycenter, Fusion, InvalidInputError, write_predictions
from wassemble.inputs.formats import ENDS
from wassemble.kernels import from_names
from wassemble.web.explorer.answers import fuse_sample
from wassemble.web.explorer.cases import Cut, Kept
from wassemble.web.explorer.library import Library
from wassemble.web.explorer.questions import Question, answer_question
from wassemble.web.explorer.uploads import Uploads
from wassemble.web.explorer.view import View
from wassemble.web.paths import list_files
from wassemble.web.settings import Settings


@pytest.fixture
def library(tmp_path):
    (tmp_path / "served").mkdir()
    for model, end in zip(histograms(), ("csv", "parquet", "npz"), strict=True):
        write_predictions(tmp_path / "served" / f"{model.model[-1]}.{end}", model)
    return Library(Settings(folder=tmp_path / "served", max_labels=50, max_upload_bytes=100_000))


def test_files_become_models_under_their_own_names(library, tmp_path):
    case = library.case(View(file=("0.csv", "1.parquet", "2.npz")))
    assert [m.model for m in case.table.models] == ["0", "1", "model 2"]
    assert case.table.kind == "multiclass"
    assert library.case(View(file=("0.csv", "1.parquet", "2.npz"))) is case
    assert list_files(tmp_path / "served", ENDS) == ["0.csv", "1.parquet", "2.npz"]


def test_a_file_that_changes_is_read_anew(library, tmp_path):
    before = library.case(View(file=("0.csv",)))
    path = tmp_path / "served" / "0.csv"
    path.write_text("sample,cat,dog\nx,0.5,0.5\n")
    os.utime(path, ns=(1, 1))
    assert library.case(View(file=("0.csv",))).table.samples == ["x"]
    assert before.table.samples != ["x"]


@pytest.mark.parametrize("name", ["../secret.csv", "/etc/passwd", ".hidden.csv", "link.csv"])
def test_nothing_outside_the_folder_is_opened(library, tmp_path, name):
    (tmp_path / "secret.csv").write_text("sample,cat\nx,1\n")
    (tmp_path / "served" / "link.csv").symlink_to(tmp_path / "secret.csv")
    for view in (View(file=(name,)), View(file=("0.csv",), kernel="kernel", kernel_file=name)):
        with pytest.raises(InvalidInputError, match="inside the served folder"):
            library.case(view)


def test_labels_beside_an_array_stay_inside_the_folder(library, tmp_path):
    (tmp_path / "secret.txt").write_text("root\nuser\n")
    np.save(tmp_path / "served" / "a.npy", np.array([[0.5, 0.5]]))
    (tmp_path / "served" / "a.labels.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(InvalidInputError, match="inside the served folder"):
        library.case(View(file=("a.npy",)))


def test_labels_beside_an_array_behind_a_link_stay_inside_the_folder(library, tmp_path):
    served = tmp_path / "served"
    (tmp_path / "secret.txt").write_text("root\nuser\n")
    (served / "deep").mkdir()
    np.save(served / "deep" / "a.npy", np.array([[0.5, 0.5]]))
    (served / "deep" / "a.labels.txt").symlink_to(tmp_path / "secret.txt")
    (served / "b.npy").symlink_to(served / "deep" / "a.npy")
    with pytest.raises(InvalidInputError, match="inside the served folder"):
        library.case(View(file=("b.npy",)))


@pytest.mark.parametrize(
    ("view", "words"),
    [
        (View(), "at least one file"),
        (View(file=("missing.csv",)), "missing.csv: there must be such a file"),
        (View(file=("0.csv", "0.csv")), "named once"),
        (View(example="nothing"), "one of languages, animals"),
        (View(example="animals", kernel="magic"), "one of attributes; got 'magic'"),
        (View(file=("0.csv",), kernel="tree"), "needs a file"),
        (View(file=("0.csv",), kernel="tree", kernel_file="none.txt"), "none.txt: there must be"),
        (View(file=("0.csv",), kernel="kernel", kernel_file="1.parquet"), "1.parquet"),
    ],
)
def test_what_cannot_be_opened_is_named(library, view, words):
    with pytest.raises(InvalidInputError, match=words):
        library.case(view)


def test_too_many_labels_are_refused(library, tmp_path):
    wide = histograms(1, 1, [f"w{i}" for i in range(51)])[0]
    write_predictions(tmp_path / "served" / "wide.csv", wide)
    with pytest.raises(InvalidInputError, match=r"wide\.csv: this server takes at most 50 labels"):
        library.case(View(file=("wide.csv",)))


@pytest.mark.parametrize("end", ["parquet", "feather"])
def test_tables_with_dictionaries_are_opened(library, tmp_path, end):
    names = pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["x"]))
    table = pa.table({"sample": names, "cat": [0.4], "dog": [0.6]})
    write = pq.write_table if end == "parquet" else feather.write_feather
    write(table, tmp_path / "served" / f"small.{end}")
    assert library.case(View(file=(f"small.{end}",))).table.samples == ["x"]


@pytest.mark.parametrize("end", ["parquet", "arrow", "csv.gz", "npz"])
def test_a_file_that_is_not_whole_is_named(library, tmp_path, end):
    (tmp_path / "served" / f"broken.{end}").write_bytes(b"ARROW1 and no more")
    with pytest.raises(InvalidInputError, match=rf"broken\.{end}: must be a whole "):
        library.case(View(file=(f"broken.{end}",)))


@pytest.mark.parametrize(
    ("lines", "what"), [("sample,{}\nx,1\n", "label"), ("sample,cat\n{},1\n", "sample")]
)
def test_names_that_no_link_can_hold_are_refused(library, tmp_path, lines, what):
    path = tmp_path / "served" / "long.csv"
    path.write_text(lines.format("y" * 1000))
    assert library.case(View(file=("long.csv",)))
    path.write_text(lines.format("y" * 1001))
    with pytest.raises(InvalidInputError, match=f"a {what} must have at most 1,000 letters"):
        library.case(View(file=("long.csv",)))


def test_kinds_that_do_not_fit_are_named(library, tmp_path):
    write_predictions(tmp_path / "served" / "many.npz", scores(1)[0])
    with pytest.raises(InvalidInputError, match="0 multiclass, model 0 multilabel"):
        library.case(View(file=("0.csv", "many.npz")))


def test_kernels_come_from_files(library, tmp_path):
    served = tmp_path / "served"
    labels = histograms()[0].labels
    from_names(labels, labels).save(served / "saved.npz")
    (served / "synonyms.csv").write_text("word,synonym\ncat,dog\n")
    (served / "vectors.txt").write_text("cat 1 0\ndog 0.9 0.1\ncar 0 1\nbus 0.1 0.9\n")
    for kernel, name in (
        ("kernel", "saved.npz"),
        ("synonyms", "synonyms.csv"),
        ("embeddings", "vectors.txt"),
    ):
        case = library.case(View(file=("0.csv", "2.npz"), kernel=kernel, kernel_file=name))
        assert len(case.costs) == 2
        assert case.similarity.has_cost == (kernel == "embeddings")
    spelt = library.case(View(file=("0.csv",), kernel="spelling"))
    assert spelt.costs[0].shape == (5, 5)


def test_costs_that_models_share_count_once():
    costs = np.zeros((2, 3), dtype=np.float32)
    cut = Cut(0, [], histograms()[0].labels, [costs, costs, costs.copy()], [], 0.0)
    assert cut.n_bytes == 2 * 24


def test_what_kernels_hold_counts(library, tmp_path):
    served = tmp_path / "served"
    for name in "ab":
        (served / f"{name}.txt").write_text("cat 1 0\ndog 0.9 0.1\ncar 0 1\nbus 0.1 0.9\n")
    views = [View(file=("0.csv",), kernel="embeddings", kernel_file=f"{name}.txt") for name in "ab"]
    n_bytes = (served / "a.txt").stat().st_size
    assert library.case(views[0]).n_bytes == 4 * 5 * 8 + n_bytes
    kept = library._similarities
    library.case(views[1])
    assert len(kept) == 2
    kept._n_bytes = n_bytes
    kept.get("other", lambda: library.case(views[0]).similarity)
    assert len(kept) == 1


# -- uploads ---------------------------------------------------------------------------------


def new_run():
    return f"{os.getpid()}-{secrets.token_hex(16)}"


def keep(uploads, name, content=b"sample,cat,dog\nx,0.5,0.5\n"):
    return uploads.keep(name, io.BytesIO(content))


@pytest.fixture
def uploads(library):
    """What a server keeps that the library opens."""
    found = Uploads.of(library._settings)
    yield found
    found.close()


def test_an_upload_is_opened_by_its_reference(library, uploads):
    reference = keep(uploads, "../../my model.csv")
    case = library.case(View(file=(reference,)))
    assert [m.model for m in case.table.models] == ["my model"]
    assert case.table.title == "../../my model.csv"
    (path,) = uploads.folder.iterdir()
    assert "model" not in path.name
    uploads.close()
    assert not uploads.folder.exists()


def test_errors_name_an_upload_as_its_owner_does(library, uploads):
    reference = keep(uploads, "mine.csv", b"nothing\n")
    with pytest.raises(InvalidInputError, match=r"mine\.csv") as caught:
        library.case(View(file=(reference,)))
    assert str(uploads.folder) not in str(caught.value)
    assert reference.removeprefix("upload:") not in str(caught.value)


def test_uploads_are_few_and_small_together():
    uploads = Uploads(100, new_run())
    first = keep(uploads, "a.csv", b"x" * 60)
    second = keep(uploads, "b.csv", b"x" * 60)
    with pytest.raises(InvalidInputError, match="no longer kept"):
        uploads.find(first)
    assert uploads.find(second).n_bytes == 60
    many = [keep(uploads, f"{i}.csv", b"") for i in range(80)]
    assert len(list(uploads.folder.iterdir())) == 64
    assert uploads.find(many[-1]).name == "79.csv"
    uploads.close()


def test_workers_find_what_the_server_keeps():
    run = new_run()
    one, other = Uploads(100, run), Uploads(100, run)
    first = keep(one, "a.csv", b"x" * 60)
    assert other.find(first).path.read_bytes() == b"x" * 60
    keep(other, "b.csv", b"x" * 60)
    with pytest.raises(InvalidInputError, match="no longer kept"):
        one.find(first)
    one.close()
    assert not other.folder.exists()


@pytest.mark.parametrize(
    "reference", ["upload:..", "upload:../../../etc/pwd", "upload:", "upload:a"]
)
def test_a_reference_is_never_a_path(reference):
    with pytest.raises(InvalidInputError, match="no longer kept"):
        Uploads(100, new_run()).find(reference)


def test_folders_of_servers_that_were_killed_are_swept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    gone, alive = f"wassemble-uploads-{process.pid}-", f"wassemble-uploads-{os.getppid()}-"
    (tmp_path / "other").mkdir()
    for name in (gone + "old", gone + "new", alive + "old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.csv").touch()
    (tmp_path / f"{gone}link").symlink_to(tmp_path / "other")
    for path in tmp_path.iterdir():
        if not path.name.endswith("new"):
            os.utime(path, (1, 1), follow_symlinks=False)
    uploads = Uploads(100, new_run())
    keep(uploads, "a.csv")
    own = uploads.folder.name
    assert {path.name for path in tmp_path.iterdir()} == {
        *(own, "other", gone + "new", gone + "link", alive + "old")
    }
    uploads.close()


@pytest.mark.parametrize("name", ["a.exe", "", ".csv", "a.npy", "a.pkl", "a"])
def test_uploads_of_other_kinds_are_refused(name):
    uploads = Uploads(100, new_run())
    with pytest.raises(InvalidInputError, match="must end in"):
        keep(uploads, name)
    uploads.close()


# -- what is kept ----------------------------------------------------------------------------


def test_the_oldest_goes_first():
    kept = Kept(2)
    made = [kept.get(key, lambda key=key: [key]) for key in "abac"]
    assert kept.get("a", list) is made[0]
    assert kept.get("b", list) == []
    heavy = Kept(9, n_bytes=5, size=len)
    for key in ("aaa", "bbb"):
        heavy.get(key, lambda key=key: key)
    assert len(heavy) == 1


def test_what_fails_is_tried_again():
    kept = Kept(2)
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 / 0)
    assert kept.get("a", lambda: 5) == 5


# -- how files are read ----------------------------------------------------------------------


def test_percentages_are_refused_in_words_of_the_page_and_read_when_divided(library, tmp_path):
    (tmp_path / "served" / "shares.csv").write_text("sample,cat,dog\ns0,90,10\ns1,40,60\n")
    refused = answer_question(library, Question(what="page", view=View(file=("shares.csv",))))
    assert refused.status == 422
    words = refused.body.decode()
    assert "shares.csv" in words
    assert '"Divide each row by its sum" divides each row by its sum' in words
    assert '"Rows are" multilabel' not in words
    read = library.case(View(file=("shares.csv",), normalize=True)).table
    np.testing.assert_allclose(read.models[0].scores, [[0.9, 0.1], [0.4, 0.6]])
    [card] = library.describe(View(file=("shares.csv",), normalize=True))
    assert card["problem"] == ""
    assert library.case(View(file=("shares.csv",), kind="multilabel")).table.kind == "multilabel"


def test_a_model_named_after_an_upload_goes_by_the_name_it_was_sent_under(library):
    sent = library.uploads.keep("mine.csv", io.BytesIO(b"sample,cat,dog\ns0,90,10\n"))
    with pytest.raises(InvalidInputError, match=r"^mine\.csv: the scores of 'mine' must"):
        library.case(View(file=(sent,)))
    library.uploads.close()


def test_a_label_for_none_of_the_others_is_no_answer(library, tmp_path):
    served = tmp_path / "served"
    (served / "a.csv").write_text("sample,cat,dog,other\nx,0.2,0.2,0.6\n")
    (served / "b.csv").write_text("sample,cat,car\nx,0.4,0.6\n")
    case = library.case(View(file=("a.csv", "b.csv"), other="other"))
    assert list(case.target) == ["cat", "dog", "car"]
    answer = fuse_sample(case, 0, View())
    rule = Barycenter(answer.plan.rule.mass, max_sweeps=300, tolerance=1e-5)
    wanted = Fusion(rule, other="other").fuse(case.table.models)
    np.testing.assert_allclose(answer.consensus.scores, wanted.scores[0], rtol=1e-6)
    assert list(library.case(View(file=("a.csv", "b.csv"))).target)[2] == "other"
    with pytest.raises(InvalidInputError, match="labels that equal names join; got spelling"):
        library.case(View(file=("a.csv", "b.csv"), other="other", kernel="spelling"))
    with pytest.raises(InvalidInputError, match="must be a label of some model"):
        fuse_sample(library.case(View(file=("a.csv",), other="rest")), 0, View())


# -- names of labels -------------------------------------------------------------------------


def test_labels_have_the_names_of_a_file(library, tmp_path):
    path = tmp_path / "served" / "names.tsv"
    path.write_text("name\tlabel\tnote\nhouse cat\tcat\t\nhound\tdog\t\n\tbus\t\n")
    table = library.case(View(file=("0.csv",), names="names.tsv")).table
    assert [table.name(label) for label in ("cat", "dog", "bus")] == ["house cat", "hound", "bus"]
    assert library.case(View(file=("0.csv",))).table.name("cat") == "cat"
    path.write_text("label\tname\ncat\ttom\n")  # it is read anew
    assert library.case(View(file=("0.csv",), names="names.tsv")).table.name("cat") == "tom"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cat,house cat\n", "names.csv: names of labels must have the columns label and name"),
        ("label,name\ncat,a\ncat,b\n", "one name; 'cat' has 'a' and 'b'"),
        ("label,name\nokapi,a\n", "of some label of the models; got none of"),
        (f"label,name\ncat,{'x' * 1001}\n", "a name must have at most 1,000 letters"),
        (f"label,name\ncat,{'x' * 200_000}\n", "must be a table; got: field larger"),
        (b"label,name\ncat,\xff\n", "names.csv: must be a table of names in UTF-8"),
    ],
)
def test_names_that_cannot_be_read_are_refused(library, tmp_path, text, words):
    content = text if isinstance(text, bytes) else text.encode()
    (tmp_path / "served" / "names.csv").write_bytes(content)
    with pytest.raises(InvalidInputError, match=words):
        library.case(View(file=("0.csv",), names="names.csv"))


def test_the_names_of_a_server_are_for_files_without_their_own(library, tmp_path):
    for name in ("all", "own"):
        (tmp_path / "served" / f"{name}.csv").write_text(f"label,name\ncat,cat of {name}\n")
    write_predictions(tmp_path / "served" / "other.npz", histograms(1, labels=list("xyzuv"))[0])
    settings = Settings(folder=tmp_path / "served", names=tmp_path / "served" / "all.csv")
    library = Library(settings)
    assert library.case(View(file=("0.csv",))).table.name("cat") == "cat of all"
    assert library.case(View(file=("0.csv",), names="own.csv")).table.name("cat") == "cat of own"
    assert library.case(View(file=("other.npz",))).table.name("x") == "x"
    with pytest.raises(InvalidInputError, match=r"0\.csv: names of labels must have the columns"):
        Settings(folder=tmp_path / "served", names=tmp_path / "served" / "0.csv")
