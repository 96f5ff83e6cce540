"use strict";
// The page can be read without this: here are the keys, the search, and one trace shown at a time.
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const articles = all("article");
  const links = new Map(all("nav li a").map((link) => [link.hash.slice(1), link]));
  const search = one("#search"), bad = one("#bad"), status = one("#status"), help = one("#help");
  const initialStatus = status.textContent;
  const highlights = window.CSS && CSS.highlights;
  const texts = new Map(); // article -> its text in small letters, made at the first search
  const MOST = 2000; // places that are highlighted in one trace
  let current = null, places = [], place = -1, unfolded = []; // unfolded by the search, and folded again after it

  document.documentElement.classList.add("script");
  for (const article of articles) article.hidden = "until-found"; // the browser's own search still finds them
  addEventListener("beforematch", (event) => select(event.target.closest("article")));

  function select(article, { top = true } = {}) {
    if (!article) return;
    if (article !== current) {
      if (current) { current.hidden = "until-found"; links.get(current.id).removeAttribute("aria-current"); }
      current = article;
      article.hidden = false;
      const link = links.get(article.id);
      link.setAttribute("aria-current", "true");
      link.scrollIntoView({ block: "nearest" });
      highlight();
    }
    if (top) scrollTo(0, 0);
  }

  // Show what a link leads to, wherever it is folded away.
  function reveal(id) {
    const target = id && document.getElementById(id);
    const article = target && target.closest("article");
    if (!article) return false;
    select(article, { top: target === article });
    if (target === article) return true;
    for (let step = target.closest("details"); step; step = step.parentElement.closest("details")) step.open = true;
    target.scrollIntoView({ block: "center" });
    if (target.matches("details")) one("summary", target).focus({ preventScroll: true });
    return true;
  }

  const listed = () => articles.filter((article) => !links.get(article.id).parentElement.hidden);

  function move(items, from, by) {
    return items[Math.min(Math.max(from + by, 0), items.length - 1)];
  }

  function go(by) {
    const items = listed(), at = items.indexOf(current);
    const next = at < 0 ? items[0] : move(items, at, by);
    if (!next) return;
    select(next);
    history.replaceState(null, "", "#" + next.id);
  }

  const steps = () => (current ? all("details.step", current) : []);

  // The step that has the focus, else the first that is in sight.
  function stepHere() {
    const focused = document.activeElement && document.activeElement.closest("details.step");
    return focused || steps().find((step) => step.getBoundingClientRect().bottom > 0);
  }

  function goStep(by) {
    const items = steps(), focused = document.activeElement && document.activeElement.closest("details.step");
    const next = focused && items.includes(focused) ? move(items, items.indexOf(focused), by) : by > 0 ? items[0] : items.at(-1);
    if (!next) return;
    one("summary", next).focus({ preventScroll: true });
    next.scrollIntoView({ block: "start" });
  }

  function fold(step) {
    if (!step) return;
    step.open = !step.open;
    one("summary", step).focus();
  }

  function foldAll() {
    const open = !steps().some((step) => step.open);
    for (const step of steps()) step.open = open;
  }

  function words() {
    return search.value.toLowerCase();
  }

  function filter() {
    const query = words(), onlyBad = bad && bad.getAttribute("aria-pressed") === "true";
    for (const article of articles) {
      if (query && !texts.has(article)) texts.set(article, article.textContent.toLowerCase());
      const link = links.get(article.id);
      const found = !query || texts.get(article).includes(query) || link.textContent.toLowerCase().includes(query);
      link.parentElement.hidden = !found || (onlyBad && !one(".sign.bad", link));
    }
    const items = listed();
    status.textContent = query || onlyBad ? `${items.length} of ${articles.length}` : initialStatus;
    if (!items.includes(current) && items.length) select(items[0]);
    highlight();
  }

  function highlight() {
    places = [], place = -1;
    for (const step of unfolded) step.open = false;
    unfolded = [];
    if (!highlights) return;
    highlights.delete("found");
    highlights.delete("here");
    const query = words();
    if (!query || !current) return;
    const walker = document.createTreeWalker(current, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node && places.length < MOST; node = walker.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue; // a letter that has no single small one: places would be off
      for (let at = text.indexOf(query); at >= 0 && places.length < MOST; at = text.indexOf(query, at + query.length)) {
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + query.length);
        places.push(range);
      }
    }
    for (const range of places) {
      const step = range.startContainer.parentElement.closest("details:not([open])");
      if (!step || range.startContainer.parentElement.closest("summary")) continue;
      step.open = true;
      unfolded.push(step);
    }
    highlights.set("found", new Highlight(...places));
  }

  function nextPlace() {
    place += 1;
    if (place >= places.length) {
      const items = listed();
      if (!items.length) return;
      select(items[(items.indexOf(current) + 1) % items.length]);
      if (!places.length) return;
      place = 0;
    }
    highlights.set("here", new Highlight(places[place]));
    places[place].startContainer.parentElement.scrollIntoView({ block: "center" });
  }

  function toggleBad() {
    if (!bad) return;
    bad.setAttribute("aria-pressed", bad.getAttribute("aria-pressed") !== "true");
    filter();
  }

  const keys = {
    j: () => go(1), k: () => go(-1),
    n: () => goStep(1), J: () => goStep(1), p: () => goStep(-1), K: () => goStep(-1),
    o: () => fold(stepHere()), O: foldAll, f: toggleBad,
    "/": () => { search.focus(); search.select(); },
    "?": () => help.showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target === search) {
      if (event.key === "Enter") nextPlace();
      if (event.key === "Escape") { search.value = ""; filter(); search.blur(); }
      return;
    }
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  search.addEventListener("input", filter);
  if (bad) bad.addEventListener("click", toggleBad);
  one("#help-button").addEventListener("click", keys["?"]);
  addEventListener("hashchange", () => reveal(location.hash.slice(1)));
  addEventListener("beforeprint", () => { for (const article of articles) article.hidden = false; });
  addEventListener("afterprint", () => { for (const article of articles) if (article !== current) article.hidden = "until-found"; });
  if (!reveal(location.hash.slice(1))) select(articles[0]);
})();
