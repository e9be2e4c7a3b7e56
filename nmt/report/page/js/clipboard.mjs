// Copies the text of a field, also where a page may not use the clipboard by itself.

export async function copyField(field, status) {
  let copied = true;
  try {
    await navigator.clipboard.writeText(field.value);
  } catch {
    field.focus();
    field.select();
    copied = document.execCommand("copy");
  }
  status.textContent = copied ? "Copied." : "Copy the selected text.";
}
