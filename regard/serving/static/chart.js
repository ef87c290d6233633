// A line chart that is drawn again as its values come: the look is that of regard/explaining/chart.py.
import { drawn, element } from "./dom.js";

const WIDTH = 480, HEIGHT = 250, LEFT = 52, RIGHT = 20, TOP = 12, BOTTOM = 40;
const MOST = 300; // points of a line: it has no more pixels to show

// Round numbers (1, 2 or 5 times a power of ten) at equal steps that enclose the values.
export function ticks(values, most) {
  let low = Math.min(...values), high = Math.max(...values);
  if (high - low <= 1e-9 * Math.max(Math.abs(low), Math.abs(high))) { // nothing to tell apart: make room around it
    const room = Math.abs(high) / 2 || 1;
    [low, high] = [low - room, high + room];
  }
  const rough = (high - low) / (most - 1), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => power * factor >= rough * (1 - 1e-9));
  const first = Math.floor(low / step + 1e-9), last = Math.ceil(high / step - 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

// 1234567 → 1.235M, 20000 → 20k, 0.30000000000000004 → 0.3.
export function number(value) {
  for (const [size, unit, letter] of [[1e6, 1e6, "M"], [1e4, 1e3, "k"]]) {
    if (Math.abs(value) >= size) return `${Number((value / unit).toPrecision(4))}${letter}`;
  }
  return String(Math.abs(value) < 1e-12 ? 0 : Number(value.toPrecision(4)));
}

// At most MOST of them, evenly spread, the last always among them.
export function thin(points) {
  const stride = Math.ceil(points.length / MOST) || 1;
  return points.filter((_, i) => (points.length - 1 - i) % stride === 0);
}

export class Chart {
  constructor(title, across) {
    this.title = title;
    this.across = across;
    this.places = [];
    this.caption = element("figcaption");
    this.value = element("output", { class: "value" });
    this.svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title} by ${across}` });
    this.element = element("figure", { class: "chart" }, this.caption, this.svg, this.value);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.rest());
  }

  // `series`: [{ name, points: [{ x, y, note }] }]; values that are not finite are left out.
  draw(series) {
    const lines = series
      .map(({ name, points }) => ({ name, points: thin(points.filter((p) => Number.isFinite(p.x) && Number.isFinite(p.y))) }))
      .filter((line) => line.points.length);
    const points = lines.flatMap((line) => line.points);
    this.element.hidden = !points.length;
    if (!points.length) return;
    const across = ticks(points.map((p) => p.x), 6), up = ticks(points.map((p) => p.y), 5);
    const x = (value) => LEFT + ((value - across[0]) / (across.at(-1) - across[0])) * (WIDTH - RIGHT - LEFT);
    const y = (value) => HEIGHT - BOTTOM - ((value - up[0]) / (up.at(-1) - up[0])) * (HEIGHT - BOTTOM - TOP);
    const keys = lines.length > 1 ? lines.map((line, i) => element("span", { class: `key s${i}` }, line.name)) : [];
    this.caption.replaceChildren(this.title, ...keys);
    this.places = lines.flatMap((line, i) => line.points.map((p) => ({ x: x(p.x), y: y(p.y), note: p.note, i })));
    this.last = lines[0].points.at(-1).note;
    this.mark = drawn("circle", { class: "mark", r: 4 });
    this.svg.replaceChildren(...axes(x, y, across, up, this.across), ...lines.map((_, i) => this.line(i)), this.mark);
    this.rest();
  }

  line(i) {
    const own = this.places.filter((place) => place.i === i), at = (value) => value.toFixed(1);
    const dots = own.length <= 40 ? own.map((p) => drawn("circle", { cx: at(p.x), cy: at(p.y), r: 2.5 })) : [];
    const path = own.map((p) => `${at(p.x)},${at(p.y)}`).join(" ");
    return drawn("g", { class: `line s${i}` }, drawn("polyline", { points: path }), ...dots);
  }

  // The point nearest to the pointer, and its values.
  point(event) {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const far = (p) => Math.hypot(p.x - at.x, (p.y - at.y) / 4);
    const best = this.places.reduce((a, b) => (far(b) < far(a) ? b : a));
    this.mark.setAttribute("cx", best.x);
    this.mark.setAttribute("cy", best.y);
    this.mark.setAttribute("class", `mark s${best.i}`);
    this.value.textContent = best.note;
  }

  rest() {
    this.mark.removeAttribute("cx");
    this.value.textContent = this.last;
  }
}

function axes(x, y, across, up, name) {
  const rules = up.flatMap((tick) => [
    drawn("path", { class: "rule", d: `M${LEFT} ${y(tick).toFixed(1)}H${WIDTH - RIGHT}` }),
    drawn("text", { class: "tick-y", x: LEFT - 6, y: y(tick).toFixed(1) }, number(tick)),
  ]);
  const marks = across.map((tick) => drawn("text", { class: "tick-x", x: x(tick).toFixed(1), y: HEIGHT - BOTTOM + 16 }, number(tick)));
  return [...rules, ...marks, drawn("text", { class: "axis", x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 4 }, name)];
}
