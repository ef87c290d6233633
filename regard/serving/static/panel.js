// The chosen word: which source words it comes from, what else could stand there, and the sentence anew from there.
import { address, ask } from "./asking.js";
import { $, element, keep, kept } from "./dom.js";
import { shared } from "./shared.js";
import { attention, linked, openings, probability, rise, words } from "./words.js";

const PARTS = ["attention", "alignment", "rise", "others"];
let chosen = null; // { piece, place, button, asking }
let host = null;

// `told.direction()` says between which languages, `told.wishes()` which terms are to be followed;
// `told.rewrite(piece, text, place)` puts a sentence in place of another.
export function begin(told) {
  host = told;
  $("word-close").addEventListener("click", () => close(true));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !event.defaultPrevented) close(true); });
  for (const part of PARTS) $(`tab-${part}`).addEventListener("click", () => turn(part));
  $("word").querySelector("[role=tablist]").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const place = PARTS.findIndex((part) => $(`tab-${part}`) === document.activeElement);
    if (!step || place < 0) return;
    const next = PARTS[(place + step + PARTS.length) % PARTS.length];
    turn(next);
    $(`tab-${next}`).focus();
  });
  $("heads").open = kept("heads", true);
  $("heads").addEventListener("toggle", () => {
    keep("heads", $("heads").open);
    if (chosen) look(chosen);
  });
}

// What the model did with a sentence, asked once: { source, text } in, the explanation out.
export function explained(piece, signal, more = {}) {
  return shared("explain", { q: piece.source, target_text: piece.text, ...host.direction(), check: true, ...more }, signal);
}

export function open(piece, place, button) {
  const before = chosen;
  before?.button.setAttribute("aria-pressed", "false");
  chosen = { piece, place, button, asking: new AbortController() };
  button.setAttribute("aria-pressed", "true");
  $("word-title").textContent = button.textContent;
  $("word-title").lang = $("to").value;
  $("word-sure").textContent = "";
  $("word").hidden = false;
  $("word").scrollIntoView({ block: "nearest" });
  for (const list of [$("openings"), $("endings"), $("explanation")]) list.replaceChildren();
  turn(PARTS.find((part) => $(`tab-${part}`).getAttribute("aria-selected") === "true"));
  explained(piece, chosen.asking.signal).then((found) => {
    if (chosen?.button === button) $("word-sure").textContent = `probability ${percent(probability(found, place))}`;
  }).catch(() => {}); // the part that is shown says so
  before?.asking.abort(); // but for what this word asks too
}

export function close(back) {
  if (!chosen) return;
  chosen.asking.abort();
  $("word").hidden = true;
  chosen.button.setAttribute("aria-pressed", "false");
  if (back) chosen.button.focus();
  chosen = null;
}

function turn(part) {
  for (const other of PARTS) {
    const tab = $(`tab-${other}`);
    tab.setAttribute("aria-selected", String(other === part));
    tab.tabIndex = other === part ? 0 : -1;
    $(`part-${other}`).hidden = other !== part;
  }
  if (chosen) SHOWN[part](chosen);
}

function say(part, text, wrong = false) {
  const place = $(`part-${part}`).querySelector(".strongest");
  place.textContent = text;
  place.classList.toggle("error", wrong);
}

function percent(share) {
  return `${share >= 0.995 ? 100 : share < 0.01 ? "< 1" : Math.round(100 * share)} %`;
}

// ---------------------------------------------------------------- where it comes from
// Source words, each as strongly lit as its value is a part of the largest; `notes` are said beside the strongest three.
function light(part, sentence, values, notes) {
  const most = Math.max(...values, 1e-9);
  const strongest = values.map((_, i) => i).sort((a, b) => values[b] - values[a]).slice(0, 3).filter((i) => values[i] > 0);
  const spans = sentence.map((word, i) => {
    const span = element("span", { title: notes[i] }, word.text);
    span.style.setProperty("--share", Math.max(values[i], 0) / most);
    if (strongest.includes(i)) span.append(element("sub", {}, notes[i]));
    return span;
  });
  const line = $(`part-${part}`).querySelector(".lit");
  line.replaceChildren(...spaced(spans));
  line.lang = host.direction().source;
  say(part, strongest.length ? `Strongest: ${strongest.map((i) => `${sentence[i].text} ${notes[i]}`).join(", ")}` : "");
}

function spaced(spans) {
  return spans.flatMap((span) => [span, " "]);
}

function dim(part, piece) {
  light(part, words(piece.source), words(piece.source).map(() => 0), []);
}

// Fill a part with what an answer says, unless another word was chosen meanwhile.
async function fill(part, one, promise, show) {
  try {
    const found = await promise;
    if (chosen === one) show(found);
  } catch (error) {
    if (chosen === one) say(part, error.message, true);
  }
}

// The layer that aligns best is the one that the pages of files begin with too.
function showAttention(one) {
  dim("attention", one.piece);
  $("layer").textContent = "";
  const both = Promise.all([explained(one.piece, one.asking.signal), script()]);
  fill("attention", one, both, ([found, pages]) => {
    const layer = found.attention.some((block) => block.kind === "cross") && pages?.bestLayer(found, "cross");
    const shares = layer ? attention(found, one.place, layer) : null;
    if (!shares) return say("attention", "This model has no attention to look at; RISE measures what it depends on.");
    $("layer").textContent = `: layer ${layer}, which aligns best, the mean of its heads`;
    light("attention", found.source.words, shares, shares.map(percent));
    return look(one);
  });
}

function showAlignment(one) {
  const { piece, place } = one, target = words(piece.text), source = words(piece.source);
  const marked = (part, side, kindOf) => $("part-alignment").querySelector(part).replaceChildren(
    ...spaced(side.map((word, i) => element("span", { class: kindOf(i) }, word.text))));
  dim("alignment", piece);
  $("part-alignment").querySelector(".written").lang = host.direction().target;
  marked(".written", target, (i) => i === place && "link");
  say("alignment", "");
  const answer = shared("align", { q: [piece.source], s: [piece.text], ...host.direction() }, one.asking.signal);
  fill("alignment", one, answer, ({ alignments: [links] }) => {
    const { sources, targets } = linked(links, place), texts = [...sources].map((i) => source[i]?.text);
    marked(".lit", source, (i) => sources.has(i) && "link");
    marked(".written", target, (i) => (i === place ? "link" : targets.has(i) && "near"));
    say("alignment", texts.length ? `${target[place].text} ↔ ${texts.join(", ")}` : "No source word stands for it.");
  });
}

function showRise(one) {
  dim("rise", one.piece);
  say("rise", "Measuring: words are left out, again and again …");
  fill("rise", one, explained(one.piece, one.asking.signal, { method: "rise" }), (found) => {
    const map = rise(found, one.place);
    if (!map) return say("rise", "This service does not measure that.");
    const note = (value, i) => value.toFixed(2) + (map.errors ? ` ± ${map.errors[i]?.toFixed(2) ?? "?"}` : "");
    return light("rise", found.source.words, map.values, map.values.map(note));
  });
}

// All layers and heads, by the same script as the pages that `regard explain` writes.
let loaded = null;

function script() {
  loaded ??= new Promise((resolve) => {
    const made = element("script", { src: address("static/explain_page.js") });
    made.addEventListener("load", () => resolve(window.Regard ?? null));
    made.addEventListener("error", () => resolve(null));
    document.head.append(element("link", { rel: "stylesheet", href: address("static/explain_page.css") }), made);
  });
  return loaded;
}

async function look(one) {
  const pages = await script();
  $("heads").hidden = !pages;
  if (!pages || !$("heads").open || chosen !== one || $("explanation").childElementCount) return;
  await fill("attention", one, explained(one.piece, one.asking.signal), (found) => {
    const root = element("div");
    $("explanation").replaceChildren(root);
    pages.explanation(root, found).activate("target", one.place);
  });
}

// ---------------------------------------------------------------- what else could stand there
function showOthers(one) {
  say("others", "");
  const { piece, place } = one;
  fill("others", one, explained(piece, one.asking.signal), (found) => {
    $("openings").replaceChildren(...openings(found, place).map((other) =>
      choice([other.text], percent(other.probability), other.probability, () => rewrite(one, other.prefix))));
  });
  const prefix = piece.text.slice(0, words(piece.text)[place].start).trimEnd();
  const question = { q: piece.source, ...host.direction(), ...host.wishes(), prefix, alternatives: 5 };
  fill("others", one, ask("alternatives", question, one.asking.signal), ({ candidates }) => {
    const texts = [...new Set(candidates.map((candidate) => candidate.text))].filter((text) => text !== piece.text);
    $("endings").replaceChildren(...texts.map((text) =>
      choice([element("s", {}, text.slice(0, prefix.length)), text.slice(prefix.length)], "", 0,
        () => host.rewrite(piece, text, place))));
    if (!texts.length) say("others", "The model knows no other way to go on.");
  });
}

function choice(parts, note, share, act) {
  const bar = element("span", { class: "bar" });
  bar.style.width = `${100 * share}%`;
  const label = element("span", { lang: host.direction().target }, ...parts);
  const button = element("button", { type: "button" }, label, element("i", {}, note), bar);
  button.addEventListener("click", act);
  return element("li", {}, button);
}

async function rewrite(one, prefix) {
  say("others", "Writing it anew …");
  const question = { q: one.piece.source, ...host.direction(), ...host.wishes(), prefix, alternatives: 0 };
  await fill("others", one, ask("alternatives", question, one.asking.signal), ({ candidates }) => {
    host.rewrite(one.piece, candidates[0].text, one.place);
  });
}

const SHOWN = { attention: showAttention, alignment: showAlignment, rise: showRise, others: showOthers };
