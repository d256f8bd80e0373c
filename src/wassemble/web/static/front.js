// The example of the front page moves: by its slider, or by itself until somebody takes over.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const {labels, frames} = JSON.parse(byId("demo").textContent);
  const slider = byId("demo-slider");
  const play = byId("demo-play");
  const panel = byId("demo-consensus");
  const rows = Array.from(panel.querySelectorAll("tr"));
  let timer = 0;
  let step = 1;

  function show() {
    const scores = frames[slider.value];
    const best = scores.indexOf(Math.max(...scores));
    rows.forEach((row, at) => {
      row.querySelector("rect").setAttribute("width", `${160 * scores[at]}%`);
      row.classList.toggle("first", at === best);
    });
    panel.querySelector(".best").textContent = labels[best];
  }

  function move() {
    const last = frames.length - 1;
    const next = Number(slider.value) + step;
    if (next < 0 || next > last) step = -step;
    slider.value = Number(slider.value) + step;
    show();
  }

  function run(isRunning) {
    clearInterval(timer);
    if (isRunning) timer = setInterval(move, 260);
    play.textContent = isRunning ? "Pause" : "Play";
    play.setAttribute("aria-pressed", isRunning);
  }

  slider.hidden = play.hidden = false;
  slider.addEventListener("input", () => {
    run(false);
    show();
  });
  play.addEventListener("click", () => run(play.getAttribute("aria-pressed") !== "true"));
  run(!matchMedia("(prefers-reduced-motion: reduce)").matches);
})();
