// What a model writes for the same few sentences, validation after validation; looks as regard/explaining/samples.py's.
import { $, element } from "./dom.js";

// Each output and the step from which on it was written.
function changes(moments, place) {
  const found = [];
  for (const { step, samples } of moments) {
    const output = samples[place]?.output ?? "";
    if (found.at(-1)?.output !== output) found.push({ step, output });
  }
  return found;
}

function line(name, text, attributes = {}) {
  return [element("dt", {}, name), element("dd", { dir: "auto", ...attributes }, text || "–")];
}

function steps(number) {
  return `step ${number.toLocaleString("en")}`;
}

function card(moments, place, open) {
  const { step, samples } = moments.at(-1), { source, output, reference } = samples[place];
  const list = element("dl", {}, ...line("source", source), ...line(steps(step), output, { class: "now" }), ...line("reference", reference));
  const before = changes(moments, place).slice(0, -1);
  const earlier = element("details", { open }, element("summary", {}, "earlier"),
    element("dl", {}, ...before.flatMap((one) => line(steps(one.step), one.output))));
  return element("article", { class: "sample" }, list, ...(before.length ? [earlier] : []));
}

// All of them again: there are few, and they come minutes apart. What somebody opened stays open.
export function show(validations) {
  const moments = validations.filter((one) => one.samples?.length);
  $("samples").hidden = !moments.length;
  if (!moments.length) return;
  const open = [...$("cards").children].map((one) => Boolean(one.querySelector("details")?.open));
  $("cards").replaceChildren(...moments.at(-1).samples.map((_, place) => card(moments, place, open[place])));
}
