// Payloads of the page: deflated JSON in base64.

import { inflate } from "./bytes.mjs";
import { byId } from "./dom.mjs";

export async function unpack(identity) {
  return JSON.parse(await inflate(byId(identity).textContent));
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
