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

  // What a mark says
  const tip = document.getElementById("tip");
  let shown = null;
  const element = (text, name) => {
    const span = document.createElement("span");
    span.textContent = text;
    span.className = name;
    return span;
  };
  const fill = (text) => {
    tip.replaceChildren();
    for (const line of text.split("\n")) {
      const [name, value] = line.split("\t");
      if (value === undefined) tip.append(element(name, "head"));
      else tip.append(element(name, "name"), element(value, "value"));
    }
  };
  const place = (x, y) => {
    const box = tip.getBoundingClientRect(), gap = 14;
    const left = x + gap + box.width > innerWidth ? x - gap - box.width : x + gap;
    const top = y + gap + box.height > innerHeight ? y - gap - box.height : y + gap;
    tip.style.left = `${Math.min(Math.max(8, left), Math.max(8, innerWidth - box.width - 8))}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };
  const show = (hit, x, y) => {
    if (shown !== hit) {
      if (shown) shown.classList.remove("shown");
      shown = hit;
      hit.classList.add("shown");
      fill(hit.dataset.tip);
      tip.hidden = false;
    }
    place(x, y);
  };
  const showAt = (hit) => {
    const box = hit.getBoundingClientRect();
    show(hit, box.left + box.width / 2, box.top + box.height / 2);
  };
  const hide = () => {
    if (shown) shown.classList.remove("shown");
    shown = null;
    tip.hidden = true;
  };
  for (const hit of all(".hit, td[title]")) { // titles do without this program; they would be shown a second time
    const title = hit.querySelector("title");
    hit.dataset.tip = title ? title.textContent : hit.title;
    if (title) title.remove();
    hit.removeAttribute("title");
    if (hit.matches(".hit")) hit.setAttribute("aria-label", hit.dataset.tip.replaceAll("\n", "; ").replaceAll("\t", " "));
    hit.addEventListener("pointermove", (event) => show(hit, event.clientX, event.clientY));
    hit.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse" && shown === hit) hide(); });
    hit.addEventListener("focus", () => showAt(hit));
    hit.addEventListener("blur", hide);
  }
  addEventListener("scroll", () => {
    if (shown && document.activeElement === shown) showAt(shown);
    else hide();
  }, { passive: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const hit = document.activeElement;
    if (!step || !hit || !hit.matches(".hit")) return;
    const group = hit.closest(".stacks, svg");
    const hits = all(".hit", group);
    const next = hits[(hits.indexOf(hit) + step + hits.length) % hits.length];
    hit.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
    event.preventDefault();
  });

  // Methods that are set off
  const chosen = new Set();
  for (const button of all(".legend button")) {
    button.addEventListener("click", () => {
      const key = button.dataset.series;
      if (!chosen.delete(key)) chosen.add(key);
      for (const other of all(".legend button")) other.setAttribute("aria-pressed", chosen.has(other.dataset.series));
      for (const figure of all("section")) {
        const series = all(".series", figure);
        const some = series.some((one) => chosen.has(one.dataset.series));
        for (const one of series) one.classList.toggle("faded", some && !chosen.has(one.dataset.series));
      }
    });
  }

  // The table
  const details = document.getElementById("details");
  if (details) details.addEventListener("change", () => document.querySelector(".results").classList.toggle("detailed", details.checked));
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
      document.getElementById("sorted").textContent = `Sorted by ${head.textContent.trim()}, ${order}.`;
    }));
  }

  // The causes of one task
  const choice = document.getElementById("task");
  if (choice) choice.addEventListener("change", () => {
    for (const stacks of all(".stacks")) stacks.hidden = stacks.dataset.task !== choice.value;
  });
})();
