// What pages can do beyond plain HTML: sort and filter the tables, copy commands. They are complete without it.
(() => {
  "use strict";
  const kept = {
    get(name) { try { return sessionStorage.getItem("dmslake-" + name); } catch { return null; } },
    set(name, value) { try { sessionStorage.setItem("dmslake-" + name, value); } catch { /* a page of a file may have none */ } },
  };

  // In the place of the document's own refresh, which would take from a person what they are at.
  const seconds = Number(document.body.dataset.refresh);
  if (seconds) {
    const opened = [...document.querySelectorAll("details")].map((part) => [part, part.open]);
    const fields = [...document.querySelectorAll("form input:not([type=hidden])")];
    const isBusy = () => document.hidden || !getSelection().isCollapsed || document.querySelector(":focus-visible")
      || fields.some((field) => field.value !== field.defaultValue) || opened.some(([part, open]) => part.open !== open);
    setInterval(() => { if (!isBusy()) location.reload(); }, seconds * 1000);
  }

  const table = document.querySelector("table.tables");
  if (table) {
    const parts = [...table.tBodies]; // of each table one: its row, and why it stands so
    const words = document.getElementById("words"), shown = document.getElementById("shown");
    for (const part of document.querySelectorAll(".with-script")) part.hidden = false;

    const filter = () => {
      const wanted = words.value.trim().toLowerCase();
      const only = document.querySelector("input[name=only]:checked").value;
      let count = 0;
      for (const part of parts) {
        const isMeant = part.textContent.toLowerCase().includes(wanted);
        for (const row of part.rows) row.hidden = !isMeant;
        count += isMeant && (!only || part.dataset.state === only);
      }
      shown.textContent = wanted ? count + " shown" : "";
      kept.set("words", words.value);
      kept.set("only", only);
    };
    const sort = (head, downwards) => {
      const place = head.cellIndex, sign = downwards ? -1 : 1;
      const value = head.dataset.sort === "number"
        ? (part) => Number(part.rows[0].cells[place].dataset.value)
        : (part) => part.rows[0].cells[place].dataset.value.toLowerCase();
      const order = (a, b) => (value(a) < value(b) ? -sign : value(a) > value(b) ? sign : 0);
      for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", downwards ? "descending" : "ascending");
      table.append(...[...parts].sort(order));
      kept.set("sort", place + (downwards ? "-" : "+"));
    };
    for (const head of table.querySelectorAll("th[data-sort]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      // Numbers are wanted largest first; the state has the order of who needs a person.
      const first = head.dataset.sort === "number" && head.cellIndex !== 1;
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(head, now ? now === "ascending" : first);
      });
    }
    words.addEventListener("input", filter);
    for (const radio of document.querySelectorAll("input[name=only]")) radio.addEventListener("change", filter);
    words.value = kept.get("words") || "";
    const only = document.getElementById("only-" + (kept.get("only") || "all"));
    if (only) only.checked = true;
    const sorted = /^(\d+)([+-])$/.exec(kept.get("sort") || "");
    const head = sorted && table.tHead.rows[0].cells[Number(sorted[1])];
    if (head && head.dataset.sort) sort(head, sorted[2] === "-");
    filter();
  }

  if (navigator.clipboard) {
    for (const code of document.querySelectorAll("code.command")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(code.dataset.copy);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Not copied";
        }
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      code.after(button);
    }
  }
})();
