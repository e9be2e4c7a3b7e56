// The panel alone on the whole screen, in larger letters: for a classroom.

/** Has a button put `panel` on the screen and take it off again; it stays hidden where the browser allows no full screen. */
export function startPresenting(panel, button) {
  button.hidden = !document.fullscreenEnabled;
  button.addEventListener("click", () => {
    if (document.fullscreenElement === panel) document.exitFullscreen();
    else panel.requestFullscreen().catch(() => { button.hidden = true; }); // an embedding page may forbid it
  });
  document.addEventListener("fullscreenchange", () => {
    button.setAttribute("aria-pressed", String(document.fullscreenElement === panel));
  });
}
