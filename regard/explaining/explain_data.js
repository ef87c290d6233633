"use strict";

// What an explanation holds, made ready to be shown: Regard.data. Its words, its maps, and what numbers mean in words.
// Data are the JSON of `Explanation` (docs/explanation-schema.md). Nothing here touches the page but `make` and `draw`.
globalThis.Regard = {};
Regard.data = (() => {
  const METHODS = { rise: "RISE", gradient: "gradient × attention", rollout: "rollout", attention: "attention, best layer" };
  const KINDS = {
    cross: "attention: output to source", encoder: "attention: source to source", decoder: "attention: output to output",
  };
  const ABOUT = {
    rise: "RISE: what the word's probability loses on average if the other one is left out, ± standard error",
    gradient: "attention weighted by how much the output depends on it",
    rollout: "attention followed through all layers down to the words",
    attention: "mean attention of the layer in which output and source agree most",
  };
  const ROLES = {
    previous: "mostly at the token before", next: "mostly at the token after", separator: "mostly at start, end and punctuation",
    diagonal: "mostly at what stands equally far along",
  };
  const MEANINGS = {
    underline: ["none: the model gave the word a probability of 0.7 or more; dashed: 0.3 to 0.7; dotted: less.",
      "Of several pieces the least probable one counts."],
    "log p": ["natural logarithm of the probability of the whole output. Each token takes it further below 0, so compare",
      "outputs of one length."],
    score: ["log p over a power of the length, by which the search compares outputs; nearer to 0 is better."],
    map: ["a row looks at, or depends on, its columns; the strongest cell is darkest. Orange is below 0: without that",
      "word the other would be likelier."],
    entropy: ["how widely a head looks: 0 nats is at one token, more is wider; e to that power is the number of tokens",
      "that would be as wide if all had the same weight."],
    "± and hatched": ["standard error of what was measured. What is within two of them from 0 may as well be 0: hatched."],
    "deletion, insertion": ["mean probability of the output as the words that matter most go first, and as they come back",
      "first: a map to believe has a low one and a high one."],
  };

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

  // Across texts the layer in which most queries and keys choose each other, by giving and by getting most; within one
  // the last. As regard.explaining.roles.best_layer does.
  function bestLayer(explanation, kind) {
    const layers = layersOf(explanation, kind);
    if (kind !== "cross") return layers.at(-1);
    const score = (layer) => {
      const weights = mean(headsOf(explanation, kind, layer)), first = (line) => line.indexOf(Math.max(...line));
      const queries = weights[0].map((_, k) => first(weights.map((row) => row[k])));
      return weights.filter((row, q) => queries[first(row)] === q).length;
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

  // ------------------------------------------------------------ in words
  // How widely heads look, on average: e^entropy tokens, looked at alike, would be as wide.
  function width(blocks) {
    const entropy = summed(blocks.map((block) => block.entropy)) / blocks.length;
    const tokens = `${Math.exp(entropy).toFixed(1)} of ${blocks[0].weights[0].length} tokens`;
    return `looks at about ${tokens} at a time (entropy ${short(entropy)} nats)`;
  }

  // What is known of a map: how it was made, how faithful it is, what kind of head it is.
  function told({ saliency, blocks, errors }) {
    if (!saliency) {
      const roles = blocks.length === 1 ? blocks[0].roles.map((role) => `; ${role}: ${ROLES[role]}`).join("") : "";
      return (blocks.length === 1 ? "This head " : "A head of this layer ") + width(blocks) + roles + ".";
    }
    const parts = [ABOUT[saliency.method] + (saliency.masks ? "; " + saliency.masks.toLocaleString("en") + " masks." : ".")];
    if (errors) parts.push("Hatched: within two standard errors of 0.");
    if (saliency.faithful) {
      const { faithful, chance } = saliency;
      const beside = (name) => exact(faithful[name]) + (chance ? " (chance " + exact(chance[name]) + ")" : "");
      parts.push("Deletion " + beside("deletion") + ", lower is better.");
      parts.push("Insertion " + beside("insertion") + ", higher is better.");
    }
    return parts.join(" ");
  }

  // [name, what it means] of all that this explanation shows.
  function legend({ log_probability: total, attention, saliency, target }) {
    const shown = {
      underline: target, "log p": total !== null, score: total !== null, map: true, entropy: attention.length > 0,
      "± and hatched": saliency.some((one) => one.errors || one.previous_errors),
      "deletion, insertion": saliency.some((one) => one.faithful),
    };
    const whole = total === null ? "" : `Here e to the ${short(total)} is ${Math.exp(total).toPrecision(2)}.`;
    return Object.entries(MEANINGS).filter(([name]) => shown[name]).map(([name, lines]) =>
      [name, [...lines, ...(name === "log p" ? [whole] : [])].join(" ")]);
  }

  return {
    KINDS, make, draw, filled, on, alone, quoted, visible, exact, short, summed, largest, longest, groups, spaced, mean,
    kindsOf, layersOf, headsOf, bestLayer, dependences, firstChoice, viewOf, unsure, withError, width, told, legend,
  };
})();
