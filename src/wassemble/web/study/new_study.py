"""The form that makes a study: its files, its questions, its raters, its texts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import PurePath
from typing import Annotated, Literal

from fastapi import File, Form, UploadFile
from pydantic import BaseModel

from wassemble.errors import fail
from wassemble.web.replies import Reply
from wassemble.web.settings import Settings
from wassemble.web.study import example
from wassemble.web.study.design import CONSENT, Design
from wassemble.web.study.items import Item
from wassemble.web.study.pictures import Picture
from wassemble.web.study.questions import PAPER, Question
from wassemble.web.study.reading import StudyFiles, read_files

MAX_AT_ONCE = 500  # raters
NRaters = Annotated[int, Form(ge=1, le=MAX_AT_ONCE)]
_Texts = Annotated[list[str], Form(max_length=20)]


class NewStudy(BaseModel):
    """The form for a new study, as it is at first and as it was entered."""

    file: Annotated[UploadFile | None, File(description="CSV or JSON lines.")] = None
    pictures: Annotated[list[UploadFile], File(description="Pictures, or zip files of them.")] = []
    is_example: Annotated[bool, Form(description="Take the example study.")] = False
    title: Annotated[str, Form(max_length=200)] = ""
    consent: Annotated[str, Form(max_length=20_000)] = CONSENT
    thanks: Annotated[str, Form(max_length=5_000)] = ""
    # One of each for every question; one without a name and a text is left out.
    question_name: _Texts = []
    question_kind: Annotated[list[Literal["grade", "best", "label", "words"]], Form()] = []
    question_text: _Texts = []
    question_options: _Texts = []
    is_pairwise: Annotated[bool, Form(description="Show two captions at a time.")] = False
    access: Annotated[
        Literal["links", "join"], Form(description="A link each, or one for all.")
    ] = "links"
    items_per_rater: Annotated[int | None, Form(ge=1, le=10_000)] = None
    is_once: Annotated[bool, Form(description="Each item goes to one rater only.")] = False
    n_raters: NRaters = 10
    seed: Annotated[int, Form(ge=0, le=2**31 - 1)] = 0
    hold_minutes: Annotated[int, Form(ge=1, le=100_000)] = 120
    code: Annotated[str, Form(max_length=100)] = ""
    return_url: Annotated[str, Form(max_length=1_000)] = ""

    @property
    def rows(self) -> list[tuple[str, str, str, str]]:
        """Questions as the form has them: name, kind, text, options."""
        columns = (self.question_name, self.question_kind, self.question_text)
        return list(zip(*columns, self.question_options, strict=False))

    def _read_questions(self) -> tuple[Question, ...]:
        """What raters are asked; the paper's questions if nothing is said."""
        columns = (self.question_name, self.question_kind, self.question_text)
        if any(len(each) != len(self.question_options) for each in columns):
            fail("each question must have a name, a kind, a text and options; one has not.")
        asked = tuple(
            Question(
                name.strip() or text.strip()[:60],
                kind,
                text.strip() or name.strip(),
                _split(options),
            )
            for name, kind, text, options in self.rows
            if name.strip() or text.strip()
        )
        return asked or PAPER

    async def read(
        self, settings: Settings, ask: Callable[[StudyFiles], Awaitable[Reply]]
    ) -> tuple[Design, list[Item], dict[str, Picture]]:
        """The options, the items, and the pictures that were sent for them.

        ``ask`` has a worker read files.
        """
        if self.is_example:
            return self._design(example.TITLE), example.read_items(), example.read_pictures()
        items = None
        if self.file is not None and self.file.filename:
            items = PurePath(self.file.filename).name[:100] or "items", self.file.file
        pictures = [
            (PurePath(each.filename).name, each.file) for each in self.pictures if each.filename
        ]
        if items is None and not pictures:
            fail(
                "a study needs a file of items, or pictures; got none.",
                hint="choose a CSV or JSON-lines file",
            )
        # Before the files: it takes no time.
        design = self._design("pictures" if items is None else items[0])
        read = await read_files(
            items, pictures, ask, served=settings.folder, max_bytes=settings.max_upload_bytes
        )
        return design, *read

    def _design(self, name: str) -> Design:
        """The options of the study, titled after its file if it has no title."""
        return Design(
            self.title.strip() or PurePath(name).stem,
            _clean(self.consent),
            self._read_questions(),
            self.items_per_rater,
            is_repeated=not self.is_once,
            is_pairwise=self.is_pairwise,
            seed=self.seed,
            hold_minutes=self.hold_minutes,
            thanks=_clean(self.thanks),
            code=self.code.strip(),
            return_url=self.return_url.strip(),
        )


def _split(options: str) -> tuple[str, ...]:
    """Options with commas between, or one on each line."""
    lines = options.replace("\r", "").replace("\n", ",").split(",")
    return tuple(each.strip() for each in lines if each.strip())


def _clean(text: str) -> str:
    return text.replace("\r\n", "\n").strip()
