// Keeps a page for the time when the server can't be reached.

const SCRIPT = "/sw.js";
const policy = window.trustedTypes?.createPolicy("offline", { createScriptURL: () => SCRIPT });

// Without it (no TLS, a private window) the browser's own page is shown.
navigator.serviceWorker?.register(policy ? policy.createScriptURL("") : SCRIPT).catch(() => {});
