// The explorer's pages: sliders and the numbers beside them, what is refused, and links that take
// the sliders along. Everything that is shown comes from the server; htmx puts it into the page.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const knobs = byId("knobs");
  const KNOBS = ["epsilon", "mass", "mass_penalty", "weight"];

  // -- sliders -----------------------------------------------------------------------------

  const isLog = (slider) => slider.dataset.log !== undefined;
  const sliderOf = (name) => knobs.querySelector(`[data-slider="${name}"]`);
  const round = (value) => Number(value.toPrecision(3));

  function say(slider) {
    slider.setAttribute("aria-valuetext", byId(slider.dataset.slider).value);
  }

  function moved({target}) {
    const name = target.dataset.slider;
    if (name) {
      byId(name).value = round(isLog(target) ? 10 ** target.value : Number(target.value));
      say(target);
    } else if (target.type === "number" && target.value) {
      const slider = sliderOf(target.id);
      slider.value = isLog(slider) ? Math.log10(target.value) : target.value;
      say(slider);
    }
    for (const number of knobs.querySelectorAll("[type=number]")) check(number);
  }

  function check(number) {
    const {id, min, max, value} = number;
    const isRight = number.checkValidity();
    const words = `must be a number from ${Number(min)} to ${Number(max)}; got ${value || "nothing"}.`;
    number.setAttribute("aria-invalid", !isRight);
    byId(`${id}-wrong`).textContent = isRight ? "" : words;
  }

  if (knobs) {
    for (const slider of knobs.querySelectorAll("[data-slider]")) {
      slider.hidden = false;
      say(slider);
    }
    byId("apply").hidden = true;
    if (matchMedia("(max-width: 64rem)").matches) knobs.querySelector(".more").open = false;
    knobs.addEventListener("input", moved);
    knobs.querySelector("[data-reload]")?.addEventListener("change", (event) => {
      // Another kernel has another scale of epsilon, and perhaps other labels.
      const wanted = new URLSearchParams(location.search);
      for (const name of ["epsilon", "label", "model"]) wanted.delete(name);
      wanted.set("kernel", event.target.value);
      showWorking(true);
      location.assign(`${location.pathname}?${wanted}`);
    });
  }

  // -- questions ---------------------------------------------------------------------------

  function complain(text) {
    byId("problem").textContent = text;
    byId("problem").hidden = !text;
  }

  function isBusy(now) {
    byId("answer").setAttribute("aria-busy", now);
    showWorking(now);
  }

  function readProblem(text) {
    try {
      return JSON.parse(text).detail.replace("\nhint: ", " Hint: ");
    } catch {
      return "The server could not answer.";
    }
  }

  document.addEventListener("htmx:beforeRequest", () => isBusy(true));
  document.addEventListener("htmx:afterRequest", ({detail}) => {
    isBusy(false);
    if (detail.successful) complain("");
    else if (detail.xhr.status) complain(readProblem(detail.xhr.responseText));
  });
  document.addEventListener("htmx:sendError", () => {
    complain("The server did not answer. It may have ended.");
  });
  document.addEventListener("htmx:afterSwap", ({detail}) => {
    const flows = byId("flows");
    if (!detail.boosted || !flows) return;
    flows.focus({preventScroll: true}); // the link itself is gone
    flows.scrollIntoView({block: "nearest"});
  });
  document.addEventListener("htmx:afterSettle", finish);

  // Links that were made before a slider moved take it along.
  function finish() {
    const now = new URLSearchParams(location.search);
    for (const link of document.querySelectorAll("a[data-keep]")) {
      const url = new URL(link.getAttribute("href"), location.href);
      for (const name of KNOBS) {
        url.searchParams.delete(name);
        for (const value of now.getAll(name)) url.searchParams.append(name, value);
      }
      link.setAttribute("href", url.pathname + url.search);
    }
    if (navigator.clipboard) {
      for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;
    }
  }

  document.addEventListener("click", async (event) => {
    if (event.target.closest("[data-copy]")) {
      await navigator.clipboard.writeText(location.href);
      event.target.textContent = "Copied";
    }
    const link = event.target.closest("a[data-part]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    htmx.ajax("GET", link.getAttribute("href"), {target: "#answer"});
  });
  // Keys: the sample before and after.
  document.addEventListener("keydown", (event) => {
    const where = {ArrowLeft: "prev", ArrowRight: "next"}[event.key];
    if (!where || event.altKey || event.ctrlKey || event.metaKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    document.querySelector(`a[rel="${where}"]`)?.click();
  });
  finish();
})();
