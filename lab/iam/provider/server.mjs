// An OpenID provider in the shape of INDIGO IAM (endpoint paths, claims, approval page, dynamic registration), on the
// certified library oidc-provider. Usage: node server.mjs CONFIG.json STATE.json
import { execFile } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import https from 'node:https';
import Provider from 'oidc-provider';
import { CLAIMS, SCOPES, claimsOf } from './claims.mjs';
import { grantOfflineAccess, groupSearch, signAccessTokens } from './indigo.mjs';
import { pagesFor } from './pages.mjs';
import { fileStore } from './store.mjs';

const HOUR = 3600;
const [configFile, stateFile] = process.argv.slice(2);
const config = JSON.parse(fs.readFileSync(configFile, 'utf8'));
const pages = pagesFor(config.organisation);
const KID = 'rsa1';
const signingKey = crypto.createPrivateKey(config.signing_key);
const findUser = (sub) => config.users.find((user) => user.sub === sub);

const provider = new Provider(config.issuer, {
  adapter: fileStore(stateFile),
  jwks: { keys: [{ ...signingKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: KID }] },
  cookies: { keys: config.cookie_keys },
  scopes: SCOPES,
  claims: CLAIMS,
  conformIdTokenClaims: false, // IAM puts the groups into the ID token, not only into /userinfo
  pkce: { required: () => false }, // IAM leaves PKCE to clients that have a secret
  // IAM gives a refresh token for the scope offline_access without asking for prompt=consent.
  issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token')
    && (client.scope ?? '').split(' ').includes('offline_access'),
  expiresWithSession: () => false,
  clientBasedCORS: () => false,
  features: {
    devInteractions: { enabled: false },
    introspection: { enabled: true },
    pushedAuthorizationRequests: { enabled: false },
    revocation: { enabled: true },
    registration: { enabled: true },
    registrationManagement: { enabled: true, rotateRegistrationAccessToken: false },
    rpInitiatedLogout: {
      enabled: true,
      logoutSource: (ctx, form) => { ctx.body = pages.logout({ form }); },
      postLogoutSuccessSource: (ctx) => { ctx.body = pages.loggedOut(); },
    },
  },
  routes: {
    authorization: '/authorize',
    token: '/token',
    userinfo: '/userinfo',
    jwks: '/jwk',
    introspection: '/introspect',
    revocation: '/revoke',
    registration: '/iam/api/client-registration',
    end_session: '/logout',
  },
  ttl: {
    AccessToken: HOUR, IdToken: HOUR / 6, Interaction: HOUR, Session: 24 * HOUR, Grant: 24 * HOUR, RefreshToken: 24 * HOUR,
  },
  interactions: { url: (_ctx, interaction) => `/interaction/${interaction.uid}` },
  renderError: (ctx, out) => {
    ctx.type = 'html';
    ctx.body = pages.error({ reason: out.error_description ?? out.error });
  },
  findAccount: (_ctx, sub) => {
    const user = findUser(sub);
    return user && { accountId: sub, claims: () => claimsOf(user, config.organisation) };
  },
});

signAccessTokens(provider, signingKey, KID);

for (const event of ['server_error', 'authorization.error', 'grant.error', 'registration_create.error']) {
  provider.on(event, (_ctx, error) => console.error(event, error.message, error.error_description ?? ''));
}
provider.on('registration_create.success', (_ctx, client) => console.log(`registered client ${client.clientName ?? client.clientId}`));

const sameText = (one, other) => crypto.timingSafeEqual(
  ...[one, other].map((text) => crypto.createHash('sha256').update(text).digest()),
);

async function formOf(request) {
  let text = '';
  for await (const chunk of request) {
    text += chunk;
    if (text.length > 10000) throw new Error('The form is too large.');
  }
  return new URLSearchParams(text);
}

async function show(ctx, { uid, prompt, params, session }) {
  const client = await provider.Client.find(params.client_id);
  const name = client.clientName ?? client.clientId;
  ctx.body = prompt.name === 'login'
    ? pages.login({ action: `/interaction/${uid}/login`, client: name })
    : pages.approval({
      action: `/interaction/${uid}`,
      client: name,
      user: findUser(session.accountId).name,
      scopes: params.scope.split(' '),
      redirect: params.redirect_uri,
    });
}

async function signIn(ctx, { uid, params }) {
  const form = await formOf(ctx.req);
  const username = form.get('username') ?? '';
  const user = config.users.find((candidate) => candidate.name === username);
  if (user && sameText(user.password, form.get('password') ?? '')) {
    console.log(`${username} signed in`);
    return { login: { accountId: user.sub } };
  }
  const client = await provider.Client.find(params.client_id);
  ctx.status = 401;
  ctx.body = pages.login({
    action: `/interaction/${uid}/login`, client: client.clientName ?? client.clientId, username, error: 'Wrong username or password.',
  });
  return undefined;
}

async function approve({ grantId, params, prompt, session }) {
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  const { missingOIDCScope, missingOIDCClaims } = prompt.details;
  if (missingOIDCScope) grant.addOIDCScope(missingOIDCScope.join(' '));
  if (missingOIDCClaims) grant.addOIDCClaims(missingOIDCClaims);
  return { consent: { grantId: await grant.save() } };
}

async function answer(ctx, action, interaction) {
  if (action === 'login') return signIn(ctx, interaction);
  if (action === 'approve') return approve(interaction);
  return { error: 'access_denied', error_description: `${config.organisation}: the user denied access` };
}

async function interact(ctx, action) {
  const interaction = await provider.interactionDetails(ctx.req, ctx.res);
  if (ctx.method === 'GET' && !action) return show(ctx, interaction);
  if (ctx.method !== 'POST' || !action) return ctx.throw(405);
  const result = await answer(ctx, action, interaction);
  if (result) {
    ctx.redirect(await provider.interactionResult(ctx.req, ctx.res, result, { mergeWithLastSubmission: action !== 'login' }));
    ctx.status = 303;
  }
  return undefined;
}

provider.use(grantOfflineAccess);
provider.use(groupSearch(provider, [...new Set(config.users.flatMap((user) => user.groups))].sort()));
provider.use(async (ctx, next) => {
  const interaction = /^\/interaction\/[\w-]+(?:\/(login|approve|deny))?$/.exec(ctx.path);
  if (!interaction && ctx.path !== '/') return next();
  ctx.set({
    'Cache-Control': 'no-store',
    'Content-Security-Policy': "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'",
  });
  try {
    if (interaction) return await interact(ctx, interaction[1]);
    const user = findUser((await provider.Session.get(ctx)).accountId);
    ctx.body = pages.home({ user: user?.name, groups: user?.groups });
  } catch (error) {
    console.error(error.message);
    ctx.status = error.status ?? 400;
    ctx.body = pages.error({ reason: error.error_description ?? error.message });
  }
  return undefined;
});

const { hostname, port } = new URL(config.issuer);
https.createServer({ key: config.tls_key, cert: config.tls_certificate }, provider.callback()).listen(Number(port), hostname, () => {
  console.log(`ready: ${config.issuer}`);
  if (process.env.NOTIFY_SOCKET) execFile('systemd-notify', ['--ready']);
});
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0));
