"""`python -m paper generate`: captions from several captioners fused at every word."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import click
from click.core import ParameterSource

from paper.captioners import SEEING, TOLD
from paper.record.findings import ticker
from wassemble.cli.config import config_option
from wassemble.cli.console import progress_bar, talk
from wassemble.cli.options import shown_option
from wassemble.cli.places import Command, NameOrFile, Output
from wassemble.errors import fail

if TYPE_CHECKING:
    import numpy as np

    from paper.captioners.captioner import Captioner
    from wassemble.ensemble import Explanation
    from wassemble.kernels import LabelledKernel
    from wassemble.labels import LabelSpace

_SHIPPED = (*SEEING, *TOLD, "frequent-words", "missing-words", "tiny")
_SPLITS = ("test", "val", "train")
_MEANS = ("arithmetic", "geometric")
_EPSILON = {"glove": 0.05, "synonyms": 1.0}
_N_TOGETHER = 16  # images that are captioned in one batch
_ABOVE_ZERO = click.FloatRange(min=0, min_open=True)
_AT_LEAST_ONE = click.IntRange(min=1)
_out_option = click.option(
    "--out",
    type=Output(path_type=Path),
    help="File to write the JSON lines to.  [default: standard output]",
)


@click.command(cls=Command, short_help="Caption pictures with several captioners fused into one.")
@click.argument("captioners", nargs=-1, type=NameOrFile(_SHIPPED), metavar="[CAPTIONER]...")
@shown_option(
    "--images",
    type=NameOrFile(_SPLITS),
    default="test",
    metavar="test|val|train|FILE",
    help="Pictures to caption: a split of the shipped ones, or an .npz file with the arrays"
    " image_ids and features.",
)
@click.option(
    "--first", type=_AT_LEAST_ONE, help="Caption only the first so many pictures.  [default: all]"
)
@shown_option(
    "--rule",
    type=click.Choice(["barycenter", "unbalanced", "debiased", *_MEANS]),
    default="barycenter",
    help="How the captioners' next words are combined: by the Wasserstein barycenter, its"
    " unbalanced or debiased form, or a mean.",
)
@click.option(
    "--kernel",
    type=NameOrFile(("glove", "synonyms")),
    metavar="glove|synonyms|FILE",
    help="What says which words are similar: the shipped word vectors (glove) or synonyms, or a"
    " kernel file.  [default: glove; none for a mean]",
)
@click.option(
    "--epsilon",
    type=_ABOVE_ZERO,
    help="How far probability spreads to similar words: the larger, the farther. With a kernel"
    " file, only for --rule unbalanced: the epsilon that the file was made with.  [default: 0.05"
    " for glove, 1 for synonyms]",
)
@shown_option(
    "--mass-penalty",
    type=_ABOVE_ZERO,
    default=1.0,
    help="With --rule unbalanced: the larger, the less the models' sums may differ from that of"
    " the consensus.",
)
@shown_option("--max-sweeps", type=_AT_LEAST_ONE, default=5, help="Number of sweeps for each word.")
@click.option(
    "--tolerance",
    type=_ABOVE_ZERO,
    help="Stop sweeping when a sweep changes less than this.  [default: always do --max-sweeps"
    " sweeps]",
)
@shown_option(
    "--n-top",
    type=click.IntRange(min=0),
    default=500,
    help="Fuse only so many of the likeliest words and treat all others as one; 0: fuse all.",
)
@shown_option(
    "--beam",
    type=_AT_LEAST_ONE,
    default=5,
    help="Number of unfinished captions that the search keeps.",
)
@shown_option(
    "--length-power",
    type=click.FloatRange(min=0),
    default=1.0,
    help="Captions are ranked by log probability over the number of words to this power. 1: by"
    " the mean over words; 0: by probability alone, which favours short captions.",
)
@click.option(
    "--randomised",
    type=_AT_LEAST_ONE,
    metavar="N",
    help="Sample N next words for each unfinished caption, instead of taking the likeliest.",
)
@shown_option("--seed", type=click.IntRange(min=0), default=0, help="Seed of --randomised.")
@shown_option(
    "--max-words",
    type=_AT_LEAST_ONE,
    default=20,
    help="Number of words after which a caption is cut off, counting its end.",
)
@click.option("--explain", is_flag=True, help="Also say from which model's words each word came.")
@_out_option
@click.option("--quiet", is_flag=True, help="Print no messages, only errors.")
@config_option
def generate(captioners: tuple[str, ...], out: Path | None, quiet: bool, **values: Any) -> None:
    """Caption pictures with several CAPTIONERs as one, and print a JSON line for each picture.

    A CAPTIONER is a file that `python -m paper train-captioners` wrote, or the name of a shipped
    one. If none is given, five that look at pictures are used. One that is told concepts instead,
    as concepts-self-critical is, goes with others of its kind. Each line has image_id, caption and
    log_probability; "finished": false if --max-words cut the caption off; and with --explain, for
    each word, the models' words that it came from.

    \b
    python -m paper generate --first 5
    python -m paper generate --first 5 --explain --kernel synonyms
    python -m paper generate smoothed mine/special.npz --images mine.npz --out captions.jsonl
    python -m paper generate --first 5 --rule arithmetic --randomised 5 --seed 1
    """
    from wassemble.text import FusedNextWord

    _refuse_unused(values)
    models = _read_captioners(captioners)
    image_ids, features = _read_images(
        values["images"], values["first"], with_concepts=_are_told_concepts(models)
    )
    fused = FusedNextWord(list(models.values()), **_options(values, models))
    # Captions on a terminal show how far it is; a bar would be in their way.
    no_bar = quiet or (out is None and sys.stdout.isatty())
    with _printer(out) as show, progress_bar("pictures", quiet=no_bar) as progress:
        tick = ticker(progress, len(image_ids))
        for record in _caption(fused, list(models), image_ids, features, values):
            show(json.dumps(record, ensure_ascii=False))
            tick()
    account = fused.account
    told = f"{len(image_ids)} pictures captioned by {', '.join(models)}"
    told += f"; {account.n_rows} words fused"
    if values["n_top"]:
        told += f"; on average {account.mean_dropped:z.1%} of the mass of the model hit hardest"
        told += f" was on words beyond the top {values['n_top']}"
    if values["tolerance"] is not None:
        told += f"; {account.n_converged / max(account.n_rows, 1):.1%} converged"
    talk(told, quiet=quiet)


def _refuse_unused(values: dict[str, Any]) -> None:
    """Refuse what would have no effect."""
    rule = values["rule"]
    is_mean = rule in _MEANS
    if values["explain"] and is_mean:
        fail(f"--explain shows where mass came from; --rule {rule} moves none.")
    needs = {
        "max_sweeps": ("a barycenter", not is_mean),
        "tolerance": ("a barycenter", not is_mean),
        "mass_penalty": ("--rule unbalanced", rule == "unbalanced"),
        "epsilon": ("--kernel", not is_mean or values["kernel"] is not None),
        "seed": ("--randomised", values["randomised"] is not None),
    }
    for name, (what, is_there) in needs.items():
        source = click.get_current_context().get_parameter_source(name)
        if source is not ParameterSource.DEFAULT and not is_there:
            got = "none" if name == "seed" else f"--rule {rule}"
            fail(f"--{name.replace('_', '-')} must go with {what}; got {got}.")


@contextmanager
def _printer(out: Path | None) -> Iterator[Callable[[str], None]]:
    """A function that takes lines to standard output, or to a file that appears whole."""
    from wassemble._files import whole_file

    if out is None:
        yield click.echo
        return
    with whole_file(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        yield lambda line: click.echo(line, file=file)


def _caption(
    fused: Any, names: list[str], image_ids: list[str], features: np.ndarray, values: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    from wassemble.text import beam_search, explain_sentence

    for start in range(0, len(image_ids), _N_TOGETHER):
        stop = start + _N_TOGETHER
        some = features[start:stop]
        found = beam_search(
            fused,
            some,
            width=values["beam"],
            max_words=values["max_words"],
            length_power=values["length_power"],
            n_samples=values["randomised"],
            seed=[[values["seed"], crc32(name.encode())] for name in image_ids[start:stop]],
        )
        for place, [best] in enumerate(found):
            record: dict[str, Any] = {
                "image_id": image_ids[start + place],
                "caption": best.text,
                "log_probability": round(best.log_probability, 4),
            }
            if not best.is_finished:
                record["finished"] = False
            if values["explain"]:
                told = explain_sentence(fused, some[place : place + 1], best.words, names=names)
                if not best.is_finished:
                    told.pop()  # the end, which was not said
                record["words"] = [_explanation(each) for each in told]
            yield record


def _explanation(told: Explanation) -> dict[str, Any]:
    """A word, and the models' words that it came from."""

    def named(each: Any) -> dict[str, Any]:
        return {"word": each.label, "probability": float(f"{each.score:.4g}")}

    sent = [
        {"model": part.model, **named(part), "percent": round(part.percent, 2)}
        for part in told.contributions
    ]
    return {**named(told), "from": sent}


def _are_told_concepts(models: dict[str, Captioner]) -> bool:
    """Whether the captioners are told concepts, all or none."""
    told = [name for name, model in models.items() if model.network.n_concepts]
    if told and len(told) < len(models):
        seeing = next(name for name in models if name not in told)
        fail(
            "captioners must all look at pictures, or all be told concepts; got"
            f" {seeing!r} beside {told[0]!r}."
        )
    return bool(told)


def _read_images(
    images: str, first: int | None, *, with_concepts: bool
) -> tuple[list[str], np.ndarray]:
    """Ids and features of what --images names."""
    from paper.data.captions import load_captions, read_grid_features

    if images in _SPLITS:
        data = load_captions(images, with_concepts=with_concepts)
        image_ids, features = [str(number) for number in data.image_ids], data.features
    elif _is_file(images, "--images"):
        image_ids, features = read_grid_features(images)
    else:
        fail(f"--images must be {', '.join(_SPLITS)} or an .npz file; got {images!r}.")
    return image_ids[:first], features[:first]


def _read_captioners(names: tuple[str, ...]) -> dict[str, Captioner]:
    """Captioners by name: files, or shipped ones."""
    from paper.captioners.captioner import read_captioner
    from paper.captioners.recipes import RECIPES
    from paper.data.files import find_data

    found: dict[str, Captioner] = {}
    for given in names or SEEING:
        path = Path(given)
        name = path.stem if path.suffix == ".npz" else given
        if given in RECIPES:
            path = find_data(f"captioners/{given}.npz")
        elif not _is_file(given, "captioner"):
            fail(
                f"a captioner must be a file or one of {', '.join(RECIPES)}; got {given!r}.",
                hint="`python -m paper train-captioners` writes captioner files",
            )
        if name in found:
            fail(f"captioners must have different names; got {name!r} twice.")
        found[name] = read_captioner(path)
    return found


def _is_file(given: str, what: str) -> bool:
    """Whether a file of this name is there; it must be if it can be nothing but a path."""
    path = Path(given)
    if not path.is_file() and (path.suffix or path.name != given):
        fail(f"{what} {given}: must be a file; there is none.")
    return path.is_file()


def _options(values: dict[str, Any], models: dict[str, Captioner]) -> dict[str, Any]:
    """How the captioners are fused, as `FusedNextWord` takes it."""
    import wassemble as ws

    rule, epsilon = values["rule"], values["epsilon"]
    name = values["kernel"] or (None if rule in _MEANS else "glove")
    if epsilon is None and name is not None:
        epsilon = _EPSILON.get(name)
    words = ws.LabelSpace.union(*(model.vocabulary.words for model in models.values()))
    kernel = None if name is None else _kernel(name, words, epsilon, rule)
    if rule in _MEANS:
        chosen: Any = ws.ARITHMETIC if rule == "arithmetic" else ws.GEOMETRIC
    else:
        is_free = rule == "unbalanced"
        chosen = ws.Barycenter(
            ws.Unbalanced(values["mass_penalty"], epsilon=epsilon) if is_free else ws.Balanced(),
            max_sweeps=values["max_sweeps"],
            tolerance=values["tolerance"],
            debias=rule == "debiased",
        )
    return {"kernel": kernel, "rule": chosen, "n_top": values["n_top"] or None}


def _kernel(name: str, words: LabelSpace, epsilon: Any, rule: str) -> LabelledKernel:
    import wassemble as ws
    from paper.words.models import glove_kernels, synonym_kernels

    if name in _EPSILON:
        return (glove_kernels if name == "glove" else synonym_kernels)(words)(epsilon)
    if not _is_file(name, "--kernel"):
        fail(f"--kernel must be glove, synonyms or a kernel file; got {name!r}.")
    if rule == "unbalanced" and epsilon is None:
        fail(
            f"--epsilon must say what the kernel in {name} was made with, for --rule unbalanced;"
            " got none."
        )
    if rule != "unbalanced" and epsilon is not None:
        fail(f"--epsilon is part of the kernel in {name}; got it beside --kernel.")
    return ws.kernels.load(name)


@click.command(cls=Command, short_help="Write the reference captions of the shipped pictures.")
@click.argument("split", type=click.Choice(_SPLITS))
@_out_option
def references(split: str, out: Path | None) -> None:
    """Write what people said of each picture of a split, a JSON line each.

    `wassemble study items --references` takes such a file.

    \b
    python -m paper references test --out references.jsonl
    """
    from paper.data.captions import load_captions

    data = load_captions(split)
    with _printer(out) as show:
        for number, captions in zip(data.image_ids.tolist(), data.captions, strict=True):
            record = {"image_id": str(number), "captions": captions}
            show(json.dumps(record, ensure_ascii=False))
