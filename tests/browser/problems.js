// What a screen reader, a keyboard or a narrow screen would stumble over: a sentence each.
const found = [];
const named = (element) =>
  (element.getAttribute("aria-label") || element.title || element.textContent || element.alt || "").trim() ||
  (element.labels && element.labels.length && element.labels[0].textContent.trim());
const shown = (element) => element.checkVisibility({ visibilityProperty: true });
if (document.documentElement.lang !== "en") found.push("the document has no language");
if (!document.title) found.push("the document has no title");
if (document.querySelectorAll("main").length !== 1) found.push("there is not one main part");
if ([...document.querySelectorAll("h1")].filter(shown).length !== 1) found.push("there is not one main heading");
let level = 1;
for (const heading of [...document.querySelectorAll("h1, h2, h3, h4")].filter(shown)) {
  const own = Number(heading.tagName[1]);
  if (own > level + 1) found.push(`heading '${heading.textContent.trim().slice(0, 40)}' skips a level`);
  level = own;
}
for (const table of document.querySelectorAll("table")) {
  const what = `table '${(table.caption || table).textContent.trim().slice(0, 40)}'`;
  if (!table.caption || !table.caption.textContent.trim()) found.push(`${what} has no caption`);
  if (!table.querySelector("thead th")) found.push(`${what} has no head`);
  for (const cell of table.querySelectorAll("th")) {
    if (!["col", "row"].includes(cell.scope)) found.push(`${what} has a heading without scope`);
    if (!cell.textContent.trim()) found.push(`${what} has an empty heading`);
  }
}
for (const control of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, summary, [tabindex='0']")) {
  if (!named(control)) found.push(`a control has no name: ${control.outerHTML.slice(0, 80)}`);
}
for (const image of document.querySelectorAll("img, svg")) {
  if (!(image.getAttribute("aria-label") || image.alt || image.closest("[aria-hidden=true]"))) found.push(`a picture has no words: ${image.outerHTML.slice(0, 120)}`);
}
const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
if (new Set(ids).size !== ids.length) found.push("an id is there twice");
for (const element of document.querySelectorAll("*")) {
  for (const name of element.getAttributeNames()) {
    if (name.startsWith("on") || name === "style") found.push(`an attribute ${name}: ${element.outerHTML.slice(0, 80)}`);
  }
}
const root = document.documentElement;
if (root.scrollWidth > root.clientWidth) {
  const wide = [...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > root.clientWidth + 1);
  const outermost = wide.find((element) => !element.closest(".scroll") || element.matches(".scroll")) || wide[0];
  found.push(`the page is ${root.scrollWidth} wide, the view ${root.clientWidth}: ${outermost ? outermost.outerHTML.slice(0, 120) : ""}`);
}
return found;
