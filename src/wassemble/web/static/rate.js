// Comfort for raters; every page works without it. Keys choose, links are copied, time is measured.
"use strict";

(() => {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    const words = button.firstChild;
    const before = words.textContent;
    button.addEventListener("click", async () => {
      const field = document.getElementById(button.dataset.copy);
      field.select();
      try {
        await navigator.clipboard.writeText(field.value);
      } catch {
        document.execCommand("copy"); // where there is no https
      }
      words.textContent = "Copied";
      setTimeout(() => { words.textContent = before; }, 2000);
    });
  }

  const form = document.getElementById("answer");
  if (!form) return;

  // Time in which the page is out of sight does not count.
  let hidden = document.hidden ? Date.now() : 0;
  let away = 0;
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hidden = Date.now();
    else if (hidden) { away += Date.now() - hidden; hidden = 0; }
    if (form.elements.away) form.elements.away.value = (away / 1000).toFixed(1);
  });

  const groups = Array.from(form.querySelectorAll("fieldset.scale"));
  const next = form.querySelector("button[value=next]");
  const isDone = (group) => group.querySelector("input:checked");
  const current = () => {
    const focused = document.activeElement.closest && document.activeElement.closest("fieldset.scale");
    return focused || groups.find((group) => !isDone(group)) || null;
  };
  const mark = () => {
    const active = current();
    for (const group of groups) group.classList.toggle("current", group === active);
  };

  const box = document.getElementById("has-keys");
  document.getElementById("keys").hidden = !groups.length;
  box.checked = localStorage.getItem("wassemble-keys") !== "off";
  box.addEventListener("change", () => {
    localStorage.setItem("wassemble-keys", box.checked ? "on" : "off");
    form.classList.toggle("keyed", box.checked);
    mark();
  });
  form.classList.toggle("keyed", box.checked);

  document.addEventListener("keydown", (event) => {
    if (!box.checked || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("textarea, input:not([type=radio])")) return;
    if (event.key === "Enter" && !event.target.closest("button, a, summary")) {
      event.preventDefault();
      form.requestSubmit(next);
      return;
    }
    const group = current();
    const choices = group ? Array.from(group.querySelectorAll("input")) : [];
    const letter = choices.find((each) => each.value === event.key.toUpperCase());
    const chosen = choices[Number(event.key) - 1] || (/^[a-j]$/i.test(event.key) ? letter : null);
    if (!chosen) return;
    event.preventDefault();
    chosen.checked = true;
    const after = groups.slice(groups.indexOf(group) + 1).find((each) => !isDone(each));
    const target = after || groups.find((each) => !isDone(each));
    (target ? target.querySelector("input") : next).focus({preventScroll: true});
    (target || next).scrollIntoView({block: "nearest"});
    mark();
  });
  form.addEventListener("focusin", mark);
  form.addEventListener("change", mark);
  mark();
})();
