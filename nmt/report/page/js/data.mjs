// Payloads of the page: deflated JSON in base64.

import { byId } from "./dom.mjs";

/** Text that was deflated and written in base64. */
export async function inflate(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}

export async function unpack(identity) {
  const element = byId(identity);
  return element ? JSON.parse(await inflate(element.textContent)) : null;
}

/** Starts the chart library, which is kept deflated, once. */
let library = null;
export function chartLibrary() {
  library ??= inflate(byId("library").textContent).then((source) => {
    const program = document.createElement("script");
    program.textContent = source;
    document.head.append(program);
    return window.vegaEmbed;
  });
  return library;
}
