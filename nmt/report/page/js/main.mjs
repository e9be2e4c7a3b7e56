// Starts the page: theme, what is said of runs, then what is kept of sentences.

import { byId } from "./dom.mjs";
import { unpack } from "./data.mjs";
import { startExplorer } from "./explorer.mjs";
import { startLive } from "./live/panel.mjs";
import { startOverview } from "./overview.mjs";
import { startTheme } from "./theme.mjs";
import { startTranslations } from "./translations.mjs";

/** Keeps the section that the address names where it is read, as what stands above it is drawn. */
function holdNamedSection() {
  const section = location.hash && byId(location.hash.slice(1));
  if (!section) return;
  const hold = new ResizeObserver(() => section.scrollIntoView());
  hold.observe(document.body);
  for (const act of ["wheel", "touchstart", "pointerdown", "keydown"]) addEventListener(act, () => hold.disconnect(), { once: true });
}

async function start() {
  holdNamedSection();
  const data = await unpack("data");
  const overview = data.overview ? startOverview(data.overview) : null;
  let live = null;
  startTheme(() => {
    overview?.redraw();
    live?.redraw();
  });
  const drawn = overview?.changed();
  const explore = startExplorer(data.alignments);
  if (overview && data.translations) startTranslations(data.translations, overview, explore);
  await drawn;
  document.documentElement.dataset.ready = "true";
  live = await startLive(data.live);
}

start();
