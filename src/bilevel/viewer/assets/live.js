// The page of an episode that runs: it asks for news again and again, and sends what its viewer wants.
(() => {
  "use strict";

  const { make, plural } = Viewer;
  const part = (id) => document.getElementById(id);
  const KEPT = 1500; // pictures, to look back at

  const known = { version: 0, episode: 0, beats: 0 };
  let about = null;
  let paused = false;
  let now = null;
  let ending = null;
  let lookedBack = null; // the step that is looked at, where it is not the newest
  let pictures = []; // [step, address], in the order of the steps
  let pictureShown = 0;
  let pictureWanted = 0;
  let editedByHand = false;

  const view = new Viewer.EpisodeView(part("live"), { seek, clock: (step) => `step ${step.toLocaleString("en")}` });
  part("stage").append(view.strip, view.list);
  part("stage").after(view.state);
  view.state.append(part("control-card"));
  view.state.append(part("editor"));

  // What the viewer wants

  let sent = Promise.resolve(); // what was asked for last: requests arrive in the order in which they are made

  // Returns why a request was refused; nothing if it was not.
  function send(type, values = {}) {
    sent = sent.then(() => post(JSON.stringify({ type, ...values })));
    return sent;
  }

  async function post(body) {
    try {
      const answer = await fetch("request", { method: "POST", headers: { "Content-Type": "application/json" }, body });
      return answer.ok ? "" : (await answer.text()).trim();
    } catch {
      return "the program has ended";
    }
  }

  part("play").onclick = () => {
    lookForward();
    send("pace", { paused: !paused });
  };
  part("step").onclick = () => {
    lookForward();
    send("step");
  };
  part("speed").onchange = (event) => send("pace", { speed: Number(event.target.value) });
  part("push").onclick = () => send("push");
  part("again").onclick = () => send("again");
  part("next").onclick = () => send("again", { ahead: 1 });
  part("quit").onclick = () => send("quit");
  part("back").onclick = lookForward;

  document.addEventListener("keydown", (event) => {
    const isStep = event.key === "ArrowRight" && event.shiftKey;
    const taken = event.target.closest(isStep ? "textarea, select" : "textarea, select, button, summary");
    const button = isStep ? "step" : event.key === " " ? "play" : null;
    if (taken || !button || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    part(button).click();
  });

  // Looking back: at a step of this episode of which there is a picture

  function seek(step) {
    lookedBack = now && step >= now.step && !ending ? null : step;
    showStep();
  }

  function lookForward() {
    lookedBack = null;
    showStep();
  }

  function showStep() {
    const newest = ending ? ending.steps : (now?.step ?? 0);
    const step = lookedBack ?? newest;
    view.setLength(Math.max(newest, 1));
    view.setPlayhead(step / Math.max(newest, 1));
    view.show(step);
    part("counter").textContent = `step ${step.toLocaleString("en")}`;
    part("doing").textContent = view.current?.action ?? "";
    part("counter").dataset.step = step;
    part("back").hidden = lookedBack === null;
    let found = pictures.at(-1);
    if (lookedBack !== null) found = pictures.find(([at]) => at >= step) ?? found;
    if (found && part("picture").src !== found[1]) part("picture").src = found[1];
    if (found) part("picture").dataset.step = found[0];
  }

  // Pictures: always the newest, and one at a time, so that a slow browser gets fewer of them

  async function fetchPictures() {
    for (;;) {
      if (pictureWanted === pictureShown) {
        await new Promise((resolve) => (fetchPictures.wake = resolve));
        continue;
      }
      const [wanted, episode] = [pictureWanted, known.episode];
      try {
        const answer = await fetch(`picture.jpg?${wanted}`);
        if (answer.ok && episode === known.episode) {
          const at = Number(answer.headers.get("X-Step"));
          keepPicture(at, URL.createObjectURL(await answer.blob()));
        }
      } catch {
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
      pictureShown = wanted;
    }
  }

  function keepPicture(step, address) {
    if (pictures.at(-1)?.[0] === step) URL.revokeObjectURL(pictures.pop()[1]);
    pictures.push([step, address]);
    if (pictures.length > KEPT) pictures = thinned(pictures);
    part("picture").hidden = false;
    showStep();
  }

  function thinned(all) {
    all.forEach(([, address], place) => place % 2 && URL.revokeObjectURL(address));
    return all.filter((_, place) => place % 2 === 0);
  }

  // News

  async function follow() {
    for (;;) {
      try {
        const answer = await fetch(`news?${new URLSearchParams(known)}`);
        if (!answer.ok) throw new Error((await answer.text()).trim());
        const news = await answer.json();
        if (news) take(news);
        part("lost").hidden = true;
      } catch (error) {
        part("lost").hidden = false;
        part("lost").textContent = "The program has ended, or cannot be reached. What was shown stays here.";
        await new Promise((resolve) => setTimeout(resolve, 1000));
      }
      await new Promise(requestAnimationFrame);
    }
  }

  function take(news) {
    if (news.episode !== known.episode) begin(news);
    known.version = news.version;
    if (news.rules && JSON.stringify(news.rules) !== rulesShown) showRules(news);
    news.beats.forEach((beat) => view.add(beat));
    known.beats = news.beats_from + news.beats.length;
    ({ paused, now, ending } = news);
    if (news.picture && !about.no_pictures) {
      pictureWanted = news.picture;
      fetchPictures.wake?.();
    }
    showPace(news.speed);
    if (now) showNow();
    showEnding();
    showStep();
  }

  function begin(news) {
    about = news.about;
    Object.assign(known, { episode: news.episode, beats: 0 });
    lookedBack = null;
    pictures.forEach(([, address]) => URL.revokeObjectURL(address));
    pictures = [];
    view.begin({ facts: about.facts, rules: [] });
    view.showRules(news.rules?.lines ?? []);
    document.title = `${about.task}, seed ${about.seed}: live`;
    part("title").textContent = about.task;
    part("about").textContent = `${plural(about.objects, "object")}, seed ${about.seed}: ${about.policy}`;
    part("editor").hidden = !about.can_edit;
    part("no-picture").hidden = !about.no_pictures;
    part("no-picture").textContent = about.no_pictures ? `No pictures: ${about.no_pictures}.` : "";
    part("picture").hidden = Boolean(about.no_pictures) || !part("picture").src;
  }

  function showPace(speed) {
    const over = Boolean(ending);
    part("play").textContent = paused ? "Play" : "Pause";
    for (const id of ["play", "step", "push"]) part(id).disabled = over;
    if (document.activeElement !== part("speed")) part("speed").value = String(speed);
    document.body.dataset.state = over ? "over" : paused ? "paused" : "running";
  }

  function showEnding() {
    part("ending").hidden = !ending;
    part("why").hidden = !ending?.why;
    if (!ending) return;
    part("ending").textContent = `${ending.outcome} after ${plural(ending.steps, "step")}`;
    part("ending").classList.toggle("is-success", ending.is_success);
    part("why").textContent = ending.why ?? "";
    view.finish(ending.outcome);
  }

  // What the low level does

  let bars = [];

  function showNow() {
    if (bars.length !== now.control.length) makeBars();
    now.control.forEach((number, place) => {
      const { bar, text } = bars[place];
      const at = (value) => `${(100 * (value - number.low)) / (number.high - number.low || 1)}%`;
      bar.style.setProperty("--wanted", at(number.wanted));
      bar.style.setProperty("--executed", at(number.executed));
      const other = Math.abs(number.wanted - number.executed) > 1e-6 * (number.high - number.low);
      bar.classList.toggle("is-perturbed", other);
      const say = (value) => (number.is_choice ? String(value) : value.toFixed(3));
      text.textContent = other ? `${say(number.wanted)}, executed ${say(number.executed)}` : say(number.wanted);
    });
    const rows = now.seen.map((thing) =>
      make(
        "tr",
        "",
        make("th", "", thing.name),
        ...Object.entries(thing.features).map(([name, value]) =>
          make("td", "", make("span", "live-feature", name), value.toFixed(3)),
        ),
        Object.keys(thing.features).length ? null : make("td", "live-feature", "the network gets nothing of this"),
      ),
    );
    part("seen").replaceChildren(...rows);
  }

  function makeBars() {
    bars = now.control.map((number, place) => {
      const bar = make("div", "live-control", make("i", "live-wanted"), make("i", "live-executed"));
      const text = make("output", "live-number");
      const name = `${place + 1}${number.is_switch ? " (switch)" : ""}`;
      return { bar, text, row: make("div", "live-row", make("span", "live-name", name), bar, text) };
    });
    part("controls").replaceChildren(...bars.map(({ row }) => row));
  }

  // Rules

  let rulesShown = "";

  function showRules(news) {
    const rules = news.rules;
    rulesShown = JSON.stringify(rules);
    view.showRules(rules.lines);
    if (!editedByHand || rules.text === part("rules-text").value) {
      part("rules-text").value = rules.text;
      editedByHand = false;
    }
    part("revert").hidden = !rules.is_edited;
    part("save").hidden = !about?.rules_file;
    part("save").textContent = `Save to ${about?.rules_file}`;
  }

  part("rules-text").oninput = () => (editedByHand = true);
  part("apply").onclick = async () => {
    const wrong = await send("edit", { text: part("rules-text").value });
    part("rules-wrong").textContent = wrong;
    const place = /^rules:(\d+):(\d+):/.exec(wrong);
    if (place) showPlace(Number(place[1]), Number(place[2]));
  };

  // Puts the cursor where something is wrong, by line and column from 1.
  function showPlace(line, column) {
    const text = part("rules-text");
    const before = text.value.split("\n").slice(0, line - 1);
    const at = before.reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
    text.focus();
    text.setSelectionRange(at, at + 1);
  }

  part("revert").onclick = async () => {
    editedByHand = false;
    part("rules-wrong").textContent = await send("revert");
  };
  part("save").onclick = async () => {
    if (!window.confirm(`Overwrite ${about.rules_file}?`)) return;
    const wrong = await send("save", { text: part("rules-text").value });
    part("rules-wrong").textContent = wrong || `saved to ${about.rules_file}`;
  };

  fetchPictures();
  follow();
})();
