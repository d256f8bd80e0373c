// Draws the charts of a study's results; everything else works without script.
"use strict";

(() => {
  const charts = document.getElementById("charts");
  const plots = JSON.parse(document.getElementById("plots").textContent);

  const draw = () => {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    for (const place of charts.querySelectorAll("[data-chart]")) {
      const {data, layout} = plots[place.dataset.chart];
      const axis = {gridcolor: color("--grid"), linecolor: color("--edge")};
      const whiskers = (each) => ({...each, error_y: {...each.error_y, color: color("--text")}});
      Plotly.react(place, data.map(whiskers), {
        ...layout,
        font: {color: color("--text"), family: "system-ui, sans-serif"},
        xaxis: {...layout.xaxis, ...axis},
        yaxis: {...layout.yaxis, ...axis},
      }, {displayModeBar: false, responsive: true});
    }
  };
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  charts.dataset.drawn = "true";
})();
