"use strict";

// Light or dark, before anything is drawn: what was chosen here once, else what the system says.
{
  const system = matchMedia("(prefers-color-scheme: dark)");
  const kept = () => {
    try { return localStorage.getItem("regard.theme"); } catch { return null; /* no place to keep it */ }
  };
  const show = () => { document.documentElement.dataset.theme = kept() || (system.matches ? "dark" : "light"); };
  show();
  system.addEventListener("change", show);
  document.addEventListener("click", (event) => {
    if (!event.target.closest("#theme")) return;
    const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("regard.theme", next); } catch { /* it holds for this page alone */ }
    document.documentElement.dataset.theme = next;
  });
}
