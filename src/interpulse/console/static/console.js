// Charts of what a stream of events sends, while the page is seen. Everything else on the pages works without this file.
"use strict";

document.documentElement.classList.add("scripted");

const POINTS_MAX = 600;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function chart(place, series) {
  const width = () => Math.max(240, place.clientWidth);
  const axis = () => ({ stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } });
  const lines = series.map((each, number) => ({
    label: each.label,
    stroke: colour(number ? "--line-2" : "--line-1"),
    width: 2,
    dash: number ? [6, 3] : undefined,
    value: (_, value) => (value == null ? "–" : value.toLocaleString("en", { maximumFractionDigits: 1 })),
  }));
  const options = {
    width: width(),
    height: 180,
    scales: { y: { range: (_, low, high) => [0, Math.max(1, (high || 0) * 1.1)] } },
    axes: [axis(), { ...axis(), size: 70 }],
    series: [{}, ...lines],
    cursor: { drag: { x: false, y: false } },
  };
  const plot = new uPlot(options, [[], ...series.map(() => [])], place);
  new ResizeObserver(() => plot.setSize({ width: width(), height: 180 })).observe(place);
  return plot;
}

function watch(place) {
  const charts = [...place.querySelectorAll("[data-series]")].map((inner) => {
    const series = JSON.parse(inner.dataset.series);
    return { series, columns: [[], ...series.map(() => [])], plot: chart(inner, series) };
  });
  const state = document.querySelector("[data-state-of=charts]");
  let source = null;
  let newest = 0;
  const add = (sample) => {
    if (sample.time <= newest) return; // a stream that begins again tells what was
    newest = sample.time;
    for (const each of charts) {
      each.columns[0].push(sample.time / 1000);
      each.series.forEach((one, number) => each.columns[number + 1].push(sample[one.field]));
      if (each.columns[0].length > POINTS_MAX) each.columns.forEach((column) => column.shift());
    }
  };
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(place.dataset.stream);
    source.onmessage = (message) => {
      JSON.parse(message.data).forEach(add);
      charts.forEach((each) => each.plot.setData(each.columns));
      state.textContent = "live";
    };
    source.addEventListener("ended", (message) => {
      source.close();
      state.textContent = JSON.parse(message.data);
    });
    source.onerror = () => {
      state.textContent = source.readyState === EventSource.CLOSED ? "ended" : "waiting for the broker";
    };
  };
  const close = () => {
    source?.close();
    source = null;
    state.textContent = "paused";
  };
  open();
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
}

document.querySelectorAll("[data-stream]").forEach(watch);
