"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Light or dark: at first as the reader's system has it
  const theme = document.getElementById("theme");
  const darkRules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
    .filter((rule) => rule instanceof CSSMediaRule && rule.media.mediaText.includes("prefers-color-scheme"));
  let dark = matchMedia("(prefers-color-scheme: dark)").matches;
  theme.addEventListener("click", () => {
    dark = !dark;
    for (const rule of darkRules) rule.media.mediaText = dark ? "screen" : "not all";
  });

  // The table
  for (const table of all("table[data-sortable]")) {
    const heads = all("thead th", table), body = table.tBodies[0];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const usual = column === 0 ? "ascending" : "descending", other = column === 0 ? "descending" : "ascending";
      const order = head.getAttribute("aria-sort") === usual ? other : usual;
      for (const each of heads) each.setAttribute("aria-sort", each === head ? order : "none");
      const value = (row) => row.cells[column].dataset.value;
      const sorted = [...body.rows].sort((a, b) => {
        const x = value(a), y = value(b);
        if (x === "" || y === "") return (x === "") - (y === "");
        return order === "ascending" ? x - y : y - x;
      });
      body.append(...sorted);
    }));
  }

  // The causes of one task
  const choice = document.getElementById("task");
  if (choice) choice.addEventListener("change", () => {
    for (const stacks of all(".stacks")) stacks.hidden = stacks.dataset.task !== choice.value;
  });
})();
