// The form of a new study: questions are added, removed, or taken from a template.
"use strict";

(() => {
  const place = document.getElementById("questions");
  const pattern = document.getElementById("question-row").content;
  const templates = JSON.parse(document.getElementById("template-rows").textContent);

  const add = (row) => {
    place.append(pattern.cloneNode(true));
    const last = place.lastElementChild;
    const names = ["question_name", "question_kind", "question_text", "question_options"];
    names.forEach((name, at) => { last.querySelector(`[name=${name}]`).value = row[at]; });
    dress(last);
    return last;
  };
  const dress = (row) => {
    const button = row.querySelector(".remove");
    button.hidden = false;
    button.addEventListener("click", () => { row.remove(); number(); });
    row.querySelector("select").addEventListener("change", number);
    number();
  };
  // Each says which one it is, and shows options only where there are some.
  const number = () => {
    Array.from(place.children).forEach((row, at) => {
      row.querySelector("legend").textContent = `Question ${at + 1}`;
      row.querySelector(".remove").setAttribute("aria-label", `Remove question ${at + 1}`);
      const kind = row.querySelector("select").value;
      row.querySelector("[name=question_options]").closest("label").hidden = kind === "words";
    });
  };

  for (const row of place.children) dress(row);
  const more = document.getElementById("add-question");
  more.hidden = false;
  more.addEventListener("click", () => add(["", "grade", "", ""]).querySelector("select").focus());
  document.getElementById("templates").hidden = false;
  for (const button of document.querySelectorAll("[data-template]")) {
    button.addEventListener("click", () => {
      const {rows, is_pairwise: isPairwise} = templates[button.dataset.template];
      place.replaceChildren();
      rows.forEach(add);
      document.getElementById("is_pairwise").checked = isPairwise;
    });
  }
})();
