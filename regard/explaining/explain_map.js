"use strict";

// How a map is drawn: Regard.drawing. Heat is the large one, curves are its links between two lines of words.
Regard.drawing = (() => {
  const { make, draw, on, alone, exact, largest, longest, unsure, withError } = Regard.data;
  const SMALLEST = 14, LARGEST = 34; // px: the side of a cell, in which its name must be readable
  const ROOM = 324; // px beside the map that what the model expected needs
  const ROOMY = 22; // px of a cell from which the map leaves that room
  const HEIGHT = 150; // px of the curves
  const LINKS = 400; // curves that can still be told apart
  const FAINT = 0.08; // of the strongest: a weaker link is not drawn as a curve
  const FONT = "system-ui, sans-serif";
  const pen = make("canvas").getContext("2d"); // only to measure with

  function widths(line, size) {
    pen.font = `${size}px ${FONT}`;
    return line.map((group) => Math.ceil(pen.measureText(longest(group.label)).width));
  }

  // One pixel a cell; its opacity is the value over the peak, its hue the sign.
  function raster(values, peak, hues) {
    const canvas = make("canvas", { width: values[0].length, height: values.length }), context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    values.flat().forEach((value, i) => {
      image.data.set(value < 0 ? hues.against : hues.heat, 4 * i);
      image.data[4 * i + 3] = Math.round((255 * Math.abs(value)) / peak);
    });
    context.putImageData(image, 0, 0);
    return canvas;
  }

  // Says that there is more than can be seen, while there is.
  function hinted(scroller, hint) {
    hint.hidden = scroller.scrollWidth <= scroller.clientWidth + 1 && scroller.scrollHeight <= scroller.clientHeight + 1;
  }

  // ------------------------------------------------------------ the large map
  // Cells scroll inside the map if there are many, their names stay in sight. `pin(row)` is told the row that was chosen.
  class Heat {
    constructor(pin) {
      this.pin = pin;
      this.cell = null; // [row, column] under pointer or keys
      this.canvas = this.heard(make("canvas", { tabindex: "0", role: "img", "aria-roledescription": "heat map" }));
      this.above = make("div", { class: "above", "aria-hidden": "true" });
      this.before = make("div", { class: "before", "aria-hidden": "true" });
      this.map = make("div", { class: "map" }, make("i", { class: "corner" }), this.above, this.before, this.canvas);
      this.reading = make("output", {});
      this.hint = make("span", { class: "hint", hidden: "" }, "There is more of the map: scroll inside it ↔ ↕");
      this.figure = make("figure", { class: "large" }, this.map, make("figcaption", {}, this.reading, this.hint));
    }

    heard(canvas) {
      const at = (event) => {
        const box = canvas.getBoundingClientRect();
        const [q, k] = [event.clientY - box.top, event.clientX - box.left].map((far) => Math.floor(far / this.side));
        return this.view.values[q]?.[k] === undefined ? null : [q, k];
      };
      return on(canvas, {
        pointermove: (event) => this.look(at(event)),
        pointerleave: () => this.look(null),
        click: (event) => { const cell = at(event); if (cell) this.pin(cell[0]); },
        focus: () => this.look(this.cell ?? [0, 0]),
        blur: () => this.look(null),
        keydown: (event) => this.step(event),
      });
    }

    step(event) {
      const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
      const [q, k] = this.cell ?? [0, 0];
      if (event.key in moves) {
        const next = [q + moves[event.key][0], k + moves[event.key][1]];
        if (this.view.values[next[0]]?.[next[1]] !== undefined) this.look(next);
        this.reveal();
      } else if (event.key === "Enter" || event.key === " ") this.pin(q);
      else return;
      event.preventDefault();
    }

    // The cell that the keys have reached comes into sight, beside the names.
    reveal() {
      const { map, side } = this, [q, k] = this.cell;
      const left = this.before.offsetWidth, top = this.above.offsetHeight;
      map.scrollLeft = Math.min(k * side, Math.max(map.scrollLeft, left + (k + 1) * side - map.clientWidth));
      map.scrollTop = Math.min(q * side, Math.max(map.scrollTop, top + (q + 1) * side - map.clientHeight));
    }

    look(cell) {
      const same = cell?.join() === this.cell?.join();
      this.cell = cell;
      if (!same || !cell) this.paint();
    }

    // The view in so much room: cells as large as fit, but no smaller than their names.
    show(view, room, hues) {
      const { rows, columns } = view;
      Object.assign(this, { view, hues, cell: null });
      const left = Math.min(largest(widths(rows, 13)) + 12, Math.floor(room * 0.36));
      const fits = (width) => Math.floor((width - left - 4) / columns.length), beside = fits(room - ROOM);
      this.side = Math.max(SMALLEST, Math.min(LARGEST, beside >= ROOMY ? beside : fits(room)));
      const sizes = { "--side": this.side + "px", "--letters": Math.min(13, this.side - 3) + "px", "--left": left + "px" };
      for (const [name, value] of Object.entries(sizes)) this.map.style.setProperty(name, value);
      const named = (group) => make("span", { title: group.label }, make("bdi", {}, longest(group.label)));
      this.above.replaceChildren(...columns.map(named));
      this.before.replaceChildren(...rows.map(named));
      this.canvas.setAttribute("aria-label", view.title + ": " + rows.length + " rows, " + columns.length + " columns");
      this.paint();
      hinted(this.map, this.hint);
    }

    paint() {
      const { rows, columns, values, peak } = this.view, { side, cell, canvas } = this, ink = getComputedStyle(this.map).color;
      const width = side * columns.length, height = side * rows.length, sharp = Math.min(devicePixelRatio || 1, 2);
      Object.assign(canvas, { width: width * sharp, height: height * sharp });
      Object.assign(canvas.style, { width: width + "px", height: height + "px" });
      const context = canvas.getContext("2d");
      context.scale(sharp, sharp);
      context.imageSmoothingEnabled = false;
      context.drawImage(raster(values, peak, this.hues), 0, 0, width, height);
      this.hatch(context, ink);
      Object.assign(context, { strokeStyle: ink, globalAlpha: 0.3 });
      context.strokeRect(0.5, 0.5, width - 1, height - 1);
      context.globalAlpha = 1;
      if (cell) context.strokeRect(cell[1] * side + 0.5, cell[0] * side + 0.5, side - 1, side - 1);
      [this.before, this.above].forEach((line, axis) =>
        [...line.children].forEach((name, i) => name.classList.toggle("read", i === cell?.[axis])));
      this.reading.textContent = cell
        ? alone(rows[cell[0]].label) + " ← " + alone(columns[cell[1]].label) + "  " + withError(this.view, ...cell, exact)
        : "strongest: " + exact(peak);
    }

    // Lines over the cells that may as well be 0.
    hatch(context, ink) {
      if (!this.view.errors) return;
      const { side } = this;
      context.beginPath();
      this.view.values.forEach((row, q) => row.forEach((_, k) => {
        if (!unsure(this.view, q, k)) return;
        for (const part of [0.5, 1]) {
          context.moveTo(k * side, (q + part) * side);
          context.lineTo((k + part) * side, q * side);
        }
      }));
      Object.assign(context, { strokeStyle: ink, globalAlpha: 0.22, lineWidth: 1 });
      context.stroke();
      context.globalAlpha = 1;
    }
  }

  // ------------------------------------------------------------ curves
  const GAP = 10; // px between two labels, at least
  const needed = (widths) => widths.reduce((sum, own) => sum + own + GAP, GAP);

  // Where the middle of each label is, if all stand side by side over the whole width.
  function spread(widths, width) {
    const gap = (width - needed(widths)) / widths.length + GAP;
    let left = GAP / 2 - gap / 2;
    return widths.map((own) => {
      const middle = left + gap + own / 2;
      left += gap + own;
      return middle.toFixed(1);
    });
  }

  // Columns above, rows below, a curve for each link that is not faint. `touched(label, side, place, above)` hears the pointer.
  function curves({ rows, columns, values, peak, row, column }, touched) {
    const sizes = [columns, rows].map((line) => widths(line, 14).map((own) => Math.max(own, 14)));
    const width = Math.max(...sizes.map(needed));
    const [above, below] = sizes.map((line) => spread(line, width)); // what corresponds is close, however long the other
    const links = values.flatMap((one, q) => one.map((value, k) => ({ q, k, value })))
      .filter(({ value }) => Math.abs(value) >= FAINT * peak)
      .sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, LINKS);
    const paths = links.map(({ q, k, value }) => {
      const x = above[k], y = below[q];
      return draw("path", {
        d: `M${x} 26C${x} ${HEIGHT / 2} ${y} ${HEIGHT / 2} ${y} ${HEIGHT - 26}`, "data-q": q, "data-k": k,
        "stroke-opacity": (Math.abs(value) / peak).toFixed(3), class: value < 0 ? "against" : "",
      });
    });
    const label = (group, x, y) => draw("text", { x, y }, longest(group.label));
    const labels = [
      ...columns.map((group, k) => touched(label(group, above[k], 18), column, k, true)),
      ...rows.map((group, q) => touched(label(group, below[q], HEIGHT - 8), row, q, false)),
    ];
    const size = { viewBox: `0 0 ${Math.ceil(width)} ${HEIGHT}`, width: Math.ceil(width), height: HEIGHT, "aria-hidden": "true" };
    return draw("svg", size, draw("g", {}, ...paths), ...labels);
  }

  return { Heat, curves, hinted, raster };
})();
