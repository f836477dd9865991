// The parts of a page that say what happens in an episode, for films and for episodes that still run: a strip of its
// actions, a list of what is new at which step, and the rules, goals and facts of the step that is looked at.
const Viewer = (() => {
  "use strict";

  const COLOURS = 8; // of action schemas; more than so many begin again
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  // An element with a class, and texts or elements in it. Texts are never taken for HTML.
  function make(tag, className, ...content) {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...content.filter((one) => one !== null && one !== undefined));
    return element;
  }

  // Arrow keys move between the items of a group, of which only one is a tab stop. Items may be added later.
  function rove(group, itemsOf, act) {
    group.addEventListener("keydown", (event) => {
      const items = itemsOf();
      const place = items.indexOf(event.target);
      const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      const there =
        event.key === "Home" ? 0 : event.key === "End" ? items.length - 1 : place + (moves[event.key] ?? NaN);
      if (place < 0 || !items[there]) return;
      event.preventDefault();
      stop(items, items[there]);
      items[there].focus({ preventScroll: false });
      if (act) act(items[there]);
    });
  }

  function stop(items, one) {
    items.forEach((item) => item.setAttribute("tabindex", item === one ? "0" : "-1"));
  }

  // The last of the items that has begun by a step.
  function reached(items, step) {
    let found = null;
    for (const item of items) if (Number(item.dataset.step) <= step) found = item;
    return found;
  }

  function mark(items, one) {
    for (const item of items) if (item !== one) item.removeAttribute("aria-current");
    if (one) one.setAttribute("aria-current", "true");
  }

  // Scrolls the list alone, never the page.
  function keepInView(list, item) {
    const top = item.offsetTop - list.clientTop;
    const bottom = top + item.offsetHeight;
    if (top >= list.scrollTop && bottom <= list.scrollTop + list.clientHeight) return;
    const middle = top - Math.max(0, (list.clientHeight - item.offsetHeight) / 3);
    list.scrollTo({ top: middle, behavior: calm.matches ? "auto" : "smooth" });
  }

  function plural(number, noun) {
    return `${number} ${noun}${number === 1 ? "" : "s"}`;
  }

  function withBinding(rule) {
    const values = Object.entries(rule.binding).map(([variable, value]) => `${variable} = ${value}`);
    return `rule ${rule.number}${values.length ? ` with ${values.join(", ")}` : ""}`;
  }

  class EpisodeView {
    // `seek` is called with the step that a user wants to see; `clock` says when a step is.
    constructor(root, { seek, clock }) {
      this.root = root;
      this.clock = clock;
      this.track = make("div", "viewer-track");
      this.playhead = make("i", "viewer-playhead");
      this.marks = make("div", "viewer-events");
      this.legend = make("p", "viewer-legend");
      this.strip = make("div", "viewer-strip", this.track, this.marks, this.legend);
      this.list = make("ol", "viewer-beats");
      this.ruleList = make("ol", "viewer-rules");
      this.goalList = make("ul", "viewer-atoms");
      this.factList = make("ul", "viewer-atoms");
      this.cards = Object.fromEntries(
        [
          ["rules", "Rules", this.ruleList],
          ["goals", "Goals", this.goalList],
          ["facts", "Facts", this.factList],
        ].map(([name, title, list]) => [name, make("div", `viewer-card is-${name}`, make("h3", "", title), list)]),
      );
      this.state = make("div", "viewer-state", ...Object.values(this.cards));
      for (const [part, label] of [
        [this.track, "Actions along the episode"],
        [this.marks, "Surprises along the episode"],
      ]) {
        part.setAttribute("role", "group");
        part.setAttribute("aria-label", label);
      }
      this.list.setAttribute("aria-label", "What happens, step by step");
      this.playhead.setAttribute("aria-hidden", "true");
      const groups = [
        [this.track, () => this.segments],
        [this.list, () => this.beatItems],
        [this.marks, () => this.eventItems],
      ];
      for (const [group, itemsOf] of groups) {
        rove(group, itemsOf);
        group.addEventListener("click", (event) => {
          const item = event.target.closest("[data-step]");
          if (item) seek(Number(item.dataset.step));
        });
      }
      this.begin({ facts: [], rules: [] });
    }

    // Forget everything: another episode begins.
    begin({ facts, rules }) {
      this.beats = [];
      this.segments = [];
      this.beatItems = [];
      this.eventItems = [];
      this.colours = new Map();
      this.current = null;
      this.states = []; // the facts at each beat
      this.first = facts;
      for (const part of [this.track, this.marks, this.list, this.legend]) part.replaceChildren();
      this.track.append(this.playhead);
      this.showRules(rules);
      this.cards.facts.hidden = !facts.length;
      this.showState(null);
    }

    showRules(rules) {
      this.cards.rules.hidden = !rules.length;
      this.ruleLines = rules.map((rule) =>
        make(
          "li",
          "viewer-rule-line",
          make("code", "", rule.text),
          make("span", "viewer-english", rule.sentence),
          make("span", "viewer-binding"),
        ),
      );
      this.ruleList.replaceChildren(...this.ruleLines);
      this.showFired(this.current?.rule ?? null);
    }

    add(beat) {
      const before = this.beats.at(-1);
      this.beats.push(beat);
      this.states.push(this.after(beat));
      const schema = beat.action?.split("(")[0];
      if (schema && !this.colours.has(schema)) this.addColour(schema);
      const colour = schema ? `var(--schema-${this.colours.get(schema)})` : "";
      const last = this.segments.at(-1);
      if (before?.action !== beat.action) {
        if (before?.action && last) last.style.setProperty("--until", beat.step);
        if (beat.action) this.addSegment(beat, colour);
      }
      if (beat.events.length) this.addEvent(beat);
      this.addItem(beat, colour);
    }

    after(beat) {
      const facts = new Set(this.states.at(-1) ?? this.first);
      for (const fact of beat.appeared) facts.add(fact);
      for (const fact of beat.vanished) facts.delete(fact);
      return facts;
    }

    addColour(schema) {
      this.colours.set(schema, (this.colours.size % COLOURS) + 1);
      const swatch = make("i", "viewer-swatch");
      swatch.style.setProperty("--schema", `var(--schema-${this.colours.get(schema)})`);
      this.legend.insertBefore(make("span", "", swatch, schema), this.legend.querySelector(".is-event")?.parentNode);
    }

    addSegment(beat, colour) {
      const segment = make("button", "viewer-segment", make("span", "", beat.action));
      segment.style.setProperty("--schema", colour);
      segment.style.setProperty("--step", beat.step);
      segment.style.setProperty("--until", beat.step);
      segment.title = `${this.clock(beat.step)}  ${beat.action}`;
      this.put(segment, beat, this.segments);
      this.track.insertBefore(segment, this.playhead);
    }

    addEvent(beat) {
      if (!this.eventItems.length)
        this.legend.append(make("span", "", make("i", "viewer-swatch is-event"), "what no action explains"));
      const event = make("button", "viewer-event");
      event.style.setProperty("--step", beat.step);
      event.title = `${this.clock(beat.step)}  ${beat.events.join(", ")}`;
      event.setAttribute("aria-label", event.title);
      this.put(event, beat, this.eventItems);
      this.marks.append(event);
    }

    addItem(beat, colour) {
      const left = beat.goals_left;
      const facts = [
        ...beat.appeared.map((fact) => make("span", "viewer-new", `+ ${fact}`)),
        ...beat.vanished.map((fact) => make("span", "viewer-gone", `− ${fact}`)),
      ];
      const rule = beat.rule ? make("span", "viewer-rule", withBinding(beat.rule)) : null;
      if (rule) rule.title = beat.rule.text;
      const what = make(
        "span",
        "viewer-what",
        ...beat.events.map((event) => make("span", "viewer-happened", event)),
        make("span", "viewer-action", beat.action ?? ""),
        beat.rule ? make("span", "viewer-sentence", beat.rule.sentence) : null,
        rule,
        facts.length ? make("span", "viewer-facts", ...facts) : null,
        make("span", "viewer-goals", left.length ? `${plural(left.length, "goal")} left: ${left.join(", ")}` : "no goal left"),
      );
      const item = make("button", "viewer-beat", make("span", "viewer-time", this.clock(beat.step)), what);
      item.classList.toggle("has-event", beat.events.length > 0);
      if (colour) item.style.setProperty("--schema", colour);
      this.put(item, beat, this.beatItems);
      this.list.append(make("li", "", item));
    }

    put(item, beat, items) {
      item.type = "button";
      item.dataset.step = beat.step;
      item.tabIndex = items.length ? -1 : 0;
      items.push(item);
    }

    // Says at the last beat how it ended.
    finish(outcome) {
      const item = this.beatItems.at(-1);
      if (item && !this.beats.at(-1).action) item.querySelector(".viewer-action").textContent = `the end: ${outcome}`;
    }

    // The strip is so many steps long; the action that is done at its end goes on until then.
    setLength(steps) {
      this.root.style.setProperty("--steps", Math.max(1, steps));
      if (this.beats.at(-1)?.action) this.segments.at(-1)?.style.setProperty("--until", steps);
    }

    setPlayhead(part) {
      this.playhead.style.left = `${100 * Math.min(1, Math.max(0, part))}%`;
    }

    // Show what holds at a step.
    show(step) {
      const item = reached(this.beatItems, step);
      const place = this.beatItems.indexOf(item);
      if (place >= 0 && this.beats[place] === this.current) return;
      this.current = place < 0 ? null : this.beats[place];
      mark(this.beatItems, item);
      mark(this.segments, reached(this.segments, step));
      if (!this.list.contains(document.activeElement) && this.beatItems.length)
        stop(this.beatItems, item ?? this.beatItems[0]);
      if (item) keepInView(this.list, item);
      this.showState(place < 0 ? null : place);
    }

    showState(place) {
      const beat = place === null ? null : this.beats[place];
      this.showFired(beat?.rule ?? null);
      const goal = (text, done) => make("li", done ? "is-done" : "is-open", text);
      this.goalList.replaceChildren(
        ...(beat?.goals_left ?? []).map((text) => goal(text, false)),
        ...(beat?.goals_done ?? []).map((text) => goal(text, true)),
      );
      this.cards.goals.hidden = !this.goalList.childElementCount;
      const isNew = new Set(beat?.appeared);
      this.factList.replaceChildren(
        ...[...(place === null ? this.first : this.states[place])]
          .sort()
          .map((fact) => make("li", isNew.has(fact) ? "is-new" : "", fact)),
        ...(beat?.vanished ?? []).map((fact) => make("li", "is-gone", fact)),
      );
    }

    showFired(rule) {
      mark(this.ruleLines, rule ? this.ruleLines[rule.number - 1] : null);
      for (const line of this.ruleLines) line.querySelector(".viewer-binding").textContent = "";
      const line = rule && this.ruleLines[rule.number - 1];
      if (!line) return;
      const [, objects] = withBinding(rule).split(" with ");
      line.querySelector(".viewer-binding").textContent = `fires${objects ? ` with ${objects}` : ""}: ${rule.sentence}`;
      keepInView(this.ruleList, line);
    }
  }

  return { EpisodeView, make, rove, stop, plural };
})();
