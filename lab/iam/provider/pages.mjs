// The provider's web pages: no scripts, nothing loaded from elsewhere.

const STYLE = `
:root { color-scheme: light dark; --ink: #1c2733; --dim: #5b6875; --line: #d5dce3; --card: #fff; --ground: #eef2f6;
  --brand: #0b5cad; --bad: #a3201d; --badground: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6ebf0; --dim: #9aa8b5; --line: #3a4652; --card: #1d252d;
  --ground: #12181e; --brand: #3b8ae0; --bad: #ff9a94; --badground: #40211f; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; grid-template-rows: 1fr auto; justify-items: center;
  background: var(--ground); color: var(--ink); font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { align-self: center; width: min(26rem, calc(100vw - 2rem)); margin: 2rem 0; padding: 2rem; background: var(--card);
  border: 1px solid var(--line); border-top: 4px solid var(--brand); border-radius: 6px; }
h1 { margin: 0 0 .5rem; font-size: 1.35rem; line-height: 1.3; }
p { margin: .5rem 0 1rem; } .dim, footer { color: var(--dim); font-size: .875rem; }
label { display: block; margin: 1rem 0 .25rem; font-weight: 600; font-size: .9rem; }
input { width: 100%; padding: .6rem .7rem; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--line); border-radius: 4px; }
input:focus-visible, button:focus-visible, a:focus-visible { outline: 3px solid var(--brand); outline-offset: 2px; }
button { width: 100%; margin-top: 1.25rem; padding: .65rem; font: inherit; font-weight: 600; cursor: pointer;
  color: #fff; background: #0b5cad; border: 1px solid #0b5cad; border-radius: 4px; }
button.plain { margin-top: .6rem; color: inherit; background: transparent; border-color: var(--line); }
main > :last-child { margin-bottom: 0; }
ul { margin: .5rem 0 1rem; padding-left: 1.2rem; } code { overflow-wrap: anywhere; } a { color: var(--brand); }
.error { padding: .6rem .8rem; color: var(--bad); background: var(--badground); border-radius: 4px; }
footer { padding: 1rem; text-align: center; }`;

const SCOPES = {
  openid: 'confirm who you are',
  profile: 'your name, user name and groups',
  email: 'your e-mail address',
  address: 'your postal address',
  offline_access: 'stay connected while you are away',
  wlcg: 'your WLCG profile',
  'wlcg.groups': 'your groups in WLCG form',
};

const escape = (text) => String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

function page(organisation, title, body) {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title><link rel="icon" href="data:,"><style>${STYLE}</style></head>
<body><main><h1>${escape(title)}</h1>
${body}</main>
<footer>${escape(organisation)}: identity provider of a test bench, in the shape of INDIGO IAM</footer></body></html>
`;
}

/** @param {string} organisation shown on every page. @returns functions that make the pages' HTML. */
export function pagesFor(organisation) {
  return {
    login({ action, client, username = '', error = '' }) {
      return page(organisation, `Welcome to ${organisation}`, `
<p>Sign in to continue to <b>${escape(client)}</b>.</p>
${error && `<p class="error" role="alert">${escape(error)}</p>`}
<form id="login" method="post" action="${escape(action)}">
<label for="username">Username</label>
<input id="username" name="username" value="${escape(username)}" autocomplete="username" autocapitalize="none" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button type="submit">Sign in</button></form>`);
    },

    approval({ action, client, user, scopes, redirect }) {
      const items = scopes.map((scope) => `<li>${escape(SCOPES[scope] ?? scope)}</li>`).join('\n');
      return page(organisation, `Approval required for ${client}`, `
<p>You are signed in as <b>${escape(user)}</b>. <b>${escape(client)}</b> asks for access to:</p>
<ul>${items}</ul>
<form id="approve" method="post" action="${escape(action)}/approve"><button type="submit">Authorize</button></form>
<form id="deny" method="post" action="${escape(action)}/deny"><button type="submit" class="plain">Deny</button></form>
<p class="dim">You will return to <code>${escape(redirect)}</code>. Not ${escape(user)}? <a href="/logout">Sign out</a> first.</p>`);
    },

    home({ user, groups }) {
      const body = user
        ? `<p>You are signed in as <b>${escape(user)}</b>, member of ${escape(groups.join(', '))}.</p>
<p><a href="/logout">Sign out</a> to use another account.</p>`
        : '<p>Nobody is signed in. Start at the service that you want to use; it sends you here to sign in.</p>';
      return page(organisation, organisation, body);
    },

    logout({ form }) {
      return page(organisation, 'Sign out?', `
<p>Services where you are signed in keep their own session until you sign out there.</p>
${form}
<button type="submit" form="op.logoutForm" value="yes" name="logout" autofocus>Sign out</button>
<button type="submit" form="op.logoutForm" class="plain">Stay signed in</button>`);
    },

    loggedOut() {
      return page(organisation, 'Signed out', '<p>You can close this page, or sign in again from the service.</p>');
    },

    error({ reason }) {
      return page(organisation, 'This did not work', `
<p class="error" role="alert">${escape(reason)}</p>
<p>Go back to the service and start again.</p>`);
    },
  };
}
