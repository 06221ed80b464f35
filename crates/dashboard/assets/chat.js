// Makes writing quicker where there is a script: sends without leaving the page, by Enter, and keeps the end of
// the conversation in sight. What it shows comes from the server, as everywhere.
"use strict";

(() => {
  const messages = document.getElementById("messages");
  const composer = document.getElementById("composer");
  if (!messages) return;
  document.getElementById("again").hidden = true;

  // Whoever reads further up is left there.
  let atEnd = true;
  const isAtEnd = () => messages.scrollHeight - messages.scrollTop - messages.clientHeight < 80;
  const toEnd = () => { messages.scrollTop = messages.scrollHeight; };
  messages.addEventListener("scroll", () => { atEnd = isAtEnd(); });
  new MutationObserver(() => { if (atEnd) toEnd(); }).observe(messages, { childList: true, subtree: true, characterData: true });
  toEnd();
  if (!composer) return;

  const text = document.getElementById("text");
  const refused = document.getElementById("refused");
  const button = composer.querySelector("button[type=submit]");
  let sending = false;
  const freshToken = () => Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("-");

  const send = async () => {
    if (sending) return;
    sending = true;
    button.disabled = true;
    refused.hidden = true;
    try {
      const answer = await fetch(composer.action, {
        method: "POST", body: new FormData(composer), credentials: "same-origin",
      });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.querySelector("#composer input[name=once]");
      if (answer.ok && fresh) {
        composer.reset();
        composer.elements.once.value = fresh.value;
        atEnd = true;
        document.dispatchEvent(new Event("hermetic-refresh"));
      } else {
        const said = page.querySelector("main p:not(.brand)");
        refused.textContent = said ? said.textContent : "It was not sent.";
        // What this form said before was taken; what it says now goes under a token of its own.
        if (answer.status === 409) composer.elements.once.value = freshToken();
        refused.hidden = false;
      }
    } catch {
      // The form keeps its token: sent again, it is the same message.
      refused.textContent = "The gateway does not answer. Send it again; it will not be there twice.";
      refused.hidden = false;
    } finally {
      sending = false;
      button.disabled = false;
      text.focus();
    }
  };

  composer.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  // On a telephone Enter begins a line, as people are used to.
  const hasKeyboard = matchMedia("(pointer: fine)").matches;
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.shiftKey) return;
    if (!hasKeyboard && !event.ctrlKey) return;
    event.preventDefault();
    composer.requestSubmit();
  });
})();
