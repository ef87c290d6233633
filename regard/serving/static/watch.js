// A run directory as it grows: events are fetched from where the last answer ended, and everything is drawn from them.
import { ask } from "./asking.js";
import { Chart, number } from "./chart.js";
import { $, element } from "./dom.js";
import * as film from "./film.js";
import * as samples from "./samples.js";

const EVERY = 1000; // milliseconds between two questions
const SILENT = 300; // seconds without an event after which a run may be gone
const SMOOTH = 9; // steps over which the speed is averaged: single ones differ too much to read
const charts = new Map(); // title → chart
const log = tailOf("events"), reel = tailOf("film");
let told = null; // what /run said
let run = empty();

function empty() {
  return { started: null, steps: [], validations: [], skipped: 0, stopped: null, finished: null };
}

// ---------------------------------------------------------------- files that grow
// `fetch(take, restart)`: every line goes to `take`; `restart` is called when the file is another than before.
function tailOf(path) {
  const place = { story: "", from: 0, damaged: 0 };
  return {
    place,
    async fetch(take, restart) {
      for (let any = false; ;) {
        const found = await ask(`${path}?${new URLSearchParams({ story: place.story, from: place.from })}`);
        if (found.restarted) {
          restart();
          place.damaged = 0;
        }
        Object.assign(place, { story: found.story, from: found.next, quiet: found.quiet, damaged: place.damaged + found.damaged });
        found.lines.forEach(take);
        any ||= found.restarted || found.lines.length > 0 || found.damaged > 0;
        if (!found.more) return any;
      }
    },
  };
}

function take(event) {
  if (event.event === "Started") Object.assign(run, { started: event, stopped: null, finished: null });
  else if (event.event === "Stepped") run.steps.push(event);
  else if (event.event === "Validated") run.validations.push(event);
  else if (event.event === "Skipped") run.skipped += 1;
  else if (event.event === "Stopped") run.stopped = event;
  else if (event.event === "Finished") run.finished = event;
}

// ---------------------------------------------------------------- in words
// 5025 → "1h23m", 125 → "2m05s", 9 → "9s".
export function duration(seconds) {
  const whole = Math.round(seconds), minutes = Math.floor(whole / 60), two = (value) => String(value).padStart(2, "0");
  if (minutes >= 60) return `${Math.floor(minutes / 60)}h${two(minutes % 60)}m`;
  return minutes ? `${minutes}m${two(whole % 60)}s` : `${whole}s`;
}

function state() {
  if (run.finished) return `finished: ${run.finished.steps.toLocaleString("en")} steps in ${duration(run.finished.seconds)}`;
  if (run.stopped?.reason === "interrupted") return `interrupted at step ${run.stopped.step.toLocaleString("en")}: regard train --resume goes on`;
  if (run.stopped) return run.stopped.reason === "early" ? "stopped early: validation no longer improves" : "training is done; scoring";
  if (!run.started) return "waiting for the first event";
  if (log.place.quiet > SILENT) return `no news for ${duration(log.place.quiet)}: perhaps it was ended`;
  return run.steps.length ? "learning" : "about to begin";
}

function left() {
  const last = run.steps.at(-1), parts = [];
  if (!last || run.finished) return "";
  parts.push(`step ${last.step.toLocaleString("en")}`, `epoch ${last.epoch + 1}`, `${Math.floor(100 * Math.min(last.progress, 1))} %`);
  parts.push(`${duration(last.seconds)} so far`);
  if (Number.isFinite(last.seconds_left) && !run.stopped) parts.push(`${duration(last.seconds_left)} left`);
  if (run.skipped) parts.push(`${run.skipped} steps skipped`);
  return parts.join(" · ");
}

// ---------------------------------------------------------------- figures and curves
function tiles() {
  const found = [], step = run.steps.at(-1), scores = (run.finished ?? run.validations.at(-1))?.scores ?? {};
  const add = (value, name, note = "") => {
    if (!Number.isFinite(value)) return;
    found.push(element("div", { class: "tile" }, element("b", {}, number(value)), element("span", {}, name), ...(note ? [element("code", {}, note)] : [])));
  };
  if (told?.figures) {
    for (const [name, value] of Object.entries(told.figures)) add(value?.score ?? value, spoken(name), value?.signature ?? "");
  } else {
    for (const [name, value] of Object.entries(scores)) add(value, `validation ${spoken(name)}`);
  }
  if (step && !run.finished) {
    add(step.loss, "training loss");
    add(speeds().at(-1).y, "tokens per second");
  }
  add(run.started?.parameters, "parameters");
  $("figures").replaceChildren(...found);
}

function spoken(name) {
  return name.replaceAll("_", " ");
}

function point(event, name, value) {
  return { x: event.step, y: value, note: `step ${event.step.toLocaleString("en")} · ${duration(event.seconds)} · ${name} ${number(value)}` };
}

function line(name, events, valueOf) {
  const found = events.map((event) => [event, valueOf(event)]).filter(([, value]) => Number.isFinite(value));
  return { name, points: found.map(([event, value]) => point(event, name, value)) };
}

function speeds() {
  return run.steps.map((event, i) => {
    const near = run.steps.slice(Math.max(0, i - SMOOTH + 1), i + 1);
    const units = near.reduce((sum, one) => sum + one.units, 0);
    return point(event, "tokens per second", units / near.reduce((sum, one) => sum + one.units / one.units_per_second, 0));
  });
}

function curves() {
  const names = [...new Set(run.validations.flatMap((one) => Object.keys(one.scores)))].filter((name) => name !== "loss");
  draw("loss", [line("training", run.steps, (one) => one.loss), line("validation", run.validations, (one) => one.scores.loss)]);
  for (const name of names) draw(`validation ${spoken(name)}`, [line(spoken(name), run.validations, (one) => one.scores[name])]);
  draw("tokens per second", [{ name: "tokens per second", points: speeds() }]);
  draw("learning rate", [line("learning rate", run.steps, (one) => one.learning_rate)]);
  $("learning").hidden = !run.steps.length && !run.validations.length;
}

function draw(title, series) {
  if (!charts.has(title)) {
    charts.set(title, new Chart(title, "step"));
    $("charts").append(charts.get(title).element);
  }
  charts.get(title).draw(series);
}

// ---------------------------------------------------------------- again and again
function show() {
  $("state").textContent = state();
  $("state").className = run.stopped?.reason === "interrupted" ? "bad" : "";
  $("progress").value = run.finished ? 1 : Math.min(run.steps.at(-1)?.progress ?? 0, 1);
  $("progress").hidden = Boolean(run.finished);
  $("left").textContent = left();
  const damaged = log.place.damaged + reel.place.damaged;
  $("damaged").hidden = !damaged;
  $("damaged").textContent = `${damaged} ${damaged === 1 ? "line" : "lines"} could not be read`;
}

async function recipe() {
  told = await ask("run");
  document.title = `${told.name}: training`;
  $("name").textContent = told.name;
  $("recipe").hidden = told.recipe === null;
  $("recipe").querySelector("pre").textContent = told.recipe ?? "";
  $("report").hidden = !told.report;
  $("service").hidden = !told.service;
}

async function poll() {
  try {
    let fresh = await log.fetch(take, () => { run = empty(); });
    if (!told || (run.finished && !told.finished)) { // its figures come a while after its last step
      await recipe();
      fresh = true;
    }
    if (fresh) {
      tiles();
      curves();
      samples.show(run.validations);
    }
    if (await reel.fetch(film.add, film.clear)) film.show();
    show();
  } catch (error) {
    $("state").textContent = error.message;
    $("state").className = "bad";
  }
  setTimeout(poll, document.hidden ? 4 * EVERY : EVERY);
}

film.begin();
poll();
