// The explorer's page: sliders ask for an answer, plots and tables follow it.
// Everything that is shown comes from the server; names go into the page as text alone.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const page = byId("explorer");
  let shown = JSON.parse(byId("shown").textContent);
  let params = new URLSearchParams(shown.query);
  let newest = 0; // number of the last question; answers to older ones are dropped
  let timer = 0;
  const KNOBS = ["epsilon", "mass", "mass_penalty", "weight"];
  const WIDE = 680; // pixels from which panels stand side by side
  const DELAY = 60; // milliseconds that a slider must rest

  // -- plots -------------------------------------------------------------------------------

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function template() {
    const axis = {gridcolor: css("--grid"), linecolor: css("--line"), tickcolor: css("--line")};
    return {
      layout: {
        font: {color: css("--text"), family: "system-ui, sans-serif"},
        hoverlabel: {bgcolor: css("--card"), bordercolor: css("--edge"), font: {color: css("--text")}},
        xaxis: axis,
        yaxis: {...axis, showgrid: false},
      },
    };
  }

  function figure(name) {
    const {data, layout, layouts} = shown.plots[name];
    const wide = byId("plot-answer").clientWidth >= WIDE;
    const own = layouts ? layouts[wide ? "wide" : "narrow"] : layout;
    // Plotly writes into what it is given.
    return structuredClone({data, layout: {...own, template: template()}});
  }

  function draw() {
    for (const name of ["answer", "flows", "neighbors"]) {
      const {data, layout} = figure(name);
      const plot = byId(`plot-${name}`);
      const isFirst = !plot.classList.contains("js-plotly-plot");
      Plotly.react(plot, data, layout, {responsive: true, displayModeBar: false});
      if (isFirst && name !== "neighbors") plot.on("plotly_click", follow);
    }
  }

  function follow(event) {
    const [label, model] = event.points[0].customdata || [];
    if (label) lookInto(label, model);
  }

  function lookInto(label, model) {
    params.set("label", label);
    if (model) params.set("model", model);
    else params.delete("model");
    return ask("push");
  }

  // -- tables and words --------------------------------------------------------------------

  function fillTable(id, body) {
    const place = byId(id);
    const line = (tag, cells) => {
      const row = document.createElement("tr");
      row.replaceChildren(...cells.map((cell, at) => {
        const isHeading = tag === "th" ? cell.text : at === 0;
        const made = document.createElement(isHeading ? "th" : "td");
        if (isHeading) made.scope = tag === "th" ? "col" : "row";
        if (cell.href) {
          const link = document.createElement("a");
          link.href = cell.href;
          link.dataset.view = "";
          link.textContent = cell.text;
          made.append(link);
        } else {
          made.textContent = cell.text;
        }
        return made;
      }));
      return row;
    };
    const columns = body.columns.map((text) => ({text, href: ""}));
    place.querySelector("thead").replaceChildren(line("th", columns));
    place.querySelector("tbody").replaceChildren(...body.rows.map((row) => line("td", row)));
  }

  function fillChoices() {
    const option = (label, text, isChosen) => new Option(text, label, isChosen, isChosen);
    const isOwn = !shown.model && shown.choices.includes(shown.label);
    const choices = shown.choices.map((name) => option(name, name, isOwn && name === shown.label));
    if (!isOwn) choices.unshift(option(shown.label, shown.heading, true));
    byId("label").replaceChildren(...choices);
  }

  function fill() {
    byId("summary").textContent = shown.summary;
    byId("facts").replaceChildren(...shown.facts.map((fact) => {
      const item = document.createElement("li");
      item.textContent = fact;
      return item;
    }));
    byId("heading").textContent = shown.heading;
    byId("flows-text").textContent = shown.flows_text;
    byId("neighbors-text").textContent = shown.neighbors_text;
    for (const name of ["rules", "flows", "neighbors"]) fillTable(`table-${name}`, shown[name]);
    fillChoices();
    setControls();
    keepLinks();
    draw();
  }

  // -- sliders -----------------------------------------------------------------------------

  const sliders = Array.from(document.querySelectorAll("[data-slider]"));
  const numbers = sliders.map((slider) => byId(slider.dataset.slider));
  const isLog = (slider) => slider.dataset.log !== undefined;
  const control = (name) =>
    name.startsWith("weight-") ? shown.controls.weight[name.slice(7)] : shown.controls[name];

  function setControls() {
    for (const slider of sliders) {
      const name = slider.dataset.slider;
      const number = byId(name);
      const {value, low, high, reason} = control(name);
      const scale = (x) => (isLog(slider) ? Math.log10(x) : x);
      slider.hidden = false;
      slider.step = isLog(slider) ? 0.02 : 0.01;
      slider.min = scale(low);
      slider.max = scale(high);
      if (document.activeElement !== slider) slider.value = scale(value);
      if (document.activeElement !== number) number.value = Number(value.toPrecision(6));
      slider.setAttribute("aria-valuetext", Number(value.toPrecision(3)));
      slider.disabled = number.disabled = Boolean(reason);
      byId(`${name}-reason`).textContent = reason;
    }
    byId("mass").value = shown.controls.mass;
  }

  function moved(event) {
    const field = event.target;
    if (field.id === "kernel") return;
    const slider = field.dataset.slider;
    const name = slider || field.id;
    if (slider) {
      const value = isLog(field) ? 10 ** field.value : Number(field.value);
      byId(slider).value = Number(value.toPrecision(3));
      field.setAttribute("aria-valuetext", byId(slider).value);
    }
    clearTimeout(timer);
    // One that is refused stays so until it is put right, whatever else is moved.
    const wrong = numbers.find((number) => !number.disabled && !number.checkValidity());
    for (const number of numbers) number.setAttribute("aria-invalid", number === wrong);
    if (wrong) return refuse(wrong);
    if (name.startsWith("weight-")) {
      params.delete("weight");
      for (let at = 0; byId(`weight-${at}`); at += 1) {
        params.append("weight", byId(`weight-${at}`).value);
      }
    } else {
      params.set(name, byId(name).value);
    }
    timer = setTimeout(ask, DELAY);
  }

  function refuse({id, labels, value, min, max}) {
    newest += 1; // an answer that is still to come must not hide the words
    isBusy(false);
    const whose = id.startsWith("weight-") ? `weight of ${labels[0].textContent}` : id;
    const got = value || "nothing";
    const words = `${whose} must be a number from ${Number(min)} to ${Number(max)}; got ${got}.`;
    byId(`${id}-reason`).textContent = words;
    complain(words);
  }

  // -- questions ---------------------------------------------------------------------------

  function complain(text) {
    byId("problem").textContent = text;
    byId("problem").hidden = !text;
  }

  function isBusy(now) {
    if (now) page.setAttribute("aria-busy", "true");
    else page.removeAttribute("aria-busy");
    showWorking(now);
  }

  async function ask(how) {
    newest += 1;
    const mine = newest;
    isBusy(true);
    let found, problem = "";
    try {
      const answer = await fetch(`/explorer/api/answer?${params}`, {headers: {Accept: "application/json"}});
      found = await answer.json();
      if (!answer.ok) problem = found.detail.replace("\nhint: ", " Hint: ");
    } catch {
      problem = "The server did not answer. It may have ended.";
    }
    if (mine !== newest) return;
    isBusy(false);
    complain(problem);
    if (problem) return;
    shown = found;
    params = new URLSearchParams(shown.query);
    const address = `/explorer/view?${params}`;
    if (how === "push") history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    fill();
  }

  // Links that were made before a slider moved take it along.
  function keepLinks() {
    for (const link of document.querySelectorAll("a[data-keep]")) {
      const url = new URL(link.href);
      for (const name of KNOBS) {
        url.searchParams.delete(name);
        for (const value of params.getAll(name)) url.searchParams.append(name, value);
      }
      link.href = url;
    }
    for (const link of document.querySelectorAll("a[data-download]")) {
      link.href = `${new URL(link.href).pathname}?${params}`;
    }
  }

  // -- the page ----------------------------------------------------------------------------

  async function saveImage(format) {
    const {data, layout} = figure("answer");
    const width = Math.max(byId("plot-answer").clientWidth, 320);
    // On its own a picture has no page behind it.
    Object.assign(layout, {width, paper_bgcolor: css("--page"), plot_bgcolor: css("--page")});
    const size = {format, width, height: layout.height, scale: format === "png" ? 2 : 1};
    const image = await Plotly.toImage({data, layout}, size);
    const link = document.createElement("a");
    link.href = image;
    link.download = `wassemble-${shown.sample.replace(/[^A-Za-z0-9]+/g, "-").slice(0, 60)}.${format}`;
    link.click();
  }

  byId("controls").addEventListener("input", moved);
  byId("controls").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  byId("label").addEventListener("change", (event) => lookInto(event.target.value, ""));
  document.addEventListener("click", async (event) => {
    const link = event.target.closest && event.target.closest("a[data-view]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const wanted = new URL(link.href).searchParams;
    await lookInto(wanted.get("label") || "", wanted.get("model") || "");
    byId("label-heading").focus(); // the link itself is gone
  });
  byId("kernel")?.addEventListener("change", (event) => {
    // Another kernel has another scale of epsilon, and perhaps other labels.
    const wanted = new URLSearchParams(params);
    for (const name of ["epsilon", "label", "model"]) wanted.delete(name);
    wanted.set("kernel", event.target.value);
    showWorking(true);
    location.assign(`/explorer/view?${wanted}`);
  });
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = new URLSearchParams(params);
    wanted.delete("page");
    wanted.set("search", byId("search").value);
    showWorking(true);
    location.assign(`/explorer/view?${wanted}#samples`);
  });
  for (const button of document.querySelectorAll("[data-image]")) {
    button.hidden = false;
    button.addEventListener("click", () => saveImage(button.dataset.image));
  }
  if (navigator.clipboard) {
    byId("copy").hidden = false;
    byId("copy").addEventListener("click", async (event) => {
      await navigator.clipboard.writeText(location.href);
      event.target.textContent = "Copied";
    });
  }
  byId("apply").hidden = true;
  byId("choose").hidden = true;
  window.addEventListener("popstate", () => {
    // A link within the page changes the part behind "#" only.
    if (`${new URLSearchParams(location.search)}` !== `${params}`) location.reload();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = byId("plot-answer").clientWidth;
  new ResizeObserver(() => {
    const now = byId("plot-answer").clientWidth;
    if ((now >= WIDE) !== (width >= WIDE)) draw();
    width = now;
  }).observe(byId("plot-answer"));
  history.replaceState(null, "", `/explorer/view?${shown.query}${location.hash}`);
  setControls();
  draw();
})();
