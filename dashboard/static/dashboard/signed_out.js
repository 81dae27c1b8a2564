/** The session has ended: nothing can be read or sent any more. */

const notice = document.getElementById("signed-out");

export function signedOut() {
  notice.hidden = false;
}
