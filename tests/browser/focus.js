// Where the focus is: [its place in the document, its words, whether a person sees that it is there].
const element = document.activeElement;
const every = [...document.querySelectorAll("*")];
const style = getComputedStyle(element);
const box = element.getBoundingClientRect();
const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1;
const inside = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.left < innerWidth && box.right > 0;
const words = (element.getAttribute("aria-label") || element.textContent || element.name || "").trim();
return [every.indexOf(element), `${element.tagName.toLowerCase()} ${words.slice(0, 40)}`, outlined && inside];
