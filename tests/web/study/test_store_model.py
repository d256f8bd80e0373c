"""Whatever raters do in whatever order, the store holds what a simple model holds."""

import tempfile
from pathlib import Path

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from web.study.people import make_items

from wassemble.web.study.answers import read_answer
from wassemble.web.study.design import Design
from wassemble.web.study.questions import PAPER
from wassemble.web.study.store import Store

NAMES = {"correctness": "most correct", "detail": "most detailed"}
ITEMS = make_items(4)
N_RATERS = 3
RATERS = st.integers(0, N_RATERS - 1)
SCORE = st.none() | st.sampled_from("12345")


class Raters(RuleBasedStateMachine):
    """Raters answer, answer again, answer in part, leave, and come back after a restart."""

    @initialize()
    def make_study(self):
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{Path(self.folder.name) / 'studies.db'}"
        self.store = Store(self.url)
        self.study = self.store.create_study(Design("A study"), ITEMS, N_RATERS)
        self.secrets = [link.secret for link in self.store.list_links(self.study)]
        self.said = [{} for _ in self.secrets]  # by rater and item: fields, by caption
        self.last = None

    @rule(
        rater=RATERS, number=st.integers(0, len(ITEMS) - 1), data=st.data(), is_whole=st.booleans()
    )
    def answer(self, rater, number, data, is_whole):
        shown = self.store.find_rater(self.secrets[rater]).shown[number]
        letters = "ABCDEFGHIJ"[: len(shown.order)]
        score = st.sampled_from("12345") if is_whole else SCORE
        best = st.sampled_from(letters) if is_whole else st.none() | st.sampled_from(letters)
        form = {f"q{n}-{each}": data.draw(score) for n in (1, 2) for each in letters}
        if len(letters) > 1:
            form |= {f"q{n}": data.draw(best) for n in (3, 4)}
        self.send(rater, number, {name: value for name, value in form.items() if value is not None})

    @rule()
    def send_the_last_form_again(self):
        if self.last is not None:
            self.send(*self.last)

    @rule()
    def restart(self):
        self.store.close()
        self.store = Store(self.url)

    def send(self, rater, number, form):
        found = self.store.find_rater(self.secrets[rater])
        shown = found.shown[number]
        answer = read_answer(form, ITEMS[shown.item], shown, PAPER)
        self.store.save_answer(found.id, shown.item, answer)
        self.last = (rater, number, form)
        n_fields = len(NAMES) * (len(shown.order) + (len(shown.order) > 1))
        before = self.said[rater].get(number)
        if len(form) == n_fields or before is None or len(before) < n_fields:
            self.said[rater][number] = form

    @invariant()
    def the_store_holds_what_was_said(self):
        if not hasattr(self, "said"):
            return
        for secret, said in zip(self.secrets, self.said, strict=True):
            found = self.store.find_rater(secret)
            done = set()
            for number, shown in enumerate(found.shown):
                answer = self.store.get_answer(found.id, shown.item)
                assert (answer is None) == (number not in said)
                if answer is None:
                    continue
                fields = {}
                for n, (scale, best) in enumerate(NAMES.items(), start=1):
                    for place, choice in enumerate(shown.order):
                        fields[f"q{n}-{'ABC'[place]}"] = answer.said[scale][choice]
                    if len(shown.order) > 1 and answer.said[best] is not None:
                        fields[f"q{n + 2}"] = "ABC"[shown.order.index(answer.said[best])]
                kept = {name: str(value) for name, value in fields.items() if value is not None}
                assert kept == said[number]
                n_fields = len(NAMES) * (len(shown.order) + (len(shown.order) > 1))
                if len(kept) == n_fields:
                    done.add(number + 1)
            left = [number for number in range(1, len(ITEMS) + 1) if number not in done]
            assert found.next_number == (left[0] if left else None)

    def teardown(self):
        if hasattr(self, "store"):
            self.store.close()
            self.folder.cleanup()


TestRaters = Raters.TestCase
TestRaters.settings = settings(max_examples=20, stateful_step_count=15)
