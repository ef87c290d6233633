// The page that translates: a text is sent as it is typed, its sentences are shown as they come back.
import { address, ask, events, send } from "./asking.js";
import * as comparing from "./comparing.js";
import { $, element, keep, kept } from "./dom.js";
import * as panel from "./panel.js";
import { editor } from "./terms.js";
import { probability, words } from "./words.js";

const PAUSE = 250; // milliseconds without a key before the text is sent
const CALM = 600; // milliseconds after the translation before the model is asked how sure it was
const LOOKED = 12; // sentences of one text that are looked at without being asked for
const UNSURE = 0.5, DOUBTFUL = 0.2; // probabilities of a word
const state = { languages: [], settings: {}, pieces: [], asking: null, looking: null, timer: null, calm: null, detected: "" };
let terms = () => [], untouched = () => [];

function direction() {
  return { source: $("from").value === "auto" ? state.detected : $("from").value, target: $("to").value };
}

function wishes() {
  return { glossary: Object.fromEntries(terms()), do_not_translate: untouched().flat() };
}

function said() {
  return state.pieces.map((piece) => piece.text).join("");
}

function say(text, wrong = false) {
  $("state").textContent = text;
  $("state").className = wrong ? "error" : "";
}

// ---------------------------------------------------------------- translating as one types
function later() {
  stop();
  state.timer = setTimeout(translate, PAUSE);
  count();
  remember();
}

// Nobody waits for what was asked about the text before.
function stop() {
  clearTimeout(state.timer);
  clearTimeout(state.calm);
  state.asking?.abort();
  state.looking?.abort();
  panel.close(false);
}

async function translate() {
  if (!state.languages.length) return undefined; // the page is not ready; `arrive` comes back to what was typed
  const text = $("source").value;
  stop();
  const mine = state.asking = new AbortController();
  const over = tooLong();
  if (!text.trim() || over) {
    if (!over) show([]);
    $("output").setAttribute("aria-busy", String(Boolean(over)));
    return say(over, Boolean(over));
  }
  $("output").setAttribute("aria-busy", "true");
  try {
    await detect(text, mine.signal);
    await receive(text, mine.signal);
    $("heard").textContent = said();
    state.calm = setTimeout(look, CALM);
  } catch (error) {
    if (error.name === "AbortError") return undefined;
    say(error.message, true);
  }
  if (state.asking === mine) $("output").setAttribute("aria-busy", "false");
  return undefined;
}

async function detect(text, signal) {
  $("detected").textContent = "";
  if ($("from").value !== "auto") return;
  const [found] = await ask("detect", { q: text }, signal);
  state.detected = found.language;
  $("detected").textContent = `${nameOf(found.language)}, ${found.confidence} %`;
}

// Sentence by sentence; what was there before stays, dimmed, until the first of them comes.
async function receive(text, signal) {
  const { source, target } = direction();
  if (source === target) {
    show([]);
    state.pieces = [{ source: text, text, seen: {} }]; // there is nothing to explain
    $("output").append(text);
    return say(`This is ${nameOf(target)} already.`);
  }
  let first = true;
  for await (const { data } of events("stream", { q: text, source, target, ...wishes() }, signal)) {
    if (first) show([]);
    first = false;
    state.pieces.push(data);
    $("output").append(drawnPiece(data));
    tabStop();
  }
  return say("");
}

function show(pieces) {
  state.pieces = pieces;
  $("output").replaceChildren(...pieces.map(drawnPiece));
  $("output").lang = $("to").value;
  $("heard").textContent = "";
  notice();
  tabStop();
}

// A sentence as its words, each of which can be chosen.
function drawnPiece(piece) {
  const span = element("span");
  let end = 0;
  words(piece.text).forEach((word, place) => {
    const button = element("button", { type: "button", "aria-pressed": "false", tabindex: -1 }, word.text);
    button.addEventListener("click", (event) => {
      panel.open(piece, place, button);
      if (!event.detail) $("word").querySelector("[role=tab][aria-selected=true]").focus(); // by the keyboard
    });
    span.append(piece.text.slice(end, word.start), button);
    end = word.start + word.text.length;
  });
  span.append(piece.text.slice(end));
  piece.shown = span;
  return span;
}

function rewrite(piece, text, place) {
  panel.close(false);
  const old = piece.shown;
  piece.text = text;
  piece.seen = null;
  old.replaceWith(drawnPiece(piece));
  tabStop();
  const buttons = [...piece.shown.querySelectorAll("button")];
  (buttons[place] || buttons.at(-1))?.focus();
  say("The sentence was written anew from there.");
  $("heard").textContent = text;
  look();
}

// One word at a time is a stop of the Tab key; arrows lead to the others.
function tabStop() {
  const buttons = [...$("output").querySelectorAll("button")];
  const current = buttons.find((button) => button === document.activeElement) || buttons[0];
  for (const button of buttons) button.tabIndex = button === current ? 0 : -1;
}

function walk(event) {
  const buttons = [...$("output").querySelectorAll("button")];
  const place = buttons.indexOf(document.activeElement);
  const next = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (place < 0 || !buttons[next]) return;
  event.preventDefault();
  buttons[next].focus();
  tabStop();
}

// ---------------------------------------------------------------- how sure the model was
// After a while without typing, sentence by sentence; a service that cannot say so is left alone until the next text.
async function look() {
  state.looking?.abort();
  if (!$("sure").checked) return;
  const { signal } = state.looking = new AbortController();
  for (const piece of state.pieces.filter((one) => one.text.trim() && !one.seen).slice(0, LOOKED)) {
    const text = piece.text;
    try {
      const found = await panel.explained(piece, signal);
      if (signal.aborted) return;
      if (piece.text !== text) continue; // written anew meanwhile
      piece.seen = found;
    } catch {
      return;
    }
    mark(piece);
    notice();
  }
}

function mark(piece) {
  const found = piece.seen, buttons = [...piece.shown.querySelectorAll("button")];
  if (!found?.target || found.target.words.length !== buttons.length) return;
  const worries = found.concerns ?? [];
  buttons.forEach((button, place) => {
    const p = probability(found, place), worry = worries.find((one) => one.target_words.includes(place));
    button.classList.toggle("unsure", p < UNSURE && p >= DOUBTFUL);
    button.classList.toggle("doubtful", p < DOUBTFUL);
    button.classList.toggle("concern", Boolean(worry));
    button.title = worry ? worry.message : p < UNSURE ? `the model was unsure: ${Math.round(100 * p)} %` : "";
  });
}

function notice() {
  const messages = new Set(state.pieces.flatMap((piece) => (piece.seen?.concerns ?? []).map((one) => one.message)));
  $("concerns").replaceChildren(...[...messages].map((message) => element("li", {}, message)));
  $("concerns").hidden = !messages.size;
}

function switchSure() {
  keep("sure", $("sure").checked);
  for (const piece of state.pieces) piece.seen = null;
  for (const button of $("output").querySelectorAll("button")) {
    button.className = "";
    button.title = "";
  }
  notice();
  look();
}

// ---------------------------------------------------------------- files
async function upload(event) {
  event.preventDefault();
  const [file] = $("file").files, bar = $("progress"), form = new FormData();
  form.append("source", $("from").value);
  form.append("target", $("to").value);
  form.append("glossary", JSON.stringify(Object.fromEntries(terms())));
  for (const name of untouched().flat()) form.append("do_not_translate", name);
  form.append("file", file);
  bar.hidden = $("stop").hidden = false;
  bar.value = 0;
  $("fetched").textContent = "";
  const progress = (share) => {
    if (share < 1) bar.value = share;
    else bar.removeAttribute("value"); // sent; how long the translation takes nobody knows
  };
  try {
    const found = await send("translate_file", form, { progress, stop: (end) => { $("stop").onclick = end; } });
    const name = new URL(found.translatedFileUrl).pathname.split("/").at(-1);
    $("fetched").replaceChildren(element("a", { href: address(`download_file/${name}`), download: "" }, "Download the translation"));
  } catch (error) {
    $("fetched").textContent = error.message;
  }
  bar.hidden = $("stop").hidden = true;
}

// ---------------------------------------------------------------- languages, address
function nameOf(code) {
  const known = state.languages.find((language) => language.code === code);
  try {
    return known?.name ?? new Intl.DisplayNames(["en"], { type: "language" }).of(code);
  } catch {
    return code; // a name that somebody made up
  }
}

function fillTargets() {
  const before = $("to").value, source = state.languages.find((language) => language.code === $("from").value);
  const codes = source ? source.targets.filter((code) => code !== source.code)
    : [...new Set(state.languages.flatMap((language) => language.targets.filter((code) => code !== language.code)))];
  $("to").replaceChildren(...codes.map((code) => element("option", { value: code }, nameOf(code))));
  if (codes.includes(before)) $("to").value = before;
  $("swap").disabled = !state.languages.some((language) => language.code === $("to").value);
}

function swap() {
  const { source, target } = direction();
  $("from").value = target;
  fillTargets();
  if ([...$("to").options].some((option) => option.value === source)) $("to").value = source;
  $("source").value = said() || $("source").value;
  later();
}

function tooLong() {
  const most = state.settings.charLimit, length = [...$("source").value].length;
  return most && length > most ? `${length - most} characters too many: at most ${most} at a time, or send a file.` : "";
}

function count() {
  const most = state.settings.charLimit, length = [...$("source").value].length;
  $("count").textContent = most ? `${length} / ${most}` : String(length);
  $("count").className = tooLong() ? "error" : "";
}

function remember() {
  const fields = new URLSearchParams({ source: $("from").value, target: $("to").value, q: $("source").value });
  history.replaceState(null, "", `#${fields}`);
}

function recall() {
  const fields = new URLSearchParams(location.hash.slice(1));
  if (!fields.has("q")) {
    if ($("source").value) later(); // typed before the page was ready
    return;
  }
  for (const [list, name] of [["from", "source"], ["to", "target"]]) {
    if ([...$(list).options].some((option) => option.value === fields.get(name))) $(list).value = fields.get(name);
    if (list === "from") fillTargets();
  }
  $("source").value = fields.get("q");
  count();
  translate();
}

async function copy(text, done) {
  try {
    await navigator.clipboard.writeText(text);
    say(done);
  } catch {
    say("This browser lets no page copy here; select and copy it by hand.", true);
  }
}

// ---------------------------------------------------------------- the beginning
function turnTo(view) {
  for (const button of document.querySelectorAll(".view")) {
    if (button.dataset.view === view) button.setAttribute("aria-current", "page");
    else button.removeAttribute("aria-current");
    $(button.dataset.view).hidden = button.dataset.view !== view;
  }
}

async function arrive() {
  try {
    [state.settings, state.languages] = [await ask("frontend/settings"), await ask("languages")];
  } catch (error) {
    return say(error.message, true);
  }
  $("file").accept = (state.settings.supportedFilesFormat ?? []).join(",");
  $("files").hidden = !state.settings.filesTranslation;
  document.querySelector("[data-view=comparing]").hidden = !state.settings.compare;
  $("training").hidden = !state.settings.training;
  const options = state.languages.map(({ code, name }) => element("option", { value: code }, name));
  $("from").replaceChildren(element("option", { value: "auto" }, "Detect the language"), ...options);
  if (state.settings.language) $("from").value = state.settings.language.source.code;
  fillTargets();
  say("");
  count();
  return recall();
}

function begin() {
  terms = editor($("glossary"), "glossary", ["Source term", "Target term"], later);
  untouched = editor($("untouched"), "untouched", ["Name"], later);
  $("sure").checked = kept("sure", true);
  panel.begin({ direction, wishes, rewrite });
  comparing.begin(direction);
  $("source").addEventListener("input", later);
  $("from").addEventListener("change", () => { fillTargets(); later(); });
  $("to").addEventListener("change", () => { fillTargets(); later(); });
  $("swap").addEventListener("click", swap);
  $("sure").addEventListener("change", switchSure);
  $("output").addEventListener("keydown", walk);
  $("copy").addEventListener("click", () => copy(said(), "Copied."));
  $("link").addEventListener("click", () => { remember(); copy(location.href, "The link is copied: it holds languages and text."); });
  $("upload").addEventListener("submit", upload);
  $("skip").addEventListener("click", (event) => { event.preventDefault(); $("source").focus(); });
  addEventListener("hashchange", recall);
  for (const button of document.querySelectorAll(".view")) button.addEventListener("click", () => turnTo(button.dataset.view));
  arrive();
}

begin();
