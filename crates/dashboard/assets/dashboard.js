// Keeps a page that can be read without it up to date: hears that something changed, asks for the page again,
// and puts what differs into place. Nothing is made here that the server did not write.
"use strict";

(() => {
  const topics = (document.body.dataset.topics || "").split(" ").filter(Boolean);
  const status = document.getElementById("live");

  const say = (state, words) => {
    if (!status) return;
    status.className = "live " + state;
    if (status.textContent !== words) status.textContent = words;
  };

  // How long ago, in the words of the server.
  const span = (seconds) => {
    if (seconds < 120) return seconds + " s";
    if (seconds < 7200) return Math.floor(seconds / 60) + " min";
    if (seconds < 172800) return Math.floor(seconds / 3600) + " h";
    return Math.floor(seconds / 86400) + " d";
  };
  const tick = () => {
    for (const time of document.querySelectorAll("time[data-ago]")) {
      const at = Date.parse(time.dateTime);
      if (Number.isNaN(at)) continue;
      const passed = Math.floor((Date.now() - at) / 1000);
      const words = passed < 0 ? "in " + span(-passed) : passed < 5 ? "now" : span(passed) + " ago";
      if (time.textContent !== words) time.textContent = words;
    }
  };
  setInterval(tick, 5000);

  // How many questions wait for a person: beside their page's name, and in the title, where a tab that nobody looks
  // at shows it too.
  const badge = document.getElementById("waiting-count");
  const title = document.title.replace(/^\(\d+\) /, "");
  const count = () => {
    const waiting = Number(badge ? badge.dataset.waiting : 0);
    const words = waiting > 0 ? "(" + waiting + ") " + title : title;
    if (document.title !== words) document.title = words;
  };
  const look = async () => {
    try {
      const answer = await fetch("/waiting", {
        credentials: "same-origin", redirect: "error", signal: AbortSignal.timeout(20000),
      });
      if (!answer.ok || !badge) return;
      const { waiting } = await answer.json();
      badge.dataset.waiting = waiting;
      badge.firstElementChild.textContent = waiting;
      badge.hidden = waiting === 0;
      count();
    } catch {
      // It is asked again, by the next event or the next time.
    }
  };

  // Makes `old` like `fresh` and leaves alone what a person has in hand: an open detail, a field being written.
  const morph = (old, fresh) => {
    if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) {
      old.replaceWith(fresh);
      return;
    }
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    if (old.nodeType !== Node.ELEMENT_NODE || old.isEqualNode(fresh)) return;
    const kept = old.nodeName === "DETAILS" ? ["open"] : old.nodeName === "INPUT" ? ["value", "checked"] : [];
    for (const { name } of [...old.attributes]) {
      if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
    }
    for (const { name, value } of fresh.attributes) {
      if (!kept.includes(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    if (old.nodeName === "INPUT" && old.type === "hidden") old.value = fresh.value;
    children(old, fresh);
  };

  const children = (old, fresh) => {
    const keyed = new Map();
    for (const child of old.children) {
      if (child.dataset.key) keyed.set(child.dataset.key, child);
    }
    let at = old.firstChild;
    for (const wanted of [...fresh.childNodes]) {
      const key = wanted.nodeType === Node.ELEMENT_NODE ? wanted.dataset.key : undefined;
      const same = key ? keyed.get(key) : undefined;
      if (key && !same) {
        wanted.classList.add("fresh");
        old.insertBefore(wanted, at);
      } else if (same) {
        if (same === at) at = at.nextSibling;
        else old.insertBefore(same, at);
        keyed.delete(key);
        morph(same, wanted);
      } else {
        while (at && at.nodeType === Node.ELEMENT_NODE && at.dataset.key) at = at.nextSibling;
        if (at) {
          const next = at.nextSibling;
          morph(at, wanted);
          at = next;
        } else {
          old.appendChild(wanted);
        }
      }
    }
    while (at) {
      const next = at.nextSibling;
      if (!(at.nodeType === Node.ELEMENT_NODE && at.dataset.key && !keyed.has(at.dataset.key))) at.remove();
      at = next;
    }
    for (const gone of keyed.values()) gone.remove();
  };

  // What is shown is live while events are heard and the last page that was asked for came. Why it did not come is
  // said until one does: figures that stand still must not look as if they moved.
  let hears = false;
  let fault = "";
  const tell = () => {
    if (fault) say("off", "not live: " + fault);
    else if (hears) say("on", "live");
    else say("off", "not live");
  };

  let asking = false;
  let again = false;
  let retry = 0;
  const refresh = async () => {
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    clearTimeout(retry);
    try {
      const answer = await fetch(location.href, {
        credentials: "same-origin", redirect: "error", signal: AbortSignal.timeout(20000),
      });
      if (answer.status === 401) {
        location.reload();
        return;
      }
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const part of document.querySelectorAll("[data-live]")) {
          const fresh = page.getElementById(part.id);
          if (fresh) morph(part, document.importNode(fresh, true));
        }
        count();
        fault = "";
      } else {
        fault = answer.status === 404 ? "this is not there any more" : "the answer was " + answer.status;
      }
    } catch {
      fault = "no answer";
    } finally {
      asking = false;
      tell();
      if (again) {
        again = false;
        setTimeout(refresh, 250);
      } else if (fault && !document.hidden) {
        retry = setTimeout(refresh, 15000);
      }
    }
  };

  if (topics.length > 0) document.addEventListener("hermetic-refresh", refresh);

  // A hidden page hears nothing: browsers have few connections to one server, and other pages need them too.
  let stream = null;
  const open = () => {
    if (stream || document.hidden) return;
    stream = new EventSource("/events");
    stream.onopen = () => {
      hears = true;
      if (topics.length > 0) tell();
      // What was shown when nobody heard may be old, whatever comes from now on.
      if (fault) refresh();
    };
    stream.onerror = () => {
      hears = false;
      if (topics.length > 0) tell();
      if (stream.readyState === EventSource.CLOSED) {
        stream = null;
        setTimeout(open, 30000);
      }
    };
    stream.addEventListener("reset", topics.length > 0 ? refresh : look);
    // Where all that happens is asked for anyway, the number comes with the page.
    if (!topics.includes("activity")) stream.addEventListener("waiting", look);
    for (const topic of topics) stream.addEventListener(topic, refresh);
  };
  const close = () => {
    if (stream) stream.close();
    stream = null;
    hears = false;
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  // Its title is all that is seen of it meanwhile.
  setInterval(() => { if (document.hidden) look(); }, 30000);
  if (topics.length === 0) say("", "not live");
  window.addEventListener("pagehide", close);
  open();
})();
