// Questions that several parts of the page ask about a sentence: each is sent once, its answer is kept, and it is given
// up when nobody waits for it any more, so that no worker computes what nobody reads.
import { ask } from "./asking.js";

const MOST = 60; // answers that are kept
const known = new Map(); // question → { answer, controller, waiting, done }

// `signal` says when the asker has gone.
export function shared(path, fields, signal) {
  if (signal.aborted) return Promise.reject(new DOMException("nobody waits", "AbortError"));
  const name = JSON.stringify([path, fields]), one = known.get(name) ?? begin(name, path, fields);
  if (one.done) return one.answer;
  one.waiting += 1;
  signal.addEventListener("abort", () => leave(name, one), { once: true });
  return one.answer;
}

function begin(name, path, fields) {
  if (known.size >= MOST) known.delete(known.keys().next().value);
  const controller = new AbortController();
  const one = { controller, waiting: 0, done: false, answer: ask(path, fields, controller.signal) };
  known.set(name, one);
  one.answer.then(() => { one.done = true; }, () => forget(name, one)); // it may be answered the next time
  return one;
}

function leave(name, one) {
  one.waiting -= 1;
  if (one.done || one.waiting) return;
  forget(name, one);
  one.controller.abort();
}

function forget(name, one) {
  if (known.get(name) === one) known.delete(name);
}
