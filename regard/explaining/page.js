"use strict";

// Where the pointer is, in the coordinates of an SVG element.
function place(element, event) {
  const point = new DOMPoint(event.clientX, event.clientY);
  return point.matrixTransform(element.getScreenCTM().inverse());
}

// A token keeps its own direction of writing and leaves that of its neighbours alone.
function alone(token) {
  return "\u2068" + token + "\u2069";
}

// Learning curves: the point nearest to the pointer, and its values.
for (const chart of document.querySelectorAll(".chart")) {
  const svg = chart.querySelector("svg"), mark = chart.querySelector(".mark"), value = chart.querySelector(".value");
  if (!svg) continue;
  const points = [...chart.querySelectorAll(".line")].flatMap(
    (line, i) => JSON.parse(line.dataset.points).map(([x, y, note]) => ({ x, y, note, i })));
  svg.addEventListener("pointermove", (event) => {
    const at = place(svg, event);
    const far = (p) => Math.hypot(p.x - at.x, (p.y - at.y) / 4);
    const best = points.reduce((a, b) => (far(b) < far(a) ? b : a));
    mark.setAttribute("cx", best.x);
    mark.setAttribute("cy", best.y);
    mark.setAttribute("class", "mark s" + best.i);
    value.textContent = best.note;
  });
}

// Attention: a small map opens large; the pointer reads single weights.
for (const maps of document.querySelectorAll(".maps")) {
  const svg = maps.querySelector(".large svg"), value = maps.querySelector(".value");
  const columns = maps.dataset.columns.split("\t"), rows = maps.dataset.rows.split("\t");
  const first = maps.querySelector("[aria-pressed=true]") ?? maps.querySelector("[data-weights]");
  let weights = first.dataset.weights.split(",");
  let rest = value.textContent;
  for (const button of maps.querySelectorAll("button[data-weights]")) {
    button.addEventListener("click", () => {
      maps.querySelector("[aria-pressed=true]").setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", "true");
      svg.querySelector(".cells").replaceWith(button.querySelector(".cells").cloneNode(true));
      svg.querySelector(".links")?.remove(); // a map that saw nothing has none
      const links = button.querySelector(".links");
      if (links) svg.querySelector(".cells").after(links.cloneNode(true));
      maps.querySelector(".which").textContent = button.getAttribute("aria-label");
      weights = button.dataset.weights.split(",");
      value.textContent = rest = "strongest: " + button.dataset.peak;
    });
  }
  svg.addEventListener("pointermove", (event) => {
    const at = place(svg.querySelector(".cells"), event), x = Math.floor(at.x), y = Math.floor(at.y);
    const inside = x >= 0 && y >= 0 && x < columns.length && y < rows.length;
    value.textContent = inside
      ? alone(rows[y]) + " ← " + alone(columns[x]) + "  " + (weights[y * columns.length + x] / 1000).toFixed(3) : rest;
  });
  svg.addEventListener("pointerleave", () => { value.textContent = rest; });
}

// A film: the slider opens a frame, the button lets them run from the first, or from where they are, to the last.
for (const film of document.querySelectorAll(".film")) {
  const frames = [...film.querySelectorAll("button[data-weights]")];
  const slider = film.querySelector("input"), play = film.querySelector(".play");
  let running = 0;
  function halt() {
    clearInterval(running);
    running = 0;
    play.textContent = "play";
  }
  function open(place) {
    slider.value = place;
    frames[place].click();
  }
  frames.forEach((frame, place) => frame.addEventListener("click", () => { slider.value = place; }));
  slider.addEventListener("input", () => { halt(); open(Number(slider.value)); });
  play.addEventListener("click", () => {
    if (running) return halt();
    if (Number(slider.value) === frames.length - 1) open(0);
    play.textContent = "pause";
    running = setInterval(() => {
      open(Number(slider.value) + 1);
      if (Number(slider.value) === frames.length - 1) halt();
    }, 400);
  });
}
