// Saves a drawing of the page as a file: SVG as it is, PNG in twice its size.

import { h } from "./dom.mjs";

// what the page's style gives a drawing, and a file of its own would lack
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "font-family", "font-size", "font-style", "font-weight", "opacity", "paint-order"];
const DENSITY = 2;

/** Buttons that save what `drawing()` returns at that time under `name()`; what cannot be saved is said in their place. */
export function saveButtons(drawing, name) {
  const said = h("span", { role: "status" });
  const save = (kind, make) => async () => {
    said.textContent = "";
    try {
      download(await make(drawing()), `${name().replace(/[^\p{L}\p{N}]+/gu, "-")}.${kind}`);
    } catch (error) {
      said.textContent = `The picture could not be saved: ${error.message}`;
    }
  };
  const button = (kind, make) => h("button", { type: "button", class: "small", text: `Save ${kind.toUpperCase()}`, onclick: save(kind, make) });
  return h("div", { class: "actions save" }, button("svg", (picture) => svgFile(picture)), button("png", pngFile), said);
}

/** The drawing with its colours and fonts written into it, on the page's background. */
export function standalone(picture) {
  const copy = picture.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [from, to] = [picture, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  from.forEach((element, n) => {
    const style = getComputedStyle(element);
    to[n].setAttribute("style", STYLES.map((key) => `${key}:${style.getPropertyValue(key)}`).join(";"));
    to[n].removeAttribute("class");
  });
  copy.style.background = getComputedStyle(document.body).backgroundColor;
  return new XMLSerializer().serializeToString(copy);
}

const svgFile = (picture) => new Blob([standalone(picture)], { type: "image/svg+xml" });

async function pngFile(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(picture))}`;
  await image.decode();
  const canvas = h("canvas", { width: DENSITY * image.naturalWidth, height: DENSITY * image.naturalHeight });
  const context = canvas.getContext("2d");
  context.fillStyle = getComputedStyle(document.body).backgroundColor;
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  const file = await new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
  if (file === null) throw new Error("the browser gave no picture");
  return file;
}

function download(file, name) {
  const url = URL.createObjectURL(file);
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
