// Links to the current view, with its settings after the # of the address. A field shows the link.

import { byId } from "./dom.mjs";

/** The settings that an address names. */
export const readLink = (hash) => Object.fromEntries(new URLSearchParams(hash.replace(/^#/, "")));

export const writeLink = (settings) => `#${new URLSearchParams(settings)}`;

/** The field `<prefix>-link` with its button: returns a function that shows the link to some settings. */
export function shareField(prefix) {
  const [field, copy, status] = ["link", "copy", "copied"].map((name) => byId(`${prefix}-${name}`));
  copy.addEventListener("click", async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      // the browser denies access to the clipboard
      field.select();
      copied = document.execCommand("copy");
    }
    status.textContent = copied ? "Copied." : "Copy the selected text.";
  });
  return (settings) => {
    field.value = location.href.split("#")[0] + writeLink(settings);
    status.textContent = "";
  };
}
