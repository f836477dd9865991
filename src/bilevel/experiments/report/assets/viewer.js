// The timeline of an episode follows its film; a click on it, or Enter, moves the film there.
(() => {
  "use strict";

  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  // Films are kept in the page as text; one that is shown is made a file in memory, which every browser can seek in.
  function load(video) {
    const prefix = "data:video/mp4;base64,";
    const source = video.getAttribute("src");
    if (!source.startsWith(prefix)) return;
    const bytes = Uint8Array.from(atob(source.slice(prefix.length)), (letter) => letter.charCodeAt(0));
    video.preload = "metadata";
    video.src = URL.createObjectURL(new Blob([bytes], { type: "video/mp4" }));
  }

  // Arrow keys move between the items of a group, of which only one is a tab stop.
  function rove(items, act) {
    items.forEach((item, place) => {
      item.addEventListener("keydown", (event) => {
        const moves = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
        const there =
          event.key === "Home" ? 0 : event.key === "End" ? items.length - 1 : place + (moves[event.key] ?? NaN);
        if (!items[there]) return;
        event.preventDefault();
        stop(items, items[there]);
        items[there].focus({ preventScroll: false });
        if (act) act(items[there]);
      });
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

  function follow(episode) {
    const video = episode.querySelector("video");
    const list = episode.querySelector(".viewer-beats");
    const playhead = episode.querySelector(".viewer-playhead");
    const [segments, beats, events] = ["segment", "beat", "event"].map((kind) => [
      ...episode.querySelectorAll(`.viewer-${kind}`),
    ]);
    const { stepsPerSecond, picturesPerSecond, seconds } = episode.dataset;
    const perPicture = stepsPerSecond / picturesPerSecond;
    let current = null;

    function show() {
      const time = video.currentTime;
      // What is seen is a picture, which shows the steps that are over when it begins.
      const step = Math.floor(time * picturesPerSecond + 1e-3) * perPicture + 1e-3;
      playhead.style.left = `${(100 * Math.min(time, seconds)) / seconds}%`;
      const beat = reached(beats, step);
      if (beat === current) return;
      current = beat;
      mark(beats, beat);
      mark(segments, reached(segments, step));
      if (!list.contains(document.activeElement)) stop(beats, beat ?? beats[0]);
      if (beat) keepInView(list, beat);
    }

    function watch() {
      show();
      if (!video.paused && !video.ended) requestAnimationFrame(watch);
    }

    for (const item of [...segments, ...beats, ...events])
      item.addEventListener("click", () => {
        load(video);
        // Where the picture that first shows the step has begun, and a little into it, lest rounding show the one before.
        const picture = Math.ceil((item.dataset.step * picturesPerSecond) / stepsPerSecond - 1e-6);
        video.currentTime = (picture + 0.25) / picturesPerSecond;
      });
    for (const group of [segments, beats, events]) rove(group);
    video.addEventListener("play", watch);
    for (const change of ["loadedmetadata", "seeking", "seeked", "timeupdate", "ended"])
      video.addEventListener(change, show);
  }

  function begin(viewer) {
    if (viewer.dataset.ready) return;
    viewer.dataset.ready = "true";
    const tabs = [...viewer.querySelectorAll("[role=tab]")];
    const episodes = [...viewer.querySelectorAll("[role=tabpanel]")];

    function choose(tab) {
      stop(tabs, tab);
      tabs.forEach((other, place) => {
        const chosen = other === tab;
        other.setAttribute("aria-selected", String(chosen));
        episodes[place].hidden = !chosen;
        const video = episodes[place].querySelector("video");
        if (chosen) load(video);
        else video.pause();
      });
    }

    episodes.forEach(follow);
    tabs.forEach((tab) => tab.addEventListener("click", () => choose(tab)));
    rove(tabs, choose);
    load(episodes[0].querySelector("video"));
  }

  document.querySelectorAll(".viewer").forEach(begin);
})();
