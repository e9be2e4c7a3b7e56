// Unpacks the deflated base64 contents of a page: data as JSON, the chart library, the models and their
// program.

export async function inflateBytes(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The unpacked text of the page's element with this id. */
export const unpack = async (identity) =>
  new TextDecoder().decode(await inflateBytes(document.getElementById(identity).textContent));

/** Starts the chart library at the first call; returns a promise of its function `vegaEmbed`. */
let library = null;
export function chartLibrary() {
  library ??= unpack("library").then((source) => {
    const program = document.createElement("script");
    program.textContent = source;
    document.head.append(program);
    return window.vegaEmbed;
  });
  return library;
}
