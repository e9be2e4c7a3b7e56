// Starts the page: theme, what is said of runs, then what is kept of sentences.

import { byId } from "./dom.mjs";
import { unpack } from "./data.mjs";
import { startExplorer } from "./explorer.mjs";
import { startFalls } from "./falls.mjs";
import { startLive } from "./live/panel.mjs";
import { startOverview } from "./overview.mjs";
import { startTranslations } from "./translations.mjs";

function startTheme(redraw) {
  const choice = byId("theme");
  const apply = () => {
    if (choice.value === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = choice.value;
    redraw();
  };
  choice.addEventListener("change", apply);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

async function start() {
  const data = await unpack("overview");
  const overview = data ? startOverview(data) : null;
  let live = null;
  const found = await unpack("falls");
  const falls = overview && found ? startFalls(found, data, overview) : null;
  startTheme(() => {
    overview?.redraw();
    falls?.redraw();
    live?.redraw();
  });
  const drawn = overview?.changed();
  const alignments = await unpack("alignments");
  const explore = startExplorer(alignments);
  const translations = await unpack("translations");
  if (overview && translations) startTranslations(translations, overview, explore);
  await drawn;
  document.documentElement.dataset.ready = "true";
  live = await startLive(await unpack("live"));
}

start();
