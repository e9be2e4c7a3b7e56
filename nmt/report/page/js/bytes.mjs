// What a page keeps deflated and in base64.

/** The bytes that were deflated and written in base64. */
export async function inflateBytes(base64) {
  const bytes = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Text that was deflated and written in base64. */
export async function inflate(base64) {
  return new TextDecoder().decode(await inflateBytes(base64));
}
