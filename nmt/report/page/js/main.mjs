// Starts the page: colours, charts and tables of runs, then sentences, then the models.

import { byId, h } from "./dom.mjs";
import { unpack } from "./data.mjs";
import { startExplorer } from "./explorer.mjs";
import { startLive } from "./live/panel.mjs";
import { startOverview } from "./overview.mjs";
import { startTranslations } from "./translations.mjs";

/** Keeps the section of the address in view while the sections above it are drawn. */
function holdNamedSection() {
  const name = location.hash.startsWith("#live=") ? "live-section" : location.hash.slice(1);
  const section = name && byId(name);
  if (!section) return;
  const hold = new ResizeObserver(() => section.scrollIntoView());
  hold.observe(document.body);
  for (const act of ["wheel", "touchstart", "pointerdown", "keydown"])
    addEventListener(act, () => hold.disconnect(), { once: true });
}

/** Sets light or dark colours: the system's setting, or the user's choice. */
function startTheme(redraw) {
  const choice = byId("theme");
  choice.addEventListener("change", () => {
    document.documentElement.dataset.theme = choice.value; // "auto" has no style of its own
    redraw();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

async function start() {
  holdNamedSection();
  const data = JSON.parse(await unpack("data"));
  const overview = startOverview(data.overview);
  let live = null;
  startTheme(() => {
    overview.redraw();
    live?.redraw();
  });
  const drawn = overview.changed();
  const explore = startExplorer(data.alignments);
  startTranslations(data.translations, overview, explore);
  await drawn;
  document.documentElement.dataset.ready = "true";
  if (!data.live) return;
  try {
    live = await startLive(data.live);
  } catch (error) {
    byId("live-section").append(h("p", { text: `The models could not be started: ${error.message}` }));
  }
}

start();
