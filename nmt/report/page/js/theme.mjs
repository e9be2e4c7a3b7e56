// Light or dark colours: as the system, or as chosen.

import { byId } from "./dom.mjs";

export function startTheme(redraw) {
  const choice = byId("theme");
  const apply = () => {
    if (choice.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice.value;
    redraw();
  };
  choice.addEventListener("change", apply);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}
