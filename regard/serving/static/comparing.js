// Two models, blind: what they say of one text, and which of the two a person prefers.
import { ask } from "./asking.js";
import { $ } from "./dom.js";

let token = null;

function say(text, wrong = false) {
  $("compare-state").textContent = text;
  $("compare-state").className = wrong ? "error" : "soft";
}

function show(outputs, language) {
  ["output-a", "output-b"].forEach((id, i) => {
    $(id).textContent = outputs[i] ?? "";
    $(id).lang = language;
  });
  $("outputs").hidden = $("verdict").hidden = !outputs.length;
}

// `direction()` says which languages are chosen: { source, target }.
export function begin(direction) {
  $("compare").addEventListener("submit", async (event) => {
    event.preventDefault();
    const chosen = direction();
    if (!chosen.source) return say("Choose the language of the text first.", true);
    show([], "");
    say("Both are translating …");
    try {
      const found = await ask("compare", { q: $("compared").value, ...chosen });
      token = found.token;
      show(found.outputs, chosen.target);
      say("");
      $("verdict").querySelector("button").focus();
    } catch (error) {
      say(error.message, true);
    }
  });

  $("verdict").addEventListener("click", async (event) => {
    const better = event.target.dataset.better;
    if (better === undefined) return;
    try {
      await ask("prefer", { token, better: better === "none" ? null : Number(better) });
      show([], "");
      say("Noted. Thank you.");
      $("compared").focus();
      $("compared").select();
    } catch (error) {
      say(error.message, true);
    }
  });
}
