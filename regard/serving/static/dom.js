// Elements from plain data: a text stays a text, whatever is in it.

export const $ = (id) => document.getElementById(id);

// Attributes that are null, undefined or false are left out; children are elements or texts.
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

export function drawn(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

// ---------------------------------------------------------------- what this browser remembers
export function kept(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`regard.${name}`)) ?? otherwise;
  } catch {
    return otherwise; // no place to keep anything, or something else wrote there
  }
}

export function keep(name, value) {
  try { localStorage.setItem(`regard.${name}`, JSON.stringify(value)); } catch { /* it holds for this page alone */ }
}
