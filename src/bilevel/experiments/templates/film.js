// The timeline of an episode follows its film; a click on it, or Enter, moves the film there.
(() => {
  "use strict";

  // Films are kept in the page as text; one that is shown is made a file in memory, which every browser can seek in.
  function load(video) {
    const prefix = "data:video/mp4;base64,";
    const source = video.getAttribute("src");
    if (!source.startsWith(prefix)) return;
    const bytes = Uint8Array.from(atob(source.slice(prefix.length)), (letter) => letter.charCodeAt(0));
    video.preload = "metadata";
    video.src = URL.createObjectURL(new Blob([bytes], { type: "video/mp4" }));
  }

  function follow(episode) {
    const video = episode.querySelector("video");
    const timeline = JSON.parse(episode.dataset.timeline);
    const { steps_per_second: stepsPerSecond, pictures_per_second: picturesPerSecond, seconds } = timeline;
    const perPicture = stepsPerSecond / picturesPerSecond;

    // When a step is in the film: 0:07.3, as players show it, with tenths.
    function clock(step) {
      const tenths = Math.floor((10 * step) / stepsPerSecond + 1e-6);
      return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, "0")}.${tenths % 10}`;
    }

    function seek(step) {
      load(video);
      // Where the picture that first shows the step has begun, and a little into it, lest rounding show the one before.
      const picture = Math.ceil((step * picturesPerSecond) / stepsPerSecond - 1e-6);
      video.currentTime = (picture + 0.25) / picturesPerSecond;
    }

    const view = new Viewer.EpisodeView(episode, { seek, clock });
    episode.querySelector(".viewer-stage").append(view.strip, view.list);
    episode.append(view.state);
    view.begin(timeline.beginning);
    timeline.beats.forEach((beat) => view.add(beat));
    view.setLength(seconds * stepsPerSecond);
    view.finish(timeline.outcome);

    function show() {
      // What is seen is a picture, which shows the steps that are over when it begins.
      const picture = Math.floor(video.currentTime * picturesPerSecond + 1e-3);
      view.setPlayhead(video.currentTime / seconds);
      view.show(picture * perPicture + 1e-3);
    }

    function watch() {
      show();
      if (!video.paused && !video.ended) requestAnimationFrame(watch);
    }

    video.addEventListener("play", watch);
    for (const change of ["loadedmetadata", "seeking", "seeked", "timeupdate", "ended"])
      video.addEventListener(change, show);
  }

  function begin(viewer) {
    const tabs = [...viewer.querySelectorAll("[role=tab]")];
    const episodes = [...viewer.querySelectorAll("[role=tabpanel]")];

    function choose(tab) {
      Viewer.stop(tabs, tab);
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
    Viewer.rove(viewer.querySelector("[role=tablist]"), () => tabs, choose);
    load(episodes[0].querySelector("video"));
  }

  document.querySelectorAll(".viewer").forEach(begin);
})();
