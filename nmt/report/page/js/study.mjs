// The page of a study: text and tables, without data of its own.

import { sortable } from "./tables.mjs";
import { startTheme } from "./theme.mjs";

for (const table of document.querySelectorAll("table.sortable")) sortable(table);
startTheme(() => {});
document.documentElement.dataset.ready = "true";
