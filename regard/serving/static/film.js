// The film: where a model looked at the same sentences, step after step. Maps look as regard/explaining/heatmap.py's.
import { $, drawn, element } from "./dom.js";

const SHADES = 20, CELL = 24, LONGEST = 14;
const BEAT = 500; // milliseconds of a frame
const INSET = 0.11, SIDE = 0.78; // of an outline in its cell
const frames = new Map(); // step → frame
let playing = null;

// Unit squares, one path a shade: an opacity of the current colour.
export function cells(weights) {
  const peak = weights.flat().reduce((a, b) => Math.max(a, b), 1e-9), paths = new Map();
  weights.forEach((row, y) => row.forEach((value, x) => {
    const level = Math.round((Math.max(value, 0) / peak) * SHADES);
    if (level) paths.set(level, (paths.get(level) ?? "") + `M${x} ${y}h1v1h-1z`);
  }));
  const parts = [...paths].map(([level, d]) => drawn("path", { "fill-opacity": level / SHADES, d }));
  return drawn("g", { fill: "currentColor", "shape-rendering": "crispEdges" }, ...parts);
}

// A square inside the cell of each row that has most: the alignment. heatmap.py draws the same.
export function outlines(weights) {
  const path = weights.map((row, y) => {
    const most = Math.max(...row);
    return most > 0 ? `M${row.indexOf(most) + INSET} ${y + INSET}h${SIDE}v${SIDE}h-${SIDE}z` : "";
  }).join("");
  const lines = [drawn("path", { class: "edge", "stroke-width": 0.17, d: path }), drawn("path", { "stroke-width": 0.08, d: path })];
  return drawn("g", { class: "links", fill: "none" }, ...lines);
}

function small({ weights, source, target }) {
  return drawn("svg", { viewBox: `0 0 ${source.length} ${target.length}`, preserveAspectRatio: "none", "aria-hidden": "true" }, cells(weights), outlines(weights));
}

function large({ weights, source, target }) {
  const [columns, rows] = [source, target].map((tokens) => tokens.map((token) => shortened(String(token))));
  const room = (labels) => 12 + 8 * Math.max(...labels.map((label) => [...label].length));
  const left = room(rows), above = room(columns), width = CELL * columns.length, height = CELL * rows.length;
  const names = [
    ...columns.map((label, i) => {
      const x = CELL * i + CELL / 2;
      return drawn("text", { x, y: -6, transform: `rotate(-60 ${x} -6)`, "dominant-baseline": "central" }, label);
    }),
    ...rows.map((label, i) => drawn("text", { x: -6, y: CELL * i + CELL / 2, "text-anchor": "end", "dominant-baseline": "central" }, label)),
  ];
  const box = { viewBox: `${-left} ${-above} ${width + left + above / 2} ${height + above + 1}`, width: width + left + above / 2, height: height + above + 1 };
  return drawn("svg", { ...box, class: "heat", "font-size": 14, role: "img", "aria-label": "attention weights" },
    drawn("g", { class: "names" }, ...names),
    drawn("g", { transform: `scale(${CELL})` }, cells(weights), outlines(weights)),
    drawn("rect", { width, height, fill: "none", stroke: "#999", "stroke-opacity": 0.5 }));
}

function shortened(label) {
  return [...label].length > LONGEST ? `${[...label].slice(0, LONGEST - 1).join("")}…` : label;
}

// ---------------------------------------------------------------- what is shown
export function clear() {
  frames.clear();
}

export function add(frame) {
  if (frame.pictures.length) frames.set(frame.step, frame);
}

function steps() {
  return [...frames.keys()].sort((a, b) => a - b);
}

// A sentence at a step. All frames are drawn by the layer of the last; one that has a single map, by that.
function viewOf(step, which) {
  const frame = frames.get(step), last = frames.get(steps().at(-1));
  const picture = frame.pictures[which] ?? frame.pictures[0], single = picture.layers.length === 1;
  return { ...picture, layer: single ? frame.layer : last.layer, weights: picture.layers[single ? 0 : last.layer - 1] };
}

function sentenceOf(picture) {
  return picture.source.map((token) => String(token).replaceAll("▁", " ")).join("").replace("</s>", "").trim();
}

// All of it again: frames are few, and come minutes apart. Who watched the last one goes on to watch the last one.
export function show() {
  const all = steps(), slider = $("moment");
  $("film").hidden = !all.length;
  if (!all.length) return;
  const newest = slider.value === slider.max;
  const options = frames.get(all[0]).pictures.map((picture, i) => element("option", { value: i }, sentenceOf(picture)));
  const before = $("sentence").value;
  $("sentence").replaceChildren(...options);
  if (options[before]) $("sentence").value = before;
  $("which").hidden = options.length < 2;
  slider.max = all.length - 1;
  if (newest) slider.value = slider.max;
  const which = Number($("sentence").value);
  $("strip").replaceChildren(...all.map((step, i) => {
    const button = element("button", { type: "button", "aria-pressed": "false" }, small(viewOf(step, which)), step.toLocaleString("en"));
    button.addEventListener("click", () => turn(i));
    return button;
  }));
  turn(Number(slider.value));
}

function turn(place) {
  const all = steps(), view = viewOf(all[place], Number($("sentence").value));
  $("moment").value = place;
  $("moment").setAttribute("aria-valuetext", `step ${all[place]}`);
  $("step").textContent = `step ${all[place].toLocaleString("en")}`;
  $("filmed").textContent = `layer ${view.layer}`;
  [...$("strip").children].forEach((button, i) => button.setAttribute("aria-pressed", String(i === place)));
  $("large").replaceChildren(large(view));
}

function play() {
  if (playing) {
    clearInterval(playing);
    playing = null;
  } else {
    if ($("moment").value === $("moment").max) turn(0);
    playing = setInterval(() => {
      const next = Number($("moment").value) + 1;
      if (next < frames.size) turn(next);
      if (next >= frames.size - 1) play();
    }, BEAT);
  }
  $("play").textContent = playing ? "Stop" : "Play";
}

export function begin() {
  $("moment").addEventListener("input", () => turn(Number($("moment").value)));
  $("sentence").addEventListener("change", show);
  $("play").addEventListener("click", play);
}
