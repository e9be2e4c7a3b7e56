// Saves a drawing of the page as a file: SVG as it is, PNG in twice its size.

import { h } from "./dom.mjs";

// what the page's style gives a drawing, and a file of its own would lack
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "font-family", "font-size", "font-style", "font-weight", "opacity", "paint-order"];
const DENSITY = 2;

/** Buttons that save what `drawing()` returns at that time under `name()`; an error is told beside them. */
export function saveButtons(drawing, name) {
  const status = h("span", { role: "status" });
  const button = (kind, make) => h("button", { type: "button", class: "small", text: `Save ${kind.toUpperCase()}`, onclick: async () => {
    status.textContent = "";
    try {
      const url = URL.createObjectURL(await make(standalone(drawing())));
      h("a", { href: url, download: `${name().replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind}` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    } catch (error) {
      status.textContent = `The picture could not be saved: ${error.message}`;
    }
  } });
  const svgFile = (text) => new Blob([text], { type: "image/svg+xml" });
  return h("div", { class: "actions save" }, button("svg", svgFile), button("png", pngFile), status);
}

const background = () => getComputedStyle(document.body).backgroundColor;

/** The text of a drawing with its colours and fonts written into it, on the page's background. */
function standalone(picture) {
  const copy = picture.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [from, to] = [picture, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  from.forEach((element, n) => {
    const style = getComputedStyle(element);
    to[n].setAttribute("style", STYLES.map((key) => `${key}:${style.getPropertyValue(key)}`).join(";"));
    to[n].removeAttribute("class");
  });
  copy.style.background = background();
  return new XMLSerializer().serializeToString(copy);
}

async function pngFile(text) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = h("canvas", { width: DENSITY * image.naturalWidth, height: DENSITY * image.naturalHeight });
  const context = canvas.getContext("2d");
  context.fillStyle = background();
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
}
