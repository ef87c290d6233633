"use strict";

// Regard.explanation(root, explanation) shows one explanation inside an element; Regard.page(root, data) shows several,
// and two models beside each other; Regard.bestLayer(explanation, kind) is where to look first. Data are the JSON of `Explanation` (docs/explanation-schema.md). Nothing is loaded,
// there are no ids, and text only ever becomes text.
globalThis.Regard = (() => {
  const METHODS = { rise: "RISE", gradient: "gradient × attention", rollout: "rollout", attention: "attention, best layer" };
  const KINDS = {
    cross: "attention: output to source", encoder: "attention: source to source", decoder: "attention: output to output",
  };
  const ABOUT = {
    rise: "RISE: what the word's probability loses on average if the other one is left out, ± standard error",
    gradient: "attention weighted by how much the output depends on it",
    rollout: "attention followed through all layers down to the words",
    attention: "mean attention of the layer that aligns best",
  };
  const SURE = 0.7, DOUBTED = 0.3; // probabilities of a word: above it is sure, below it is doubted
  const LINKS = 400; // curves that can still be told apart
  const FAINT = 0.08; // of the strongest: a weaker link is not drawn as a curve
  const live = new Set(); // what is on the page now, to be drawn again when its colours or its width change

  // ------------------------------------------------------------ elements
  function make(tag, attributes = {}, ...children) {
    return filled(document.createElement(tag), attributes, children);
  }
  function draw(tag, attributes = {}, ...children) {
    return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
  }
  function filled(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  function on(element, listeners) {
    for (const [name, listener] of Object.entries(listeners)) element.addEventListener(name, listener);
    return element;
  }

  // ------------------------------------------------------------ words and numbers
  // A token keeps its own direction of writing and leaves that of its neighbours alone.
  const alone = (text) => "\u2068" + text + "\u2069";
  const quoted = (text) => "“" + alone(text) + "”";
  const visible = (text) => text.replace(/\s/g, "␣").replace(/[\u0000-\u001f\u007f]/g, "·") || "∅";
  const minus = (text) => text.replace("-", "−");
  const exact = (value) => minus(value.toFixed(3));
  const short = (value) => minus(value.toFixed(2));
  const summed = (values) => values.reduce((a, b) => a + b, 0);
  const largest = (values) => values.reduce((a, b) => Math.max(a, b), 0);
  const longest = (text) => (text.length > 18 ? text.slice(0, 17) + "…" : text);

  // What stands on one side: words, or the model's pieces of them. Start and end belong to no word and stand alone.
  function groups(tokens, words, whole) {
    const found = [];
    tokens.forEach((token, place) => {
      const last = found.at(-1);
      if (whole && last && token.words.some((word) => last.words.has(word))) {
        token.words.forEach((word) => last.words.add(word));
        last.places.push(place);
      } else found.push({ words: new Set(token.words), places: [place] });
    });
    for (const group of found) {
      group.special = group.words.size === 0;
      group.label = whole && !group.special
        ? [...group.words].sort((a, b) => a - b).map((word) => words[word].text).join(" ")
        : visible(tokens[group.places[0]].text);
    }
    return found;
  }

  // Texts without spaces are one word: there the pieces say more.
  function spaced(explanation) {
    return [explanation.source, explanation.target].every(
      (side) => !side || side.tokens.length <= 8 * Math.max(side.words.length, 1));
  }

  // ------------------------------------------------------------ maps
  // [whose tokens are the rows, whose the columns]
  const sides = (kind) => ({ encoder: ["source", "source"], decoder: ["target", "target"] })[kind] ?? ["target", "source"];

  function axes(explanation, kind) {
    const source = explanation.source?.tokens ?? [], target = explanation.target?.tokens ?? [];
    if (kind === "encoder") return [source, source];
    return [target, kind === "decoder" ? [explanation.start, ...target.slice(0, -1)] : source];
  }

  function mean(blocks) {
    return blocks[0].weights.map((row, q) => row.map((_, k) => summed(blocks.map((b) => b.weights[q][k])) / blocks.length));
  }

  const kindsOf = ({ attention }) => Object.keys(KINDS).filter((kind) => attention.some((block) => block.kind === kind));
  function layersOf(explanation, kind) {
    return [...new Set(explanation.attention.filter((block) => block.kind === kind).map((block) => block.layer))];
  }
  function headsOf(explanation, kind, layer) {
    return explanation.attention.filter((block) => block.kind === kind && block.layer === layer);
  }

  // Across texts the layer that aligns best: the mean over keys of the most that any query gives; within one the last.
  function bestLayer(explanation, kind) {
    const layers = layersOf(explanation, kind);
    if (kind !== "cross") return layers.at(-1);
    const score = (layer) => {
      const weights = mean(headsOf(explanation, kind, layer));
      return summed(weights[0].map((_, k) => largest(weights.map((row) => row[k])))) / weights[0].length;
    };
    return layers.reduce((best, layer) => (score(layer) >= score(best) ? layer : best));
  }

  // What the output depends on, by each method: on the source, and on what was written before where that is known.
  function dependences(explanation) {
    return Object.keys(METHODS).flatMap((method) => explanation.saliency.filter((map) => map.method === method))
      .flatMap((saliency) => {
        const { method, values, errors, previous, previous_errors: back } = saliency, label = METHODS[method], found = [];
        if (explanation.source) found.push({ what: method, label, kind: "cross", values, errors, saliency });
        if (previous) {
          const what = method + "/previous";
          found.push({ what, label: label + ", words before", kind: "decoder", values: previous, errors: back, saliency });
        }
        return found;
      });
  }

  // Method or kind, then layer and head (0: the mean of the layer); null for a model that shows nothing.
  function firstChoice(explanation) {
    const [first] = dependences(explanation);
    if (first) return { what: first.what, layer: 0, head: 0 };
    const there = kindsOf(explanation), kind = there.includes("cross") ? "cross" : there.at(-1);
    return kind ? { what: kind, layer: bestLayer(explanation, kind), head: 0 } : null;
  }

  // The pieces of a column's group add up, those of a row's group are averaged. Errors add up too: they are no larger.
  function merged(values, rows, columns) {
    return rows.map((row) => columns.map((column) => {
      const cells = row.places.flatMap((q) => column.places.map((k) => values[q][k]));
      return cells.includes(null) ? null : summed(cells) / row.places.length;
    }));
  }

  // A map as it is drawn: groups of rows and columns, values, standard errors where there are any, and what it is.
  function viewOf(explanation, choice, whole) {
    const found = dependences(explanation).find((one) => one.what === choice.what);
    const kind = found ? found.kind : choice.what;
    const [row, column] = sides(kind), [queries, keys] = axes(explanation, kind);
    const rows = groups(queries, explanation[row].words, whole), columns = groups(keys, explanation[column].words, whole);
    const heads = found ? [] : headsOf(explanation, kind, choice.layer);
    const blocks = choice.head ? heads.filter((block) => block.head === choice.head) : heads;
    const values = merged(found ? found.values : mean(blocks), rows, columns);
    return {
      kind, row, column, rows, columns, values, blocks, saliency: found?.saliency,
      errors: found?.errors ? merged(found.errors, rows, columns) : null,
      peak: largest(values.flat().map(Math.abs)) || 1,
      title: found ? found.label
        : KINDS[kind] + ", layer " + choice.layer + (choice.head ? ", head " + choice.head : ", mean of " + heads.length),
    };
  }

  // Whether a value can be told from 0: two standard errors away, where there are errors.
  function unsure(view, q, k) {
    if (!view.errors) return false;
    return view.errors[q][k] === null || Math.abs(view.values[q][k]) < 2 * view.errors[q][k];
  }
  function withError(view, q, k, figure) {
    if (!view.errors) return figure(view.values[q][k]);
    return figure(view.values[q][k]) + " ± " + (view.errors[q][k] === null ? "?" : figure(view.errors[q][k]));
  }

  // ------------------------------------------------------------ cells
  function rgb(element) {
    return getComputedStyle(element).color.match(/[\d.]+/g).slice(0, 3).map(Number);
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

  // ------------------------------------------------------------ one explanation
  class Explained {
    constructor(root, explanation) {
      this.root = root;
      this.given = explanation;
      this.choice = firstChoice(explanation);
      this.whole = spaced(explanation);
      this.active = null; // {side, place} of the word that is looked at
      this.pinned = null;
      this.cell = null; // [row, column] of the large map under pointer or keys
      this.readout = make("output", { class: "readout", "aria-live": "polite" });
      this.note = make("p", { class: "note" });
      this.lines = make("div", { class: "lines" });
      this.others = make("section", { class: "others", "aria-label": "alternatives" });
      this.curves = make("div", { class: "curves", tabindex: "0", role: "group", "aria-label": "curves" });
      this.large = this.canvas();
      this.hues = [make("i", { class: "hue heat", hidden: "" }), make("i", { class: "hue against", hidden: "" })];
      root.classList.add("explained");
      root.replaceChildren(...this.hues, this.facts(), ...this.concerns(), this.lines, this.readout, ...this.maps());
      for (const one of live) if (!one.lines.isConnected) live.delete(one);
      live.add(this);
      this.fill();
    }

    facts() {
      const { model, log_probability: total, score } = this.given;
      const told = total === null ? "" : `log p ${short(total)}, score ${short(score)}; underlined: less sure of the word`;
      return make("p", { class: "facts" }, make("b", {}, make("bdi", {}, model)), " ", make("span", {}, told));
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
        return [this.note, this.others];
      }
      const heads = this.given.attention.length > 1 ? kindsOf(this.given).map((kind) => this.grid(kind)) : [];
      return [
        this.controls(), this.note,
        make("div", { class: "pair" },
          make("figure", { class: "large" }, this.large, make("figcaption", {}, (this.reading = make("output", {})))), this.others),
        this.curves,
        ...(heads.length ? [make("section", { class: "grids", "aria-label": "heads" }, ...heads)] : []),
      ];
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
      this.cell = null;
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
      this.note.textContent = this.told();
      for (const button of this.root.querySelectorAll(".grids button")) {
        button.setAttribute("aria-pressed", String(button.dataset.which === [what, layer, head].join("/")));
      }
      this.join();
      this.paint();
      return this.activate(side, place);
    }

    // What is known of the map: how it was made, how faithful it is, what kind of head it is.
    told() {
      const { saliency, blocks } = this.view;
      if (!saliency) {
        const entropy = summed(blocks.map((block) => block.entropy)) / blocks.length;
        const roles = blocks.length === 1 ? blocks[0].roles.join(" and ") : "";
        return "entropy " + short(entropy) + " nats" + (roles && "; role: " + roles);
      }
      const masks = saliency.masks ? "; " + saliency.masks.toLocaleString("en") + " masks." : ".";
      const parts = [ABOUT[saliency.method] + masks];
      if (this.view.errors) parts.push("Hatched: within two standard errors of 0.");
      if (saliency.faithful) {
        const { faithful, chance } = saliency;
        const beside = (name) => exact(faithful[name]) + (chance ? " (chance " + exact(chance[name]) + ")" : "");
        parts.push("Deletion " + beside("deletion") + ", lower is better.");
        parts.push("Insertion " + beside("insertion") + ", higher is better.");
      }
      return parts.join(" ");
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
        pointerenter: (event) => { if (event.pointerType === "mouse") this.activate(side, place); },
        pointerleave: (event) => { if (event.pointerType === "mouse" && this.pinned) this.activate(this.pinned.side, this.pinned.place); },
        focus: () => this.activate(side, place),
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

    activate(side, place) {
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
        parts.push(make("h4", {}, ...heading), make("ol", {}, ...bars));
      }
      this.others.replaceChildren(make("h3", {}, "What else the model expected"), ...parts);
    }

    bar(text, probability, written) {
      const length = make("i", {});
      length.style.width = 100 * probability + "%";
      return make("li", written ? { class: "written", "aria-current": "true" } : {},
        make("bdi", {}, visible(text)), make("span", { class: "bar" }, length), make("span", { class: "p" }, exact(probability)));
    }

    // ---------------------------------------------------------- curves
    // Columns above, rows below, a curve for each link that is not faint.
    join() {
      const { rows, columns, values, peak } = this.view, height = 150;
      const pen = make("canvas").getContext("2d");
      pen.font = "14px system-ui, sans-serif";
      const [above, below] = [columns, rows].map((line) => spread(line.map((group) => pen.measureText(longest(group.label)).width)));
      const width = Math.max(above.width, below.width);
      const shift = (line) => (width - line.width) / 2;
      const links = values.flatMap((row, q) => row.map((value, k) => ({ q, k, value })))
        .filter(({ value }) => Math.abs(value) >= FAINT * peak)
        .sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, LINKS);
      const paths = links.map(({ q, k, value }) => {
        const x = above.centres[k] + shift(above), y = below.centres[q] + shift(below);
        return draw("path", {
          d: `M${x.toFixed(1)} 26C${x.toFixed(1)} ${height / 2} ${y.toFixed(1)} ${height / 2} ${y.toFixed(1)} ${height - 26}`,
          "stroke-opacity": (Math.abs(value) / peak).toFixed(3), "data-q": q, "data-k": k,
          class: value < 0 ? "against" : "",
        });
      });
      const label = (group, x, y) => draw("text", { x: x.toFixed(1), y }, longest(group.label));
      const labels = [
        ...columns.map((group, k) => this.touched(label(group, above.centres[k] + shift(above), 18), this.view.column, k, this.view.kind === "decoder")),
        ...rows.map((group, q) => this.touched(label(group, below.centres[q] + shift(below), height - 8), this.view.row, q, false)),
      ];
      const size = { viewBox: `0 0 ${Math.ceil(width)} ${height}`, width: Math.ceil(width), height, "aria-hidden": "true" };
      this.curves.replaceChildren(draw("svg", size, draw("g", {}, ...paths), ...labels));
    }

    touched(label, side, place, back) {
      const there = place - (back ? 1 : 0);
      return there < 0 ? label : on(label, { pointerenter: () => this.activate(side, there), click: () => this.pin(side, there) });
    }

    // ---------------------------------------------------------- the large map
    canvas() {
      const canvas = make("canvas", { tabindex: "0", role: "img", "aria-roledescription": "heat map" });
      const at = (event) => {
        const { left, top, cell } = this.layout, box = canvas.getBoundingClientRect();
        const k = Math.floor((event.clientX - box.left - left) / cell), q = Math.floor((event.clientY - box.top - top) / cell);
        return this.view.values[q]?.[k] === undefined ? null : [q, k];
      };
      return on(canvas, {
        pointermove: (event) => this.look(at(event)),
        pointerleave: () => this.look(null),
        click: (event) => { const cell = at(event); if (cell) this.pin(this.view.row, cell[0]); },
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
      } else if (event.key === "Enter" || event.key === " ") this.pin(this.view.row, q);
      else return;
      event.preventDefault();
    }

    look(cell) {
      const same = cell?.join() === this.cell?.join();
      this.cell = cell;
      if (same && cell) return;
      this.reading.textContent = cell
        ? alone(this.view.rows[cell[0]].label) + " ← " + alone(this.view.columns[cell[1]].label) + "  " + withError(this.view, ...cell, exact)
        : "strongest: " + exact(this.view.peak);
      this.paint();
    }

    paint() {
      const { rows, columns, values, peak } = this.view, pen = this.large.getContext("2d");
      const room = Math.max(280, this.large.parentElement?.clientWidth || 560);
      const font = "13px system-ui, sans-serif";
      pen.font = font;
      const wide = (line) => largest(line.map((group) => pen.measureText(longest(group.label)).width));
      const left = wide(rows) + 10, lean = wide(columns), top = lean * 0.87 + 16, right = lean * 0.5 + 4;
      const cell = Math.max(6, Math.min(34, Math.floor((room - left - right) / columns.length)));
      this.layout = { left, top, cell };
      const width = Math.ceil(left + right + cell * columns.length), height = Math.ceil(top + cell * rows.length + 2);
      const sharp = Math.min(devicePixelRatio || 1, 2);
      Object.assign(this.large, { width: width * sharp, height: height * sharp });
      Object.assign(this.large.style, { width: width + "px", height: height + "px" });
      this.large.setAttribute("aria-label", this.view.title + ": " + rows.length + " rows, " + columns.length + " columns");
      const [heat, against] = this.hues.map(rgb), ink = getComputedStyle(this.root).color;
      pen.scale(sharp, sharp);
      pen.translate(left, top);
      pen.imageSmoothingEnabled = false;
      pen.drawImage(raster(values, peak, { heat, against }), 0, 0, cell * columns.length, cell * rows.length);
      this.hatch(pen, cell, ink);
      Object.assign(pen, { strokeStyle: ink, globalAlpha: 0.3 });
      pen.strokeRect(0.5, 0.5, cell * columns.length - 1, cell * rows.length - 1);
      pen.globalAlpha = 1;
      if (this.cell) pen.strokeRect(this.cell[1] * cell + 0.5, this.cell[0] * cell + 0.5, cell - 1, cell - 1);
      Object.assign(pen, { font: cell < 15 ? "10px system-ui, sans-serif" : font, fillStyle: ink, textBaseline: "middle" });
      this.names(pen, cell);
      if (!this.cell) this.reading.textContent = "strongest: " + exact(peak);
    }

    // Lines over the cells that may as well be 0.
    hatch(pen, cell, ink) {
      if (!this.view.errors) return;
      pen.beginPath();
      this.view.values.forEach((row, q) => row.forEach((_, k) => {
        if (!unsure(this.view, q, k)) return;
        for (const part of [0.5, 1]) {
          pen.moveTo(k * cell, (q + part) * cell);
          pen.lineTo((k + part) * cell, q * cell);
        }
      }));
      Object.assign(pen, { strokeStyle: ink, globalAlpha: 0.22, lineWidth: 1 });
      pen.stroke();
      pen.globalAlpha = 1;
    }

    // Names of rows before them, of columns leaning over them; where cells are tiny, only every so many.
    names(pen, cell) {
      const every = Math.ceil(9 / cell);
      pen.textAlign = "end";
      this.view.rows.forEach((group, q) => { if (q % every === 0) pen.fillText(longest(group.label), -6, (q + 0.5) * cell); });
      pen.textAlign = "start";
      this.view.columns.forEach((group, k) => {
        if (k % every) return;
        pen.save();
        pen.translate((k + 0.5) * cell, -6);
        pen.rotate(-Math.PI / 3);
        pen.fillText(longest(group.label), 0, 0);
        pen.restore();
      });
    }

    // ---------------------------------------------------------- heads
    grid(kind) {
      const layers = layersOf(this.given, kind), most = largest(layers.map((layer) => headsOf(this.given, kind, layer).length));
      const cells = layers.flatMap((layer) => {
        const heads = headsOf(this.given, kind, layer);
        const buttons = heads.map((block) => this.small(kind, layer, block.head, [block]));
        const gap = Array.from({ length: most - heads.length }, () => make("span"));
        return [make("span", { class: "layer" }, "layer " + layer), this.small(kind, layer, 0, heads), ...buttons, ...gap];
      });
      const heads = make("div", { class: "heads" }, ...cells);
      heads.style.setProperty("--heads", String(most + 1));
      const part = make("details", {}, make("summary", {}, KINDS[kind]), heads);
      on(part, { toggle: () => { if (part.open) this.thumbnails(part); } });
      part.open = kind === kindsOf(this.given)[0];
      return part;
    }

    small(kind, layer, head, blocks) {
      const roles = head ? blocks[0].roles.join(", ") : "";
      const entropy = summed(blocks.map((block) => block.entropy)) / blocks.length;
      const name = `layer ${layer}, ${head ? "head " + head : "mean"}`;
      const button = make("button", { type: "button", "data-which": [kind, layer, head].join("/"), "aria-pressed": "false" },
        make("canvas", { "aria-hidden": "true" }), make("span", {}, head ? `${layer}.${head}` : "mean"), make("em", {}, roles || " "));
      button.setAttribute("aria-label", `${KINDS[kind]}, ${name}, entropy ${short(entropy)}${roles && ", " + roles}`);
      button.title = `${name}: entropy ${short(entropy)} nats${roles && ", " + roles}`;
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
      for (const part of this.root.querySelectorAll(".grids details[open]")) this.thumbnails(part);
    }
  }

  // Labels side by side: where the middle of each is, and how much room all need.
  function spread(widths) {
    let width = 8;
    const centres = widths.map((own) => {
      const room = Math.max(own, 14);
      width += room + 10;
      return width - 10 - room / 2;
    });
    return { centres, width };
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
  return { explanation, page, bestLayer };
})();
