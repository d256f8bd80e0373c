// What takes longer than half a second shows that it is being worked on, and for how long.
"use strict";
const showWorking = (() => {
  const PATIENCE = 500; // milliseconds
  const sign = document.getElementById("working");
  let started = 0;
  let timer = 0;

  function tick() {
    sign.hidden = false;
    sign.textContent = `Working … ${Math.round((Date.now() - started) / 1000)} s`;
    timer = setTimeout(tick, 1000);
  }

  function show(isWorking) {
    clearTimeout(timer);
    sign.hidden = true;
    if (!isWorking) return;
    started = Date.now();
    timer = setTimeout(tick, PATIENCE);
  }

  // Of a link or a form that leads to another page; one that a script takes over leads to none.
  const leave = (event) => setTimeout(() => event.defaultPrevented || show(true));
  document.addEventListener("submit", leave);
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest("a[href]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const isFile = link.hasAttribute("download") || link.hasAttribute("data-download");
    const isHere = link.hash && link.href.split("#")[0] === location.href.split("#")[0];
    if (!isFile && !isHere) leave(event);
  });
  window.addEventListener("pageshow", () => show(false)); // also by the way back
  return show;
})();
