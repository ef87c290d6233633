"use strict";

// Regard.explanation(root, explanation) shows one explanation inside an element; Regard.page(root, data) shows several,
// and two models beside each other; Regard.bestLayer(explanation, kind) is where to look first. Data are the JSON of
// `Explanation` (docs/explanation-schema.md). Nothing is loaded, there are no ids, and text only ever becomes text.
(() => {
  const {
    KINDS, make, filled, on, alone, quoted, visible, exact, short, summed, largest, groups, spaced, mean, kindsOf, layersOf,
    headsOf, bestLayer, dependences, firstChoice, viewOf, unsure, withError, legend, told, width,
  } = Regard.data;
  const { Heat, curves, hinted, raster } = Regard.drawing;
  const SURE = 0.7, DOUBTED = 0.3; // probabilities of a word: above it is sure, below it is doubted
  const live = new Set(); // what is on the page now, to be drawn again when its colours or its width change

  function rgb(element) {
    return getComputedStyle(element).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  }

  // ------------------------------------------------------------ one explanation
  class Explained {
    constructor(root, explanation) {
      this.root = root;
      this.given = explanation;
      this.choice = firstChoice(explanation);
      this.whole = spaced(explanation);
      this.active = null; // {side, place} of the word that is looked at
      this.pinned = null;
      this.readout = make("output", { class: "readout", "aria-live": "polite" });
      this.note = make("p", { class: "note" });
      this.lines = make("div", { class: "lines" });
      this.others = make("section", { class: "others", "aria-label": "alternatives" });
      this.curves = make("div", { class: "curves", tabindex: "0", role: "group", "aria-label": "curves" });
      this.more = make("p", { class: "hint", hidden: "" }, "There are more words: scroll the lines sideways ↔");
      this.heat = new Heat((row) => this.pin(this.view.row, row));
      this.hues = [make("i", { class: "hue heat", hidden: "" }), make("i", { class: "hue against", hidden: "" })];
      root.classList.add("explained");
      root.replaceChildren(...this.hues, this.facts(), ...this.concerns(), this.lines, this.readout, ...this.maps());
      for (const one of live) if (!one.lines.isConnected) live.delete(one);
      live.add(this);
      this.fill();
    }

    facts() {
      const { model, log_probability: total, score, steps, dependence } = this.given, told = [];
      if (total !== null) {
        const each = make("span", { title: "the geometric mean over its tokens" },
          "gave each token a probability of " + short(Math.exp(total / Math.max(steps.length, 1))) + " on average");
        told.push(each, make("span", {}, ` (log p ${short(total)}, score ${short(score)})`));
      }
      if (typeof dependence === "number")
        told.push(make("span", { title: "1 − log p given the source / log p given nothing: near 0 it is made up" },
          `; the source explains ${short(dependence)} of that`));
      return make("p", { class: "facts" }, make("b", {}, make("bdi", {}, model)), " ", ...told);
    }

    concerns() {
      if (!this.given.concerns.length) return [];
      const items = this.given.concerns.map((one) =>
        make("li", { "data-kind": one.kind }, make("b", {}, one.kind), " ", one.message));
      return [make("ul", { class: "concerns", "aria-label": "worth a look" }, ...items)];
    }

    maps() {
      if (!this.choice) {
        this.note.textContent = "This model has no attention to show; what it expected is below.";
        return [this.note, this.others, this.meanings()];
      }
      const heads = this.given.attention.length > 1 ? kindsOf(this.given).map((kind) => this.grid(kind)) : [];
      return [
        this.controls(), this.note,
        make("div", { class: "pair" }, this.heat.figure, this.others),
        this.curves, this.more,
        ...(heads.length ? [make("section", { class: "grids", "aria-label": "heads" }, ...heads)] : []),
        this.meanings(),
      ];
    }

    meanings() {
      const entries = legend(this.given).flatMap(([name, meaning]) => [make("dt", {}, name), make("dd", {}, meaning)]);
      return make("details", { class: "legend" }, make("summary", {}, "What the numbers and lines mean"), make("dl", {}, ...entries));
    }

    // ---------------------------------------------------------- choosing
    controls() {
      const methods = dependences(this.given).map(({ what, label }) => [what, label]);
      const offered = [...methods, ...kindsOf(this.given).map((kind) => [kind, KINDS[kind]])];
      this.what = this.select("map", offered, (what) =>
        this.choose({ what, layer: what in KINDS ? bestLayer(this.given, what) : 0, head: 0 }));
      this.layer = this.select("layer", [], (layer) => this.choose({ ...this.choice, layer: Number(layer), head: 0 }));
      this.head = this.select("head", [], (head) => this.choose({ ...this.choice, head: Number(head) }));
      const pieces = on(make("input", { type: "checkbox" }), {
        change: (event) => { this.whole = !event.target.checked; this.active = this.pinned = null; this.fill(); },
      });
      pieces.checked = !this.whole;
      return make("div", { class: "controls" },
        ...[this.what, this.layer, this.head].map((one) => make("label", {}, one.getAttribute("name"), one)),
        make("label", { class: "pieces" }, pieces, "pieces instead of words"));
    }

    select(name, options, chosen) {
      const element = on(make("select", { name }), { change: (event) => chosen(event.target.value) });
      this.offer(element, options);
      return element;
    }

    offer(element, options) {
      element.replaceChildren(...options.map(([value, label]) => make("option", { value }, label)));
    }

    choose(choice) {
      this.choice = choice;
      this.fill();
    }

    // Everything that depends on the choice, and on words or pieces.
    fill() {
      this.line = { source: this.words("source"), target: this.words("target") };
      this.lines.replaceChildren(...["source", "target"].filter((side) => this.line[side]).map((side) => this.line[side].element));
      const { side, place } = this.active ?? { side: this.given.target ? "target" : "source", place: 0 };
      if (!this.choice) return this.activate(side, place);
      this.view = viewOf(this.given, this.choice, this.whole);
      const { what, layer, head } = this.choice, attends = !this.view.saliency;
      this.what.value = what;
      if (attends) {
        this.offer(this.layer, layersOf(this.given, what).map((number) => [number, String(number)]));
        const heads = headsOf(this.given, what, layer).map((block) => [block.head, String(block.head)]);
        this.offer(this.head, [[0, "mean of all"], ...heads]);
        this.layer.value = layer;
        this.head.value = head;
      }
      for (const one of [this.layer, this.head]) one.parentElement.hidden = !attends;
      this.note.textContent = told(this.view);
      for (const button of this.root.querySelectorAll(".grids button")) {
        button.setAttribute("aria-pressed", String(button.dataset.which === [what, layer, head].join("/")));
      }
      this.join();
      this.paint();
      return this.activate(side, place);
    }

    // ---------------------------------------------------------- words
    words(side) {
      const text = this.given[side];
      if (!text) return null;
      const found = groups(text.tokens, text.words, this.whole);
      const named = side === "source" ? "source" : this.given.source ? "output" : "text";
      const doubted = new Set(this.given.concerns.flatMap((one) => one[side + "_words"]));
      const buttons = found.map((group, place) => this.word(group, side, place, doubted));
      const row = make("div", { class: "words", role: "group", "aria-label": named, dir: "auto" }, ...buttons);
      return { found, buttons, element: make("div", { class: "line " + side }, make("span", { class: "name" }, named), row) };
    }

    word(group, side, place, doubted) {
      const button = make("button", { type: "button", class: "word", tabindex: place ? "-1" : "0", "aria-pressed": "false" },
        make("span", { class: "form" }, group.label), make("small", {}));
      if (group.special) button.classList.add("special");
      if ([...group.words].some((word) => doubted.has(word))) button.classList.add("concerned");
      if (side === "target") {
        const p = Math.min(...group.places.map((token) => this.given.steps[token].probability));
        button.classList.add(p >= SURE ? "sure" : p >= DOUBTED ? "fair" : "doubted");
        button.title = "probability " + exact(p) + (group.places.length > 1 ? " of its least probable piece" : "");
      }
      return on(button, {
        pointerenter: (event) => { if (event.pointerType === "mouse") this.activate(side, place, true); },
        pointerleave: (event) => { if (event.pointerType === "mouse" && this.pinned) this.activate(this.pinned.side, this.pinned.place); },
        focus: () => this.activate(side, place, true),
        click: () => this.pin(side, place),
        keydown: (event) => this.move(event, side, place),
      });
    }

    pin(side, place) {
      const same = this.pinned?.side === side && this.pinned.place === place;
      this.pinned = same ? null : { side, place };
      this.activate(side, place);
    }

    // Arrows go along a line and between the two, as far along; Escape lets go of what Enter pinned.
    move(event, side, place) {
      const other = side === "source" ? "target" : "source", here = this.line[side], there = this.line[other];
      const rightToLeft = getComputedStyle(here.buttons[place]).direction === "rtl" ? -1 : 1;
      const steps = { ArrowRight: rightToLeft, ArrowLeft: -rightToLeft };
      if (event.key in steps) {
        here.buttons[place + steps[event.key]]?.focus();
      } else if (["ArrowUp", "ArrowDown"].includes(event.key) && there) {
        there.buttons[Math.round((place * (there.buttons.length - 1)) / Math.max(1, here.buttons.length - 1))].focus();
      } else if (event.key === "Escape") {
        this.pinned = null;
        this.activate(side, place);
      } else return;
      event.preventDefault();
    }

    // ---------------------------------------------------------- looking at a word
    // The partners of a word in the map: [{side, place, q, k}], by how strong they are. A decoder reads one place back.
    partners(side, place) {
      const { row, column, rows, columns, kind } = this.view;
      const back = kind === "decoder" ? 1 : 0;
      let found = [];
      if (side === row) found = columns.map((group, k) => ({ side: column, place: k - back, label: group.label, q: place, k }));
      else if (side === column) found = rows.map((group, q) => ({ side: row, place: q, label: group.label, q, k: place }));
      const size = ({ q, k }) => Math.abs(this.view.values[q][k]);
      return found.sort((a, b) => size(b) - size(a));
    }

    // `follow`: the lines scroll to the word, unless the pointer is there already.
    activate(side, place, follow = false) {
      this.active = { side, place };
      for (const [name, line] of Object.entries(this.line)) line?.buttons.forEach((button, i) => {
        button.classList.toggle("active", name === side && i === place);
        button.setAttribute("aria-pressed", String(this.pinned?.side === name && this.pinned.place === i));
        button.setAttribute("tabindex", (name === side ? i === place : i === 0) ? "0" : "-1");
        button.classList.remove("lit", "against", "unsure");
        button.style.removeProperty("--lit");
        button.querySelector("small").textContent = "";
      });
      if (side === "target") this.instead(place);
      if (this.view) this.light(side, place);
      const label = follow && this.curves.querySelector(`[data-place="${side}/${place}"]`);
      if (label) this.curves.scrollLeft = Number(label.getAttribute("x")) - this.curves.clientWidth / 2;
    }

    light(side, place) {
      const partners = this.partners(side, place), label = this.line[side].found[place].label;
      for (const { side: there, place: i, q, k } of partners) {
        const button = this.line[there].buttons[i], value = this.view.values[q][k];
        if (!button || Math.abs(value) < 0.005) continue;
        button.classList.add("lit");
        button.classList.toggle("against", value < 0);
        button.classList.toggle("unsure", unsure(this.view, q, k));
        button.style.setProperty("--lit", Math.round((75 * Math.abs(value)) / this.view.peak) + "%");
        button.querySelector("small").textContent = withError(this.view, q, k, short);
      }
      const arrow = side === this.view.row ? " ← " : " → ";
      const named = partners.slice(0, 5).map(({ label: other, q, k }) => alone(other) + " " + withError(this.view, q, k, exact));
      this.readout.textContent = partners.length ? quoted(label) + arrow + named.join(", ")
        : quoted(label) + ": not in this map; choose another word or another map";
      for (const path of this.curves.querySelectorAll("path")) {
        const own = side === this.view.row ? path.dataset.q : side === this.view.column ? path.dataset.k : "";
        path.classList.toggle("own", own === String(place));
      }
      this.curves.firstChild?.classList.toggle("chosen", partners.length > 0);
    }

    // What could have stood in the place of each piece of an output word.
    instead(place) {
      const group = this.line.target.found[place], parts = [];
      for (const at of group.places) {
        const token = this.given.target.tokens[at], step = this.given.steps[at];
        const bars = step.alternatives.map((one) => this.bar(one.text, one.probability, one.id === token.id));
        if (!step.alternatives.some((one) => one.id === token.id)) bars.push(this.bar(token.text, step.probability, true));
        const heading = [quoted(visible(token.text)), " ", make("span", {}, "probability " + exact(step.probability) + ", rank " + step.rank)];
        parts.push(make("div", {}, make("h4", {}, ...heading), make("ol", {}, ...bars)));
      }
      this.others.replaceChildren(make("h3", {}, "What else the model expected"), ...parts);
    }

    bar(text, probability, written) {
      const length = make("i", {});
      length.style.width = 100 * probability + "%";
      return make("li", written ? { class: "written", "aria-current": "true" } : {},
        make("bdi", {}, visible(text)), make("span", { class: "bar" }, length), make("span", { class: "p" }, exact(probability)));
    }

    // ---------------------------------------------------------- maps
    join() {
      const back = this.view.kind === "decoder" ? 1 : 0; // its first column is the start, which is no word of the output
      this.curves.replaceChildren(curves(this.view, (label, side, place, above) => {
        const there = above ? place - back : place;
        label.dataset.place = [side, there].join("/");
        if (there < 0) return label;
        return on(label, { pointerenter: () => this.activate(side, there), click: () => this.pin(side, there) });
      }));
      hinted(this.curves, this.more);
    }

    paint() {
      const [heat, against] = this.hues.map(rgb);
      this.heat.show(this.view, this.heat.figure.parentElement?.clientWidth || 560, { heat, against });
    }

    // ---------------------------------------------------------- heads
    grid(kind) {
      const rows = layersOf(this.given, kind).map((layer) => {
        const heads = headsOf(this.given, kind, layer);
        const buttons = heads.map((block) => this.small(kind, layer, block.head, [block]));
        return make("div", { class: "heads" }, make("span", { class: "layer" }, "layer " + layer),
          make("div", {}, this.small(kind, layer, 0, heads), ...buttons));
      });
      const part = make("details", {}, make("summary", {}, KINDS[kind]), ...rows);
      on(part, { toggle: () => { if (part.open) this.thumbnails(part); } });
      part.open = kind === kindsOf(this.given)[0];
      return part;
    }

    small(kind, layer, head, blocks) {
      const roles = head ? blocks[0].roles.join(", ") : "", name = `layer ${layer}, ${head ? "head " + head : "mean"}`;
      const button = make("button", { type: "button", "data-which": [kind, layer, head].join("/"), "aria-pressed": "false" },
        make("canvas", { "aria-hidden": "true" }), make("span", {}, head ? `${layer}.${head}` : "mean"), make("em", {}, roles || " "));
      button.title = `${name}: ${width(blocks)}${roles && ", " + roles}`;
      button.setAttribute("aria-label", `${KINDS[kind]}, ${button.title}`);
      button.blocks = blocks;
      return on(button, { click: () => this.choose({ what: kind, layer, head }) });
    }

    thumbnails(part) {
      const [heat, against] = this.hues.map(rgb);
      for (const button of part.querySelectorAll("button")) {
        const weights = mean(button.blocks), drawn = raster(weights, largest(weights.flat()) || 1, { heat, against });
        button.querySelector("canvas").replaceWith(filled(drawn, { "aria-hidden": "true" }, []));
      }
    }

    repaint() {
      if (!this.view) return;
      this.paint();
      hinted(this.curves, this.more);
      for (const part of this.root.querySelectorAll(".grids details[open]")) this.thumbnails(part);
    }
  }

  function again() {
    for (const one of live) one.lines.isConnected ? one.repaint() : live.delete(one);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
  addEventListener("resize", again);

  // ------------------------------------------------------------ a page of them
  function explanation(root, given) {
    return new Explained(root, given);
  }

  const textOf = (given) => (given.source ?? given.target).text;

  // data: {explanations: […], beside: […]}; beside is empty, or has one of another model for each.
  function page(root, data) {
    const panes = make("div", { class: data.beside.length ? "panes two" : "panes" });
    const buttons = data.explanations.map((given, i) => sentence(given, () => show(i)));
    const list = make("ol", { class: "sentences", "aria-label": "sentences" }, ...buttons.map((button) => make("li", {}, button)));
    root.classList.add("explained-page");
    root.replaceChildren(header(data), ...(buttons.length > 1 ? [make("nav", { "aria-label": "sentences" }, list)] : []), panes);
    function show(i) {
      buttons.forEach((button, at) => (at === i ? button.setAttribute("aria-current", "true") : button.removeAttribute("aria-current")));
      const shown = [data.explanations[i], ...(data.beside.length ? [data.beside[i]] : [])];
      const roots = shown.map(() => make("article"));
      panes.replaceChildren(...roots);
      shown.forEach((given, at) => explanation(roots[at], given));
    }
    show(0);
  }

  function sentence(given, chosen) {
    const button = make("button", { type: "button", dir: "auto" }, textOf(given));
    if (given.concerns.length) button.append(" ", make("b", { title: "worth a look" }, "⚑ " + given.concerns.map((one) => one.kind).join(", ")));
    return on(button, { click: chosen });
  }

  function header(data) {
    const names = [...new Set([...data.explanations, ...data.beside].map((given) => given.model))].join(" and ");
    const dark = () => {
      const asked = document.documentElement.dataset.theme;
      return asked ? asked === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    };
    const toggle = make("button", { type: "button", class: "theme" });
    const label = () => { toggle.textContent = dark() ? "light" : "dark"; };
    on(toggle, { click: () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; label(); } });
    label();
    return make("header", {}, make("h1", {}, "What ", make("bdi", {}, names), " looked at"), toggle);
  }

  for (const data of document.querySelectorAll("script.explanations")) {
    page(data.parentElement.querySelector(".explanations-here"), JSON.parse(data.textContent));
  }
  Object.assign(Regard, { explanation, page, bestLayer });
})();
